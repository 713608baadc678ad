"""A second look at the best hits; none by default (SPEC §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Scores query and text together."""

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance in [0, 1] per text, in the order given."""
        ...
