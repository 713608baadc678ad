"""Embeddings from vLLM: what the engine is asked, and what is made of its answers. vLLM is not needed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders.vllm_engine import VllmEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.testing.embedder_suite import EmbedderSuite

INFO = EmbedderInfo("tiny", 64)


class Tensor:
    """As torch's: half precision is widened before it becomes an array."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def float(self) -> Tensor:
        return Tensor(np.asarray(self._values, np.float32))

    def numpy(self) -> Any:
        assert self._values.dtype == np.float32
        return self._values


class Llm:
    errored = False

    def __init__(self) -> None:
        self.arguments: Mapping[str, Any] = {}
        self.asked: list[tuple[str, Any, dict[str, Any]]] = []
        self.ids: set[str] = set()
        self.trouble: Any = None
        self.takes_s = 0.0
        self.aborted = 0
        self.closed = 0

    def load(self, arguments: Mapping[str, Any]) -> Llm:
        self.arguments = arguments
        return self

    async def encode(self, prompt: str, params: Any, request_id: str, **more: Any) -> AsyncIterator[Any]:
        assert prompt, "vLLM refuses a prompt without a token"
        self.asked.append((prompt, params.task, more))
        self.ids.add(request_id)
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        data = Tensor(HashEmbedder().embed([prompt])[0] * np.float32(3))
        yield SimpleNamespace(error=self.trouble, outputs=SimpleNamespace(data=data))

    def shutdown(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vllm", "vllm.pooling_params"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm.pooling_params"].PoolingParams = SimpleNamespace  # type: ignore[attr-defined]


@pytest.fixture
def llm() -> Llm:
    return Llm()


class TestVllm(EmbedderSuite):
    @pytest.fixture
    async def embedder(self, llm: Llm) -> AsyncIterator[VllmEmbedder]:
        made = VllmEmbedder(INFO, batch=8, load=llm.load)
        yield made
        await made.aclose()


async def test_what_the_engine_is_started_with(llm: Llm) -> None:
    more = {"max_model_len": 512, "disable_log_stats": False, "model": "other"}
    await VllmEmbedder(INFO, path="/models/tiny", engine=more, load=llm.load).warm()
    assert llm.arguments == {
        "model": "/models/tiny", "runner": "pooling", "max_model_len": 512, "disable_log_stats": False,
    }  # fmt: skip
    await VllmEmbedder(INFO, load=llm.load).warm()
    assert llm.arguments == {"model": "tiny", "runner": "pooling", "disable_log_stats": True}


async def test_queries_and_passages_have_their_prefixes_and_are_cut_by_the_engine(llm: Llm) -> None:
    embedder = VllmEmbedder(INFO, query_prefix="query: ", passage_prefix="", load=llm.load, max_chars=4)
    await embedder.queries(["abcdefgh"])
    await embedder.passages([""])
    cut = {"tokenization_kwargs": {"truncate_prompt_tokens": -1}}
    assert llm.asked == [("query: abch", "embed", cut), (" ", "embed", cut)]
    assert len(llm.ids) == 2


async def test_another_dimension_is_refused(llm: Llm) -> None:
    with pytest.raises(InvalidConfig, match=r"embedder\.dimension: is 384, and tiny gives vectors of 64"):
        await VllmEmbedder(EmbedderInfo("tiny", 384), load=llm.load).warm()


async def test_a_text_that_the_engine_refuses(llm: Llm) -> None:
    llm.trouble = SimpleNamespace(message="what ana said")
    with pytest.raises(ModelFailed) as caught:
        await VllmEmbedder(INFO, load=llm.load).passages(["a", "b"])
    assert caught.value.args == ("the embedder", "the engine refused a text", 0.0)


async def test_what_takes_too_long_is_given_up_and_aborted(llm: Llm) -> None:
    llm.takes_s = 60
    with pytest.raises(ModelFailed, match=r"nothing within 0\.02 s"):
        await VllmEmbedder(INFO, load=llm.load, timeout_s=0.02).passages(["a", "b"])
    assert llm.aborted == 2


async def test_it_is_ended(llm: Llm) -> None:
    embedder = VllmEmbedder(INFO, load=llm.load)
    await embedder.warm()
    embedder.close()
    await embedder.aclose()
    assert llm.closed == 1
