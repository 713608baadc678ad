"""One cluster for the tests of the engine on Ray, which go in their order: first without a GPU, then with one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import httpx
import pytest

from tests.engine.cluster import EngineCluster, engine_cluster
from tests.engine.settings import set_environment

LOAD_AND_TEST_S = 420  # the test that needs the engine first pays for its start

HERE = importlib.util.find_spec("vllm") is not None
collect_ignore_glob = [] if HERE else ["test_*.py"]
if HERE:
    set_environment()  # else an engine wants nearly all of the machine's memory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray comes last, and no engine of this process beside it."""
    for item in items:
        if "tests/engine/" in item.path.as_posix() and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LOAD_AND_TEST_S))
    items.sort(key=lambda item: "served" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineCluster]:
    with engine_cluster(tmp_path_factory.mktemp("engine") / "data") as running:
        yield running


@pytest.fixture
def http(served: EngineCluster) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client
