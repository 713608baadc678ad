"""``hermes memories``, ``hermes why`` and ``hermes forget``: what is stored, on which words, and its erasure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from hermes_cli.console import fail, show_json, stdout
from hermes_cli.opening import opened
from hermes_cli.options import Config, Data, Json, Key, Url, User
from hermes_cli.showing import evidence_table, memories_table, receipt_table
from hermes_memory.core.model import Category, Layer, Lock, Scope, Status, Tier

NOT_CONFIRMED = 2

MemoryId = Annotated[
    str, typer.Argument(metavar="ID", help="The memory's id, as `hermes memories` shows it.")
]


def list_memories(
    user: User,
    status: Annotated[Status | None, typer.Option(help="Only this status.", show_default="all")] = None,
    lock: Annotated[Lock | None, typer.Option(help="Only this lock.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="Only this tier.")] = None,
    category: Annotated[Category | None, typer.Option(help="Only this category.")] = None,
    layer: Annotated[Layer | None, typer.Option(help="Only this layer.")] = None,
    scope: Annotated[Scope | None, typer.Option(help="Only this scope.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """List what is remembered of USER, newest first."""
    given = {
        "status": status, "lock": lock, "tier": tier, "category": category, "layer": layer, "scope": scope, "topic": topic,
    }  # fmt: skip
    filters = {name: str(value) for name, value in given.items() if value is not None}
    with opened(data, config, url, key) as store:
        records = store.memories(user, **filters)
    if json:
        show_json(records)
    elif records:
        stdout().print(memories_table(records))
    else:
        stdout().print(Text(f"Nothing {'like that ' if filters else ''}is remembered of {user}."))


def why(
    user: User,
    memory_id: MemoryId,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the words of USER that a memory rests on: when, and in which conversation."""
    with opened(data, config, url, key) as store:
        evidence = store.why(user, memory_id)
    if json:
        show_json(evidence)
    else:
        stdout().print(evidence_table(evidence))


def forget(
    user: User,
    memory_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only this memory; everything of USER if left out.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Erase one memory, or everything of USER, physically. The receipt counts what went."""
    if not yes:
        _ask(f"Erase {f'memory {memory_id}' if memory_id else f'everything that is remembered of {user}'}?")
    with opened(data, config, url, key) as store:
        receipt = store.forget(user, memory_id)
    if json:
        show_json(receipt)
    else:
        stdout().print(receipt_table(receipt))


def _ask(question: str) -> None:
    if not _someone_there():
        fail("nobody is there to ask; pass --yes to erase")
        raise typer.Exit(NOT_CONFIRMED)
    if not typer.confirm(question, err=True):
        raise typer.Exit(NOT_CONFIRMED)


def _someone_there() -> bool:
    return sys.stdin.isatty()
