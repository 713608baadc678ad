"""One server for all tests that only talk to it; tests that kill servers start their own.

It stands on a real Redis and a real Weaviate, configured as `hermes services start` does it. The servers that are killed
have the embedded default.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.cluster.harness import ServerProcess
from tests.cluster.nodes import Nodes, three_nodes
from tests.servers import RedisServer, WeaviateServer, start_or_skip

NIGHTS, BEFORE_NIGHTS = "test_night.py", "test_resharding.py"
START_AND_TEST_S = 420  # a start takes 20 s on an idle machine, and the test that needs it first pays


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with servers of their own come first, so that never two clusters share the machine for long."""
    for item in items:
        if "tests/cluster/" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(START_AND_TEST_S))
    items.sort(key=lambda item: "server" in getattr(item, "fixturenames", ()))
    # The nights want the nodes as test_resharding.py leaves them, and not the other way round.
    nights = [item for item in items if item.path.name == NIGHTS]
    rest = [item for item in items if item.path.name != NIGHTS]
    before = [number for number, item in enumerate(rest, 1) if item.path.name == BEFORE_NIGHTS]
    if nights and before:
        items[:] = rest[: before[-1]] + nights + rest[before[-1] :]


@pytest.fixture(scope="session")
def own_cluster() -> Iterator[ExitStack]:
    """What ends the cluster of ``nodes``, where there is one."""
    with ExitStack() as end:
        yield end


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory, own_cluster: ExitStack) -> Nodes:
    """Three nodes with this process as their driver, for the tests before those of ``server``."""
    began = time.monotonic()
    running = own_cluster.enter_context(three_nodes(tmp_path_factory.mktemp("nodes") / "data"))
    running.hosts()
    print(f"\nthree nodes and the app: {time.monotonic() - began:.1f} s")
    return running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, own_cluster: ExitStack) -> Iterator[ServerProcess]:
    own_cluster.close()  # those of ``nodes`` have gone before
    folder = tmp_path_factory.mktemp("shared")
    redis, weaviate = RedisServer(folder / "redis"), WeaviateServer(folder / "weaviate")
    try:
        start_or_skip(redis)
        start_or_skip(weaviate)
        address = f'url = "{weaviate.url}"\ngrpc_port = {weaviate.grpc_port}'
        config = f'[ledger]\nkind = "redis"\nurl = "{redis.url}"\n\n[index]\nkind = "weaviate"\n{address}\n'
        running = ServerProcess(folder / "data", config)
        print(f"\non Redis and Weaviate, ready after {running.start():.1f} s")
        yield running
        assert running.stop() == 0
    finally:
        weaviate.stop()
        redis.stop()


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
