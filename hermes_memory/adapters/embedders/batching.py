"""What every embedder with a model does alike: clip, remember queries, embed in batches, check and normalise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hermes_memory.adapters.embedders.query_cache import QueryCache
from hermes_memory.adapters.embedders.reading import clipped, stacked, unit_rows
from hermes_memory.ports.embedder import EmbedderInfo, Vectors


class BatchingEmbedder(ABC):
    """Asks its model for a few texts at a time.

    Args:
        info: Name and dimension; vectors of another dimension are refused.
        batch: Most texts that the model is asked at once.
        max_chars: How much of a text is read.
        cache_size: How many query vectors are remembered by their text.
    """

    def __init__(self, info: EmbedderInfo, *, batch: int, max_chars: int, cache_size: int) -> None:
        self._info, self._batch, self._max_chars = info, batch, max_chars
        self._cache = QueryCache(cache_size)

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension of the model."""
        return self._info

    async def warm(self) -> None:
        """Ask the model once, so that it is loaded, and what does not fit is found out, before the first text."""
        await self.queries(["warm"])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of search queries, shape (len(texts), dimension)."""
        rows = await self._cache.look_up(
            self._clipped(texts), lambda missing: self._in_batches(missing, True)
        )
        return stacked(rows, self._info.dimension)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts to be found, shape (len(texts), dimension)."""
        return await self._in_batches(self._clipped(texts), False)

    @abstractmethod
    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        """The model's own vectors of at most ``batch`` texts; whatever is wrong with them is found out here."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of threads and connections. May be called twice."""

    def _clipped(self, texts: Sequence[str]) -> list[str]:
        return [clipped(text, self._max_chars) for text in texts]

    async def _in_batches(self, texts: list[str], query: bool) -> Vectors:
        parts = [texts[start : start + self._batch] for start in range(0, len(texts), self._batch)]
        rows = [
            row
            for part in parts
            for row in unit_rows(np.asarray(await self._embed(part, query)), len(part), self._info)
        ]
        return stacked(rows, self._info.dimension)
