"""A reranker's look at the best hits, between finding and assembling. Nothing is held meanwhile, nothing depends on it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_memory.core.ranking import Ranked
from hermes_memory.errors import HermesError, ModelFailed
from hermes_memory.ports.metrics import Metrics
from hermes_memory.ports.reranker import Reranker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """A reranker with its bounds. ``candidates``: how many of the best hits it looks at, at least what is asked for."""

    reranker: Reranker
    candidates: int
    timeout_s: float

    async def at(self, query: str, hits: Sequence[Ranked], metrics: Metrics) -> dict[str, float] | None:
        """The relevance of each hit by memory id; None when no good answer came in time, whatever went wrong."""
        if not hits:
            return {}
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout_s):
                scores = await self.reranker.score(query, [hit.memory.content for hit in hits])
            _check(scores, len(hits))
        except Exception as error:  # noqa: BLE001  # a recall answers without it, and says so
            log.warning("no second look: %s", _told(error))
            metrics.count("hermes_rerank_failures_total", kind=type(error).__name__)
            return None
        metrics.observe("hermes_rerank_seconds", time.perf_counter() - started)
        return {hit.memory.id: score for hit, score in zip(hits, scores, strict=True)}


def _check(scores: Sequence[float], count: int) -> None:
    if len(scores) != count:
        raise ModelFailed("the reranker", f"not one relevance for each of {count} texts")
    if not all(0.0 <= score <= 1.0 for score in scores):  # nor what is no number
        raise ModelFailed("the reranker", "a relevance is not a number in [0, 1]")


def _told(error: Exception) -> str:
    """A message of ours, which names no content; of a stranger's only the kind."""
    return error.detail if isinstance(error, HermesError) else type(error).__name__
