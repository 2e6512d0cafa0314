"""Runs programs in turns, and keeps what they print."""
import os
import re
import resource
import statistics
import subprocess
import time
from dataclasses import dataclass

from .nginx import read_through
from .places import ENVIRONMENT

TICK = os.sysconf("SC_CLK_TCK")
DISTURBED = 0.25  # of a core, taken by processes that have no part in a run


@dataclass
class Entry:
    """A figure of one run."""
    value: float
    unit: str
    wall: float
    cpu: float
    peak: float  # KiB; nan where a program does not say
    count: int  # of a run with fewer items than the workload has, else 0
    disturbed: bool


class Figures:
    """Entries by figure and peer."""

    def __init__(self):
        self.entries = {}
        self.failures = []

    def add(self, figure, peer, entry):
        self.entries.setdefault(figure, {}).setdefault(peer, []).append(entry)

    def peers(self, figure):
        """By peer, the entries that count: undisturbed ones, where there are any."""
        found = {}
        for peer, entries in self.entries.get(figure, {}).items():
            found[peer] = [entry for entry in entries if not entry.disturbed] or entries
        return found

    def medians(self, figure):
        return {peer: statistics.median(entry.value for entry in entries)
                for peer, entries in self.peers(figure).items()}

    def was_disturbed(self, figure, peer):
        return all(entry.disturbed for entry in self.entries[figure][peer])


def raise_descriptor_limit(wanted=250_000):
    """The soft limit up to the hard one, and that up to `wanted` where this user may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < wanted and hard != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        except (OSError, ValueError):
            pass
    limit = wanted if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def cpu_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    except OSError:
        return 0.0


def cpu_of_machine():
    with open("/proc/stat") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    return (fields[0] + fields[1] + fields[2] + fields[7]) / TICK


class Runner:
    """Runs jobs; `nginx` may be None where none of them asks for it, and `repeats` is how many may run again."""

    def __init__(self, nginx, repeats):
        self.nginx = nginx
        self.repeats = repeats
        self.figures = Figures()

    def run(self, job):
        """Once more if other processes took a part of the machine meanwhile, as long as that is an exception."""
        output, failed, others = self.once(job)
        if not failed and others >= DISTURBED and self.repeats > 0:
            self.repeats -= 1
            output, failed, others = self.once(job)
        if failed:
            self.figures.failures.append(f"{job.workload} {job.label}: {failed}")
            return f"failed: {failed}"
        self.read(output, others >= DISTURBED)
        return "disturbed" if others >= DISTURBED else ""

    def once(self, job):
        """What a job printed, why it failed or None, and what other processes burnt, as a share of a core."""
        words, server, pids = {}, None, []
        if self.nginx:
            words.update(http=self.nginx.http, https=self.nginx.https, worker=self.nginx.pids[-1])
            pids += self.nginx.pids
        try:
            if job.server:
                server = subprocess.Popen(job.server, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
                ready = server.stdout.readline().split()
                if len(ready) != 2 or ready[0] != "ready":
                    return "", "its server did not start", 0.0
                words.update(port=ready[1], pid=server.pid)
                pids.append(server.pid)
            if job.file:
                read_through(job.file)
            command = [re.sub(r"\{(\w+)\}", lambda m: str(words[m[1]]), word) for word in job.command]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            machine, served, began = cpu_of_machine(), sum(map(cpu_of, pids)), time.monotonic()
            result = subprocess.run(
                ["timeout", str(job.seconds)] + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
            wall = time.monotonic() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            served = sum(map(cpu_of, pids)) - served
            others = max(0.0, (cpu_of_machine() - machine - own - served) / wall)
        finally:
            if server:
                server.kill()
                server.wait()
                server.stdout.close()
        failed = None
        if result.returncode == 124:
            failed = f"not done after {job.seconds} s"
        elif result.returncode != 0:
            failed = f"status {result.returncode}: {' '.join(result.stdout.split())[-300:]}"
        elif "workload=" not in result.stdout:
            failed = "it printed no figure"
        return result.stdout, failed, others

    def read(self, output, disturbed):
        for line in output.splitlines():
            if not line.startswith("workload="):
                continue
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            # A run with fewer items, where a peer would take minutes: `.n50000`.
            name, _, count = words["workload"].partition(".n")
            if not count.isdigit():
                name, count = words["workload"], 0
            # What modes could cost on libev: a loop of its own for each.
            name = name.replace(".own-loop", ".other-mode")
            entry = Entry(
                float(words["value"]), words["unit"], float(words["wall_s"]), float(words["cpu_s"]),
                float(words.get("rss_kib", "nan")), int(count), disturbed)
            self.figures.add(name, words["peer"], entry)
            # Peak memory is a figure of its own: once for each program.
            if name in ("W1.churn.cpu", "W6.http.cpu", "W6.https.cpu", "W6.http.file.cpu", "W6.request.cpu"):
                peak = Entry(entry.peak, "KiB", entry.wall, entry.cpu, entry.peak, entry.count, False)
                self.figures.add(name.replace(".cpu", ".peak"), words["peer"], peak)
