"""The report of a night as a page: one file, no scripts, nothing from elsewhere, and nothing that a user said."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hermes_memory.core.night_sums import BOUNDS_S

STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --soft: #667; --line: #dde; --bad: #b3261e; --bar: #3867d6; --paper: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ee; --soft: #9aa3b5; --line: #333a48; --bad: #ff8a80; --bar: #7aa2ff; --paper: #14171d }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2rem } .soft { color: var(--soft) }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } .bad { color: var(--bad); font-weight: 600 }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0 } .tiles div { border: 1px solid var(--line); border-radius: .6rem; padding: .6rem 1rem; min-width: 7rem }
.tiles b { display: block; font-size: 1.5rem } svg { max-width: 100%; height: auto }
"""
INK, BAR = "#010203", "#040506"  # stand in for the page's own colours


def write_report(report: Mapping[str, Any], folder: Path) -> Path:
    """Write ``night-<date>.json`` and the page beside it; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"night-{report['date']}"
    text = json.dumps(report, ensure_ascii=False, indent=2, sort_keys=True)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    page = folder / f"{name}.html"
    page.write_text(page_of(report), encoding="utf-8")
    return page.resolve()


def page_of(report: Mapping[str, Any]) -> str:
    """The whole page."""
    spaces = report["namespaces"]
    parts = [
        f"<h1>Night of {escape(report['date'])} <span class=soft lang=zh>夜间报告</span></h1>",
        f"<p class=soft>as of {escape(report['now'])}; counts from {escape(report['since'])} on</p>",
        _tiles({**report["users"], "slots renewed": report["profile_slots"]}),
        _section("Failures", "失败", _table(("reason", "users"), report["failures"].items())),
        _section("What changed", "变更", _bars(report["changes"]) + _changes(report["changes"])),
        _section("Seconds per user", "每位用户耗时", _histogram(report["seconds"])),
        *(_space(name, of) for name, of in spaces.items()),
    ]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>Night of {escape(report['date'])}</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


def _tiles(numbers: Mapping[str, int]) -> str:
    tiles = (f"<div><b>{number:,}</b>{escape(name)}</div>" for name, number in numbers.items())
    return f"<div class=tiles>{''.join(tiles)}</div>"


def _section(title: str, chinese: str, body: str) -> str:
    head = f"<h2>{title} <span class=soft lang=zh>{chinese}</span></h2>"
    return head + (body or "<p class=soft>none</p>")


def _table(head: Sequence[str], rows: Any) -> str:
    lines = ["".join(_cell(value) for value in row) for row in rows]
    if not lines:
        return ""
    titles = "".join(f"<th{'' if number == 0 else ' class=n'}>{escape(t)}" for number, t in enumerate(head))
    return f"<table><tr>{titles}{''.join(f'<tr>{line}' for line in lines)}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"<td class=n>{value:,}"
    if isinstance(value, float):
        return f"<td class=n>{value:.1%}"
    return f"<td>{escape(str(value))}" if value is not None else "<td class=n>–"


def _changes(changes: Mapping[str, int]) -> str:
    return _table(("step / reason", "changes"), sorted(changes.items(), key=lambda one: (-one[1], one[0])))


def _space(name: str, of: Mapping[str, Any]) -> str:
    rows = []
    for figure in of["figures"]:
        limit = figure["least"] if figure["least"] is not None else figure["most"]
        sign = "at least" if figure["least"] is not None else "at most" if limit is not None else ""
        state = (
            "<b class=bad>alarm 警报</b>"
            if figure["alarming"]
            else "too few cases"
            if figure["value"] is None
            else "fine"
        )
        cells = _cell(figure["name"]) + _cell(figure["value"]) + _cell(figure["cases"])
        rows.append(f"<tr>{cells}<td class=n>{sign} {'' if limit is None else f'{limit:.0%}'}<td>{state}")
    head = "<tr><th>figure<th class=n>value<th class=n>cases<th class=n>limit<th>state"
    counts = f"<p class=soft>{of['users']:,} users, {of['memories']:,} memories</p>"
    title = f"Quality of “{escape(name)}”"
    return _section(title, "质量", f"{counts}<table>{head}{''.join(rows)}</table>")


# plots


def _bars(changes: Mapping[str, int]) -> str:
    """The changes of each step."""
    steps: dict[str, int] = {}
    for name, number in changes.items():
        step = name.partition("/")[0]
        steps[step] = steps.get(step, 0) + number
    return _plot(list(steps), list(steps.values()), "changes") if steps else ""


def _histogram(seconds: Sequence[int]) -> str:
    names = [f"≤ {bound:g}" for bound in BOUNDS_S] + [f"> {BOUNDS_S[-1]:g}"]
    used = [number for number, count in enumerate(seconds) if count]
    if not used:
        return ""
    shown = slice(used[0], used[-1] + 1)
    return _plot(names[shown], list(seconds[shown]), "users")


def _plot(names: Sequence[str], values: Sequence[int], what: str) -> str:
    """Bars as SVG in the page's colours; nothing where matplotlib is not installed, for the table says the same."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(8, 0.5 + 0.4 * len(names)), layout="constrained")
    axes = figure.subplots()
    drawn = axes.barh(list(names), list(values), color=BAR)
    axes.bar_label(drawn, padding=3, color=INK)
    axes.invert_yaxis()
    axes.set_xlabel(what, color=INK)
    axes.margins(x=0.1)
    axes.tick_params(colors=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(INK)
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    return svg.replace(INK, "var(--ink)").replace(BAR, "var(--bar)")
