"""A second look at the best hits; none by default (SPEC §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Scores query and text together. Callers bound the time, check the answer and do without it."""

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance in [0, 1] per text, in the order given.

        Raises:
            ModelFailed: no usable answer came.
            InvalidConfig: the model is none that can do this.
        """
        ...

    async def aclose(self) -> None:
        """Let go of threads and connections. May be called twice."""
        ...
