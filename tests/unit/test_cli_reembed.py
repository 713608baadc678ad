"""``hermes reembed``: what it says, what it refuses, and who can open the data afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory.adapters.data_lock import DataLock
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Lock
from hermes_memory.errors import EmbedderMismatch, InvalidConfig
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.builders import a_commit, a_memory
from hermes_memory.wiring import build_ledger, build_profile, check_data
from serve_app.launch import Server

CONFIGS = Path(__file__).parents[2] / "configs" / "embedders"
PEANUT, OSLO = "I'm allergic to peanuts.", "I live in Oslo."

Hermes = Callable[..., Result]


class Lossy(HashEmbedder):
    """Gives up after the first batch."""

    good = 1

    async def passages(self, texts: Sequence[str]) -> Vectors:
        found = await super().passages(texts)
        self.good -= 1
        return found if self.good >= 0 else np.full_like(found, np.nan)


class Useless(Lossy):
    """Gives up at once."""

    good = 0


@pytest.fixture
def embedders(monkeypatch: pytest.MonkeyPatch) -> dict[int, type[HashEmbedder]]:
    """Hash embedders of the dimension that the calibration names; a test may put another kind in its place."""
    kinds: dict[int, type[HashEmbedder]] = {}

    def build(settings: Settings) -> Embedder:
        dimension = build_profile(settings).dimension
        return kinds.get(dimension, HashEmbedder)(dimension)

    monkeypatch.setattr("hermes_memory.wiring.build_embedder", build)
    monkeypatch.setattr("hermes_memory.memory.build_embedder", build)
    return kinds


@pytest.fixture
def hermes(tmp_path: Path, embedders: object, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    """``hermes("old", …)`` runs a command with the configuration of 64 dimensions, ``new`` with that of 48."""
    for name in ("HERMES_URL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    shipped = (CONFIGS / "hash.toml").read_text("utf-8")
    for name, dimension in (("old", 64), ("new", 48)):
        text = shipped.replace("dimension = 64", f"dimension = {dimension}")
        (tmp_path / f"{name}-scale.toml").write_text(text, encoding="utf-8")
        (tmp_path / f"{name}.toml").write_text(
            f'[embedder]\nkind = "hash"\ncalibration = "{name}-scale.toml"\n', encoding="utf-8"
        )

    def run(name: str, *arguments: str) -> Result:
        options = ("--config", str(tmp_path / f"{name}.toml"), "--data", str(tmp_path / "data"))
        return CliRunner().invoke(app, [*arguments, *options])

    return run


@pytest.fixture
def lived(hermes: Hermes, tmp_path: Path) -> Path:
    """A directory with two memories of the old configuration, one of them frozen."""
    data = tmp_path / "data"
    data.mkdir()
    asyncio.run(live(build_ledger(load_settings(tmp_path / "old.toml"), data)))
    return data


async def live(ledger: Ledger) -> None:
    embedder, key = HashEmbedder(64), UserKey("default", "ana")
    await ledger.open(embedder.info)
    owner = {"namespace": key.namespace, "user_id": key.user_id}
    said = (
        a_memory(id="m1", content=PEANUT, lock=Lock.FROZEN, **owner),
        a_memory(id="m2", content=OSLO, **owner),
    )
    vectors = dict(zip(("m1", "m2"), embedder.embed([PEANUT, OSLO]), strict=True))
    await ledger.commit(a_commit(key=key, memories=said, vectors=vectors))
    await ledger.close()


def opens(tmp_path: Path, name: str) -> None:
    """Fails unless that configuration opens the data, without loading all that a memory needs."""
    check_data(load_settings(tmp_path / f"{name}.toml"), tmp_path / "data")


def refused(result: Result, *told: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for words in told:
        assert words in result.stderr


def test_another_dimension_refuses_to_start_and_names_the_way_out(hermes: Hermes, lived: Path) -> None:
    told = ("hash (64 dimensions)", "hash (48 dimensions)", "hermes reembed")
    refused(hermes("new", "recall", "ana", "cookies"), *told)
    refused(hermes("new", "serve", "--port", "0"), *told)
    assert not (lived / "hermes.lock").read_text()  # let go of


def test_then_the_new_configuration_opens_the_data_and_the_old_one_does_not(
    hermes: Hermes, lived: Path, tmp_path: Path
) -> None:
    result = hermes("new", "reembed")
    assert result.exit_code == 0, result.output
    assert "hash (48 dimensions): 0 of 2 vectors (0 %)" in result.stdout
    assert "2 of 2 vectors (100 %)" in result.stdout
    assert "The data is embedded with hash (48 dimensions): 2 vectors." in result.stdout
    shown = hermes("new", "recall", "ana", "where do I live in Oslo")
    assert "Oslo" in shown.stdout, shown.output
    with pytest.raises(EmbedderMismatch):
        opens(tmp_path, "old")
    again = hermes("new", "reembed")
    assert again.exit_code == 0
    assert " of " not in again.stdout


def test_a_server_on_the_directory_is_in_its_way(hermes: Hermes, lived: Path, tmp_path: Path) -> None:
    lock = DataLock(lived)
    lock.acquire({"what": "hermes serve"})
    refused(hermes("new", "reembed"), "in use", str(os.getpid()))
    lock.release()
    opens(tmp_path, "old")
    assert hermes("new", "reembed").exit_code == 0
    lock.acquire({})  # let go of
    lock.release()


def test_an_interrupted_one_is_told_and_the_old_configuration_goes_on(
    hermes: Hermes, lived: Path, tmp_path: Path, embedders: dict[int, type[HashEmbedder]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("hermes_memory.app.reembedding.BATCH", 1)
    embedders[48] = Lossy
    refused(hermes("new", "reembed"), "not finite")
    opens(tmp_path, "old")
    with pytest.raises(EmbedderMismatch, match=r"unfinished.*hermes reembed"):
        opens(tmp_path, "new")
    del embedders[48]
    result = hermes("new", "reembed")
    assert "1 of 2 vectors (50 %)" in result.stdout
    assert result.exit_code == 0
    opens(tmp_path, "new")


def test_going_back_after_an_interruption_takes_no_model(
    hermes: Hermes, lived: Path, tmp_path: Path, embedders: dict[int, type[HashEmbedder]]
) -> None:
    embedders[48] = embedders[64] = Useless
    refused(hermes("new", "reembed"), "not finite")
    assert hermes("old", "reembed").exit_code == 0
    opens(tmp_path, "old")
    with pytest.raises(EmbedderMismatch) as caught:
        opens(tmp_path, "new")
    assert not caught.value.unfinished


def test_a_terminal_gets_a_bar(hermes: Hermes, lived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = hermes("new", "reembed")
    assert result.exit_code == 0, result.output
    assert "re-embedding" in result.stdout
    assert "2/2" in result.stdout


def test_where_nothing_is_nothing_is_made(hermes: Hermes, tmp_path: Path) -> None:
    result = hermes("new", "reembed")
    assert result.exit_code == 0
    assert "nothing" in result.stdout
    assert not (tmp_path / "data").exists()


def test_a_ledger_that_is_no_file_is_asked_all_the_same(hermes: Hermes, tmp_path: Path) -> None:
    with (tmp_path / "new.toml").open("a", encoding="utf-8") as config:
        config.write('[ledger]\nkind = "stone"\n')
    refused(hermes("new", "reembed"), "ledger.kind")


def test_a_calibration_of_another_model_is_told_before_the_work(
    hermes: Hermes, lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with pytest.raises(InvalidConfig):
        opens(tmp_path, "new")
    refused(hermes("new", "reembed"), "hermes calibrate")


def test_vectors_added_meanwhile_are_told(
    hermes: Hermes, lived: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_memory.app.reembedding._left", nothing)
    result = hermes("new", "reembed")
    assert result.exit_code == 1
    assert "run it again" in result.stderr


async def nothing(*_: object, **__: object):  # type: ignore[no-untyped-def]
    return
    yield


def test_a_server_fails_before_it_starts_ray(hermes: Hermes, lived: Path, tmp_path: Path) -> None:
    said: list[str] = []
    server = Server(load_settings(tmp_path / "new.toml"), lived, said.append)
    with pytest.raises(EmbedderMismatch):
        server.start()
    assert said == []
    opens(tmp_path, "old")
