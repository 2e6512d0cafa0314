"""Draws the scaling curves: small pictures side by side, both axes logarithmic, nothing but text and lines."""
import math

from .curves import CURVES, points
from .places import ROOT

WIDTH, HEIGHT = 960, 622
COLUMNS = 2
PLOT_WIDTH, PLOT_HEIGHT = 318, 196
LEFT, TOP = 66, 104
STEP_X, STEP_Y = 474, 280
NAMES = {"rondo": "Rondo", "libev": "libev", "dispatch": "Dispatch", "nio": "SwiftNIO", "foundation": "Foundation",
         "libcurl": "libcurl", "ahc": "AsyncHTTPClient"}

# The picture has a ground of its own, so that it can be read wherever it is shown.
STYLE = """
  svg { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
  .ground { fill: #ffffff; stroke: #d0d7de; }
  .ink { fill: #1f2328; } .quiet { fill: #59636e; }
  .grid { stroke: #e4e8ec; stroke-width: 1; } .axis { stroke: #b6bec7; stroke-width: 1; }
  .line { fill: none; stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
  .dot { stroke: #ffffff; stroke-width: 1.5; }
  .rondo { stroke-width: 3; }
  .c-rondo { --c: #0969da; } .c-libev { --c: #57606a; } .c-dispatch { --c: #bc4c00; } .c-nio { --c: #8250df; }
  .c-foundation { --c: #bf3989; } .c-libcurl { --c: #1a7f37; } .c-ahc { --c: #8250df; }
  .line { stroke: var(--c); } .dot, .name { fill: var(--c); }
  .name { stroke: #ffffff; stroke-width: 4; paint-order: stroke; stroke-linejoin: round; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #30363d; }
    .ink { fill: #f0f6fc; } .quiet { fill: #9198a1; }
    .grid { stroke: #21262d; } .axis { stroke: #3d444d; } .dot, .name { stroke: #0d1117; }
    .c-rondo { --c: #58a6ff; } .c-libev { --c: #9198a1; } .c-dispatch { --c: #f0883e; } .c-nio { --c: #bc8cff; }
    .c-foundation { --c: #f778ba; } .c-libcurl { --c: #3fb950; } .c-ahc { --c: #bc8cff; }
  }
"""


def text(x, y, words, size=12, kind="quiet", anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" class="{kind}" text-anchor="{anchor}"'
            f' font-weight="{weight}">{words}</text>')


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def duration(nanoseconds):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:g} {unit}"
    return f"{nanoseconds:g} ns"


def spread(wanted, apart):
    """Moves labels apart that would stand upon each other, as little as possible, in their order."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = list(wanted)
    for _ in range(100):
        moved = False
        for above, below in zip(order, order[1:]):
            overlap = apart - (places[below] - places[above])
            if overlap > 0.01:
                places[above] -= overlap / 2
                places[below] += overlap / 2
                moved = True
        if not moved:
            break
    return places


def panel(figures, curve, left, top):
    found = points(figures, curve)
    out = [text(left - 46, top - 30, curve.title, 15, "ink", weight="600"),
           text(left - 46, top - 12, f"CPU time for one {curve.per}" if curve.name != "timers"
                else "CPU time for one, scheduled and fired", 12)]
    values = [value for entries in found.values() for _, value in entries]
    if not values:
        return out + [text(left, top + 40, "not measured")]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    # A flat curve is to look flat: two decades at least.
    high = max(high, low + 2)

    def x(size):
        return left + (math.log10(size) - 2) / 3 * PLOT_WIDTH

    def y(value):
        return top + PLOT_HEIGHT - (math.log10(value) - low) / (high - low) * PLOT_HEIGHT

    for decade in range(low, high + 1):
        out.append(line(left, y(10 ** decade), left + PLOT_WIDTH, y(10 ** decade), "axis" if decade == low else "grid"))
        out.append(text(left - 8, y(10 ** decade) + 4, duration(10 ** decade), 11, anchor="end"))
    for size in (100, 1_000, 10_000, 100_000):
        out.append(line(x(size), top + PLOT_HEIGHT, x(size), top + PLOT_HEIGHT + 4, "axis"))
        out.append(text(x(size), top + PLOT_HEIGHT + 18, f"{size:,}", 11, anchor="middle"))
    # Rondo last, so that it lies on top.
    for peer in sorted(found, key=lambda peer: peer == "rondo"):
        path = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in found[peer])
        out.append(f'<g class="c-{peer}"><polyline points="{path}" class="line {peer}"/>')
        out += [f'<circle cx="{x(size):.1f}" cy="{y(value):.1f}" r="{4 if peer == "rondo" else 3}" class="dot"/>'
                for size, value in found[peer]]
        out.append("</g>")
    # Names stand where the lines end: behind the longest lines, and above where others go on.
    ends = {}
    for peer, entries in found.items():
        ends.setdefault(entries[-1][0], []).append((peer, entries[-1][1]))
    for size, group in ends.items():
        goes_on = size < max(ends)
        for (peer, _), place in zip(group, spread([y(value) for _, value in group], 15)):
            weight = "700" if peer == "rondo" else "500"
            across, down, anchor = (4, -9, "end") if goes_on else (9, 4, "start")
            name = text(x(size) + across, place + down, NAMES[peer], 12, "name", anchor, weight)
            out.append(f'<g class="c-{peer}">{name}</g>')
    return out


def draw(figures, path=f"{ROOT}/curves.svg"):
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' role="img" aria-labelledby="title">',
        '<title id="title">CPU time for one item as their number grows from 100 to 100,000</title>',
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6" class="ground"/>',
        text(20, 34, "What one item costs, as their number grows", 17, "ink", weight="600"),
        text(WIDTH - 20, 34, "lower is better; both axes are logarithmic", 12, anchor="end"),
    ]
    for index, curve in enumerate(CURVES):
        column, line_of = index % COLUMNS, index // COLUMNS
        out += panel(figures, curve, LEFT + column * STEP_X, TOP + line_of * STEP_Y)
    out.append("</svg>")
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")
