"""remember, recall, memories, why, forget: in process on a directory, and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory import Memory, __version__
from hermes_memory import client as client_package
from hermes_memory.client import HermesClient

PEANUT = "I'm allergic to peanuts."

Hermes = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "hermes.toml"
    path.write_text('[embedder]\nkind = "hash"\ncalibration = "hash"\n')
    return path


@pytest.fixture
def hermes(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> Hermes:
    for name in ("HERMES_URL", "HERMES_API_KEY", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HERMES_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [*arguments, "--config", str(config)], input=stdin)

    return run


def said(result: Result, code: int = 0) -> str:
    assert result.exit_code == code, result.output
    return result.stdout


def answered(result: Result) -> Any:
    return json.loads(said(result))


def test_what_is_said_is_shown_with_what_becomes_of_it(hermes: Hermes) -> None:
    shown = said(hermes("remember", "ana", PEANUT, "--session", "s-1"))
    assert "added" in shown
    assert "frozen" in shown
    assert "peanuts" in shown
    assert "refused" in said(hermes("remember", "ana", "嗯嗯"))


def test_a_block_comes_with_its_reasons(hermes: Hermes) -> None:
    said(hermes("remember", "ana", PEANUT))
    shown = said(hermes("recall", "ana", "a recipe for cookies"))
    assert "peanut" in shown
    assert "relevance" in shown
    assert "Allergies" in said(hermes("recall", "ana", "cookies", "--top-k", "3", "--budget-chars", "200"))
    assert "nothing is remembered" in said(hermes("recall", "bo", "a recipe for cookies"))


def test_json_is_json_and_nothing_else(hermes: Hermes) -> None:
    job = answered(hermes("remember", "ana", PEANUT, "--said-at", "2026-03-02T20:15:00+08:00", "--json"))
    assert job["status"] == "done"
    (record,) = answered(hermes("memories", "ana", "--json"))
    assert record["id"] == job["changes"][0]["memory_id"]
    (evidence,) = answered(hermes("why", "ana", record["id"], "--json"))
    assert evidence["quote"] in PEANUT
    assert evidence["created_at"] == "2026-03-02T20:15:00+08:00"
    assert "peanut" in answered(hermes("recall", "ana", "cookies", "--json"))["context"]
    assert answered(hermes("forget", "ana", "--yes", "--json"))["erased"]["memories"] == 1
    assert answered(hermes("memories", "ana", "--json")) == []


def test_memories_are_filtered_and_explained(hermes: Hermes) -> None:
    said(hermes("remember", "ana", PEANUT, "--session", "s-1"))
    said(hermes("remember", "ana", "I live in Oslo.", "--session", "s-1"))
    everything = said(hermes("memories", "ana"))
    assert "peanuts" in everything
    assert "Oslo" in everything
    frozen = said(hermes("memories", "ana", "--lock", "frozen", "--status", "active"))
    assert "peanuts" in frozen
    assert "Oslo" not in frozen
    assert "Nothing like that" in said(hermes("memories", "ana", "--layer", "style"))
    (record,) = answered(hermes("memories", "ana", "--lock", "frozen", "--json"))
    why = said(hermes("why", "ana", record["id"]))
    assert "s-1" in why
    assert "allergic to peanuts" in why


def test_one_memory_or_everything_is_forgotten(hermes: Hermes) -> None:
    said(hermes("remember", "ana", PEANUT))
    said(hermes("remember", "ana", "I live in Oslo."))
    (record,) = answered(hermes("memories", "ana", "--lock", "frozen", "--json"))
    assert "memories" in said(hermes("forget", "ana", record["id"], "--yes"))
    assert len(answered(hermes("memories", "ana", "--json"))) == 1
    said(hermes("forget", "ana", "-y"))
    assert answered(hermes("memories", "ana", "--json")) == []


def test_nobody_is_forgotten_unasked(hermes: Hermes, monkeypatch: pytest.MonkeyPatch) -> None:
    said(hermes("remember", "ana", PEANUT))
    assert "--yes" in hermes("forget", "ana").stderr
    assert hermes("forget", "ana").exit_code == 2
    assert len(answered(hermes("memories", "ana", "--json"))) == 1
    monkeypatch.setattr("hermes_cli.memories._someone_there", lambda: True)
    assert hermes("forget", "ana", stdin="n\n").exit_code == 2
    assert len(answered(hermes("memories", "ana", "--json"))) == 1
    said(hermes("forget", "ana", stdin="y\n"))
    assert answered(hermes("memories", "ana", "--json")) == []


def test_two_users_need_not_name_sessions(hermes: Hermes) -> None:
    said(hermes("remember", "ana", PEANUT))
    assert "added" in said(hermes("remember", "bo", "I live in Oslo."))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("remember", "ana", "  "), "blank"),
        (("remember", "a\nb", PEANUT), "user"),
        (("why", "ana", "mem_none"), "no such memory"),
        (("remember", "ana", PEANUT, "--said-at", "2199-01-01T00:00:00Z"), "future"),
        (("recall", "ana", "tea", "--url", "memory.test"), "url"),
        (("recall", "ana", "tea", "--url", "http://127.0.0.1:9"), "no server answers"),
    ],
)
def test_an_error_is_one_line_and_exit_2(hermes: Hermes, arguments: tuple[str, ...], told: str) -> None:
    result = hermes(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_time_that_is_none_is_a_usage_error(hermes: Hermes) -> None:
    result = hermes("remember", "ana", PEANUT, "--said-at", "yesterday")
    assert result.exit_code == 2
    assert "--said-at" in result.stderr


def test_a_time_without_offset_is_in_the_zone_that_is_named(hermes: Hermes) -> None:
    said(hermes("remember", "ana", PEANUT, "--said-at", "2026-03-02T20:15", "--timezone", "Asia/Shanghai"))
    (record,) = answered(hermes("memories", "ana", "--json"))
    assert record["evidence"][0]["created_at"] == "2026-03-02T20:15:00+08:00"


def test_a_directory_in_use_says_how_to_ask_its_server(hermes: Hermes, config: Path, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "data", config=config):
        result = hermes("recall", "ana", "tea")
    assert result.exit_code == 2
    assert "--url" in result.stderr


def test_another_model_than_the_datas_is_told(hermes: Hermes, tmp_path: Path) -> None:
    said(hermes("remember", "ana", PEANUT))
    result = CliRunner().invoke(app, ["memories", "ana", "--data", str(tmp_path / "data")])
    assert result.exit_code == 2
    assert "hash" in result.stderr


def test_with_a_url_the_server_is_asked(hermes: Hermes, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"memories": [], "next_cursor": None})

    def connect(url: str, *, key: str | None) -> HermesClient:
        return HermesClient(url, key=key, transport=httpx.MockTransport(handler))

    monkeypatch.setattr(client_package, "HermesClient", connect)
    monkeypatch.setenv("HERMES_URL", "http://memory.test")
    monkeypatch.setenv("HERMES_API_KEY", "k-1")
    assert "Nothing is remembered of ana" in said(hermes("memories", "ana"))
    (request,) = asked
    assert request.url.host == "memory.test"
    assert request.headers["authorization"] == "Bearer k-1"


def test_a_message_that_is_not_settled_yet_is_said_to_be_safe(
    hermes: Hermes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([
        {"job_id": "j", "accepted": 1, "duplicates": 0},
        {"job_id": "j", "accepted": 0, "duplicates": 1, "status": "done", "changes": []},
        {"job_id": "j", "accepted": 1, "status": "failed", "reason": "no answer", "changes": []},
    ])  # fmt: skip
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(answers)))
    monkeypatch.setattr(
        client_package, "HermesClient", lambda url, key: HermesClient(url, transport=transport)
    )
    monkeypatch.setenv("HERMES_URL", "http://memory.test")
    assert "safe" in said(hermes("remember", "ana", PEANUT))
    assert "sent before" in said(hermes("remember", "ana", PEANUT))
    failed = hermes("remember", "ana", PEANUT)
    assert failed.exit_code == 1
    assert "no answer" in failed.stderr


def test_the_version_is_told() -> None:
    for arguments in (["version"], ["--version"]):
        assert said(CliRunner().invoke(app, arguments)) == f"hermes-memory {__version__}\n"


def test_help_names_every_command() -> None:
    shown = said(CliRunner().invoke(app, ["--help"]))
    for command in ("serve", "demo", "remember", "recall", "memories", "why", "forget", "doctor", "version"):
        assert command in shown
