"""The options that several commands share."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

Data = Annotated[
    Path,
    typer.Option(envvar="HERMES_DATA_DIR", help="The data directory.", file_okay=False),
]
Config = Annotated[
    Path | None, typer.Option(help="A TOML file of overrides of the defaults.", dir_okay=False)
]
Url = Annotated[
    str | None, typer.Option(envvar="HERMES_URL", help="Ask this server rather than the data directory.")
]
Key = Annotated[
    str | None,
    typer.Option(envvar="HERMES_API_KEY", help="The server's API key, with --url.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
User = Annotated[str, typer.Argument(help="Whose memory.")]
Session = Annotated[str | None, typer.Option(help="The conversation.")]
Scene = Annotated[str | None, typer.Option(help="What it is about, such as dining.")]
Zone = Annotated[str | None, typer.Option("--timezone", help="An IANA name, such as Asia/Shanghai.")]


def moment(text: str | None, option: str, zone: str | None = None) -> datetime | None:
    """A time of an option: ISO 8601; without an offset in ``zone``, or else in this machine's zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=ZoneInfo(zone)) if zone else found.astimezone()
    except (ValueError, OSError, LookupError, OverflowError):
        raise typer.BadParameter("must look like 2026-03-02T20:15:00+08:00", param_hint=option) from None
    return found
