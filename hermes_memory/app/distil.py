"""Extraction and embedding: in this process, and what the episodic mode adds to either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hermes_memory.core.candidate import Extraction, ExtractionRequest
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.episodes import with_episodes
from hermes_memory.core.rules import EntryRules
from hermes_memory.core.wellformed import sound
from hermes_memory.errors import ExtractionFailed, ModelFailed
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.ports.extractor import Extractor


class LocalDistiller:
    """An extractor and an embedder as one Distiller; what has no shape, or is over the bound, is not embedded."""

    def __init__(self, extractor: Extractor, embedder: Embedder, most: int) -> None:
        self._extractor, self._embedder, self._most = extractor, embedder, most

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with the vectors of their contents."""
        extraction, _ = sound(await self._extractor.extract(request), request.turns, self._most)
        with _paid(extraction):
            vectors = await self.embed([candidate.content for candidate in extraction.candidates])
        return Distilled(extraction, vectors)

    async def aclose(self) -> None:
        """End the connections of an extractor that has some."""
        if (close := getattr(self._extractor, "aclose", None)) is not None:
            await close()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        return await self._embedder.passages(texts)


async def distil(
    distiller: Distiller, request: ExtractionRequest, rules: EntryRules, dimensions: Dimensions
) -> Distilled:
    """What ``distiller`` makes of the request, with the episodes of its turns if the mode asks for them (SPEC §7.6)."""
    distilled = _sound(await distiller.distil(request), request, rules)
    extraction = with_episodes(distilled.extraction, request.turns, rules, dimensions)
    added = extraction.candidates[len(distilled.extraction.candidates) :]
    if not added:
        return Distilled(extraction, distilled.vectors)
    with _paid(extraction):
        vectors = await distiller.embed([candidate.content for candidate in added])
    return Distilled(extraction, np.concatenate([distilled.vectors, vectors]))


def _sound(distilled: Distilled, request: ExtractionRequest, rules: EntryRules) -> Distilled:
    """The same without what has no shape or is over the bound: whoever distilled it (SPEC §4.1.1)."""
    extraction, kept = sound(distilled.extraction, request.turns, rules.most_candidates)
    return Distilled(extraction, distilled.vectors[kept] if kept else distilled.vectors[:0])


@contextmanager
def _paid(extraction: Extraction) -> Iterator[None]:
    """What fails after a reading tells what that has used: the user's tokens of the day are spent all the same."""
    tokens = extraction.usage.tokens
    try:
        yield
    except (ExtractionFailed, ModelFailed) as error:
        if not tokens:
            raise
        if isinstance(error, ExtractionFailed):
            raise ExtractionFailed(error.why, error.after_s, error.tokens + tokens) from None
        raise ExtractionFailed(error.detail, error.after_s, tokens) from None
