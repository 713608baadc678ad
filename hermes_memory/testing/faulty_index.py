"""An index that fails on a plan: what a network, a dying server or a full disk would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hermes_memory.core.ids import UserKey
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit, VectorIndex
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan

_T = TypeVar("_T")


class FaultyIndex:
    """Decorates ``inner``. Writes meet every fault but a delay, reads are refused at most.

    ``refuses`` are memory ids that it will never take; ``broken`` are users whose calls alone fail; ``chokes`` are
    memory ids that make a call fail with an error that nobody foresaw. While ``down`` nothing is answered.
    ``injected`` counts the faults.
    """

    def __init__(self, inner: VectorIndex, plan: FaultPlan | None = None) -> None:
        self._inner, self._plan = inner, plan or FaultPlan()
        self.down = False
        self.refuses: dict[str, str] = {}
        self.chokes: set[str] = set()
        self.broken: set[UserKey] = set()
        self.calls: Counter[str] = Counter()
        self.injected: Counter[Fault] = Counter()

    async def _write(self, name: str, key: UserKey, call: Callable[[], Awaitable[_T]]) -> _T:
        fault = self._begin(name, key)
        reply = await call()
        if fault is Fault.DUPLICATE:
            await call()
        if fault is Fault.FAIL_AFTER:
            raise IndexUnavailable("injected: the reply was lost")
        return reply

    async def _read(self, name: str, key: UserKey | None, call: Callable[[], Awaitable[_T]]) -> _T:
        self._begin(name, key)
        return await call()

    def _begin(self, name: str, key: UserKey | None) -> Fault:
        self.calls[name] += 1
        if self.down:
            raise IndexUnavailable("injected: it is down")
        if key in self.broken:
            raise IndexUnavailable("injected: this user's part is broken")
        fault = self._plan.draw()
        self.injected[fault] += 1
        if fault is Fault.FAIL_BEFORE:
            raise IndexUnavailable("injected: the call was refused")
        return fault

    async def open(self) -> None:
        """See ``VectorIndex.open``."""
        await self._read("open", None, self._inner.open)

    async def close(self) -> None:
        """Never faulted."""
        await self._inner.close()

    async def ping(self) -> None:
        """See ``VectorIndex.ping``; answers unless it is down: faults of a plan hit single calls."""
        self.calls["ping"] += 1
        if self.down:
            raise IndexUnavailable("injected: it is down")
        await self._inner.ping()

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        """See ``VectorIndex.put``."""
        if any(document.memory_id in self.chokes for document in documents):
            raise RuntimeError("injected: nobody foresaw this")
        refused = {d.memory_id: self.refuses[d.memory_id] for d in documents if d.memory_id in self.refuses}
        taken = [document for document in documents if document.memory_id not in refused]
        return await self._write("put", key, lambda: self._inner.put(key, taken)) | refused

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        """See ``VectorIndex.remove``."""
        await self._write("remove", key, lambda: self._inner.remove(key, memory_ids))

    async def drop(self, key: UserKey) -> None:
        """See ``VectorIndex.drop``."""
        await self._write("drop", key, lambda: self._inner.drop(key))

    async def rest(self, key: UserKey) -> None:
        """See ``VectorIndex.rest``."""
        await self._write("rest", key, lambda: self._inner.rest(key))

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """See ``VectorIndex.near``."""
        return await self._read("near", key, lambda: self._inner.near(key, vector, limit, archived=archived))

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """See ``VectorIndex.match``."""
        return await self._read("match", key, lambda: self._inner.match(key, words, limit, archived=archived))

    async def ids(self, key: UserKey) -> list[str]:
        """See ``VectorIndex.ids``."""
        return await self._read("ids", key, lambda: self._inner.ids(key))

    async def count(self, key: UserKey) -> int:
        """See ``VectorIndex.count``."""
        return await self._read("count", key, lambda: self._inner.count(key))
