"""What document a memory becomes, and how the long-term index is brought to say what the ledger says.

Whoever writes to the index reads the ledger first and once more afterwards: what was committed in between is
written again, and what an erasure overtook is dropped. So a stale writer, such as a host that has lost its users
without knowing, leaves nothing stale behind (ARCHITECTURE §3).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hermes_memory.app.state import Words, own_words
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import LIVE, Memory, Status
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, VectorIndex
from hermes_memory.ports.ledger import Ledger

REFUSED = "refused"
AT_ONCE = 16
_CODE = re.compile(r"[a-z][a-z0-9_]{0,39}")

Documents = Mapping[str, Document]


def indexed(memory: Memory) -> bool:
    """Whether a search may find it: it lives, or rests in the archive."""
    return memory.status in LIVE or memory.status is Status.ARCHIVED


def document(memory: Memory, vector: Vector, words: Words) -> Document:
    """The memory as the index sees it: found by its content, and by the user's own words that say more than that."""
    content = words(memory.content)
    held = set(content)
    beside = tuple(dict.fromkeys(word for word in own_words(memory, words) if word not in held))
    return Document(memory.id, content + beside, vector, archived=memory.status is Status.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Brought:
    """What came of a set of memories; ``refused`` are those that the index will never take, with a code."""

    put: int = 0
    removed: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)


class Indexing:
    """Writes to the index what the ledger says.

    Args:
        words: The segmenter.
        batch: How many documents are read and written at once.
    """

    def __init__(self, ledger: Ledger, index: VectorIndex, words: Words, batch: int) -> None:
        self._ledger, self._index, self._words, self._batch = ledger, index, words, batch
        self._unsure: set[tuple[UserKey, str]] = set()  # a write of them broke off

    async def bring(self, key: UserKey, memory_ids: Sequence[str]) -> Brought:
        """Put what the user may find and remove the rest of ``memory_ids``, until the index has what the ledger has."""
        generation = await self._ledger.generation(key)
        wanted = await self.documents(key, memory_ids)
        while True:
            refused = await self._write(key, memory_ids, wanted)
            if await self._ledger.generation(key) != generation:
                return await self.empty(key)
            before, wanted = wanted, await self.documents(key, memory_ids)
            if _same(before, wanted):
                return Brought(len(wanted) - len(refused), len(set(memory_ids)) - len(wanted), refused)

    def doubt(self, key: UserKey, memory_ids: Iterable[str]) -> None:
        """The index may not have kept what it took of these: the next time they are removed before they are put."""
        self._unsure |= {(key, memory_id) for memory_id in memory_ids}

    async def empty(self, key: UserKey) -> Brought:
        """Drop the user, make sure that it is gone, and bring back what the user has said since the erasure.

        Raises IndexUnavailable while anything is left.
        """
        await self._index.drop(key)
        if not await self._ledger.memory_ids(key):
            if left := await self._index.count(key):
                raise IndexUnavailable(f"it still holds {left} documents of a user whom it dropped")
            return Brought()
        return await self.fill(key)

    async def fill(self, key: UserKey) -> Brought:
        """Bring everything that the ledger has of a user."""
        ids = await self._ledger.memory_ids(key)
        put, refused = 0, dict[str, str]()
        for start in range(0, len(ids), self._batch):
            brought = await self.bring(key, ids[start : start + self._batch])
            put += brought.put
            refused |= brought.refused
        return Brought(put, 0, refused)

    async def documents(self, key: UserKey, memory_ids: Sequence[str]) -> Documents:
        """What the index should hold of these memories."""
        found: dict[str, Document] = {}
        for number, (memory, vector) in enumerate(await self._ledger.documents(key, memory_ids), 1):
            if indexed(memory):
                found[memory.id] = document(memory, vector, self._words)
            if number % AT_ONCE == 0:  # a page takes milliseconds to segment: others may go first
                await asyncio.sleep(0)
        return found

    async def _write(self, key: UserKey, memory_ids: Sequence[str], wanted: Documents) -> dict[str, str]:
        """A server that died in the middle of a write may hold a document and not find it by all that it says.

        To be given the same document again mends nothing there: after a write that broke off it is removed first.
        """
        gone = [memory_id for memory_id in dict.fromkeys(memory_ids) if memory_id not in wanted]
        mine = {(key, memory_id) for memory_id in memory_ids}
        broken = sorted(memory_id for _, memory_id in mine & self._unsure)
        self._unsure |= mine  # until we know
        if doomed := [*gone, *(memory_id for memory_id in broken if memory_id in wanted)]:
            await self._index.remove(key, doomed)  # first: what is gone does not wait for what cannot be put
        refused = await self._index.put(key, list(wanted.values())) if wanted else {}
        if refused:  # what it refuses must not be found as it was before
            await self._index.remove(key, list(refused))
        self._unsure -= mine
        return {memory_id: _code(reason) for memory_id, reason in refused.items()}


def _same(one: Documents, other: Documents) -> bool:
    return one.keys() == other.keys() and all(_equal(one[id_], other[id_]) for id_ in one)


def _equal(one: Document, other: Document) -> bool:
    return (one.words, one.archived) == (other.words, other.archived) and np.array_equal(
        one.vector, other.vector
    )


def _code(reason: str) -> str:
    """A reason that can be shown anywhere: an index may quote what it refuses."""
    return reason if _CODE.fullmatch(reason) else REFUSED
