"""``hermes reindex``: what it does, what it says, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory.app import reindexing
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import EmbedderMismatch
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.builders import a_commit, a_memory, a_vector
from hermes_memory.testing.faulty_index import FaultyIndex
from hermes_memory.wiring import build_ledger, embedder_info
from tests.dict_index import DictIndex

ANN, BOB = UserKey("default", "ann"), UserKey("default", "bob")
CONFIG = """
[embedder]
kind = "hash"
calibration = "hash"
[index]
kind = "weaviate"
"""


class Index(FaultyIndex):
    """Made for another model until it is made anew."""

    def __init__(self) -> None:
        self.inner = DictIndex()
        super().__init__(self.inner)
        self.foreign = False

    async def open(self) -> None:
        await super().open()
        if self.foreign:
            raise EmbedderMismatch("old (4)", "hash (64)")

    async def recreate(self) -> None:
        self.inner.of.clear()
        self.foreign = False


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    made = Index()
    monkeypatch.setattr("hermes_memory.wiring.build_index", lambda settings, ledger: made)
    return made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "hermes.toml"
    path.write_text(CONFIG, "utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path, config: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    settings = load_settings(config)
    asyncio.run(fill(build_ledger(settings, folder), embedder_info(settings)))
    return folder


async def fill(ledger: Ledger, info: EmbedderInfo) -> None:
    await ledger.open(info)
    for key in (ANN, BOB):
        memory = a_memory(id="a", user_id=key.user_id, namespace=key.namespace)
        vectors = {"a": a_vector(1, info.dimension)}
        await ledger.commit(a_commit(key=key, memories=(memory,), vectors=vectors))
    await ledger.close()


@pytest.fixture
def hermes(data: Path, config: Path) -> Callable[..., Result]:
    def run(*options: str) -> Result:
        return CliRunner().invoke(app, ["reindex", "--data", str(data), "--config", str(config), *options])

    return run


def held(index: Index) -> dict[str, list[str]]:
    return {str(key): sorted(documents) for key, documents in index.inner.of.items()}


def test_everything_is_indexed_and_then_the_same(hermes: Callable[..., Result], index: Index) -> None:
    done = hermes()
    assert (done.exit_code, done.stdout) == (
        0,
        "Indexed 2 memories of 2 users; 0 strange ones removed.\n",
    )
    assert held(index) == {"default/ann": ["a"], "default/bob": ["a"]}
    seen = hermes("--verify")
    assert (seen.exit_code, seen.stdout) == (
        0,
        "The index has what the ledger has: 2 users with 2 memories.\n",
    )


def test_a_difference_fails_and_changes_nothing(
    hermes: Callable[..., Result], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "PAUSES_S", ())
    seen = hermes("--verify")
    assert seen.exit_code == 1
    assert "differs from the ledger for 2 of 2 users with 2 memories: 2 missing, 0 strange" in seen.stdout
    assert held(index) == {}


def test_one_user(hermes: Callable[..., Result], index: Index) -> None:
    assert hermes("--user", "bob").exit_code == 0
    assert held(index) == {"default/bob": ["a"]}
    assert "0 memories of 1 users" in hermes("--user", "bob", "--namespace", "other").stdout
    assert hermes("--user", "a\nb").exit_code == 2


def test_it_goes_on_behind_a_user(hermes: Callable[..., Result], index: Index) -> None:
    assert hermes("--after", "default/ann").exit_code == 0
    assert held(index) == {"default/bob": ["a"]}


def test_an_outage_says_where_to_go_on(
    hermes: Callable[..., Result], index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindexing, "PAUSES_S", ())
    monkeypatch.setattr(reindexing, "TOGETHER", 1)
    index.broken = {BOB}
    stopped = hermes()
    assert stopped.exit_code == 2
    assert "go on with --after 'default/ann'" in stopped.stderr
    assert "the index is unavailable" in stopped.stderr
    index.broken = set()
    assert hermes("--after", "default/ann").exit_code == 0
    assert len(held(index)) == 2


def test_what_is_refused_is_named_and_fails(hermes: Callable[..., Result], index: Index) -> None:
    index.refuses = {"a": "too_large"}
    done = hermes()
    assert done.exit_code == 1
    assert "the index refused some: too_large 2." in done.stdout


def test_an_index_of_another_model_is_made_anew_only_when_told_so(
    hermes: Callable[..., Result], index: Index
) -> None:
    index.foreign = True
    index.inner.of[UserKey("default", "gone")] = {}
    refused = hermes()
    assert refused.exit_code == 2
    assert "holds vectors of old (4), the data is embedded with hash (64)" in refused.stderr
    assert hermes("--fresh").exit_code == 0
    assert held(index) == {"default/ann": ["a"], "default/bob": ["a"]}


@pytest.mark.parametrize("with_", [("--verify",), ("--user", "ann"), ("--after", "default/a")])
def test_fresh_is_for_everybody(hermes: Callable[..., Result], index: Index, with_: tuple[str, ...]) -> None:
    index.inner.of[ANN] = {}
    assert hermes("--fresh", *with_).exit_code == 2
    assert ANN in index.inner.of


@pytest.mark.parametrize("kind", ["none", "exact"])
def test_without_an_index_there_is_nothing_to_build(
    hermes: Callable[..., Result], config: Path, kind: str
) -> None:
    config.write_text(CONFIG.replace("weaviate", kind), "utf-8")
    refused = hermes()
    assert refused.exit_code == 2
    assert f"is {kind}: there is no index to build" in refused.stderr


def test_without_data_there_is_nothing_to_index(tmp_path: Path, config: Path, index: Index) -> None:
    empty = tmp_path / "empty"
    done = CliRunner().invoke(app, ["reindex", "--data", str(empty), "--config", str(config)])
    assert (done.exit_code, done.stdout) == (0, f"There is nothing in {empty} to index.\n")
    assert not empty.exists()
