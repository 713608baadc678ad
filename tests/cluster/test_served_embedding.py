"""An embedder that asks for a GPU, on a cluster without one, then with one: who waits, who goes on, where it comes up.

On the cluster of test_resharding.py, in this order. The GPU is one that a node declares and does not have.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from actors.embedder import APP, DEPLOYMENT, ServedEmbedder
from hermes_memory.config import load_settings
from hermes_memory.errors import ModelFailed
from hermes_memory.testing.embedder_suite import EmbedderSuite
from hermes_memory.wiring import build_embedder
from serve_app.embedder_deployment import deploy, embedder_of, missing_gpus
from tests.cluster.harness import READY_S
from tests.cluster.nodes import CONFIG, STORE_BYTES, Nodes

pytestmark = pytest.mark.filterwarnings("default")  # Ray runs in this process and warns of itself

TIMEOUT_S = 2.0
SERVED = CONFIG | {
    "embedder": CONFIG["embedder"] | {"num_gpus": 0.5, "timeout_s": TIMEOUT_S},
    "batch": {"attempts": 50},
}
USER = f"/v1/users/gpu-{uuid.uuid4().hex[:6]}"


@pytest.fixture(scope="module")
def without(nodes: Nodes) -> Nodes:
    """The app, and the embedder's beside it, which finds no GPU."""
    deploy(load_settings(None, SERVED), wait=False)
    nodes.deploy(SERVED)
    return nodes


@pytest.fixture(scope="module")
def gpu(without: Nodes) -> Any:
    """The node that declares one."""
    return without.cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=STORE_BYTES)


@pytest.fixture
def http(nodes: Nodes) -> Iterator[httpx.Client]:
    with nodes.client() as client:
        yield client


def recall(http: httpx.Client, query: str) -> httpx.Response:
    return http.post(f"{USER}/recall", json={"query": query, "session_id": "s2"})


def until(holds: Callable[[], Any]) -> Any:
    """What it says in the end."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.2)
    raise AssertionError("it does not come about")


def check(http: httpx.Client) -> dict[str, Any]:
    answer = http.get("/readyz")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["checks"]["embedder"]
    return found


def replicas() -> list[psutil.Process]:
    """The processes of the embedder's replicas that are of this test."""
    ours = psutil.Process().children(recursive=True)
    return [one for one in ours if one.is_running() and f"{APP}:{DEPLOYMENT}" in " ".join(_told(one))]


def _told(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_without_a_gpu_recall_is_503_and_everything_else_goes_on(without: Nodes, http: httpx.Client) -> None:
    import ray

    assert "the node with most GPUs has 0" in missing_gpus(load_settings(None, SERVED), ray.nodes())  # type: ignore[no-untyped-call]
    assert replicas() == []
    took = []
    for number in range(8):  # two ingress replicas, each of which finds out for itself
        began = time.monotonic()
        answer = recall(http, f"what am I allergic to {number}")
        took.append(time.monotonic() - began)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "model_failed"
        assert answer.json()["retryable"] is True
        assert int(answer.headers["Retry-After"]) >= 1
        assert "allergic" not in answer.text
    print(f"\nrefused after s: {[round(one, 2) for one in took]}")
    assert max(took) < TIMEOUT_S + 2
    assert {"ok": False, "needed": False}.items() <= check(http).items()
    said = {"session_id": "s1", "messages": [{"role": "user", "content": "I'm allergic to peanuts."}]}
    assert http.post(f"{USER}/messages", json=said).status_code == 202
    assert http.get(f"{USER}/memories").json()["memories"] == []


def test_it_comes_up_on_the_node_that_declares_a_gpu(gpu: Any, nodes: Nodes, http: httpx.Client) -> None:
    import ray

    began = time.monotonic()
    until(lambda: check(http)["ok"])
    print(f"\nit answers {time.monotonic() - began:.1f} s after the node")
    assert missing_gpus(load_settings(None, SERVED), ray.nodes()) == ""  # type: ignore[no-untyped-call]
    assert check(http)["embedder"] == "hash (64 dimensions)"
    assert [nodes.node_of(one.pid) for one in replicas()] == [gpu]
    until(lambda: recall(http, "which food must I avoid").status_code == 200)
    (memory,) = until(lambda: http.get(f"{USER}/memories").json()["memories"])
    assert "peanuts" in memory["content"], "what was said meanwhile"
    until(
        lambda: "peanuts" in recall(http, "am I allergic to peanuts").text
    )  # the other replica may wait still


@pytest.mark.usefixtures("gpu")
class TestServed(EmbedderSuite):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[ServedEmbedder]:
        made = embedder_of(load_settings(None, SERVED))
        assert isinstance(made, ServedEmbedder)
        yield made


@pytest.mark.usefixtures("gpu")
async def test_the_vectors_are_those_of_the_embedder_in_process() -> None:
    texts = ["我对花生过敏", "I live in Oslo."]
    here, there = build_embedder(load_settings(None, CONFIG)), embedder_of(load_settings(None, SERVED))
    assert np.abs(await there.queries(texts) - await here.queries(texts)).max() < 1e-6
    assert np.abs(await there.passages(texts) - await here.passages(texts)).max() < 1e-6


@pytest.mark.usefixtures("gpu")
async def test_a_replica_that_is_killed_is_asked_again_when_it_is_back(nodes: Nodes) -> None:
    embedder = embedder_of(
        load_settings(None, {**SERVED, "embedder": SERVED["embedder"] | {"timeout_s": 30}})
    )
    await embedder.queries(["before"])
    (before,) = replicas()
    os.kill(before.pid, signal.SIGKILL)
    began = time.monotonic()
    failed = 0
    while True:
        try:
            await embedder.queries([f"after {failed}"])
            break
        except ModelFailed:
            failed += 1
            assert time.monotonic() - began < READY_S
            await asyncio.sleep(0.2)
    print(f"\nkilled; answered after {time.monotonic() - began:.1f} s, {failed} calls failed")
    (after,) = replicas()
    assert after.pid != before.pid
