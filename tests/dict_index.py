"""A long-term index in a dictionary, for tests of what feeds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit


class DictIndex:
    """Holds documents by user and id. ``rested`` counts how often a user's part was let go."""

    def __init__(self) -> None:
        self.of: dict[UserKey, dict[str, Document]] = {}
        self.rested: Counter[UserKey] = Counter()

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None: ...

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        if documents:
            self.of.setdefault(key, {}).update({document.memory_id: document for document in documents})
        return {}

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        for memory_id in memory_ids:
            self.of.get(key, {}).pop(memory_id, None)

    async def drop(self, key: UserKey) -> None:
        self.of.pop(key, None)

    async def rest(self, key: UserKey) -> None:
        self.rested[key] += 1

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        kept = [d for d in self.of.get(key, {}).values() if archived in (None, d.archived)]
        hits = [Hit(document.memory_id, float(document.vector @ vector)) for document in kept]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        raise NotImplementedError

    async def ids(self, key: UserKey) -> list[str]:
        return sorted(self.of.get(key, {}))

    async def count(self, key: UserKey) -> int:
        return len(self.of.get(key, {}))
