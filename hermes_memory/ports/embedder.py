"""Text to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]  # shape (dimension,), unit length
Vectors = NDArray[np.float32]  # shape (n, dimension), unit rows


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """What is stored with the data; another name or dimension refuses to start (ARCHITECTURE §3)."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions)"


class Embedder(Protocol):
    """Embeds queries and passages; for symmetric models the two are the same."""

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension of the model."""
        ...

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of search queries, shape (len(texts), dimension)."""
        ...

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts to be found, shape (len(texts), dimension)."""
        ...
