"""``hermes calibrate``: the configured embedder's calibration, from labelled pairs (SPEC §7.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from hermes_cli.console import fail, stdout
from hermes_cli.options import Config
from hermes_cli.showing import table

if TYPE_CHECKING:
    from hermes_memory.core.calibration import EmbedderProfile
    from hermes_memory.core.fitting import Figures, FitRules
    from hermes_memory.core.labelled import LabelledPairs
    from hermes_memory.ports.embedder import Embedder

OUTDATED = 1


def calibrate(
    pairs: Annotated[
        Path | None,
        typer.Option(help="Labelled pairs, JSONL.", dir_okay=False, show_default="the shipped ones"),
    ] = None,
    config: Config = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the calibration to this file.", dir_okay=False)
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit 1 if --out, or the configured file, would change."),
    ] = False,
) -> None:
    """Fit the configured embedder's calibration to labelled pairs, and show how well it separates them."""
    from hermes_memory.adapters.calibration_file import profile_text, write_profile
    from hermes_memory.config import load_settings
    from hermes_memory.wiring import build_embedder, build_fit, calibration_file

    settings = load_settings(config)
    labelled, rules = build_fit(pairs)
    profile, figures = asyncio.run(_fitted(build_embedder(settings), labelled, rules))
    console = stdout()
    console.print(_table(figures, f"{profile.model}, {profile.dimension} dimensions"))
    for line in _described(profile):
        console.print(Text(line), soft_wrap=True)
    text = profile_text(profile, pairs.name if pairs else "pairs.jsonl")
    if check:
        _compare(out or calibration_file(settings), text)
    elif out is not None:
        write_profile(out, text)
        console.print(Text(f'Written. To use it: embedder.calibration = "{out.absolute()}"'), soft_wrap=True)
    else:
        console.print(Text("Nothing is written; --out FILE writes the calibration.", "dim"))


async def _fitted(
    embedder: Embedder, labelled: LabelledPairs, rules: FitRules
) -> tuple[EmbedderProfile, tuple[Figures, ...]]:
    from hermes_memory.app.calibrating import calibrate as fitted
    from hermes_memory.wiring import let_go

    try:
        return await fitted(embedder, labelled, rules)
    finally:
        await let_go(embedder)


def _compare(path: Path, text: str) -> None:
    try:
        same = path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        same = False
    if not same:
        fail(f"{path} is not what the pairs give")
        raise typer.Exit(OUTDATED)
    stdout().print(Text(f"{path} is what the pairs give."), soft_wrap=True)


def _table(figures: Iterable[Figures], title: str) -> Table:
    shown = table("pairs", "related", "unrelated", "AUC", "at", "hits", "false alarms", title=title)
    for column in shown.columns[1:]:
        column.justify = "right"
    for row in figures:
        passing = [_number(value, digits) for value, digits in ((row.threshold, 2), (row.hits, 3), (row.false_alarms, 4))]  # fmt: skip
        shown.add_row(row.what, f"{row.related:,}", f"{row.unrelated:,}", _number(row.auc, 3), *passing)
    return shown


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _described(profile: EmbedderProfile) -> Iterable[str]:
    calibration = profile.calibration
    for name, ramp in (("query", calibration.query), ("pair", calibration.pair)):
        yield f"{name}: " + ", ".join(f"{cosine:g} → {value:g}" for cosine, value in ramp.knots)
    yield "centred" if calibration.centring else "not centred: that separates nothing better"
