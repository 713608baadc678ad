"""demo: the stories end as they should, and the demo says so when they do not."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hermes_cli.demo import playing, server
from hermes_cli.demo.stories import COFFEE, PEANUT, STORIES, Story
from hermes_cli.main import app
from hermes_memory import Memory
from hermes_memory.app.commands import Export
from hermes_memory.client import HermesClient


class Panel:
    """The in-process memory with the one call of the panel that the demo makes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def export(self, user: str) -> dict[str, Any]:
        return self._memory.ask(user, Export())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[HermesClient]:
    with Memory.open(tmp_path / "data", embedder={"kind": "hash", "calibration": "hash"}) as memory:
        yield cast("HermesClient", Panel(memory))


def told(story: Story, client: HermesClient) -> tuple[str, list[str]]:
    console = Console(file=io.StringIO(), width=200)
    problems = playing.play(story, client, console, datetime.now(UTC))
    return cast("io.StringIO", console.file).getvalue(), problems


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.user)
def test_a_story_ends_as_it_should(story: Story, client: HermesClient) -> None:
    shown, problems = told(story, client)
    assert problems == []
    assert story.expected in shown
    assert "refused: privacy" in shown
    assert "the secret as it is stored" in shown
    assert "relevance" in shown


def test_a_block_without_what_matters_is_told(client: HermesClient) -> None:
    _, problems = told(replace(PEANUT, expected="核桃"), client)
    assert len(problems) == 2
    assert all("核桃" in problem for problem in problems)


def test_a_secret_that_is_stored_is_told(client: HermesClient) -> None:
    _, problems = told(replace(PEANUT, secret="我的银行卡号是"), client)
    assert problems == ["the secret is stored as it was said"]


def test_a_lock_that_does_not_rise_is_told(client: HermesClient) -> None:
    once = (COFFEE.sessions[0], replace(COFFEE.sessions[1], lines=("What's the weather like?",)))
    _, problems = told(replace(COFFEE, sessions=once), client)
    assert problems == ["the lock of “americano” did not rise: pending, then pending"]


def test_nothing_is_said_in_the_future_and_the_days_differ() -> None:
    for story in STORIES:
        days = [session.days_ago for session in story.sessions]
        assert len(set(days)) == 2
        assert days == sorted(days, reverse=True)
        assert all(playing.PACE * len(session.lines) < timedelta(hours=1) for session in story.sessions)


@pytest.mark.parametrize(("problems", "code"), [([], 0), (["the block does not hold “花生”"], 1)])
def test_the_command_is_honest(monkeypatch: pytest.MonkeyPatch, problems: list[str], code: int) -> None:
    stopped = []

    @contextmanager
    def running(say: Callable[[str], None]) -> Iterator[str]:
        say("starting Ray")
        yield "http://127.0.0.1:9"
        stopped.append(True)

    monkeypatch.setattr(server, "running", running)
    monkeypatch.setattr(playing, "play", lambda *_: problems)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == code
    assert stopped == [True]
    assert "starting Ray" in result.stdout
    assert ("as they should" in result.stdout) is not bool(problems)
    assert result.stderr == "".join(f"error: {problem}\n" for problem in problems * len(STORIES))


def test_the_servers_child_is_stopped_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import signal, sys\n"
        "print('starting Ray')\n"
        "print('Hermes Memory answers at http://127.0.0.1:9 (docs: x)', flush=True)\n"
        "signal.sigwait([signal.SIGTERM])\n"
    )
    children = fake_children(monkeypatch, program)
    said: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RuntimeError, match="a bug"), server.running(said.append) as url:
        assert url == "http://127.0.0.1:9"
        raise RuntimeError("a bug")
    assert said == ["starting Ray"]
    assert children[0].returncode is not None
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_server_that_does_not_come_up_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_children(monkeypatch, "import sys; sys.exit('error: no room')")
    with pytest.raises(server.NoServer, match="no room"), server.running(lambda _: None):
        pass
    fake_children(monkeypatch, "raise SystemExit(3)")
    with pytest.raises(server.NoServer, match="ended with 3"), server.running(lambda _: None):
        pass


def fake_children(monkeypatch: pytest.MonkeyPatch, program: str) -> list[subprocess.Popen[str]]:
    children: list[subprocess.Popen[str]] = []

    def start(data: Path, errors: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        children.append(child)
        return child

    monkeypatch.setattr(server, "_start", start)
    return children
