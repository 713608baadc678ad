"""A real Redis and a real Weaviate for tests: started, stopped, killed, stopped in their tracks, started again.

Session-scoped fixtures (registered in ``conftest.py``): ``redis_server``, ``redis_url``, ``weaviate_server``,
``weaviate_address``, ``weaviate_url``. A test that kills a server makes one of its own, on a folder of its own:

    with RedisServer(tmp_path / "redis") as server:
        server.kill()
        server.restart()
"""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

import pytest

from hermes_cli.services import processes
from hermes_cli.services.cache import cached_program
from hermes_cli.services.errors import NotToBeHad, PortTaken
from hermes_cli.services.finding import find_redis, find_weaviate
from hermes_cli.services.ports import free_run
from hermes_cli.services.processes import Launch, Mark
from hermes_cli.services.redis_server import redis_launch, redis_url_of
from hermes_cli.services.settings import service_settings
from hermes_cli.services.weaviate_server import (
    USUAL_GRPC_PORT,
    WeaviatePorts,
    weaviate_launch,
    weaviate_url_of,
)

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
HOW = "`make services-install` gets it (the first time that takes minutes)"


def pytest_configure() -> None:
    """What `make services-install` got is found by every test that looks on the PATH, after what is there already."""
    os.environ["PATH"] = os.pathsep.join(
        [os.environ.get("PATH", os.defpath), str(cached_program("any").parent)]
    )


class Server(ABC):
    """One server process on one folder. It keeps its ports and its data over stops, kills and restarts.

    If the test process dies, the server dies with it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._launch: Launch | None = None

    @abstractmethod
    def _choose(self) -> Launch:
        """Choose free ports and say how to start on them."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it answers."""

    @property
    def stop_s(self) -> float:
        return 30.0

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there; one that is stopped in its tracks is."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.log"

    def start(self) -> Self:
        """Start and wait until it answers: the first time on free ports, later on the same ones."""
        assert not self.running, "runs already"
        if self._launch is not None:
            self._take(processes.start(self._launch))
            return self
        attempts = service_settings().ports.attempts
        for attempt in range(attempts):
            launch = self._choose()
            try:
                self._take(processes.start(launch))
            except PortTaken:
                if attempt == attempts - 1:
                    raise
            else:
                self._launch = launch
                break
        return self

    def stop(self) -> None:
        """SIGTERM, and wait until it is gone; SIGKILL if it does not go. Nothing happens if it does not run."""
        if self.running:
            processes.end(Mark(self.pid, processes.birth_of(self.pid)), self.stop_s)
        self._gone()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.running:
            self.signal(signal.SIGKILL)
        self._gone()

    def restart(self) -> None:
        """Stop it if it runs, start it on the same ports and data, wait until it answers."""
        self.stop()
        self.start()

    def signal(self, number: int) -> None:
        """Send any signal."""
        os.kill(self.pid, number)

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _take(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        # The shell waits for the end of a pipe that only this process can write to, then kills the server.
        self._guard = subprocess.Popen(
            ["sh", "-c", f"read -r _; kill -KILL {process.pid}"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _gone(self) -> None:
        if self._process is not None:
            self._process.wait(self.stop_s)
        if self._guard is not None:
            self._guard.kill()  # first: closing the pipe would let it kill whoever has the number then
            self._guard.wait()
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard = None


class RedisServer(Server):
    """A redis-server with an append-only file, every write fsynced.

    ``options`` are Redis's own, such as ``{"appendfsync": "everysec"}``.
    """

    def __init__(self, folder: Path, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.options = dict(options or {})
        self.port = 0

    def _choose(self) -> Launch:
        settings = service_settings()
        program = find_redis(settings.redis.oldest)
        if program is None:
            raise NotToBeHad("redis", f"there is no redis-server here; {HOW}")
        (self.port,) = free_run(1, settings.ports)
        return redis_launch(program.path, self.folder, self.port, settings.redis, self.options)

    @property
    def url(self) -> str:
        return redis_url_of(self.port)


class WeaviateServer(Server):
    """A Weaviate of one node. ``environment`` goes on top of the usual one."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self.environment = dict(environment or {})
        self.ports: WeaviatePorts | None = None

    def _choose(self) -> Launch:
        settings = service_settings()
        program = find_weaviate()
        if program is None:
            raise NotToBeHad("weaviate", f"there is no Weaviate server here; {HOW}")
        self.ports = WeaviatePorts.free(settings.ports)
        return weaviate_launch(program.path, self.folder, self.ports, settings.weaviate, self.environment)

    @property
    def port(self) -> int:
        assert self.ports is not None, "not started"
        return self.ports.http

    @property
    def grpc_port(self) -> int:
        assert self.ports is not None, "not started"
        return self.ports.grpc

    @property
    def url(self) -> str:
        assert self.ports is not None, "not started"
        return weaviate_url_of(self.ports)


class WeaviateAddress(NamedTuple):
    """Where a Weaviate answers: HTTP as a URL, gRPC as a port of the same host."""

    url: str
    grpc_port: int

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 80


S = TypeVar("S", bound=Server)


def start_or_skip(server: S) -> S:
    """Start it; where the program is missing, a test is skipped, and fails in CI."""
    try:
        return server.start()
    except NotToBeHad as error:
        if IN_CI:
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis of this session, shared: use keys of your own; do not stop, kill or flush it."""
    server = RedisServer(tmp_path_factory.mktemp("redis") / "data")
    try:
        yield start_or_skip(server)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> str:
    """The Redis of ``REDIS_URL``, else the session's own."""
    if given := os.environ.get("REDIS_URL"):
        return given
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture(scope="session")
def weaviate_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """One Weaviate of this session, shared: use collections of your own; do not stop or kill it."""
    server = WeaviateServer(tmp_path_factory.mktemp("weaviate") / "data")
    try:
        yield start_or_skip(server)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def weaviate_address(request: pytest.FixtureRequest) -> WeaviateAddress:
    """The Weaviate of ``WEAVIATE_URL`` (and ``WEAVIATE_GRPC_PORT``), else the session's own."""
    if given := os.environ.get("WEAVIATE_URL"):
        return WeaviateAddress(given, int(os.environ.get("WEAVIATE_GRPC_PORT", USUAL_GRPC_PORT)))
    server: WeaviateServer = request.getfixturevalue("weaviate_server")
    return WeaviateAddress(server.url, server.grpc_port)


@pytest.fixture(scope="session")
def weaviate_url(weaviate_address: WeaviateAddress) -> str:
    """The HTTP part of ``weaviate_address``."""
    return weaviate_address.url
