"""The scaling curves: what one item costs as their number grows from a hundred to a hundred thousand."""
from dataclasses import dataclass

from .jobs import Job
from .places import c, swift

SIZES = [100, 1_000, 10_000, 100_000]
REPS = 3


@dataclass
class Curve:
    name: str  # in the figures: curve.<name>.<size>
    title: str
    per: str
    commands: dict  # by peer: the command, and the largest size that it can do in reasonable time
    descriptors: float = 0  # of one program, for each item


CURVES = [
    Curve("timers", "Timers", "scheduled and fired", {
        "rondo": ([swift("rondo"), "curve-timers"], 100_000),
        "libev": ([c("bench_ev"), "curve-timers"], 100_000),
        "dispatch": ([swift("dispatch"), "curve-timers"], 100_000),
        "nio": ([swift("nio"), "curve-timers"], 100_000),
        "foundation": ([swift("foundation"), "curve-timers"], 10_000),
    }),
    Curve("sources", "Descriptor sources", "event, a hundred active", {
        "rondo": ([swift("rondo"), "curve-sources"], 100_000),
        "libev": ([c("bench_ev"), "curve-sources"], 100_000),
        "dispatch": ([swift("dispatch"), "curve-sources"], 100_000),
    }, descriptors=1),
    Curve("connections", "HTTP connections", "request, all in flight", {
        "rondo": ([swift("rondo"), "curve-get"], 100_000),
        "libev": ([c("ev_http"), "curve-get"], 100_000),
        "libcurl": ([c("bench_curl"), "curve-get"], 100_000),
        "ahc": ([swift("async-http-client"), "curve-get"], 1_000),
    }, descriptors=1.5),
    Curve("modes", "Modes", "empty pass, each mode in turn", {
        "rondo": ([swift("rondo"), "curve-modes"], 100_000),
        "libev": ([c("bench_ev"), "curve-modes"], 100_000),
        "foundation": ([swift("foundation"), "curve-modes"], 1_000),
    }, descriptors=1),
]

# nginx and the client share loopback's ports, of which there are some 28,000 to one address.
MOST_CONNECTIONS = 10_000


def curve_jobs(peers, descriptors, left_out):
    """The programs of all curves; `descriptors` is how many a program may have open."""
    found = []
    for curve in CURVES:
        for size in SIZES:
            if size * curve.descriptors + 200 > descriptors:
                left_out(f"{curve.title}, {size:,}: they take {int(size * curve.descriptors):,} descriptors,"
                         f" and the limit here is {descriptors:,}")
                continue
            if curve.name == "connections" and size > MOST_CONNECTIONS:
                left_out(f"{curve.title}, {size:,}: loopback has no more than some 28,000 ports to one address")
                continue
            for peer, (command, most) in curve.commands.items():
                if size > most or (peers == "few" and peer in ("nio", "ahc")):
                    continue
                words = [*command, str(size)]
                if curve.name == "connections":
                    words.append("{http}" if peer == "libev" else "http://localhost:{http}/1k.txt")
                # libcurl looks for a free connection from the beginning of its list.
                slow = peer == "libcurl" and size > 1_000
                found.append(Job(f"curve.{curve.name}", peer, words, seconds=150, slow=slow))
    return found


def points(figures, curve):
    """By peer: the (size, nanoseconds) of a curve."""
    found = {}
    for size in SIZES:
        for peer, value in figures.medians(f"curve.{curve.name}.{size}").items():
            found.setdefault(peer, []).append((size, value))
    return {peer: found[peer] for peer in curve.commands if peer in found}


def curve_table(figures):
    lines = ["| CPU, ns | | " + " | ".join(f"{size:,}" for size in SIZES) + " |",
             "| --- | --- |" + " ---: |" * len(SIZES)]
    for curve in CURVES:
        for peer, found in points(figures, curve).items():
            values = dict(found)
            cells = [f"{values[size]:,.0f}" if size in values else "–" for size in SIZES]
            lines.append(f"| {curve.title}: {curve.per} | {peer} | {' | '.join(cells)} |")
    return "\n".join(lines)
