"""Extraction and embedding in one step, wherever they run (ARCHITECTURE §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes_memory.core.candidate import Extraction, ExtractionRequest
from hermes_memory.ports.embedder import Vectors


@dataclass(frozen=True, slots=True)
class Distilled:
    """An extraction with the vector of each candidate's content, shape (candidates, dimension)."""

    extraction: Extraction
    vectors: Vectors


class Distiller(Protocol):
    """Reads turns and embeds what it proposes. Runs outside the user's mailbox."""

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors. Raises ExtractionFailed; the caller keeps the turns."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors of texts that are not extracted, shape (len(texts), dimension)."""
        ...
