"""An index that keeps nothing on disk, filled from the ledger as users need it.

Each host has one of its own, so what another host wrote is not in it: a user's part is read from the ledger on first
use, kept up to date from the outbox, and forgotten when the user falls asleep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes_memory.app.indexing import Indexing
from hermes_memory.app.state import Words
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit, VectorIndex
from hermes_memory.ports.ledger import Ledger


class FilledIndex:
    """Decorates ``inner``; a ``VectorIndex``.

    Args:
        words: The segmenter.
        batch: How many documents are read at once.
    """

    def __init__(self, inner: VectorIndex, ledger: Ledger, words: Words, batch: int) -> None:
        self._inner = inner
        self._indexing = Indexing(ledger, inner, words, batch)
        self._filled: set[UserKey] = set()
        self._filling: dict[UserKey, asyncio.Lock] = {}

    async def _ready(self, key: UserKey) -> VectorIndex:
        """The index with the user's part in it."""
        if key not in self._filled:
            async with self._filling.setdefault(key, asyncio.Lock()):
                if key not in self._filled:
                    await self._indexing.fill(key)
                    self._filled.add(key)
            self._filling.pop(key, None)
        return self._inner

    async def open(self) -> None:
        """See ``VectorIndex.open``."""
        await self._inner.open()

    async def close(self) -> None:
        """See ``VectorIndex.close``."""
        await self._inner.close()

    async def ping(self) -> None:
        """See ``VectorIndex.ping``."""
        await self._inner.ping()

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        """See ``VectorIndex.put``."""
        return await (await self._ready(key)).put(key, documents)

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        """See ``VectorIndex.remove``."""
        await (await self._ready(key)).remove(key, memory_ids)

    async def drop(self, key: UserKey) -> None:
        """See ``VectorIndex.drop``."""
        await self._inner.drop(key)

    async def rest(self, key: UserKey) -> None:
        """Forget the user's part: it comes back from the ledger."""
        self._filled.discard(key)
        await self._inner.drop(key)

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """See ``VectorIndex.near``."""
        return await (await self._ready(key)).near(key, vector, limit, archived=archived)

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """See ``VectorIndex.match``."""
        return await (await self._ready(key)).match(key, words, limit, archived=archived)

    async def ids(self, key: UserKey) -> list[str]:
        """See ``VectorIndex.ids``."""
        return await (await self._ready(key)).ids(key)

    async def count(self, key: UserKey) -> int:
        """See ``VectorIndex.count``."""
        return await (await self._ready(key)).count(key)
