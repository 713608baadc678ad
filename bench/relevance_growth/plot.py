"""The page's plot and table of a finished run: quality and latency against how much is remembered.

python -m bench relevance-growth --docs              measures and draws
python -m bench.relevance_growth.plot RESULT.json    draws a result that was saved
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import ROOT

PAGE = ROOT / "docs" / "explanation" / "recall.md"
PLOT = PAGE.with_name("recall-size.svg")
MARK = re.compile(r"(<!-- growth -->\n).*?(\n<!-- end growth -->)", re.DOTALL)
WIDTH, HEIGHT = 345, 250  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 46, 76, 40, 44  # its margins
COLOURS = ("#1b6ca8", "#c2571a")
STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:12px}"
    ".grid{stroke:#e3e3e3}.axis{stroke:#888}.line{fill:none;stroke-width:2}"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel: its name and a value for each size."""

    name: str
    values: tuple[float, ...]


def draw(data: Mapping[str, Any]) -> None:
    """Write the plot and the page's table from a report's ``data``."""
    PLOT.write_text(svg(data), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARK.sub(lambda found: found[1] + rows(data) + found[2], text), encoding="utf-8")


def rows(data: Mapping[str, Any]) -> str:
    """A Markdown table of the same figures."""
    head = (
        "memories beside", "relevant of the first ten", "what it is about, found", "brought nothing",
        "p50, ms", "p99, ms",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for own in _sizes(data):
        spread = data["latency_ms"][str(own["size"])]["whole"]
        cells = (
            f"{own['size']}", f"{own['relevant']:.1%}", f"{own['found']:.1%}", f"{own['empty']} of {own['questions']}",
            f"{spread['p50']:.1f}", f"{spread['p99']:.1f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def svg(data: Mapping[str, Any]) -> str:
    """Two panels side by side over the same sizes."""
    sizes = [own["size"] for own in _sizes(data)]
    quality = [
        Line("relevant", tuple(100 * own["relevant"] for own in _sizes(data))),
        Line("found", tuple(100 * own["found"] for own in _sizes(data))),
    ]
    spreads = [data["latency_ms"][str(size)]["whole"] for size in sizes]
    latency = [Line(name, tuple(spread[name] for spread in spreads)) for name in ("p50", "p99")]
    most = _ceiling(max(value for line in latency for value in line.values))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" width="{2 * WIDTH}" role="img">',
        "<title>Relevance and latency of recall against the number of memories of other topics</title>",
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>',
        *_panel(0, "Relevant of the first ten; target found, %", sizes, quality, 100.0),
        *_panel(WIDTH, "Recall without the embedding, ms", sizes, latency, most),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _sizes(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [own for own in data["sizes"] if own["language"] == "all"]


def _ceiling(value: float) -> float:
    """The next of 1, 2, 4, 5 or 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value)


def _panel(left: int, title: str, sizes: Sequence[int], lines: Sequence[Line], most: float) -> list[str]:
    """Axes, grid, lines with their values; the sizes stand on a logarithmic axis."""
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    xs = [left + LEFT + (WIDTH - LEFT - RIGHT) * (math.log(size) - low) / (high - low) for size in sizes]
    bottom, room = HEIGHT - BOTTOM, HEIGHT - TOP - BOTTOM
    drawn = [f'<text class="title" x="{left + LEFT}" y="18">{title}</text>']
    for step in range(5):
        value, y = most * step / 4, bottom - room * step / 4
        kind = "axis" if step == 0 else "grid"
        drawn += [
            f'<line class="{kind}" x1="{left + LEFT}" x2="{left + WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text x="{left + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>',
        ]
    drawn += [
        f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{size}</text>'
        for x, size in zip(xs, sizes, strict=True)
    ]
    middle = left + (LEFT + WIDTH - RIGHT) / 2
    drawn.append(
        f'<text x="{middle:.1f}" y="{bottom + 34}" text-anchor="middle">memories of other topics</text>'
    )
    names = _apart([bottom - room * line.values[-1] / most for line in lines])
    for line, colour, name_y in zip(lines, COLOURS, names, strict=True):
        drawn += _line(line, xs, [bottom - room * value / most for value in line.values], colour, name_y)
    return drawn


def _apart(ys: Sequence[float]) -> list[float]:
    """Heights for two names, moved apart where they would overlap."""
    first, second = ys
    if abs(first - second) >= 13:
        return [first, second]
    middle, sign = (first + second) / 2, 1 if first > second else -1
    return [middle + sign * 6.5, middle - sign * 6.5]


def _line(line: Line, xs: Sequence[float], ys: Sequence[float], colour: str, name_y: float) -> list[str]:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    digits = 0 if line.values[-1] >= 10 else 1
    drawn = [f'<polyline class="line" stroke="{colour}" points="{points}"/>']
    drawn += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in zip(xs, ys, strict=True)
    ]
    label = f"{line.name} {line.values[-1]:.{digits}f}"
    drawn.append(f'<text x="{xs[-1] + 7:.1f}" y="{name_y + 4:.1f}" style="fill:{colour}">{label}</text>')
    return drawn


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["data"])
