"""serve, with a server that is none: what is said, and what signals do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory.errors import DataInUse, HermesError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class FakeServer:
    """Does at each step what a test asks for."""

    at_start: ClassVar[Callable[[], None]]
    at_stop: ClassVar[Callable[[], None]]
    made: ClassVar[list[FakeServer]]

    def __init__(self, settings: Any, data: Path, say: Callable[[str], None]) -> None:
        self.settings, self.data, self.say = settings, data, say
        self.stopped = 0
        self.url = f"http://{settings.serve.host}:{settings.serve.port}"
        type(self).made.append(self)

    def start(self) -> None:
        self.say("starting Ray")
        type(self).at_start()

    def stop(self) -> None:
        self.say("stopping")
        type(self).at_stop()
        self.stopped += 1


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeServer]]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    monkeypatch.setattr("serve_app.launch.Server", FakeServer)
    FakeServer.made = []
    FakeServer.at_start = FakeServer.at_stop = staticmethod(lambda: None)
    yield FakeServer
    for number, handler in before.items():
        signal.signal(number, handler)


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["serve", *arguments])


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def stop_when_ready(monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGINT) -> None:
    from hermes_cli.serving import _Steps

    ready = _Steps.ready

    def told(self: _Steps, url: str) -> None:
        ready(self, url)
        send(number)

    monkeypatch.setattr(_Steps, "ready", told)


@pytest.fixture(autouse=True)
def not_under_nohup() -> Iterator[None]:
    """These tests may themselves run where hanging up is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_it_says_where_it_answers_and_stops_on_a_signal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    stop_when_ready(monkeypatch, number)
    result = serve("--port", "8123", "--host", "127.0.0.2", "--data", str(tmp_path))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "starting Ray"
    assert lines[1] == "Hermes Memory answers at http://127.0.0.2:8123 (docs: http://127.0.0.2:8123/docs)"
    assert lines[-2:] == ["stopping", "stopped"]
    (made,) = FakeServer.made
    assert (made.data, made.stopped) == (tmp_path, 1)


def test_the_data_directory_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_DATA_DIR", str(tmp_path / "mine"))
    stop_when_ready(monkeypatch)
    assert serve().exit_code == 0
    assert FakeServer.made[0].data == tmp_path / "mine"
    assert FakeServer.made[0].settings.serve.port == 8000


def test_it_says_who_reads_the_turns_where_that_may_be_lacking(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    config = tmp_path / "hermes.toml"
    config.write_text('[extractor]\nkind = "vllm"\nmodel = "/no/such"\nnum_gpus = 99.0\n')
    stop_when_ready(monkeypatch)
    lines = serve("--config", str(config), "--data", str(tmp_path)).stdout.splitlines()
    assert lines[0].startswith("turns are read by /no/such on 99 GPU(s) of this cluster")
    assert [line.partition(":")[0] for line in lines[1:4]] == ["engine", "gpus", "model"]
    assert lines[4] == "starting Ray"


def test_more_signals_do_not_break_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_when_ready(monkeypatch)

    def storm() -> None:
        for number in SIGNALS:
            send(number)

    FakeServer.at_stop = staticmethod(storm)
    assert serve().exit_code == 0
    assert FakeServer.made[0].stopped == 1


def test_a_signal_while_it_starts_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeServer.at_start = staticmethod(lambda: send(signal.SIGTERM))
    result = serve()
    assert result.exit_code == 0
    assert "answers" not in result.stdout
    assert FakeServer.made[0].stopped == 1


def test_a_handler_that_ray_puts_in_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(number: int, frame: object) -> None:
        raise SystemExit(number)

    def ray() -> None:
        signal.signal(signal.SIGTERM, leave)

    FakeServer.at_start = staticmethod(ray)
    stop_when_ready(monkeypatch, signal.SIGTERM)
    assert serve().exit_code == 0


def test_a_signal_that_comes_out_of_ray_as_another_error_is_still_a_stop() -> None:
    def broken() -> None:
        try:
            send(signal.SIGINT)
        except BaseException as error:
            raise SystemError("returned a result with an exception set") from error

    FakeServer.at_start = staticmethod(broken)
    assert serve().exit_code == 0


@pytest.mark.parametrize("error", [DataInUse("/srv/data", "process 7")])
def test_an_error_of_the_domain_is_one_line_and_exit_2(error: HermesError) -> None:
    def fail() -> None:
        raise error

    FakeServer.at_start = staticmethod(fail)
    result = serve()
    assert result.exit_code == 2
    assert result.stderr == f"error: {error}\n"
    assert "stopped" not in result.stdout


def test_an_error_of_ours_is_not_hidden() -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    FakeServer.at_start = staticmethod(fail)
    assert isinstance(serve().exception, RuntimeError)


def test_a_wrong_configuration_is_told_before_anything_starts(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[embeder]\n")
    result = serve("--config", str(bad))
    assert result.exit_code == 2
    assert "embeder" in result.stderr
    assert FakeServer.made == []


def test_nohup_stays_nohup(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_when_ready(monkeypatch)
    assert serve().exit_code == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
