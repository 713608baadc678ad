"""An embedder without a model, for tests: texts that share characters are near each other."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import numpy as np

from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors

_SIZES = (1, 2, 3)


class HashEmbedder:
    """A bag of hashed character n-grams; the same in every process.

    Args:
        dimension: Length of the vectors.
    """

    def __init__(self, dimension: int = 64) -> None:
        self._info = EmbedderInfo("hash", dimension)

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension."""
        return self._info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension)."""
        return self.embed(texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension); the same as those of queries."""
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """What both do, without waiting."""
        if not texts:
            return np.zeros((0, self._info.dimension), np.float32)
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vector:
        vector = np.zeros(self._info.dimension, np.float32)
        plain = f" {' '.join(unicodedata.normalize('NFKC', text).casefold().split())} "
        for size in _SIZES:
            for start in range(len(plain) - size + 1):
                gram = plain[start : start + size].encode("utf-8", "replace")
                value = int.from_bytes(hashlib.blake2b(gram, digest_size=8).digest(), "big")
                vector[(value >> 1) % len(vector)] += size if value & 1 else -size
        length = float(np.linalg.norm(vector))
        if length < 1e-6:  # the grams cancelled out
            vector[0], length = 1.0, 1.0
        return np.asarray(vector / length, np.float32)
