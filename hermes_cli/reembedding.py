"""``hermes reembed``: gives a data directory to the configured embedding model (ARCHITECTURE §3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from hermes_cli.console import fail, stdout
from hermes_cli.options import Config, Data

if TYPE_CHECKING:
    from hermes_memory.ports.embedder import Embedder
    from hermes_memory.ports.ledger import Ledger, Reembedding

UNFINISHED = 1
LINE_EVERY_S = 2.0  # without a terminal

Told: TypeAlias = "Callable[[Reembedding], None]"


def reembed(data: Data = Path("./data"), config: Config = None) -> None:
    """Make every stored vector anew with the configured embedder. Goes on where it stopped.

    Those of memories and of knowledge packs; nothing else changes. Until it is finished the old configuration opens the data as before; from then on the
    new one does. No server may run on the directory meanwhile.
    """
    from hermes_memory.adapters.data_lock import DataLock
    from hermes_memory.config import load_settings
    from hermes_memory.wiring import build_embedder, build_ledger, check_calibration, has_data

    settings = load_settings(config)
    embedder = build_embedder(settings)
    check_calibration(settings, embedder.info)
    console = stdout()
    if not has_data(settings, data):
        console.print(Text(f"There is nothing in {data} to re-embed."), soft_wrap=True)
        return
    lock = DataLock(data)
    lock.acquire({"what": "hermes reembed"})
    try:
        with _shown(console) as told:
            state = asyncio.run(_run(build_ledger(settings, data), embedder, told))
    finally:
        lock.release()
    if not state.finished:
        fail(f"{state.total - state.done} vectors were added meanwhile; run it again")
        raise typer.Exit(UNFINISHED)
    console.print(Text(f"The data is embedded with {state.stored}: {state.total:,} vectors."), soft_wrap=True)


async def _run(ledger: Ledger, embedder: Embedder, told: Told) -> Reembedding:
    from hermes_memory.app.reembedding import reembed as work
    from hermes_memory.wiring import let_go

    try:
        return await work(ledger, embedder, told)
    finally:
        await ledger.close()
        await let_go(embedder)


@contextmanager
def _shown(console: Console) -> Iterator[Told]:
    """A bar on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _Lines(console).tell
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("re-embedding", total=None)
        yield lambda state: progress.update(task, completed=state.done, total=state.total)


class _Lines:
    """Says how far it is: at the beginning, at the end, and not too often in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said_at = -LINE_EVERY_S

    def tell(self, state: Reembedding) -> None:
        if state.finished:
            return
        now = time.monotonic()
        if now - self._said_at < LINE_EVERY_S and state.done < state.total:
            return
        self._said_at = now
        percent = 100 * state.done // max(state.total, 1)
        self._console.print(
            Text(f"{state.target}: {state.done:,} of {state.total:,} vectors ({percent} %)"), soft_wrap=True
        )
        self._console.file.flush()
