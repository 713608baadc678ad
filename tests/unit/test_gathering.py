"""What is asked of one model at once is joined, and each caller gets what is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from hermes_memory.adapters.embedders.gathering import GatheringEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.testing.embedder_suite import EmbedderSuite

BAD = "bad"


class Model:
    """Answers when it is let, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.begun, self.free = asyncio.Event(), asyncio.Event()
        self.closed = 0
        self._hash = HashEmbedder()

    @property
    def info(self) -> EmbedderInfo:
        return self._hash.info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._answer("queries", texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._answer("passages", texts)

    async def aclose(self) -> None:
        self.closed += 1

    async def _answer(self, kind: str, texts: Sequence[str]) -> Vectors:
        self.asked.append((kind, list(texts)))
        self.begun.set()
        await self.free.wait()
        if BAD in texts:
            raise ModelFailed("the embedder", "a vector is zero or not a number")
        return self._hash.embed(texts)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def gathering(model: Model) -> GatheringEmbedder:
    return GatheringEmbedder(model, batch=4)


class TestGathering(EmbedderSuite):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[GatheringEmbedder]:
        made = GatheringEmbedder(HashEmbedder(), batch=8)
        yield made
        await made.aclose()


async def begun(model: Model, *calls: asyncio.Task[Vectors]) -> None:
    """Let the first call reach the model and the others queue up behind it."""
    await model.begun.wait()
    assert not any(call.done() for call in calls)


def asks(gathering: GatheringEmbedder, kind: str, *texts: str) -> asyncio.Task[Vectors]:
    return asyncio.ensure_future(getattr(gathering, kind)(texts))


async def test_what_waits_meanwhile_goes_together_up_to_the_batch(
    gathering: GatheringEmbedder, model: Model
) -> None:
    calls = [asks(gathering, "queries", "first")]
    await begun(model, *calls)
    calls += [asks(gathering, "queries", text, text + "!") for text in ("a", "b", "c")]
    await asyncio.sleep(0)
    model.free.set()
    answers = await asyncio.gather(*calls)
    assert [texts for _, texts in model.asked] == [["first"], ["a", "a!", "b", "b!"], ["c", "c!"]]
    expected = HashEmbedder().embed(["first", "a", "a!", "b", "b!", "c", "c!"])
    assert np.array_equal(np.concatenate(answers), expected)


async def test_more_than_a_batch_of_one_caller_goes_alone(gathering: GatheringEmbedder, model: Model) -> None:
    model.free.set()
    assert (await gathering.passages([str(number) for number in range(9)])).shape == (9, 64)
    assert [len(texts) for _, texts in model.asked] == [9]


async def test_queries_go_before_passages_and_do_not_starve_them(
    gathering: GatheringEmbedder, model: Model
) -> None:
    calls = [asks(gathering, "passages", "p0")]
    await begun(model, *calls)
    four = ("x", "y", "z")
    calls += [asks(gathering, "passages", "p", *four), asks(gathering, "passages", "pp", *four)]
    calls += [asks(gathering, "queries", "q", *four), asks(gathering, "queries", "qq", *four)]
    await asyncio.sleep(0)
    model.free.set()
    await asyncio.gather(*calls)
    assert [texts[0] for _, texts in model.asked] == ["p0", "q", "p", "qq", "pp"]


async def test_a_text_that_fails_fails_its_own_caller_only(
    gathering: GatheringEmbedder, model: Model
) -> None:
    calls = [asks(gathering, "queries", "first")]
    await begun(model, *calls)
    calls += [asks(gathering, "queries", text) for text in ("a", BAD, "b")]
    await asyncio.sleep(0)
    model.free.set()
    _, good, failed, also = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(failed, ModelFailed)
    assert isinstance(good, np.ndarray) and isinstance(also, np.ndarray)
    assert np.array_equal(also, HashEmbedder().embed(["b"]))


async def test_who_has_gone_is_not_asked_for(gathering: GatheringEmbedder, model: Model) -> None:
    first = asks(gathering, "queries", "first")
    await begun(model, first)
    gone, stays = asks(gathering, "queries", "gone"), asks(gathering, "queries", "stays")
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    model.free.set()
    assert (await stays).shape == (1, 64)
    assert [texts for _, texts in model.asked] == [["first"], ["stays"]]
    assert (await first).shape == (1, 64)


async def test_where_all_have_gone_nothing_is_asked(gathering: GatheringEmbedder, model: Model) -> None:
    first = asks(gathering, "queries", "first")
    await begun(model, first)
    gone = asks(gathering, "passages", "gone")
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    model.free.set()
    await first
    assert (await gathering.queries(["next"])).shape == (1, 64)
    assert [texts for _, texts in model.asked] == [["first"], ["next"]]


async def test_closing_gives_up_who_waits_and_closes_the_model(
    gathering: GatheringEmbedder, model: Model
) -> None:
    calls = [asks(gathering, "queries", "first")]
    await begun(model, *calls)
    calls.append(asks(gathering, "queries", "second"))
    await asyncio.sleep(0)
    await gathering.aclose()
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, ModelFailed)
    await gathering.aclose()
    assert model.closed == 2
    model.free.set()
    assert (await gathering.queries(["anew"])).shape == (1, 64)
