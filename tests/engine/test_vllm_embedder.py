"""The embedder on a real vLLM, on CPU: the suite of embedders, and an engine that dies.

The weights are those of a small model that writes; as an embedder its vectors are poor, and its mechanics are real. One engine
for all tests of this file, in one event loop, to which its sockets belong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np
import psutil
import pytest
import pytest_asyncio

from hermes_memory.adapters.embedders.vllm_engine import VllmEmbedder
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.testing.embedder_suite import EmbedderSuite
from tests.engine.place import running
from tests.engine.settings import fast_type, set_environment

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),  # the first test loads the engine
    pytest.mark.filterwarnings("default"),  # vLLM and torch warn of themselves
]

INFO = EmbedderInfo("smollm2", 576)
MODEL = running().model
SMALL = {"max_model_len": 512, "max_num_seqs": 16, "dtype": fast_type(), "enforce_eager": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[VllmEmbedder]:
    set_environment()
    made = VllmEmbedder(
        INFO, path=str(MODEL), engine=SMALL, batch=16, query_prefix="query: ", passage_prefix="query: ",
        timeout_s=60.0,
    )  # fmt: skip
    began = time.monotonic()
    await made.warm()
    print(f"\nthe engine embeds after {time.monotonic() - began:.1f} s")
    yield made
    await made.aclose()


def engines() -> list[psutil.Process]:
    """The processes of engines that this one has started."""
    return [child for child in psutil.Process().children(recursive=True) if "EngineCore" in child.name()]


class TestVllm(EmbedderSuite):
    @pytest.fixture
    def embedder(self, engine: VllmEmbedder) -> VllmEmbedder:
        return engine


async def test_many_at_once_are_joined_by_the_engine(engine: VllmEmbedder) -> None:
    texts = [f"我住在第{number}号楼。" for number in range(16)]
    await engine.passages(texts[:1])
    began = time.monotonic()
    for text in texts:
        await engine.passages([text])
    apart_s = time.monotonic() - began
    began = time.monotonic()
    await asyncio.gather(*(engine.passages([text]) for text in texts))
    together_s = time.monotonic() - began
    print(f"\n{len(texts)} texts: {apart_s:.2f} s one by one, {together_s:.2f} s at once")
    assert together_s < apart_s


async def test_a_prefix_changes_the_vector(engine: VllmEmbedder) -> None:
    bare = VllmEmbedder(INFO, path=str(MODEL), engine=SMALL)
    bare._engine = engine._engine
    with_prefix, without = await engine.queries(["Oslo"]), await bare.queries(["Oslo"])
    assert float((with_prefix @ without.T)[0, 0]) < 0.999
    assert np.abs(with_prefix - await bare.queries(["query: Oslo"])).max() < 0.02


async def test_another_dimension_than_the_models_is_refused(engine: VllmEmbedder) -> None:
    other = VllmEmbedder(EmbedderInfo("smollm2", 384), path=str(MODEL))
    other._engine = engine._engine
    with pytest.raises(InvalidConfig, match=r"embedder\.dimension: is 384, and smollm2 gives vectors of 576"):
        await other.queries(["a"])


async def test_what_the_engine_does_not_take_is_the_configurations_fault() -> None:
    wrong = VllmEmbedder(INFO, path=str(MODEL), engine={"max_modl_len": 512})
    with pytest.raises(InvalidConfig, match=r"embedder\.engine: .*max_modl_len"):
        await wrong.warm()
    nowhere = VllmEmbedder(INFO, path="/no/such/model")
    with pytest.raises(InvalidConfig, match=r"embedder\.model: cannot be loaded"):
        await nowhere.warm()


async def test_an_engine_that_dies_is_said_to(engine: VllmEmbedder) -> None:
    """That the next call starts another is tested without vLLM: a second load takes as long as all the rest."""
    (alive,) = engines()
    alive.kill()
    with pytest.raises(ModelFailed, match="the engine has died") as died:
        for number in range(100):  # until it is noticed
            await engine.passages([f"after {number}"])
            await asyncio.sleep(0.05)
    assert died.value.after_s > 0
    for _ in range(100):
        if not engines():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("something of it is left")
