"""Turns to candidates."""

from __future__ import annotations

from typing import Protocol

from hermes_memory.core.candidate import Extraction, ExtractionRequest


class Extractor(Protocol):
    """Reads user turns and proposes memories; every candidate names its verbatim span."""

    @property
    def name(self) -> str:
        """Name and version, kept in the evidence."""
        ...

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """Candidates, affirmations and refusals for ``request.turns``.

        Raises:
            ExtractionFailed: no usable answer; the caller keeps the turns and tries again.
        """
        ...
