"""The servers of the tests: real ones, where they are installed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hermes_cli.services.cache import cached_program
from hermes_cli.services.redis_server import process_behind
from hermes_cli.services.weaviate_server import is_ready
from tests import servers
from tests.servers import RedisServer, WeaviateAddress, WeaviateServer, start_or_skip


def test_the_session_has_a_redis(redis_server: RedisServer, redis_url: str) -> None:
    assert redis_url == os.environ.get("REDIS_URL", redis_server.url)
    assert process_behind("127.0.0.1", redis_server.port) == redis_server.pid


@pytest.mark.timeout(120)
def test_the_session_has_a_weaviate(
    weaviate_server: WeaviateServer, weaviate_address: WeaviateAddress
) -> None:
    assert is_ready(weaviate_address.url)
    assert weaviate_server.grpc_port != weaviate_server.port


def test_redis_comes_back_on_the_same_port_with_its_data(tmp_path: Path) -> None:
    redis = pytest.importorskip("redis")
    with start_or_skip(RedisServer(tmp_path / "redis")) as server:
        first, url = server.pid, server.url
        with redis.Redis.from_url(url) as client:
            assert client.config_get("appendfsync") == {"appendfsync": "always"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            client.set("kept", "yes")
        server.kill()
        assert not server.running
        assert process_behind("127.0.0.1", server.port) is None
        server.restart()
        assert (server.url, server.pid != first) == (url, True)
        with redis.Redis.from_url(url) as client:
            assert client.get("kept") == b"yes"
    assert not server.running


def test_a_paused_redis_is_silent_until_it_goes_on(tmp_path: Path) -> None:
    with start_or_skip(RedisServer(tmp_path / "redis")) as server:
        server.pause()
        assert process_behind("127.0.0.1", server.port) is None
        server.resume()
        assert process_behind("127.0.0.1", server.port) == server.pid
        server.pause()
        server.stop()
        assert not server.running


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_two_weaviates_run_side_by_side_and_one_comes_back_after_a_kill(
    tmp_path: Path, weaviate_server: WeaviateServer
) -> None:
    with start_or_skip(WeaviateServer(tmp_path / "weaviate")) as server:
        url = server.url
        assert is_ready(weaviate_server.url)
        server.kill()
        assert not is_ready(url)
        server.restart()
        assert server.url == url
        assert is_ready(url)


def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    start_or_skip(RedisServer(tmp_path / "probe")).stop()
    program = (
        "import sys, time; from pathlib import Path; from tests.servers import RedisServer\n"
        "print(RedisServer(Path(sys.argv[1])).start().pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "redis")], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        assert psutil.pid_exists(pid)
        child.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server outlived the process that started it"
        time.sleep(0.05)


def test_what_was_got_into_the_cache_is_on_the_tests_path_behind_everything_else() -> None:
    assert os.environ["PATH"].split(os.pathsep)[-1] == str(cached_program("redis-server").parent)


@pytest.mark.parametrize("kind", [RedisServer, WeaviateServer])
def test_a_missing_program_skips_here_and_fails_in_ci(
    kind: type[RedisServer | WeaviateServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HERMES_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(servers, "IN_CI", False)
    with pytest.raises(pytest.skip.Exception, match="make services-install"):
        start_or_skip(kind(tmp_path / "data"))
    monkeypatch.setattr(servers, "IN_CI", True)
    with pytest.raises(pytest.fail.Exception, match="make services-install"):
        start_or_skip(kind(tmp_path / "data"))


def test_a_server_that_was_never_started_can_be_stopped(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.stop()
    server.kill()
    assert not server.running
