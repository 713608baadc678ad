"""Extraction and embedding in this process."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.ports.extractor import Extractor


class LocalDistiller:
    """An extractor and an embedder as one Distiller."""

    def __init__(self, extractor: Extractor, embedder: Embedder) -> None:
        self._extractor, self._embedder = extractor, embedder

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with the vectors of their contents."""
        extraction = await self._extractor.extract(request)
        vectors = await self.embed([candidate.content for candidate in extraction.candidates])
        return Distilled(extraction, vectors)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        return await self._embedder.passages(texts)
