"""`hermes services` with the real servers, where they are installed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest
from typer.testing import CliRunner

from hermes_cli.main import app
from hermes_cli.services.finding import find_redis, find_weaviate
from hermes_cli.services.redis_server import process_behind
from hermes_cli.services.weaviate_server import is_ready
from tests.servers import HOW, IN_CI


class Said(NamedTuple):
    stdout: str
    stderr: str


Hermes = Callable[..., Said]


@pytest.fixture
def hermes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hermes]:
    """Runs `hermes services` on the test's own data directory; what it started is ended afterwards."""
    if not (find_redis("6.2") and find_weaviate()):
        problem = f"no redis-server or no Weaviate server here; {HOW}"
        pytest.fail(problem) if IN_CI else pytest.skip(problem)
    for name in ("REDIS_URL", "WEAVIATE_URL", "WEAVIATE_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def run(command: str, *arguments: str, expect: int = 0) -> Said:
        words = ["services", command, "--data", str(tmp_path), *arguments]
        if command == "start":  # in a process that ends: the servers outlive it
            done = subprocess.run(
                [sys.executable, "-m", "hermes_cli", *words], capture_output=True, text=True, check=False
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            result = CliRunner().invoke(app, words)
            code, out, err = result.exit_code, result.stdout, result.stderr
        assert code == expect, out + err
        return Said(out, err)

    yield run
    run("stop")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_both_are_started_found_again_and_stopped(hermes: Hermes, tmp_path: Path) -> None:
    hermes("status", expect=1)
    first = json.loads(hermes("start", "--json").stdout)
    assert [each["state"] for each in first["services"]] == ["started", "started"]
    redis, weaviate = first["services"]

    config = Path(first["config"])
    assert tomllib.loads(config.read_text()) == {
        "ledger": {"kind": "redis", "url": redis["address"]["url"]},
        "index": {
            "kind": "weaviate",
            "url": weaviate["address"]["url"],
            "grpc_port": weaviate["address"]["grpc_port"],
        },
    }
    assert config.stat().st_mode & 0o077 == 0

    port = int(redis["address"]["url"].rsplit(":", 1)[1].partition("/")[0])
    assert process_behind("127.0.0.1", port) == redis["pid"]
    assert is_ready(weaviate["address"]["url"])
    _assert_loopback_only(redis["pid"], set())
    # Weaviate can bind neither its gRPC port nor that of its own cluster to one address.
    ports = json.loads((tmp_path / "services" / "services.json").read_text())["weaviate"]["ports"]
    _assert_loopback_only(weaviate["pid"], {ports["grpc"], ports["data"]})

    again = hermes("start")
    assert again.stdout.count(" running ") == 2
    assert f"hermes serve --config {config}" in again.stdout
    assert "MB" in hermes("status").stdout

    hermes("stop")
    assert not psutil.pid_exists(redis["pid"]) or psutil.Process(redis["pid"]).status() == "zombie"
    assert not is_ready(weaviate["address"]["url"])
    hermes("status", expect=1)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_with_a_key_weaviate_answers_nobody_without_it(
    hermes: Hermes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEAVIATE_API_KEY", "a-made-up-key")
    started = json.loads(hermes("start", "--json").stdout)
    index = tomllib.loads(Path(started["config"]).read_text())["index"]
    assert index["key_env"] == "WEAVIATE_API_KEY"
    assert "a-made-up-key" not in Path(started["config"]).read_text()
    schema = f"{index['url']}/v1/schema"
    assert httpx.get(schema, trust_env=False).status_code == 401
    keyed = {"Authorization": "Bearer a-made-up-key"}
    assert httpx.get(schema, headers=keyed, trust_env=False).status_code == 200


def _assert_loopback_only(pid: int, excused: set[int]) -> None:
    listening = [each.laddr for each in psutil.Process(pid).net_connections("tcp") if each.status == "LISTEN"]
    assert listening
    assert not [each for each in listening if each.ip != "127.0.0.1" and each.port not in excused]


def test_a_taken_port_is_one_line_and_exit_code_two(hermes: Hermes) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = hermes("start", "--redis-port", str(port), expect=2)
    assert f"error: redis: port {port} is taken by another program" in done.stderr
    assert "Traceback" not in done.stderr
