"""``hermes calibrate``, ``knowledge load`` and ``reembed`` with an embedding model of one's own, whatever its kind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import EmbedderMismatch
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Snapshot, StoredPack
from hermes_memory.testing.builders import a_commit, a_memory
from hermes_memory.wiring import DATABASE, check_data
from tests.openai_server import DIMENSION, Fault, OpenAIServer, serving
from tests.unit.test_pack_file import ENTRY, HEADER, file_of

BGE = EmbedderInfo("bge", DIMENSION)
ANA, OSLO = UserKey("default", "ana"), "I live in Oslo."

Hermes = Callable[..., Result]


class Library:
    """Stands for sentence-transformers: a model of hashes."""

    def SentenceTransformer(self, source: str, device: str | None = None) -> Library:
        return self

    def encode_document(self, texts: list[str], **_: Any) -> Any:
        return HashEmbedder(DIMENSION).embed(texts)

    encode_query = encode_document


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serving() as made:
        yield made


@pytest.fixture(params=["openai", "sentence-transformers"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "sentence_transformers", Library())
    return str(request.param)


@pytest.fixture
def hermes(tmp_path: Path, server: OpenAIServer, kind: str, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    """``hermes("new", …)`` runs a command with a model of one's own, ``old`` with the one that is built in."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    own = {
        "kind": kind, "model": BGE.name, "dimension": BGE.dimension, "calibration": "bge.toml",
        "base_url": server.url, "attempts": 1,
    }  # fmt: skip
    for name, values in (("old", {"kind": "hash", "calibration": "hash"}), ("new", own)):
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        (tmp_path / f"{name}.toml").write_text("\n".join(["[embedder]", *lines, ""]), encoding="utf-8")

    def run(name: str, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(tmp_path / f"{name}.toml")])

    return run


@pytest.fixture
async def data(hermes: Hermes, tmp_path: Path) -> Path:
    """A directory of the old configuration with a memory and a pack."""
    place, pack, embedder = tmp_path / "data", tmp_path / "tea.jsonl", HashEmbedder()
    place.mkdir()
    ledger = SqliteLedger(place / DATABASE)
    await ledger.open(embedder.info)
    said = a_memory(id="m1", content=OSLO, namespace=ANA.namespace, user_id=ANA.user_id)
    await ledger.commit(a_commit(key=ANA, memories=(said,), vectors={"m1": embedder.embed([OSLO])[0]}))
    await ledger.close()

    def load() -> Result:
        pack.write_text(file_of(HEADER, ENTRY), encoding="utf-8")
        return hermes("old", "knowledge", "load", str(pack), "--data", str(place))

    succeeded(await asyncio.to_thread(load))
    return place


def succeeded(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


async def held(data: Path) -> tuple[Snapshot, StoredPack]:
    """What the new model opens."""
    ledger = SqliteLedger(data / DATABASE)
    await ledger.open(BGE)
    (stored,) = await ledger.packs(None)
    seen = await ledger.activate(ANA, 1)
    await ledger.close()
    return seen, stored


async def test_spec_7_3_a_model_of_ones_own_is_calibrated_and_takes_the_data(
    hermes: Hermes, data: Path, tmp_path: Path
) -> None:
    def use() -> None:
        scale = tmp_path / "bge.toml"
        refused = hermes("new", "reembed", "--data", str(data))
        assert refused.exit_code == 2
        assert "bge.toml" in refused.stderr
        assert "bge, 64 dimensions" in succeeded(hermes("new", "calibrate", "--out", str(scale)))
        assert "is what the pairs give" in succeeded(hermes("new", "calibrate", "--check"))
        done = succeeded(hermes("new", "reembed", "--data", str(data)))
        assert "bge (64 dimensions): 0 of" in done
        assert "The data is embedded with bge (64 dimensions)" in done
        listed = succeeded(hermes("new", "knowledge", "list", "--data", str(data), "--json"))
        assert len(json.loads(listed)) == 1
        check_data(load_settings(tmp_path / "new.toml"), data)

    await asyncio.to_thread(use)
    seen, stored = await held(data)
    model = HashEmbedder(DIMENSION)
    assert np.allclose(seen.vectors["m1"], model.embed([OSLO])[0], atol=2e-3)
    assert np.allclose(stored.vectors, model.embed(stored.pack.passages), atol=2e-3)


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
async def test_an_endpoint_that_fails_leaves_the_data_to_the_old_model(
    hermes: Hermes, data: Path, server: OpenAIServer, tmp_path: Path
) -> None:
    def use() -> None:
        succeeded(hermes("new", "calibrate", "--out", str(tmp_path / "bge.toml")))
        server.faults += [Fault(), Fault(status=500)]  # the memory is embedded, the pack is not
        failed = hermes("new", "reembed", "--data", str(data))
        assert failed.exit_code == 2, failed.output
        check_data(load_settings(tmp_path / "old.toml"), data)
        with pytest.raises(EmbedderMismatch, match="unfinished"):
            check_data(load_settings(tmp_path / "new.toml"), data)
        again = succeeded(hermes("new", "reembed", "--data", str(data)))
        assert "bge (64 dimensions): 1 of" in again

    await asyncio.to_thread(use)
    assert [body["input"] for body in server.asked].count([OSLO]) == 1
