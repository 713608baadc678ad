"""What the command prints on: answers on stdout, everything else on stderr, colours for terminals only."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from typing import Any

from rich.console import Console
from rich.text import Text

PIPED_WIDTH = 120  # a pipe has no width of its own; rich would take 80


def stdout() -> Console:
    """A console on what is stdout now."""
    return _console(error=False)


def stderr() -> Console:
    """A console on what is stderr now."""
    return _console(error=True)


def _console(*, error: bool) -> Console:
    console = Console(stderr=error, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, PIPED_WIDTH)
    return console


def fail(message: str) -> None:
    """One red line on stderr, never wrapped, so that a script can read it."""
    stderr().print(Text(f"error: {message}", style="bold red"), soft_wrap=True)


def show_json(value: Any) -> None:
    """``value`` and nothing else on stdout."""
    print(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=False), flush=True)


def never_choke_on_encoding() -> None:
    """A terminal that cannot show a character gets its escape instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def readable(argument: str) -> str:
    """An argument with bytes that are no UTF-8 replaced, as text from a person can be stored."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
