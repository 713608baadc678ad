"""Builds the long-term index anew from the ledger, or compares the two (ARCHITECTURE §3).

It writes to the index and to nobody's memory, so a server may run meanwhile, and running it twice changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hermes_memory.app.indexing import Indexing
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger

_T = TypeVar("_T")

PAGE = 200  # users that are listed at once
TOGETHER = 4  # users that are seen to at once
PAUSES_S = (
    1.0,
    2.0,
    4.0,
    8.0,
)  # between the tries while the index does not answer; after the last it is given up
MOST_DEAD = 10_000  # dead letters of a user that are looked through
MOST_HITS = 10_000  # an index names no more at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far it is: ``done`` of about ``total`` users, the last of which is ``last``."""

    done: int
    total: int
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What was done. ``settled`` dead letters were delivered after all; ``refused`` says why some were not, by code."""

    users: int = 0
    put: int = 0
    removed: int = 0
    settled: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Reindexed) -> Reindexed:
        codes = sorted({*self.refused, *other.refused})
        return Reindexed(
            users=self.users + other.users,
            put=self.put + other.put,
            removed=self.removed + other.removed,
            settled=self.settled + other.settled,
            refused={code: self.refused.get(code, 0) + other.refused.get(code, 0) for code in codes},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How index and ledger differ, in documents; ``differing`` counts users, ``dead`` dead letters.

    ``strange`` ones the ledger does not know, ``misplaced`` ones are archived in one of the two only.
    """

    users: int = 0
    documents: int = 0
    differing: int = 0
    missing: int = 0
    strange: int = 0
    misplaced: int = 0
    dead: int = 0

    @property
    def same(self) -> bool:
        """Whether the index has what the ledger has."""
        return not (self.differing or self.dead)

    def __add__(self, other: Compared) -> Compared:
        names = ("users", "documents", "differing", "missing", "strange", "misplaced", "dead")
        return Compared(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Reindexing:
    """One run over all users, or over those that are named.

    Args:
        told: Learns how far it is after each user.
        sleep: Waits seconds: before another try, or for a difference to settle.
    """

    def __init__(
        self,
        ledger: Ledger,
        index: VectorIndex,
        indexing: Indexing,
        *,
        told: Callable[[Progress], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ledger, self._index, self._indexing, self._told = ledger, index, indexing, told
        self._sleep = sleep

    async def rebuild(self, keys: Iterable[UserKey] | None = None, after: str = "") -> Reindexed:
        """Write every document of every user, or of ``keys``, and remove what the ledger does not know.

        Args:
            after: Only users behind this ``str(key)``: to go on where it stopped.

        Raises:
            IndexUnavailable: it did not answer for too long; what was written stays.
        """
        whole = Reindexed()
        async for one in self._each(self.rebuild_user, keys, after):
            whole += one
        return whole

    async def compare(self, keys: Iterable[UserKey] | None = None, after: str = "") -> Compared:
        """Look for differences; those that go away by themselves, while a server feeds the index, are none.

        Raises IndexUnavailable as ``rebuild``.
        """
        whole = Compared()
        async for one in self._each(self.compare_user, keys, after):
            whole += one
        return whole

    async def rebuild_user(self, key: UserKey) -> Reindexed:
        """Write every document of a user, remove the others, and forget the dead letters that this delivered."""
        brought = await self._indexing.fill(key)
        known = set(await self._ledger.memory_ids(key))
        strange = [memory_id for memory_id in await self._index.ids(key) if memory_id not in known]
        if not known:
            await self._indexing.empty(key)
        elif strange:
            await self._indexing.bring(key, strange)
        dead = await self._ledger.read_outbox(key, MOST_DEAD, buried=True)
        settled = [entry.seq for entry in dead if entry.memory_id not in brought.refused]
        if settled:
            await self._ledger.ack_outbox(key, settled)
        refused = Reindexed()
        for code in brought.refused.values():
            refused += Reindexed(refused={code: 1})
        return refused + Reindexed(users=1, put=brought.put, removed=len(strange), settled=len(settled))

    async def compare_user(self, key: UserKey) -> Compared:
        """How index and ledger differ for a user, once that stays so."""
        found = await self._differences(key)
        for pause_s in PAUSES_S:
            if found.same:
                break
            await self._sleep(pause_s)
            found = await self._differences(key)
        return found

    async def _differences(self, key: UserKey) -> Compared:
        wanted = await self._indexing.documents(key, await self._ledger.memory_ids(key))
        held = set(await self._index.ids(key))
        dead = await self._ledger.read_outbox(key, MOST_DEAD, buried=True)
        both = [document for memory_id, document in wanted.items() if memory_id in held]
        misplaced = 0
        if both:  # what is nearest to whatever it is: all of the archive, in some order
            archive = await self._index.near(key, both[0].vector, min(len(held), MOST_HITS), archived=True)
            resting = {hit.memory_id for hit in archive}
            misplaced = sum(document.archived != (document.memory_id in resting) for document in both)
        missing, strange = len(wanted.keys() - held), len(held - wanted.keys())
        return Compared(
            users=1,
            documents=len(wanted),
            differing=int(bool(missing or strange or misplaced)),
            missing=missing,
            strange=strange,
            misplaced=misplaced,
            dead=len(dead),
        )

    # users

    async def _each(
        self, work: Callable[[UserKey], Awaitable[_T]], keys: Iterable[UserKey] | None, after: str
    ) -> AsyncIterator[_T]:
        """The results for all users, some of them at a time."""
        chosen = None if keys is None else list(keys)
        progress = Progress(
            done=0, total=await self._count(after) if chosen is None else len(chosen), last=after
        )
        self._told(progress)
        async for group in self._groups(chosen, after):
            for result in await asyncio.gather(*(self._patiently(work, key) for key in group)):
                yield result
            done = progress.done + len(group)
            progress = replace(progress, done=done, total=max(done, progress.total), last=str(group[-1]))
            self._told(progress)

    async def _groups(self, chosen: list[UserKey] | None, after: str) -> AsyncIterator[list[UserKey]]:
        if chosen is not None:
            for group in _cut(chosen, TOGETHER):
                yield group
            return
        while page := await self._page(after):
            for group in _cut(page, TOGETHER):
                yield group
            after = str(page[-1])

    async def _page(self, after: str) -> list[UserKey]:
        """Users with memories, and erased ones of whom the index has not heard yet."""
        known = await self._ledger.users(None, after, PAGE)
        erased = await self._ledger.outbox_users(after, PAGE)
        return sorted({*known, *erased}, key=str)[:PAGE]

    async def _count(self, after: str) -> int:
        count = 0
        while page := await self._page(after):
            count, after = count + len(page), str(page[-1])
        return count

    async def _patiently(self, work: Callable[[UserKey], Awaitable[_T]], key: UserKey) -> _T:
        for pause_s in PAUSES_S:
            try:
                return await work(key)
            except IndexUnavailable:
                await self._sleep(pause_s)
        return await work(key)


def _cut(keys: list[UserKey], size: int) -> Iterable[list[UserKey]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))
