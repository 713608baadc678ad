"""Embeddings from a model on vLLM; the extra ``vllm`` brings what it needs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.embedders.reading import WHAT
from hermes_memory.adapters.vllm_engine import VllmEngine
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo

BLANK = " "  # an engine refuses a text without a token
TRUNCATE = {"truncate_prompt_tokens": -1}  # to what the model can read


class VllmEmbedder(BatchingEmbedder):
    """Embeds with an engine in a process of its own, which joins what is asked at once; it is loaded on first use.

    Args:
        info: The model's name and the dimension of its vectors.
        path: Where the model is loaded from; without one, by its name.
        engine: Further arguments of vLLM's engine.
        timeout_s: How long the engine, once loaded, may take for a batch.
        batch: Most texts of one caller that are under way at once.
        max_chars: How much of a text is read, without its prefix.
        query_prefix: Stands before each query, as it is.
        passage_prefix: Stands before each passage.
        cache_size: How many query vectors are remembered by their text.
        load: Makes the engine of its arguments.
    """

    def __init__(
        self,
        info: EmbedderInfo,
        *,
        path: str = "",
        engine: Mapping[str, Any] | None = None,
        timeout_s: float = 10.0,
        batch: int = 32,
        max_chars: int = 2048,
        query_prefix: str = "",
        passage_prefix: str = "",
        cache_size: int = 1024,
        load: Any = None,
    ) -> None:
        super().__init__(info, batch=batch, max_chars=max_chars, cache_size=cache_size)
        self._prefixes = {True: query_prefix, False: passage_prefix}
        self._timeout_s = timeout_s
        arguments = {"disable_log_stats": True, **(engine or {})}
        arguments |= {"model": path or info.name, "runner": "pooling"}
        self._engine = VllmEngine(arguments, what=WHAT, section="embedder", load=load)

    def close(self) -> None:
        """End the engine. May be called twice."""
        self._engine.close()

    async def aclose(self) -> None:
        """The same as ``close``."""
        self.close()

    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        prefix = self._prefixes[query]
        await self._engine.loaded()  # takes its time, whatever a text may take
        asked = [asyncio.ensure_future(self._one(prefix + text or BLANK)) for text in texts]
        try:
            async with asyncio.timeout(self._timeout_s):
                return np.asarray(await asyncio.gather(*asked))
        except TimeoutError:
            raise ModelFailed(WHAT, f"nothing within {self._timeout_s:g} s") from None
        finally:
            for one in asked:  # of the others, when one has failed
                one.cancel()

    async def _one(self, prompt: str) -> NDArray[np.float32]:
        output = await self._engine.last(lambda llm: _encoded(llm, prompt))
        if output.error is not None:
            raise ModelFailed(WHAT, "the engine refused a text")
        vector: NDArray[np.float32] = output.outputs.data.float().numpy()
        return vector


def _encoded(llm: Any, prompt: str) -> AsyncIterator[Any]:
    from vllm.pooling_params import PoolingParams

    outputs: AsyncIterator[Any] = llm.encode(
        prompt, PoolingParams(task="embed"), uuid.uuid4().hex, tokenization_kwargs=TRUNCATE
    )
    return outputs
