"""`hermes services` with the real servers, where they are installed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from hermes_cli.services.finding import find_redis, find_weaviate
from hermes_cli.services.redis_server import process_behind
from hermes_cli.services.weaviate_server import is_ready
from tests.servers import HOW, IN_CI

Hermes = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hermes(tmp_path: Path) -> Iterator[Hermes]:
    """Runs `hermes services` on the test's own data directory; what it started is ended afterwards."""
    if not (find_redis("6.2") and find_weaviate()):
        problem = f"no redis-server or no Weaviate server here; {HOW}"
        pytest.fail(problem) if IN_CI else pytest.skip(problem)
    hidden = {"REDIS_URL", "WEAVIATE_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(command: str, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "hermes_cli", "services", command, "--data", str(tmp_path), *arguments],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == expect, done.stdout + done.stderr
        return done

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
        "index": {"kind": "weaviate", **weaviate["address"]},
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
