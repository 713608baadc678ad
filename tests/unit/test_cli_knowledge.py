"""hermes knowledge load, list and remove."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory import Memory
from tests.runtime.local_app import WITHOUT_MODEL
from tests.unit.test_pack_file import ENTRY, HEADER, file_of

SAMPLE = Path(str(files("configs").joinpath("knowledge", "everyday.jsonl")))

Hermes = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def hermes(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    config = tmp_path / "hermes.toml"
    config.write_text('[embedder]\nkind = "hash"\ncalibration = "hash"\n[ledger]\nsynchronous = "NORMAL"\n')
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("HERMES_DATA_DIR", str(data))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["knowledge", *arguments, "--config", str(config)])

    return run


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "tea.jsonl"
    path.write_text(file_of(HEADER, ENTRY), encoding="utf-8")
    return path


def said(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def loaded(hermes: Hermes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(hermes("list", "--json")))
    return found


def test_a_pack_is_loaded_listed_replaced_and_removed(hermes: Hermes, pack: Path) -> None:
    assert "No pack is loaded" in said(hermes("list"))
    assert "everyday 1.2: 1 entries for namespace default." in said(hermes("load", str(pack)))
    pack.write_text(file_of(HEADER | {"version": "2"}, ENTRY, ENTRY | {"id": "x"}), encoding="utf-8")
    assert "in place of version 1.2" in said(hermes("load", str(pack)))
    assert json.loads(said(hermes("load", str(pack), "--namespace", "app", "--json")))["replaced"] is None
    first, second = loaded(hermes)
    assert (first["namespace"], first["entries"], second["version"]) == ("app", 2, "2")
    assert "CC0-1.0" in said(hermes("list", "--namespace", "app"))
    assert "is removed" in said(hermes("remove", "everyday", "--namespace", "app"))
    assert json.loads(said(hermes("remove", "everyday", "--json")))["removed"] == "everyday"
    assert loaded(hermes) == []
    gone = hermes("remove", "everyday")
    assert gone.exit_code == 2
    assert "no such pack" in gone.stderr


def test_a_file_with_a_mistake_changes_nothing(hermes: Hermes, pack: Path, data: Path) -> None:
    bad = pack.with_name("bad.jsonl")
    bad.write_text(file_of(HEADER | {"version": "9"}, ENTRY, ENTRY), encoding="utf-8")
    refused = hermes("load", str(bad))
    assert refused.exit_code == 2
    assert "bad.jsonl, line 3: repeats the id tea" in refused.stderr
    assert not data.exists()
    said(hermes("load", str(pack)))
    assert hermes("load", str(bad)).exit_code == 2
    assert hermes("load", str(pack), "--namespace", "a\nb").exit_code == 2
    assert [record["version"] for record in loaded(hermes)] == ["1.2"]


def test_a_running_memory_is_no_hindrance(hermes: Hermes, pack: Path, data: Path) -> None:
    with Memory.open(data, **WITHOUT_MODEL) as memory:
        said(hermes("load", str(pack)))
        assert len(loaded(hermes)) == 1
        memory.remember("ana", "I have a cat.")
    with Memory.open(data, **WITHOUT_MODEL) as memory:
        assert len(memory.memories("ana")) == 1


def test_a_data_directory_that_cannot_be_is_told(hermes: Hermes, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = hermes("list", "--data", str(tmp_path / "file" / "below"))
    assert refused.exit_code == 2
    assert "cannot be used" in refused.stderr


def test_the_sample_pack_loads(hermes: Hermes) -> None:
    said(hermes("load", str(SAMPLE)))
    (record,) = loaded(hermes)
    assert record["entries"] >= 40
    assert record["languages"] == ["zh", "en"]
