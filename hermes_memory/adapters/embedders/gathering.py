"""One model for many callers: what is asked while it works waits, and then goes to it together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from hermes_memory.adapters.embedders.reading import WHAT
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.embedder import Embedder, EmbedderInfo, Vectors


@runtime_checkable
class Closing(Protocol):
    """What holds threads, connections or processes."""

    async def aclose(self) -> None:
        """Let go of them. May be called twice."""
        ...


@dataclass(slots=True)
class _Call:
    texts: list[str]
    rows: asyncio.Future[Vectors]


class GatheringEmbedder:
    """Joins the calls that wait for a model into one; nobody waits for others to come.

    A query goes before passages that wait, and passages have every other turn. If a joined call fails, each of its
    callers is tried alone, so that nobody pays for another's text. For one event loop.

    Args:
        inner: The model; it is asked one thing at a time.
        batch: Most texts that are joined. More of one caller go alone.
    """

    def __init__(self, inner: Embedder, *, batch: int) -> None:
        self._inner, self._batch = inner, batch
        self._queries: deque[_Call] = deque()
        self._passages: deque[_Call] = deque()
        self._queries_went = False
        self._worker: asyncio.Task[None] | None = None

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension of the model."""
        return self._inner.info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of search queries, shape (len(texts), dimension)."""
        return await self._waiting(self._queries, texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts to be found, shape (len(texts), dimension)."""
        return await self._waiting(self._passages, texts)

    async def aclose(self) -> None:
        """Give up what waits, and let the model go. May be called twice."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        _fail([*self._queries, *self._passages], ModelFailed(WHAT, "it is stopping"))
        self._queries.clear()
        self._passages.clear()
        if isinstance(self._inner, Closing):
            await self._inner.aclose()

    async def _waiting(self, queue: deque[_Call], texts: Sequence[str]) -> Vectors:
        call = _Call(list(texts), asyncio.get_running_loop().create_future())
        queue.append(call)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await call.rows

    async def _work(self) -> None:
        while self._queries or self._passages:
            self._queries_went = bool(self._queries) and not (self._queries_went and self._passages)
            calls = self._taken(self._queries if self._queries_went else self._passages)
            if not calls:
                continue
            try:
                await self._answer(calls, self._queries_went)
            finally:  # cancelled: they are no longer in a queue
                _fail(calls, ModelFailed(WHAT, "it is stopping"))

    def _taken(self, queue: deque[_Call]) -> list[_Call]:
        """The next that go together; who has stopped waiting is left out."""
        calls: list[_Call] = []
        room = self._batch
        while queue and (not calls or len(queue[0].texts) <= room):
            call = queue.popleft()
            if not call.rows.done():
                calls.append(call)
                room -= len(call.texts)
        return calls

    async def _answer(self, calls: list[_Call], query: bool) -> None:
        embed = self._inner.queries if query else self._inner.passages
        try:
            rows = await embed([text for call in calls for text in call.texts])
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the callers'
            if len(calls) == 1:
                return _fail(calls, error)
            for call in calls:
                await self._answer([call], query)
            return None
        ends = np.cumsum([len(call.texts) for call in calls])[:-1]
        for call, part in zip(calls, np.split(rows, ends), strict=True):
            if not call.rows.done():
                call.rows.set_result(part)
        return None


def _fail(calls: Sequence[_Call], error: Exception) -> None:
    for call in calls:
        if not call.rows.done():
            call.rows.set_exception(error)
