"""Which programs make up a workload."""
import os
import subprocess
from dataclasses import dataclass

from .nginx import BULK, KEY
from .places import BUILD, CERTIFICATE, INSTALLED, RONDO, c, program, swift

WORKLOADS = ["W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W10", "W11", "W13", "W14", "W15", "W16", "W17"]
DESCRIPTORS = {"W3": 19_900, "W7": 9_100}


@dataclass
class Job:
    workload: str
    peer: str
    command: list  # `{port}` and `{pid}` are the server's; `{http}` and `{https}` nginx's ports, `{worker}` its process
    server: list = None  # started beside it; prints `ready PORT`
    seconds: int = 60  # at most
    slow: bool = False  # in every other repetition only
    file: str = None  # of nginx's, to be in memory

    @property
    def label(self):
        # The program is the last of the words that we have built; certificates stand before and behind it.
        place = max(index for index, word in enumerate(self.command)
                    if word.startswith(BUILD + "/") and word != CERTIFICATE)
        left_out = ("", "-", "{pid}", "{port}", "{worker}", CERTIFICATE)
        words = [word for word in self.command[place + 1:] if word not in left_out]
        return f"{self.peer} {' '.join(words)[:44]}"


def jobs(workload, peers, left_out):
    """The programs of `workload`; `left_out` is told what cannot run here, and why."""
    ev, curl, raw = c("bench_ev"), c("bench_curl"), c("ev_http")
    rondo, foundation, dispatch, nio, ahc, session = (
        swift(name) for name in ("rondo", "foundation", "dispatch", "nio", "async-http-client", "urlsession"))
    found = []

    def add(peer, *command, **options):
        if peers == "few" and peer in ("nio", "nio-callback", "ahc"):
            return
        found.append(Job(workload, peer, [str(word) for word in command], **options))

    def get(scheme, concurrency):
        url, tls = f"{scheme}://localhost:{{{scheme}}}/1k.txt", scheme == "https"
        add("rondo", rondo, "get", url, 40_000, concurrency)
        add("libev-raw", raw, "get", f"{{{scheme}}}", CERTIFICATE if tls else "-", 40_000, concurrency, "/1k.txt")
        add("curl-multi", curl, "get", url, CERTIFICATE if tls else "", 30_000, concurrency, "reuse")
        add("ahc", ahc, "get", url, CERTIFICATE if tls else "-", 20_000, concurrency)
        with_session(tls, "get", url, 5_000, concurrency, slow=True)

    def bulk(scheme):
        url, tls = f"{scheme}://localhost:{{{scheme}}}/1g.bin", scheme == "https"
        add("rondo", rondo, "bulk", url, file=BULK)
        add("libev-raw", raw, "bulk", f"{{{scheme}}}", CERTIFICATE if tls else "-", "/1g.bin", file=BULK)
        add("curl-multi", curl, "bulk", url, CERTIFICATE if tls else "", file=BULK)
        add("ahc", ahc, "bulk", url, CERTIFICATE if tls else "-", file=BULK)
        with_session(tls, "bulk", url, slow=True, file=BULK)

    def with_session(tls, *command, **options):
        prefix = trusting() if tls else []
        if prefix is None:
            left_out("URLSession over HTTPS: it trusts the system's certificates alone, and this user may not"
                     " make a mount namespace in which ours stands in for them")
        else:
            add("urlsession", *prefix, session, *command, **options)

    def answers(kind, security, requests, connections, figure, loops=1):
        path = "/small" if kind == "kept" else "/small-once"
        load, tail = c("request_load"), (security, kind, path, requests, connections)
        server = [rondo, "answer", kind, str(loops)] + ([CERTIFICATE, KEY] if security == "tls" else [])
        add("rondo", load, "rondo", "{pid}", "{port}", *tail, figure, server=server)
        # One nginx stands for any number of loops.
        if loops == 1:
            add("nginx", load, "nginx", "{worker}", "{https}" if security == "tls" else "{http}", *tail, figure)

    if workload == "W1":
        for peer, path in (("rondo", rondo), ("libev", ev), ("dispatch", dispatch)):
            for name in ("churn", "cancel", "repeat"):
                add(peer, path, name)
        add("nio", nio, "churn", slow=True), add("nio-callback", nio, "churn-callback")
        add("nio", nio, "cancel", 10_000), add("nio", nio, "repeat", slow=True)
        add("foundation", foundation, "churn", 100_000, slow=True)
        add("foundation", foundation, "cancel", 50_000, slow=True)
        add("foundation", foundation, "repeat", slow=True)
    if workload == "W2":
        for peer, path in (("rondo", rondo), ("libev", ev), ("dispatch", dispatch), ("nio", nio)):
            add(peer, path, "perform"), add(peer, path, "pingpong")
        add("rondo", rondo, "pingpong-spin")
        add("foundation", foundation, "perform", slow=True), add("foundation", foundation, "pingpong", slow=True)
    if workload == "W3":
        for peer, path in (("rondo", rondo), ("libev", ev), ("dispatch", dispatch), ("nio", nio)):
            add(peer, path, "fds")
        add("rondo", rondo, "fds-main")
    if workload == "W4":
        for size in (64, 65_536):
            for peer, path in (("rondo", rondo), ("libev", ev), ("nio", nio)):
                add(peer, c("echo_load"), peer, "{pid}", "{port}", 64, size, 2, server=[path, "echo"])
            add("rondo-streams", c("echo_load"), "rondo-streams", "{pid}", "{port}", 64, size, 2,
                server=[rondo, "echo-streams"])
    if workload == "W5":
        for scheme in ("http", "https"):
            for concurrency in (1, 64):
                get(scheme, concurrency)
        add("rondo", rondo, "get-spin", "http://localhost:{http}/1k.txt", 40_000, 1)
        for count in ("1", "2"):
            server = [c("small_server"), count]
            for loops in (1, 2, 8):
                add(f"rondo-{loops}-loops", rondo, "loops", "{port}", loops, 60_000, 8, server=server)
            add("8-processes", rondo, "processes", "{port}", 8, 60_000, 8, server=server)
    if workload == "W6":
        bulk("http"), bulk("https")
        add("rondo", rondo, "request", "http://localhost:{http}/1g.bin")
        for way in ("connection", "task"):
            add(f"rondo-{way}", rondo, "save", way, "http://localhost:{http}/1g.bin")
    if workload == "W7":
        for peer, path in (("rondo", rondo), ("libev", ev), ("nio", nio)):
            add(peer, path, "idle", "{port}", 9_000, server=[c("hold_server")])
        for peer, path, command in (("rondo", rondo, "idle-http"), ("curl-multi", curl, "idle"), ("ahc", ahc, "idle")):
            add(peer, path, command, "http://localhost:{http}/1k.txt", 4_000, slow=peer == "ahc")
    if workload == "W8":
        add("rondo", rondo, "pass", 10_000), add("libev", ev, "pass", 10_000)
        add("foundation", foundation, "pass", 10_000)
    if workload == "W10":
        for scheme in ("http", "https"):
            url, tls = f"{scheme}://localhost:{{{scheme}}}/1k.txt", scheme == "https"
            for concurrency in (1, 64):
                for way in ("connection", "loop", "queue", "handler", "async"):
                    add(f"rondo-{way}", rondo, "session", way, url, 20_000, concurrency)
                add("curl-multi", curl, "get", url, CERTIFICATE if tls else "", 20_000, concurrency, "reuse", "W10")
                add("ahc", ahc, "get", url, CERTIFICATE if tls else "-", 20_000, concurrency, "W10")
                with_session(tls, "get", url, 5_000, concurrency, "W10", slow=True)
    if workload == "W11":
        answers("kept", "plain", 100_000, 64, "W11.kept")
        answers("once", "plain", 20_000, 16, "W11.once")
        answers("once", "tls", 4_000, 16, "W11.once-tls")
        answers("kept", "plain", 100_000, 64, "W11.kept.loops8", loops=8)
    if workload == "W13":
        add("rondo", rondo, "children", 2_000), add("rondo-process", rondo, "process-children", 2_000)
        add("libuv", c("bench_uv"), "children", 2_000)
        add("foundation", foundation, "children", 2_000, slow=True, seconds=300)
    if workload == "W14":
        for pages in (600, 60_000):
            for kind in ("plain", "cold", "warm"):
                add("rondo-plain" if kind == "plain" else "rondo", rondo, "crawl", "http://localhost:{http}", pages, kind)
        for kind in ("ignored", "cookies", "session"):
            add("rondo-ignored" if kind == "ignored" else "rondo", rondo, "crawl", "http://localhost:{http}", 6_000, kind)
    if workload == "W15":
        for scheme, requests in (("http", 20_000), ("https", 4_000)):
            url = f"{scheme}://localhost:{{{scheme}}}/once.txt"
            add("rondo", rondo, "once", url, requests, 16)
            add("curl-multi", curl, "once", url, CERTIFICATE if scheme == "https" else "", requests, 16)
    if workload == "W17":
        add("rondo", rondo, "cookies", "kept", "", "", 1)
    if workload == "W16":
        # With a home of its own, where the cookies and the cache of programs lie that set nothing.
        home, url = f"{BUILD}/start", "http://127.0.0.1:{port}/"
        add("rondo", "env", f"XDG_CACHE_HOME={home}/cache", f"XDG_DATA_HOME={home}/data", c("start_time"), 40,
            "--", "W16.start", "curl", program("curl"), "-s", url, "--", "W16.start", "rondo", RONDO, "fetch", "-s", url,
            "--", "W16.start", "rondo-installed", INSTALLED, "fetch", "-s", url,
            "--", "W16.start", "rondo-load", rondo, "load", url, "--", "W16.start", "rondo-plain", rondo, "load", url, "plain",
            "--", "W16.request", "request", session, "request", url, server=[c("answer_server")])
    return found


def trusting():
    """What runs a command where the only trusted authority is our certificate; None if this user may not."""
    unshare = program("unshare")
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    if not unshare or not os.path.exists(bundle):
        return None
    prefix = [unshare, "-m"] if os.geteuid() == 0 else [unshare, "-rm"]
    prefix += ["sh", "-c", f'mount --bind "$0" {bundle} && exec "$@"', CERTIFICATE]
    return prefix if may_run(prefix + ["true"]) else None


def may_run(command, known={}):
    """Whether a command succeeds; asked once."""
    key = tuple(command)
    if key not in known:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        known[key] = done.returncode == 0
    return known[key]
