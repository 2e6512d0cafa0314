"""The server of W5, W6, W7, W14 and W15, and W11's limit: nginx with one worker, on loopback, on ports that are free."""
import os
import pwd
import shutil
import socket
import subprocess
import time

from .places import CERTIFICATE, SITE, program

CONFIGURATION = """
{user}
daemon off;
worker_processes 1;
worker_rlimit_nofile {descriptors};
pid {site}/nginx.pid;
error_log {site}/error.log warn;
events {{ worker_connections {connections}; use epoll; }}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    open_file_cache max=16 inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path {site}/tmp; proxy_temp_path {site}/tmp; fastcgi_temp_path {site}/tmp;
    uwsgi_temp_path {site}/tmp; scgi_temp_path {site}/tmp;
    server {{
        listen 127.0.0.1:{http} backlog=4096;
        listen 127.0.0.1:{https} ssl backlog=4096;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        # One suite for all: left to themselves, clients differ in what they prefer.
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_session_cache shared:SSL:10m;
        root {site}/www;
        # For W14: pages that differ by their addresses alone, as static files come, with an entity tag and a date.
        location /page/ {{ rewrite ^ /1k.txt break; }}
        # The same, each with another value of one cookie.
        location /kept-cookie/ {{ rewrite ^ /1k.txt break; add_header Set-Cookie "at=$request_uri; Path=/; Max-Age=86400"; }}
        location /session-cookie/ {{ rewrite ^ /1k.txt break; add_header Set-Cookie "at=$request_uri; Path=/"; }}
        # For W15: a connection each, and nothing that a cache could keep.
        # For W11: an answer from memory, on a connection that is kept, or on one each.
        location = /small {{ return 200 "ok"; }}
        location = /small-once {{ keepalive_timeout 0; return 200 "ok"; }}
        location = /once.txt {{ keepalive_timeout 0; add_header Cache-Control no-store; }}
    }}
}}
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


KEY = f"{SITE}/key.pem"
BULK = f"{SITE}/www/1g.bin"


def make_site():
    """Certificate (P-256, for localhost), the pages of 1 KiB, and 1 GiB of random bytes; kept between runs."""
    os.makedirs(f"{SITE}/www", exist_ok=True)
    os.makedirs(f"{SITE}/tmp", exist_ok=True)
    if not os.path.exists(CERTIFICATE):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "3650", "-keyout", KEY, "-out", CERTIFICATE, "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-addext", "basicConstraints=critical,CA:TRUE"], check=True, stderr=subprocess.DEVNULL)
    for name in ("1k", "once"):
        with open(f"{SITE}/www/{name}.txt", "w") as file:
            file.write("x" * 1024)
    if not os.path.exists(BULK) or os.path.getsize(BULK) != 1 << 30:
        if shutil.disk_usage(SITE).free < 2 << 30:
            raise SystemExit(f"run: W6 needs a file of 1 GiB in {SITE}, and there is less than 2 GiB left")
        with open(BULK, "wb") as file:
            for _ in range(1024):
                file.write(os.urandom(1 << 20))


def read_through(path):
    """Has the kernel hold the file: one that is read from the disk while it is sent comes in pieces as small as a page, and
    whoever reads each of them as it comes pays for that several times what he pays otherwise."""
    with open(path, "rb", buffering=0) as file:
        piece = bytearray(1 << 20)
        while file.readinto(piece):
            pass


class Nginx:
    def __init__(self, descriptors):
        for _ in range(3):
            if self.start(descriptors):
                return
        raise SystemExit(f"run: nginx did not start; see {SITE}/error.log")

    def start(self, descriptors):
        self.http, self.https = free_ports(2)
        text = CONFIGURATION.format(
            # As root, the worker would run as somebody who may not look into root's directories.
            user=f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else "",
            site=SITE, certificate=CERTIFICATE, key=KEY, http=self.http, https=self.https, descriptors=descriptors,
            connections=max(1024, descriptors - 1024))
        with open(f"{SITE}/nginx.conf", "w") as file:
            file.write(text)
        open(f"{SITE}/error.log", "w").close()
        self.process = subprocess.Popen(
            [program("nginx"), "-p", SITE, "-c", f"{SITE}/nginx.conf", "-e", f"{SITE}/error.log"])
        until = time.monotonic() + 10
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.https), 1).close()
                return True
            except OSError:
                time.sleep(0.02)
        self.stop()
        return False

    @property
    def pids(self):
        master = self.process.pid
        with open(f"/proc/{master}/task/{master}/children") as file:
            return [master] + [int(pid) for pid in file.read().split()]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
