"""The tables, and RESULTS.md."""
import datetime
import json
import os
import platform
import re
import statistics
import subprocess

from .places import PAGE, ROOT, program
from .rows import ROWS


def number(value):
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


class Standing:
    """Of a row: Rondo's figure, the limit, and the best of the others with its name; None where there is none."""

    def __init__(self, row, figures):
        entries = {**figures.peers(row.peers or row.figure), **figures.peers(row.figure)}
        medians = {**figures.medians(row.peers or row.figure), **figures.medians(row.figure)}
        if row.peers and row.ours not in figures.medians(row.figure):
            medians.pop(row.ours, None)
        values = {peer: value * row.factor for peer, value in medians.items()}
        self.rondo, self.limit = values.pop(row.ours, None), values.pop(row.limit, None)
        if row.above:
            base = figures.medians(row.above).get("rondo")
            self.rondo = self.rondo - base * row.factor if self.rondo is not None and base is not None else None
            # The peers' programs have no such figure, so there is nothing to compare with.
            values = {}
        # Who was spared most of the work is no rival, and neither is Rondo by another way.
        rivals = {peer: value for peer, value in values.items()
                  if not entries[peer][0].count and not peer.startswith("rondo")}
        choose = max if row.larger_is_better else min
        self.best = choose(rivals.items(), key=lambda item: item[1], default=None)
        self.was_disturbed = self.rondo is not None and figures.was_disturbed(row.figure, row.ours)


def wanted(row, value):
    """What is owed, or aimed at: a multiple of the limit, or so many MiB or bytes."""
    return f"{value:,g} {row.unit}" if row.is_absolute else f"{value:.2f}"


def owed_table(figures):
    """What is owed, and how far Rondo is from the limit and from the best of the other peers."""
    lines = [
        "| | Rondo | × limit | owed | aim | | limit | best other peer | × peer |",
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for row in ROWS:
        it = Standing(row, figures)
        if it.rondo is None:
            continue
        cells = [
            f"{row.figure.split('.')[0]} {row.title}, {row.unit}", number(it.rondo),
            f"{it.rondo / it.limit:.2f}" if it.limit else "–",
            wanted(row, row.owed), wanted(row, row.aim),
            row.standing(it.rondo, it.limit) + (" (disturbed)" if it.was_disturbed else ""),
            f"{row.limit} {number(it.limit)}" if it.limit else "–",
            f"{it.best[0]} {number(it.best[1])}" if it.best else "–",
            f"{it.rondo / it.best[1]:.2f}" if it.best else "–",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def every_figure(figures):
    """Each figure of each peer, with its spread, CPU, wall and memory."""
    lines = [
        "| figure | peer | median | min–max | unit | CPU, s | wall, s | peak, MiB | runs |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for figure in sorted(name for name in figures.entries if not name.startswith("curve.")):
        if figure.endswith(".peak"):
            continue
        for peer, entries in figures.peers(figure).items():
            values = [entry.value for entry in entries]
            median = lambda attribute: statistics.median(getattr(entry, attribute) for entry in entries)
            count = f" ({entries[0].count:,} only)" if entries[0].count else ""
            mark = " (disturbed)" if figures.was_disturbed(figure, peer) else ""
            cells = [
                figure, peer + count, number(statistics.median(values)) + mark,
                f"{number(min(values))}–{number(max(values))}", entries[0].unit.replace("us", "µs"),
                f"{median('cpu'):.2f}", f"{median('wall'):.2f}", number(median("peak") / 1024), str(len(entries)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def first_line(*command):
    path = program(command[0])
    if not path:
        return f"no {command[0]}"
    done = subprocess.run([path, *command[1:]], capture_output=True, text=True)
    return ((done.stdout + done.stderr).splitlines() or [""])[0].strip()


def processor():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory():
    with open("/proc/meminfo") as file:
        return f"{round(int(file.readline().split()[1]) / (1 << 20))} GiB"


def versions():
    lines = [
        f"- {os.cpu_count()} × {processor()}, {memory()}, Linux {platform.release()}",
        f"- {first_line('swift', '--version')}",
        "- " + ", ".join([
            f"libev {first_line('dpkg-query', '-W', '-f=${Version}', 'libev-dev')}",
            " ".join(first_line("openssl", "version").split()[:2]),
            first_line("nginx", "-v").replace("nginx version: ", ""),
            "lib" + " ".join(first_line("curl", "--version").split()[:2]),
        ]),
    ]
    pins = {}
    if os.path.exists(f"{ROOT}/Package.resolved"):
        with open(f"{ROOT}/Package.resolved") as file:
            pins = {pin["identity"]: pin["state"].get("version", "–") for pin in json.load(file)["pins"]}
    peers = [f"{name} {pins[name]}" for name in ("swift-nio", "swift-nio-ssl", "async-http-client") if name in pins]
    if peers:
        lines.append("- " + ", ".join(peers))
    return lines


def revision():
    done = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip() or "an unknown revision"


def write(figures, reps, left_out, curves):
    text = [
        "# Results", "",
        f"Written by `make bench` on {datetime.date.today()} for {revision()}: medians of {reps} runs (of half as many"
        " where a peer takes long), Rondo and its peers in turns.", "",
        *versions(), "",
        "The limit is C on bare libev and OpenSSL that does the least that can be done, or the peer that Rondo is"
        " measured by. × is Rondo's figure divided by the other: below 1 Rondo uses less, above 1 more; of rates"
        " (fires/s, MB/s, requests/s) more is better. “Owed” and “aim” are such multiples of the limit, since only"
        " what is measured in one run can be compared; of memory they are sizes. “Disturbed” marks figures during whose every run other"
        " processes took more than a quarter of a core.", "",
        "## What is owed", "", owed_table(figures), "",
    ]
    if curves:
        text += ["## How the cost of one item grows", "", "![CPU per item](curves.svg)", "", curves, ""]
    text += ["## Every figure", "", every_figure(figures), ""]
    if left_out:
        text += ["## Left out", "", *[f"- {reason}" for reason in left_out], ""]
    if figures.failures:
        text += ["## Failed", "", *[f"- {failure}" for failure in figures.failures], ""]
    with open(f"{ROOT}/RESULTS.md", "w") as file:
        file.write("\n".join(text))


def page_table(figures):
    """The few columns that the documentation shows."""
    lines = ["| | Rondo | limit | best other |", "| --- | ---: | ---: | ---: |"]
    for row in ROWS:
        standing = Standing(row, figures)
        if standing.rondo is None:
            continue
        limit = f"{number(standing.limit)} ({row.limit})" if standing.limit else "–"
        best = f"{number(standing.best[1])} ({standing.best[0]})" if standing.best else "–"
        lines.append(f"| {row.title}, {row.unit} | {number(standing.rondo)} | {limit} | {best} |")
    return "\n".join(lines)


def write_page(figures):
    """Puts the figures into the documentation's page, between the two comments that mark their place."""
    with open(PAGE) as file:
        text = file.read()
    marks = r"(<!-- figures of make bench: begin -->\n).*?(\n<!-- figures of make bench: end -->)"
    text = re.sub(marks, lambda mark: mark[1] + page_table(figures) + mark[2], text, flags=re.DOTALL)
    with open(PAGE, "w") as file:
        file.write(text)
