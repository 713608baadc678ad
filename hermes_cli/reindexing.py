"""``hermes reindex``: builds the long-term index from the ledger, or compares the two (ARCHITECTURE §3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeAlias, runtime_checkable

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from hermes_cli.console import fail, stdout
from hermes_cli.options import Config, Data

if TYPE_CHECKING:
    from hermes_memory.app.indexing import Indexing
    from hermes_memory.app.reindexing import Compared, Reindexed
    from hermes_memory.app.reindexing import Progress as Done
    from hermes_memory.core.ids import UserKey
    from hermes_memory.ports.embedder import EmbedderInfo
    from hermes_memory.ports.index import VectorIndex
    from hermes_memory.ports.ledger import Ledger

DIFFERENT = 1
LINE_EVERY_S = 2.0  # without a terminal

Told: TypeAlias = "Callable[[Done], None]"


@runtime_checkable
class Renewable(Protocol):
    """An index that is made for one embedding model, and can be made anew for another."""

    async def recreate(self) -> None:
        """Empty it, for everybody, and open it."""
        ...


def reindex(
    data: Data = Path("./data"),
    config: Config = None,
    user: Annotated[str | None, typer.Option(help="Only this user.")] = None,
    namespace: Annotated[str, typer.Option(help="Of the user.")] = "default",
    after: Annotated[
        str, typer.Option(help="Only users behind this one: to go on where it stopped.", metavar="USER")
    ] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Change nothing; exit with 1 on a difference.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Empty the index first, for everybody: after a change of the model."),
    ] = False,
) -> None:
    """Build the long-term index from the ledger. A server may run meanwhile; running it twice changes nothing.

    Documents that the ledger does not know are removed, dead letters that can be delivered now are forgotten.
    """
    from hermes_memory.config import load_settings
    from hermes_memory.core.ids import UserKey, check_id
    from hermes_memory.errors import InvalidConfig, InvalidInput
    from hermes_memory.wiring import build_index, build_indexing, build_ledger, embedder_info, has_data

    if fresh and (verify or user is not None or after):
        raise InvalidInput("--fresh", "is for everybody, and changes the index")
    settings = load_settings(config)
    keys = None if user is None else [UserKey(check_id(namespace, "namespace"), check_id(user, "user"))]
    ledger = build_ledger(settings, data)
    index = build_index(settings, ledger)
    if index is None or settings.index.kind == "exact":
        raise InvalidConfig("index.kind", f"is {settings.index.kind}: there is no index to build")
    console = stdout()
    if not has_data(settings, data):
        console.print(Text(f"There is nothing in {data} to index."), soft_wrap=True)
        return
    parts = _Parts(ledger, index, build_indexing(settings, ledger, index), embedder_info(settings))
    with _shown(console) as told:
        text, good = asyncio.run(_run(parts, keys, after, told, verify=verify, fresh=fresh))
    console.print(Text(text), soft_wrap=True)
    if not good:
        raise typer.Exit(DIFFERENT)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a run needs, not yet opened."""

    ledger: Ledger
    index: VectorIndex
    indexing: Indexing
    embedder: EmbedderInfo


async def _run(
    parts: _Parts, keys: list[UserKey] | None, after: str, told: Told, *, verify: bool, fresh: bool
) -> tuple[str, bool]:
    """What is to be said, and whether all is well."""
    from hermes_memory.app.reindexing import Reindexing

    try:
        await parts.ledger.open(parts.embedder)
        await _open(parts.index, fresh=fresh)
        seen = _Seen(told)
        work = Reindexing(parts.ledger, parts.index, parts.indexing, told=seen.tell)
        with seen.at_the_end():
            if verify:
                return compared(await work.compare(keys, after))
            return rebuilt(await work.rebuild(keys, after))
    finally:
        await parts.index.close()
        await parts.ledger.close()


async def _open(index: VectorIndex, *, fresh: bool) -> None:
    from hermes_memory.errors import EmbedderMismatch, InvalidConfig

    if fresh and isinstance(index, Renewable):
        await index.recreate()
        return
    try:
        await index.open()
    except EmbedderMismatch as error:
        raise InvalidConfig(
            "index",
            f"holds vectors of {error.stored}, the data is embedded with {error.configured}; "
            "`hermes reindex --fresh` makes it anew",
        ) from None


def rebuilt(done: Reindexed) -> tuple[str, bool]:
    """The result of a rebuild in words, and whether everything could be indexed."""
    text = f"Indexed {done.put:,} memories of {done.users:,} users; {done.removed:,} strange ones removed"
    if done.settled:
        text += f"; {done.settled:,} dead letters delivered"
    if not done.refused:
        return f"{text}.", True
    reasons = ", ".join(f"{code} {count:,}" for code, count in done.refused.items())
    return f"{text}; the index refused some: {reasons}.", False


def compared(found: Compared) -> tuple[str, bool]:
    """The result of a comparison in words, and whether the two are the same."""
    about = f"{found.users:,} users with {found.documents:,} memories"
    if found.same:
        return f"The index has what the ledger has: {about}.", True
    return (
        f"The index differs from the ledger for {found.differing:,} of {about}: {found.missing:,} missing, "
        f"{found.strange:,} strange, {found.misplaced:,} in the wrong place; {found.dead:,} dead letters.",
        False,
    )


class _Seen:
    """Passes on how far it is, and remembers it for an end that comes too early."""

    def __init__(self, told: Told) -> None:
        self._told, self._last = told, ""

    def tell(self, done: Done) -> None:
        self._last = done.last
        self._told(done)

    @contextmanager
    def at_the_end(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self._last:
                fail(f"it stopped; go on with --after {self._last!r}")
            raise


@contextmanager
def _shown(console: Console) -> Iterator[Told]:
    """A bar on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _Lines(console).tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("users", total=None)
        yield lambda done: progress.update(task, completed=done.done, total=done.total)


class _Lines:
    """Says how far it is, not too often."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said_at = time.monotonic()

    def tell(self, done: Done) -> None:
        now = time.monotonic()
        if now - self._said_at < LINE_EVERY_S:
            return
        self._said_at = now
        self._console.print(Text(f"{done.done:,} of {done.total:,} users"), soft_wrap=True)
        self._console.file.flush()
