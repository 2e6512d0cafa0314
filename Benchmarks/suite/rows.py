"""The figures that are owed: what the first table of RESULTS.md holds."""
from dataclasses import dataclass

RATES = ("fires/s", "MB/s", "requests/s")


@dataclass
class Row:
    figure: str  # as the programs print it
    title: str
    unit: str
    limit: str  # the peer that does the least possible
    owed: float  # ahead of every peer
    aim: float  # at the limit, or beyond it
    factor: float = 1.0  # from the unit that is printed by the programs to `unit`
    peers: str = None  # the figure of the peers that it stands beside, if they have none of that name
    ours: str = "rondo"  # whose figure it is, where Rondo has two ways
    ratio: bool = False  # `owed` and `aim` are multiples of the limit

    @property
    def larger_is_better(self):
        return self.unit in RATES

    def wanted(self, limit):
        """`owed` and `aim` in the row's unit; None where the limit was not measured."""
        if self.ratio:
            return (self.owed * limit, self.aim * limit) if limit else None
        return self.owed, self.aim

    def standing(self, value, limit):
        if not self.wanted(limit):
            return "–"
        owed, aim = self.wanted(limit)
        met = (lambda wanted: value >= wanted) if self.larger_is_better else (lambda wanted: value <= wanted)
        return "aim" if met(aim) else "met" if met(owed) else "**not met**"


# `.peak` is the peak memory of the program that printed a figure, in KiB; see measure.py.
MIB = 1 / 1024

ROWS = [
    Row("W1.churn.cpu", "a million one-shot timers, CPU each", "ns", "libev", 1500, 630),
    Row("W1.churn.peak", "the same, peak memory", "MiB", "libev", 160, 100, MIB),
    Row("W1.cancel", "schedule and cancel a million, each", "ns", "libev", 400, 150),
    Row("W1.repeat.rate", "10,000 repeating 10 ms timers, rate", "fires/s", "libev", 950_000, 990_000),
    Row("W1.repeat.late.p50", "the same, median lateness", "µs", "libev", 700, 100),
    Row("W2.perform", "perform from another thread, wall a block", "ns", "libev", 400, 200),
    Row("W2.pingpong.p50", "ping-pong between two loops, median", "µs", "libev", 12, 5),
    # Where a loop can spin before it sleeps both figures stand, and the peers' beside each, which sleep.
    Row("W2.pingpong.spin.p50", "the same with a `spinDuration` of 50 µs", "µs", "libev", 12, 5,
        peers="W2.pingpong.p50"),
    Row("W3.fds.cpu", "descriptor events, 100 active of 9,900, CPU each", "ns", "libev", 3600, 3300),
    Row("W4.echo.c64.s64.cpu", "echo, 64 connections, 64 B, CPU a message", "µs", "libev", 6.0, 5.0),
    # By descriptor sources, as on bare libev, and by what a program is likelier to use.
    Row("W4.echo.c64.s64.cpu", "the same by streams and delegates", "µs", "libev", 6.0, 5.0, ours="rondo-streams"),
    Row("W4.echo.c64.s65536.mbps", "echo, 64 connections, 64 KiB", "MB/s", "libev", 2100, 2400),
    Row("W4.echo.c64.s65536.mbps", "the same by streams and delegates", "MB/s", "libev", 2100, 2400,
        ours="rondo-streams"),
    Row("W5.http.c64.cpu", "small GETs, 64 in flight, CPU a request", "µs", "libev-raw", 26, 15, 100),
    Row("W5.https.c64.cpu", "the same over HTTPS", "µs", "libev-raw", 34, 19, 100),
    Row("W5.http.c1.rate", "small GETs, one at a time", "requests/s", "libev-raw", 22_000, 30_000),
    Row("W5.http.c1.spin.rate", "the same with a `spinDuration` of 50 µs", "requests/s", "libev-raw", 22_000, 30_000,
        peers="W5.http.c1.rate"),
    Row("W6.http.cpu", "1 GiB over HTTP, CPU", "s", "libev-raw", 0.33, 0.27),
    Row("W6.http.peak", "the same, peak memory", "MiB", "libev-raw", 20, 15, MIB),
    Row("W6.https.cpu", "1 GiB over HTTPS, CPU", "s", "libev-raw", 0.85, 0.75),
    Row("W6.https.peak", "the same, peak memory", "MiB", "libev-raw", 24, 16, MIB),
    Row("W7.idle", "an idle TCP stream pair", "bytes", "libev", 2000, 600),
    Row("W7.idle-http", "an idle pooled HTTP connection", "bytes", "curl-multi", 4096, 2048),
    Row("W8.pass.10000.other-mode", "an empty pass in another mode, 10,000 timers in default", "ns", "libev",
        500, 250),
    # Multiples of the same crawl without cache and cookies.
    Row("W14.600.cold", "600 pages with the default cache and cookies, CPU a page", "µs", "rondo-plain", 1.2, 1.1,
        ratio=True),
    Row("W14.600.warm", "the same pages again in another process", "µs", "rondo-plain", 1.2, 1.1, ratio=True),
    Row("W14.60000.cold", "60,000 pages with the default cache and cookies, CPU a page", "µs", "rondo-plain", 1.2, 1.1,
        ratio=True),
    Row("W14.60000.warm", "the same pages again in another process", "µs", "rondo-plain", 1.2, 1.1, ratio=True),
    # What is owed is what libcurl takes; over HTTPS nine tenths of it.
    Row("W15.http.c16.cpu", "small GETs with a connection each, 16 in flight, CPU a request", "µs", "curl-multi", 1.0, 0.8,
        factor=100, ratio=True),
    Row("W15.https.c16.cpu", "the same over HTTPS", "µs", "curl-multi", 0.9, 0.8, factor=100, ratio=True),
]
