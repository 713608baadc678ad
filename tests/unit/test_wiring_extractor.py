"""Which extractor the configuration names, and what is let go with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.model_extractor import ModelExtractor
from hermes_memory.config import Settings, load_settings
from hermes_memory.errors import InvalidConfig
from hermes_memory.wiring import build_distiller, build_extractor, build_vllm_model, check_data, let_go
from tests.model_answers import Told

ENDPOINT = {"kind": "openai", "model": "reader-7b", "base_url": "http://127.0.0.1:9/v1"}


def with_extractor(**values: Any) -> Settings:
    return load_settings(None, {"extractor": values})


def test_the_rules_by_default() -> None:
    assert build_extractor(load_settings()).name == "rules/1"


def test_a_model_behind_an_endpoint() -> None:
    made = build_extractor(with_extractor(**ENDPOINT))
    assert isinstance(made, ModelExtractor)
    assert made.name == "llm/extract-1/reader-7b"


def test_a_model_that_is_given() -> None:
    made = build_extractor(with_extractor(kind="vllm"), Told({"nothing": True}, name="given"))
    assert made.name == "llm/extract-1/given"


def test_vllm_runs_on_the_cluster_only() -> None:
    with pytest.raises(InvalidConfig, match=r"`hermes serve`.*kind openai"):
        build_extractor(with_extractor(kind="vllm"))


@pytest.mark.parametrize("prompt", ["extract-0", "nowhere/extract-1.toml"])
def test_a_prompt_that_is_not_there(prompt: str) -> None:
    with pytest.raises(InvalidConfig, match="cannot be read as a prompt"):
        build_extractor(with_extractor(**ENDPOINT, prompt=prompt))


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine-2"\nsystem = "{dimensions}"\nrepair = "again"\n[opinion]\nsystem = "sure?"\n'
    )
    made = build_extractor(with_extractor(**ENDPOINT, prompt=str(path)))
    assert made.name == "llm/mine-2/reader-7b"


def test_the_path_of_a_prompt_counts_from_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    """Replicas have other working directories."""
    (tmp_path / "own.toml").write_text('[extractor]\nprompt = "mine.toml"\n', encoding="utf-8")
    assert load_settings(tmp_path / "own.toml").extractor.prompt == str(tmp_path / "mine.toml")
    assert load_settings().extractor.prompt == "extract-1"


@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_a_server_does_not_start_with_a_prompt_that_is_not_there(kind: str, tmp_path: Path) -> None:
    """Else its distillers fail to start, again and again, and only their logs say why."""
    hashed = {"kind": "hash", "calibration": "hash"}
    chosen = load_settings(
        None, {"embedder": hashed, "extractor": {**ENDPOINT, "kind": kind, "prompt": "extract-0"}}
    )
    with pytest.raises(InvalidConfig, match="cannot be read as a prompt"):
        check_data(chosen, tmp_path)


@pytest.mark.parametrize("folder", ["./models/reader", "../reader", "~/models/reader"])
def test_the_folder_of_a_model_is_an_absolute_path(folder: str) -> None:
    with pytest.raises(InvalidConfig, match=r"extractor\.model: must be absolute"):
        build_vllm_model(with_extractor(kind="vllm", model=folder))


def test_the_extractors_connections_are_let_go() -> None:
    class Closing(Told):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    model, embedder = Closing({"nothing": True}), HashEmbedder()
    distiller = build_distiller(with_extractor(kind="vllm"), embedder, model)
    asyncio.run(let_go(embedder, distiller))
    assert model.closed
    asyncio.run(let_go(embedder, build_distiller(load_settings(), embedder)))
