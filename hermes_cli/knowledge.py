"""``hermes knowledge``: packs of general knowledge that all users of a namespace share.

These commands take no lock on the data directory: they change no user and claim no host, each is one transaction
of the ledger, and a server that runs on the directory sees the change by itself within seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.text import Text

from hermes_cli.console import show_json, stdout
from hermes_cli.options import Config, Data, Json
from hermes_cli.showing import packs_table
from hermes_memory.adapters.pack_file import read_pack
from hermes_memory.app.knowledge import load as load_pack
from hermes_memory.app.knowledge import pack_record
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import check_id
from hermes_memory.errors import InvalidConfig, NotFound
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.wiring import build_embedder, build_ledger, build_policy, embedder_info, let_go

T = TypeVar("T")

app = typer.Typer(
    no_args_is_help=True,
    help="Packs of general knowledge, shared by all users of a namespace and said by none of them.",
)

Namespace = Annotated[str, typer.Option(help="The chat application whose users share it.")]


@app.command()
def load(
    pack: Annotated[
        Path, typer.Argument(help="A JSONL file; docs/reference/knowledge-packs.md says how it looks.")
    ],
    namespace: Namespace = "default",
    data: Data = Path("./data"),
    config: Config = None,
    json: Json = False,
) -> None:
    """Load a pack, or replace the one of its name. A file with a mistake in it changes nothing."""
    settings = load_settings(config)
    policy = build_policy(settings)
    found = read_pack(pack, policy.dimensions, policy.daytimes, settings.knowledge)
    embedder = build_embedder(settings)

    async def work(ledger: Ledger) -> Any:
        try:
            before = await load_pack(
                ledger, embedder, check_id(namespace, "namespace"), found, datetime.now(UTC)
            )
        finally:
            await let_go(embedder)
        (now,) = [one for one in await ledger.packs(namespace) if one.pack.name == found.name]
        return pack_record(now) | {"replaced": before.pack.version if before else None}

    record = _run(settings, data, embedder.info, work)
    if json:
        show_json(record)
        return
    replaced = f", in place of version {record['replaced']}" if record["replaced"] else ""
    line = f"{record['name']} {record['version']}: {record['entries']} entries for namespace {namespace}{replaced}."
    stdout().print(Text(line))


@app.command("list")
def list_packs(
    namespace: Annotated[str | None, typer.Option(help="Only of this one.", show_default="all")] = None,
    data: Data = Path("./data"),
    config: Config = None,
    json: Json = False,
) -> None:
    """List the packs that are loaded."""

    async def work(ledger: Ledger) -> list[dict[str, Any]]:
        return [pack_record(one) for one in await ledger.packs(namespace)]

    settings = load_settings(config)
    records = _run(settings, data, embedder_info(settings), work)
    if json:
        show_json(records)
    elif records:
        stdout().print(packs_table(records))
    else:
        stdout().print(Text("No pack is loaded."))


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="The pack's name, as `hermes knowledge list` shows it.")],
    namespace: Namespace = "default",
    data: Data = Path("./data"),
    config: Config = None,
    json: Json = False,
) -> None:
    """Remove a pack."""

    async def work(ledger: Ledger) -> bool:
        return await ledger.remove_pack(namespace, name)

    settings = load_settings(config)
    if not _run(settings, data, embedder_info(settings), work):
        raise NotFound("pack")
    if json:
        show_json({"removed": name, "namespace": namespace})
    else:
        stdout().print(Text(f"{name} is removed from namespace {namespace}."))


def _run(settings: Settings, data: Path, embedder: EmbedderInfo, work: Callable[[Ledger], Awaitable[T]]) -> T:
    """Do something with the ledger of a data directory, which is made if it is not there."""

    async def opened() -> T:
        ledger = build_ledger(settings, data)
        await ledger.open(embedder)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidConfig("data", f"{data} cannot be used: {error.strerror}") from None
    return asyncio.run(opened())
