"""One server for all tests that only talk to it; tests that kill servers start their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.harness import ServerProcess

START_AND_TEST_S = 420  # a start takes 20 s on an idle machine, and the test that needs it first pays


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with servers of their own come first, so that never two clusters share the machine for long."""
    for item in items:
        if "tests/cluster/" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(START_AND_TEST_S))
    items.sort(key=lambda item: "server" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("shared") / "data")
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def http(server: ServerProcess) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
