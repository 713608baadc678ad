"""The app in this process reads with a language model behind a real socket, which breaks in every way (real time)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from hermes_memory.config import load_settings
from tests import reading_under_faults as faults
from tests.faulty_endpoint import FaultyEndpoint, faulty_endpoint
from tests.model_reader import read
from tests.reading_under_faults import BATCH, EXTRACTOR, TURNS, USERS, Talk, open_alerts, talk_through
from tests.runtime.local_app import WITHOUT_MODEL, local_app

USUAL_S = 0.7  # within which half of the messages get their 202; whoever waits for the model waits a second at least


@pytest.fixture
async def endpoint() -> AsyncIterator[FaultyEndpoint]:
    async with faulty_endpoint(answer=read) as made:
        yield made


@pytest.fixture
async def http(
    tmp_path: Path, endpoint: FaultyEndpoint, request: pytest.FixtureRequest
) -> AsyncIterator[httpx.AsyncClient]:
    changes = getattr(request, "param", {})
    extractor = {**EXTRACTOR, "base_url": endpoint.url, **changes}
    quick = {"housekeeping_s": 0.5}
    config = {**WITHOUT_MODEL, "extractor": extractor, "batch": BATCH, "actors": quick}
    app = await asyncio.to_thread(lambda: local_app(tmp_path, load_settings(None, config)))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hermes") as client,
    ):
        yield client


@pytest.mark.parametrize("fault", [*faults.FAULTS, faults.EVERY_SECOND])
async def test_messages_are_taken_in_and_read_when_the_model_is_back(
    fault: str, http: httpx.AsyncClient, endpoint: FaultyEndpoint
) -> None:
    talk = await talk_through(http, endpoint, fault)
    print(talk.told())
    assert talk.usual_s < USUAL_S
    assert await open_alerts(http) == []
    text = (await http.get("/metrics")).text
    assert "hermes_undeclared_metrics_total" in text
    if fault == "healthy":
        assert len(endpoint.asked) <= USERS * TURNS / 2


@pytest.mark.parametrize("http", [{"fallback": "rules"}], indirect=True)
async def test_the_rules_read_what_a_model_that_stays_away_does_not(
    http: httpx.AsyncClient, endpoint: FaultyEndpoint
) -> None:
    await endpoint.stop()
    talk = Talk(http, "away")
    await talk.say()
    await talk.until("done")
    await talk.nothing_is_lost_or_doubled()
    assert talk.usual_s < USUAL_S
    assert endpoint.asked == []


@pytest.mark.parametrize("http", [{"tokens_per_day": 300}], indirect=True)
async def test_a_user_whose_tokens_are_spent_is_not_read_until_the_next_day(
    http: httpx.AsyncClient, endpoint: FaultyEndpoint
) -> None:
    """Each call takes 110 tokens; the third is the last."""
    message = {"role": "user", "content": "I have a cat called Rex."}
    states = []
    for number in range(5):
        said = {"session_id": "s", "messages": [{**message, "id": f"m{number}"}]}
        answer = await http.post("/v1/users/ann/messages", params={"wait": "true"}, json=said)
        states.append((answer.json()["status"], answer.json()["reason"]))
    assert states == [("done", None)] * 3 + [("failed", "token_budget")] * 2
    assert len(endpoint.asked) == 3
