"""The command: a server of its own, both stories, and an honest end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.text import Text

from hermes_cli.console import fail, stdout
from hermes_cli.demo.stories import STORIES

EXIT_MISSING = 1


def demo() -> None:
    """Start a server, tell it two stories, show what it remembers and recalls, and stop it."""
    from hermes_cli.demo.playing import play
    from hermes_cli.demo.server import running
    from hermes_memory.client import HermesClient

    console, began = stdout(), time.monotonic()
    status = console.status("starting a server on a temporary directory")
    problems: list[str] = []
    with status, running(_steps(console, status.update)) as url, HermesClient(url) as client:
        status.update("playing")
        console.print(Text(f"{time.monotonic() - began:.1f} s: the server answers at {url}", "dim"))
        for story in STORIES:
            problems += play(story, client, console, datetime.now(UTC))
    console.print(Text(f"{time.monotonic() - began:.1f} s: the server is stopped", "dim"))
    for problem in problems:
        fail(problem)
    if problems:
        raise typer.Exit(EXIT_MISSING)
    console.print(Text("Both stories ended as they should.", "bold green"))


def _steps(console: Console, update: Callable[[str], None]) -> Callable[[str], None]:
    """The spinner's text on a terminal, a line elsewhere."""
    return update if console.is_terminal else lambda step: console.print(Text(step, "dim"))
