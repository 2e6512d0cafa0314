"""The figures that are owed: what the first table of RESULTS.md holds."""
from dataclasses import dataclass

RATES = ("fires/s", "MB/s", "requests/s")


@dataclass
class Row:
    figure: str  # as the programs print it
    title: str
    unit: str
    limit: str  # the peer that does the least possible, or that Rondo is measured by; None: there is none
    owed: float  # as a multiple of the limit; in `unit` where `is_absolute`
    aim: float
    factor: float = 1.0  # from the unit that is printed by the programs to `unit`
    peers: str = None  # the figure of the peers that it stands beside, if they have none of that name
    ours: str = "rondo"  # whose figure it is, where Rondo has several ways
    above: str = None  # a figure of Rondo's that is taken off: what stands is the rest
    is_absolute: bool = False  # memory, which no machine is slower at; and time, where a limit is promised

    @property
    def larger_is_better(self):
        return self.unit in RATES

    def standing(self, value, limit):
        """`value` in `unit`, against the limit as measured in the same run."""
        if self.is_absolute:
            measured = value
        elif limit:
            # As it is printed: what is owed is not missed by a thousandth.
            measured = round(value / limit, 2)
        else:
            return "–"
        met = (lambda wanted: measured >= wanted) if self.larger_is_better else (lambda wanted: measured <= wanted)
        return "aim" if met(self.aim) else "met" if met(self.owed) else "**not met**"


# `.peak` is the peak memory of the program that printed a figure, in KiB; see measure.py.
MIB = 1 / 1024

ROWS = [
    Row("W1.churn.cpu", "a million one-shot timers, CPU each", "ns", "libev", 1.5, 1.0),
    Row("W1.churn.peak", "the same, peak memory", "MiB", "libev", 2.0, 1.5, MIB),
    Row("W1.cancel", "schedule and cancel a million, each", "ns", "libev", 2.0, 1.2),
    Row("W1.repeat.rate", "10,000 repeating 10 ms timers, rate", "fires/s", "libev", 1.0, 1.0),
    Row("W1.repeat.late.p50", "the same, median lateness", "µs", "libev", 0.5, 0.15),
    Row("W2.perform", "perform from another thread, wall a block", "ns", "libev", 0.7, 0.5),
    Row("W2.pingpong.p50", "ping-pong between two loops, median", "µs", "libev", 1.1, 1.0),
    # Where a loop can spin before it sleeps both figures stand, and the peers' beside each, which sleep.
    Row("W2.pingpong.spin.p50", "the same with a `spinDuration` of 50 µs", "µs", "libev", 0.03, 0.02,
        peers="W2.pingpong.p50"),
    Row("W3.fds.cpu", "descriptor events, 100 active of 9,900, CPU each", "ns", "libev", 1.05, 1.0),
    Row("W3.fds.main.cpu", "the same on the main loop", "ns", "libev", 1.15, 1.05, peers="W3.fds.cpu"),
    # By descriptor sources, as on bare libev, and by what a program is likelier to use.
    Row("W4.echo.c64.s64.cpu", "echo, 64 connections, 64 B, CPU a message", "µs", "libev", 1.1, 1.0),
    Row("W4.echo.c64.s64.cpu", "the same by streams and delegates", "µs", "libev", 1.3, 1.1, ours="rondo-streams"),
    Row("W4.echo.c64.s65536.mbps", "echo, 64 connections, 64 KiB", "MB/s", "libev", 0.97, 1.0),
    Row("W4.echo.c64.s65536.mbps", "the same by streams and delegates", "MB/s", "libev", 0.85, 0.95,
        ours="rondo-streams"),
    Row("W5.http.c64.cpu", "small GETs, 64 in flight, CPU a request", "µs", "libev-raw", 1.4, 1.2, 100),
    Row("W5.https.c64.cpu", "the same over HTTPS", "µs", "libev-raw", 1.6, 1.3, 100),
    Row("W5.http.c1.rate", "small GETs, one at a time", "requests/s", "libev-raw", 0.75, 0.9),
    Row("W5.http.c1.spin.rate", "the same with a `spinDuration` of 50 µs", "requests/s", "libev-raw", 0.75, 0.9,
        peers="W5.http.c1.rate"),
    # By one loop; of the peers eight processes that share nothing, the limit of what threads can do.
    *[Row(f"W5.loops.s{servers}.{figure}",
          f"small GETs on {loops} loops and threads, 8 in flight each, {words}, {title}", unit, "rondo-1-loop",
          *wanted, ours=f"rondo-{loops}-loops")
      for servers, words in ((1, "one server"), (2, "two servers")) for loops in (2, 8)
      for figure, title, unit, wanted in (
          ("cpu", "CPU a request", "µs", (1.4, 1.2)), ("rate", "all together", "requests/s", (0.9, 1.0)))],
    Row("W6.http.cpu", "1 GiB over HTTP, CPU", "s", "libev-raw", 1.15, 1.03),
    Row("W6.https.cpu", "1 GiB over HTTPS, CPU", "s", "libev-raw", 1.15, 1.03),
    Row("W6.http.peak", "1 GiB over HTTP, peak memory above a program that makes a `URLRequest`", "MiB", None, 6, 2,
        MIB, above="W6.request.peak", is_absolute=True),
    Row("W6.https.peak", "the same over HTTPS", "MiB", None, 9, 4, MIB, above="W6.request.peak", is_absolute=True),
    # By a `URLConnection` whose delegate writes.
    Row("W6.http.file.cpu", "1 GiB over HTTP into a file by a download task, CPU", "s", "rondo-connection", 1.15, 1.03,
        ours="rondo-task"),
    Row("W6.http.file.peak", "the same, peak memory above a program that makes a `URLRequest`", "MiB", None, 6, 3,
        MIB, ours="rondo-task", above="W6.request.peak", is_absolute=True),
    Row("W7.idle", "an idle TCP stream pair", "bytes", "libev", 1800, 600, is_absolute=True),
    Row("W7.idle-http", "an idle pooled HTTP connection", "bytes", "curl-multi", 4096, 2048, is_absolute=True),
    Row("W8.pass.10000.other-mode", "an empty pass in another mode, 10,000 timers in default", "ns", "libev", 0.6, 0.4),
    # By a `URLConnection` with a delegate on the same loop.
    *[Row(f"W10.{scheme}.c{concurrency}.cpu",
          f"small GETs through `URLSession` by {words}, {concurrency} in flight, {scheme.upper()}, CPU a request", "µs",
          "rondo-connection", owed, aim, 100, ours=f"rondo-{way}")
      for scheme in ("http", "https") for concurrency in (1, 64)
      for way, words, owed, aim in (
          ("loop", "a delegate on a run loop", 1.2, 1.1), ("queue", "a delegate on a queue", 1.5, 1.3),
          ("handler", "completion handler", 1.5, 1.3), ("async", "`data(for:)`", 2.0, 1.6))],
    # By nginx with `return 200`.
    Row("W11.kept.cpu", "a server's small answers on kept connections, CPU each", "µs", "nginx", 1.4, 1.2),
    Row("W11.once.cpu", "the same with a connection each", "µs", "nginx", 1.5, 1.2),
    Row("W11.once-tls.cpu", "the same with TLS and a connection each", "µs", "nginx", 0.7, 0.6),
    Row("W11.kept.loops8.cpu", "on kept connections with 8 loops", "µs", "nginx", 1.6, 1.3, peers="W11.kept.cpu"),
    # Measured by libuv, which itself takes 0.15 of Foundation's time.
    Row("W13.children.cpu", "children started, read and reaped, CPU of the parent each", "µs", "libuv", 1.3, 1.0),
    Row("W13.children.cpu", "the same by `Process`", "µs", "libuv", 1.3, 1.0, ours="rondo-process"),
    Row("W13.children", "the same by `Child`, wall each", "µs", "libuv", 1.1, 1.0),
    # By the same crawl without cache and cookies.
    Row("W14.600.cold", "600 pages with the default cache and cookies, CPU a page", "µs", "rondo-plain", 1.2, 1.1),
    Row("W14.600.warm", "the same pages again in another process", "µs", "rondo-plain", 1.2, 1.1),
    Row("W14.60000.cold", "60,000 pages with the default cache and cookies, CPU a page", "µs", "rondo-plain", 1.2, 1.1),
    Row("W14.60000.warm", "the same pages again in another process", "µs", "rondo-plain", 1.2, 1.1),
    Row("W14.6000.cookies", "6,000 pages that change a cookie each, CPU a page", "µs", "rondo-ignored", 1.2, 1.1),
    Row("W14.6000.session", "the same, a cookie of the session", "µs", "rondo-ignored", 1.2, 1.1),
    Row("W15.http.c16.cpu", "small GETs with a connection each, 16 in flight, CPU a request", "µs", "curl-multi", 1.0, 0.8,
        factor=100),
    Row("W15.https.c16.cpu", "the same over HTTPS", "µs", "curl-multi", 0.9, 0.8, factor=100),
    # By curl, of which this is the whole work.
    Row("W16.start", "a whole process: `rondo fetch` of 1 KiB, as `make install` builds it, wall", "ms", "curl", 2.5, 2.0,
        ours="rondo-installed"),
    Row("W16.start", "the same with Swift's libraries shared", "ms", "curl", 2.5, 2.0),
    Row("W16.start", "a program with one load, with the default cache and cookies", "ms", "curl", 2.5, 2.0, ours="rondo-load"),
    Row("W16.start", "the same without cache and cookies", "ms", "curl", 2.5, 2.0, ours="rondo-plain"),
    # The run loop's thread alone: how late a timer is depends on what else the machine does.
    Row("W17.cookies.kept.busy", "a first response with 180 cookies: the longest that it keeps its run loop, CPU", "ms", None,
        2.0, 1.0, is_absolute=True),
    Row("curve.connections.10000", "small GETs, 10,000 connections all in flight, CPU a request", "µs", "libev", 1.7, 1.3,
        factor=1e-3),
]
