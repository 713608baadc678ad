"""Embeddings from an OpenAI-compatible endpoint: ``POST {base_url}/embeddings``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.embedders.reading import WHAT
from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo

BLANK = " "  # endpoints refuse an empty text


class OpenAIEmbedder(BatchingEmbedder):
    """Asks an endpoint; repeated queries are not asked again.

    Args:
        endpoint: Where to ask.
        info: The model's name at the endpoint, and the dimension of its vectors.
        batch: Most texts in one request.
        max_chars: How much of a text is sent, without its prefix.
        query_prefix: Stands before each query, as it is: with its space, if the model wants one.
        passage_prefix: Stands before each passage.
        send_dimension: Ask for vectors of ``info.dimension``; not every model takes that.
        cache_size: How many query vectors are remembered by their text.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        info: EmbedderInfo,
        *,
        batch: int = 64,
        max_chars: int = 2048,
        query_prefix: str = "",
        passage_prefix: str = "",
        send_dimension: bool = False,
        cache_size: int = 1024,
    ) -> None:
        super().__init__(info, batch=batch, max_chars=max_chars, cache_size=cache_size)
        self._endpoint = endpoint
        self._prefixes = {True: query_prefix, False: passage_prefix}
        self._asked: dict[str, Any] = {"model": info.name}
        if send_dimension:
            self._asked["dimensions"] = info.dimension

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        prefix = self._prefixes[query]
        body = {**self._asked, "input": [prefix + text or BLANK for text in texts]}
        return _rows(await self._endpoint.post("embeddings", body), len(texts))


def _rows(answer: Any, count: int) -> NDArray[Any]:
    """The vectors in the order of the texts: an answer numbers them and may list them in any order."""
    try:
        items = answer["data"]
        placed = {item.get("index", place): item["embedding"] for place, item in enumerate(items)}
        if len(items) != count or set(placed) != set(range(count)):
            raise ModelFailed(WHAT, f"not one vector for each of {count} texts")
        return np.asarray([placed[place] for place in range(count)], np.float64)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ModelFailed(WHAT, "the endpoint's answer holds no vectors") from None
