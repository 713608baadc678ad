"""Extraction and embedding as one: what a reading has cost is told although nobody could embed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from hermes_memory.app.distil import LocalDistiller, distil
from hermes_memory.core.candidate import Extraction, ExtractionRequest, Usage
from hermes_memory.core.rules import Episodic
from hermes_memory.errors import ExtractionFailed, HermesError, ModelFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.testing.builders import EMBEDDER, a_turn
from tests.small_world import DIMENSIONS, a_candidate, rules, vectors

PAID = Usage(calls=1, tokens_in=900, tokens_out=100)
AWAY = ModelFailed("the embedder", "status 503", 7.0)


@dataclass
class Reader:
    """An extractor that finds the turn."""

    usage: Usage = PAID
    name: str = "x"

    async def extract(self, request: ExtractionRequest) -> Extraction:
        found = tuple(a_candidate(turn, dimension="pet") for turn in request.turns)
        return Extraction(extractor="x", candidates=found, usage=self.usage)


@dataclass
class Embedder:
    """Fails first, with each of ``troubles``."""

    troubles: list[HermesError] = field(default_factory=list)
    info: EmbedderInfo = EMBEDDER

    async def passages(self, texts: Sequence[str]) -> Vectors:
        if self.troubles:
            raise self.troubles.pop()
        return vectors(texts)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self.passages(texts)


ALL = rules(entry={"episodic": Episodic.ALL_TURNS}).entry
REQUEST = ExtractionRequest(turns=(a_turn(content="我养猫"),))


async def test_a_reading_that_nobody_can_embed_tells_its_tokens_and_the_pause() -> None:
    with pytest.raises(ExtractionFailed) as caught:
        await LocalDistiller(Reader(), Embedder([AWAY]), 64).distil(REQUEST)
    assert (caught.value.why, caught.value.after_s, caught.value.tokens) == (AWAY.detail, 7.0, 1_000)


async def test_a_reading_that_cost_nothing_fails_as_the_embedder_does() -> None:
    with pytest.raises(ModelFailed) as caught:
        await LocalDistiller(Reader(Usage()), Embedder([AWAY]), 64).distil(REQUEST)
    assert caught.value is AWAY


@pytest.mark.parametrize(
    ("trouble", "why"), [(AWAY, AWAY.detail), (ExtractionFailed("lost", 7.0, 5), "lost")]
)
async def test_neither_are_they_lost_where_the_episodes_cannot_be_embedded(
    trouble: HermesError, why: str
) -> None:
    class Late(LocalDistiller):
        """The second call fails: that for the episodes."""

        async def distil(self, request: ExtractionRequest) -> Distilled:
            found = await super().distil(request)
            embedder.troubles = [trouble]
            return found

    embedder = Embedder()
    with pytest.raises(ExtractionFailed) as caught:
        await distil(Late(Reader(), embedder, 64), REQUEST, ALL, DIMENSIONS)
    paid = 1_000 + getattr(trouble, "tokens", 0)
    assert (caught.value.why, caught.value.after_s, caught.value.tokens) == (why, 7.0, paid)
