"""Where things are, how they are built, and the environment in which every program runs."""
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = f"{os.path.dirname(ROOT)}/Sources/Rondo/Rondo.docc/WhatItCosts.md"
BUILD = f"{ROOT}/.build"
SWIFT = f"{BUILD}/release"
C = f"{BUILD}/c"
SITE = f"{BUILD}/nginx"
CERTIFICATE = f"{SITE}/cert.pem"

# Rondo and libcurl read SSL_CERT_FILE; without it URLSession's programs would print their crashes at length.
ENVIRONMENT = dict(os.environ, SWIFT_BACKTRACE="enable=no", LC_ALL="C", SSL_CERT_FILE=CERTIFICATE)


def program(name):
    """The path of a program that need not be on the PATH of whoever is not root."""
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(name, path=path)


# The command, which is a product of the package above; and as `make install` builds it, with Swift's libraries inside.
RONDO = f"{SWIFT}/rondo"
INSTALLED_BUILD = f"{os.path.dirname(ROOT)}/.build-static"
INSTALLED = f"{INSTALLED_BUILD}/release/rondo"


def swift(name):
    return f"{SWIFT}/bench-{name}"


def c(name):
    return f"{C}/{name}"


def make(target):
    """Builds what is written in C."""
    os.makedirs(C, exist_ok=True)
    compiler = os.environ.get("CC") or next(filter(program, ("cc", "gcc", "clang")), "cc")
    subprocess.run(["make", "-s", "-C", f"{ROOT}/c", f"CC={compiler}", target], check=True)


def build(peers, *options):
    """Builds what is written in Swift, in release. (The hashing: see the Makefile.)"""
    subprocess.run(
        ["swift", "build", "-c", "release", "--package-path", ROOT, *options], check=True,
        env=dict(os.environ, RONDO_BENCH_PEERS=peers, SWIFT_DETERMINISTIC_HASHING="1"))


def build_installed():
    """Builds the command as `make install` does."""
    subprocess.run(
        ["swift", "build", "-c", "release", "--package-path", os.path.dirname(ROOT), "--product", "rondo",
         "--static-swift-stdlib", "--scratch-path", INSTALLED_BUILD], check=True)
