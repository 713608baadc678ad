"""The command: look at everything, show it, and fail if something that is needed is missing."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from hermes_cli.console import show_json, stdout
from hermes_cli.doctor.findings import Finding, Level
from hermes_cli.options import Config, Data, Json
from hermes_cli.showing import table
from hermes_memory import __version__
from hermes_memory.errors import InvalidConfig

EXIT_PROBLEM = 1

MARKS = {Level.OK: ("ok", "green"), Level.NOTE: ("note", "yellow"), Level.PROBLEM: ("PROBLEM", "bold red")}


def doctor(data: Data = Path("./data"), config: Config = None, json: Json = False) -> None:
    """Show what is installed, what would run where, and whether the data directory can be used."""
    findings = examine(data, config)
    healthy = all(finding.level is not Level.PROBLEM for finding in findings)
    if json:
        show_json(report(findings, healthy))
    else:
        _show(findings, healthy)
    if not healthy:
        raise typer.Exit(EXIT_PROBLEM)


def examine(data: Path, config: Path | None) -> list[Finding]:
    """Every finding; with a configuration that does not hold together, those that need none."""
    from hermes_cli.doctor import (  # numpy and the ledger, which other commands do without
        installed,
        place,
        reading,
    )
    from hermes_memory.config import load_settings

    packages = installed.look_at_packages()
    try:
        settings = load_settings(config)
    except InvalidConfig as error:
        return [*packages, Finding("would run", "configuration", Level.PROBLEM, error.detail)]
    return [
        *packages,
        installed.look_at_embedder(settings),
        *place.look_at_plan(settings, data),
        *place.look_at_data(settings, data),
        *place.look_at_machine(settings, data),
        *place.look_at_index(settings),
        *reading.look_at_extractor(settings),
    ]


def report(findings: list[Finding], healthy: bool) -> dict[str, Any]:
    """The findings for machines."""
    return {"version": __version__, "ok": healthy, "findings": [asdict(finding) for finding in findings]}


def _show(findings: list[Finding], healthy: bool) -> None:
    console = stdout()
    console.print(Text(f"hermes-memory {__version__}", "bold"))
    for part, members in groupby(findings, key=lambda finding: finding.part):
        shown = table("", "", "", title=part)
        shown.show_header = False
        for finding in members:
            mark, style = MARKS[finding.level]
            shown.add_row(Text(mark, style), finding.name, Text(finding.detail))
        console.print(shown)
    verdict = (
        ("Everything that is needed is there.", "green")
        if healthy
        else ("Something that is needed is missing or cannot be used.", "bold red")
    )
    console.print(Text(*verdict))
