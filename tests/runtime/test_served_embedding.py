"""Where the embedder is served apart and away: recall is refused and says when to come again, everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from actors.embedder import FAILURES, PAUSE_S, NotDeployed, ServedEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import load_settings
from tests.runtime.conftest import PROBLEM_FIELDS, QUICK
from tests.runtime.local_app import local_app
from tests.unit.test_served_embedder import Clock, Handle

SAID = {"session_id": "s1", "messages": [{"role": "user", "content": "I'm allergic to peanuts."}]}
PATIENT: dict[str, Any] = {**QUICK, "batch": {"delay_s": 0.01, "backoff_s": 0.01, "attempts": 12}}


class Deployment:
    """Comes and goes."""

    def __init__(self) -> None:
        self.handle: Handle | None = None

    def find(self) -> Handle:
        if self.handle is None:
            raise NotDeployed
        return self.handle


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def client(tmp_path: Path, deployment: Deployment, clock: Clock) -> AsyncIterator[httpx.AsyncClient]:
    embedder = ServedEmbedder(
        HashEmbedder().info, timeout_s=5, attempts=2, batch=8, max_chars=2048, find=deployment.find, now=clock
    )
    app = await asyncio.to_thread(lambda: local_app(tmp_path, load_settings(None, PATIENT), embedder))
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hermes")
    async with app.router.lifespan_context(app), http:
        yield http


async def recall(client: httpx.AsyncClient, query: str) -> httpx.Response:
    return await client.post("/v1/users/ana/recall", json={"query": query, "session_id": "s2"})


async def test_recall_is_503_with_retry_after_and_comes_back(
    client: httpx.AsyncClient, deployment: Deployment, clock: Clock
) -> None:
    body: dict[str, Any] = {}
    for tries in range(FAILURES + 1):  # the last one is turned away without a look
        answer = await recall(client, f"what am I allergic to {tries}")
        assert answer.status_code == 503, answer.text
        body = answer.json()
        assert set(body) == PROBLEM_FIELDS
        assert (body["code"], body["retryable"]) == ("model_failed", True)
        assert "allergic" not in answer.text
        assert int(answer.headers["Retry-After"]) == PAUSE_S
    assert body["detail"] == "the embedder gave no usable answer: its deployment is away"

    deployment.handle = Handle()
    clock.now += timedelta(seconds=PAUSE_S)
    assert (await recall(client, "what am I allergic to")).status_code == 200


async def test_what_is_said_meanwhile_is_taken_in_and_remembered_afterwards(
    client: httpx.AsyncClient, deployment: Deployment, clock: Clock
) -> None:
    taken = await client.post("/v1/users/ana/messages", json=SAID)
    assert taken.status_code == 202, taken.text
    assert (await client.get("/v1/users/ana/memories")).json()["memories"] == []
    assert (await recall(client, "peanuts")).status_code == 503

    deployment.handle = Handle()
    clock.now += timedelta(seconds=PAUSE_S)
    job = await client.get(f"/v1/jobs/{taken.json()['job_id']}")
    while job.json()["status"] not in {"done", "failed"}:
        await asyncio.sleep(0.01)
        job = await client.get(f"/v1/jobs/{taken.json()['job_id']}")
    assert job.json()["status"] == "done", job.text
    (memory,) = (await client.get("/v1/users/ana/memories")).json()["memories"]
    assert "peanuts" in memory["content"]
