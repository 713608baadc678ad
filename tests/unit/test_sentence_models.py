"""What the sentence-transformers adapters do beside the suite of embedders; without the extra, what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders.sentence_models import Prompt, SentenceTransformerEmbedder
from hermes_memory.adapters.rerankers.cross_encoder import CrossEncoderReranker
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo
from tests import tiny_models

INFO = EmbedderInfo("tiny", tiny_models.DIMENSION)


class Library:
    """Stands for the package: notes what it is asked, fails as it is told."""

    def __init__(self) -> None:
        self.loaded: list[tuple[str, str | None]] = []
        self.asked: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.failure: Exception | None = None
        self.labels = 1
        self.prompts = {"query": "find: ", "document": ""}

    @property
    def num_labels(self) -> int:
        return self.labels

    def SentenceTransformer(self, source: str, device: str | None = None) -> Library:
        self.loaded.append((source, device))
        if self.failure is not None:
            raise self.failure
        return self

    CrossEncoder = SentenceTransformer

    def encode_query(self, texts: list[str], **options: Any) -> Any:
        self.asked.append(("query", texts, options))
        return np.full((len(texts), INFO.dimension), 2.0, np.float32)

    def encode_document(self, texts: list[str], **options: Any) -> Any:
        self.asked.append(("document", texts, options))
        return np.full((len(texts), INFO.dimension), 2.0, np.float32)

    def predict(self, pairs: list[tuple[str, str]], **options: Any) -> Any:
        self.asked.append(("predict", pairs, options))
        return np.array([0.25] * len(pairs), np.float32)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setitem(sys.modules, "sentence_transformers", made)
    torch = SimpleNamespace(nn=SimpleNamespace(Sigmoid=lambda: "the logistic function"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return made


async def test_prompts_as_they_are_configured(library: Library) -> None:
    usual = SentenceTransformerEmbedder(INFO)
    prefixed = SentenceTransformerEmbedder(INFO, query_prefix="q: ", passage_prompt="document", device="cpu")
    for embedder in (usual, prefixed):
        await embedder.queries(["a"])
        await embedder.passages(["b"])
        await embedder.aclose()
    plain = {"batch_size": 16, "show_progress_bar": False, "convert_to_numpy": True}
    assert library.asked == [
        ("query", ["a"], plain),
        ("document", ["b"], plain),
        ("query", ["a"], {**plain, "prompt": "q: "}),
        ("document", ["b"], {**plain, "prompt_name": "document"}),
    ]
    assert library.loaded == [("tiny", None), ("tiny", "cpu")]


async def test_a_folder_is_loaded_in_place_of_the_name(library: Library, tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(INFO, path=str(tmp_path))
    await embedder.warm()
    await embedder.aclose()
    assert (library.loaded, embedder.info) == ([(str(tmp_path), None)], INFO)


async def test_a_prompt_that_the_model_does_not_have_is_refused(library: Library) -> None:
    embedder = SentenceTransformerEmbedder(INFO, query_prompt="question")
    with pytest.raises(
        InvalidConfig, match=r"embedder\.query_prompt: is not a prompt of the model; it has: document"
    ):
        await embedder.queries(["a"])
    library.prompts = {}
    with pytest.raises(InvalidConfig, match="it has: none"):
        await embedder.queries(["a"])
    await embedder.aclose()


def test_a_prefix_and_a_prompt_are_one_too_many() -> None:
    with pytest.raises(InvalidConfig, match=r"embedder\.passage_prompt: has a prefix and a prompt"):
        SentenceTransformerEmbedder(INFO, passage_prefix="p: ", passage_prompt="document")
    assert Prompt("x").arguments(None) == {}


async def test_another_dimension_is_refused(library: Library) -> None:
    embedder = SentenceTransformerEmbedder(EmbedderInfo("tiny", 7))
    with pytest.raises(InvalidConfig, match=r"embedder\.dimension: is 7, and tiny gives vectors of 32"):
        await embedder.warm()
    await embedder.aclose()


@pytest.mark.parametrize(
    "failure", [OSError("no such model /secret/path"), ValueError("bad"), RuntimeError("cuda")]
)
async def test_a_model_that_cannot_be_loaded_is_told(failure: Exception, library: Library) -> None:
    library.failure = failure
    embedder, reranker = SentenceTransformerEmbedder(INFO), CrossEncoderReranker("tiny")
    with pytest.raises(InvalidConfig, match=rf"embedder\.model: cannot be loaded: {type(failure).__name__}$"):
        await embedder.warm()
    with pytest.raises(InvalidConfig, match=rf"reranker\.model: cannot be loaded: {type(failure).__name__}$"):
        await reranker.warm()
    await embedder.aclose()
    await reranker.aclose()


async def test_without_the_extra_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder, reranker = SentenceTransformerEmbedder(INFO), CrossEncoderReranker("tiny")
    with pytest.raises(InvalidConfig, match=r"embedder\.kind: needs .* pip install 'hermes-memory\[st\]'"):
        await embedder.warm()
    with pytest.raises(InvalidConfig, match=r"reranker\.kind: needs .* pip install 'hermes-memory\[st\]'"):
        await reranker.warm()
    await embedder.aclose()
    await reranker.aclose()


# the cross-encoder


async def test_a_cross_encoder_is_asked_in_pairs_through_the_logistic_function(library: Library) -> None:
    reranker = CrossEncoderReranker("tiny", max_chars=8)
    assert await reranker.score("what \n to eat", ["a", "b" * 20]) == [0.25, 0.25]
    assert await reranker.score("q", []) == []
    await reranker.aclose()
    ((_, pairs, options),) = library.asked
    assert pairs == [("what tat", "a"), ("what tat", "bbbbbbbb")]
    assert options["activation_fn"] == "the logistic function"


async def test_a_classifier_of_more_than_relevance_is_refused(library: Library) -> None:
    library.labels = 3
    reranker = CrossEncoderReranker("tiny")
    with pytest.raises(InvalidConfig, match=r"reranker\.model: gives 3 scores for a pair"):
        await reranker.score("q", ["a"])
    await reranker.aclose()


# with the package itself


@pytest.mark.allow_skip
@pytest.mark.skipif(not tiny_models.HAS_SENTENCE_TRANSFORMERS, reason=tiny_models.WHY_NOT)
async def test_real_models_of_the_package(tmp_path: Path) -> None:
    folder = tiny_models.save_sentence_model(tmp_path / "sentences")
    kinds = [{}, {"query_prefix": "find: "}, {"query_prompt": "query"}, {"query_prefix": "other: "}]
    rows = []
    for kind in kinds:
        embedder = SentenceTransformerEmbedder(INFO, path=str(folder), device="cpu", **kind)  # type: ignore[arg-type]
        rows.append((await embedder.queries(["晚饭吃什么"]))[0])
        await embedder.aclose()
    assert np.allclose(rows[0], rows[1], atol=1e-5)  # the model's own prompt
    assert np.allclose(rows[0], rows[2], atol=1e-5)
    assert not np.allclose(rows[0], rows[3], atol=1e-3)
    reranker = CrossEncoderReranker(str(tiny_models.save_cross_encoder(tmp_path / "pairs")), device="cpu")
    scores = await reranker.score(
        "晚饭吃什么", ["我对花生过敏", "x", "a much longer statement about nothing"]
    )
    assert len(scores) == 3
    assert all(0 < score < 1 for score in scores)
    assert len(set(scores)) == 3
    await reranker.aclose()
    three = CrossEncoderReranker(
        str(tiny_models.save_cross_encoder(tmp_path / "three", labels=3)), device="cpu"
    )
    with pytest.raises(InvalidConfig, match="gives 3 scores"):
        await three.score("q", ["a"])
    await three.aclose()
    missing = SentenceTransformerEmbedder(INFO, path=str(tmp_path / "nothing"))
    with pytest.raises(InvalidConfig, match="cannot be loaded"):
        await missing.warm()
    await missing.aclose()
