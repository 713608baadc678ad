"""How an endpoint is asked while it is busy, slow, cut off, endless or closed, against sockets that do all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain, cycle, repeat
from typing import Any

import pytest

from hermes_memory.adapters.openai_endpoint import MAX_PAUSE_S, _seconds
from hermes_memory.errors import ModelFailed
from tests.faulty_endpoint import GOOD, FaultyEndpoint, Spoil, faulty_endpoint

CHAT = "chat/completions"
BODY: dict[str, Any] = {"messages": []}


@pytest.fixture
async def server() -> AsyncIterator[FaultyEndpoint]:
    async with faulty_endpoint() as made:
        yield made


class Pauses:
    """Sleeps that take no time and are remembered."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


# what the endpoint asks for


def in_(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0), ("", 0), (" ", 0), ("2.5", 2.5), ("600", 600), ("-1", MAX_PAUSE_S), ("nan", MAX_PAUSE_S),
        ("inf", MAX_PAUSE_S), ("soon", MAX_PAUSE_S), ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", MAX_PAUSE_S),
    ],
)  # fmt: skip
def test_retry_after(value: str | None, seconds: float) -> None:
    assert _seconds(value) == seconds


def test_retry_after_as_a_date() -> None:
    assert 118 < _seconds(in_(120)) <= 120


async def test_a_short_pause_is_taken_within_the_call(server: FaultyEndpoint) -> None:
    pauses = Pauses()
    endpoint = server.endpoint(attempts=4, sleep=pauses)
    server.spoils = iter([Spoil(status=429, retry_after="7"), Spoil(status=503, retry_after=in_(6)), GOOD])
    assert "choices" in await endpoint.post(CHAT, BODY)
    await endpoint.aclose()
    assert pauses.taken[0] == 7.0
    assert 4.0 <= pauses.taken[1] <= 6.0


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_long_pause_is_left_to_the_caller_at_once(form: str, server: FaultyEndpoint) -> None:
    pauses, asked = Pauses(), "90" if form == "seconds" else in_(90.9)
    endpoint = server.endpoint(attempts=4, sleep=pauses)
    server.spoils = iter([Spoil(status=429, retry_after=asked)])
    with pytest.raises(ModelFailed, match="status 429") as caught:
        await endpoint.post(CHAT, BODY)
    await endpoint.aclose()
    assert 60 < caught.value.after_s <= 91
    assert (pauses.taken, len(server.asked)) == ([], 1)


async def test_the_last_try_tells_the_caller_what_was_asked_for(server: FaultyEndpoint) -> None:
    endpoint = server.endpoint(attempts=1)
    server.spoils = iter([Spoil(status=429, retry_after="3"), Spoil(status=500)])
    with pytest.raises(ModelFailed) as caught:
        await endpoint.post(CHAT, BODY)
    assert caught.value.after_s == 3.0
    with pytest.raises(ModelFailed) as caught:
        await endpoint.post(CHAT, BODY)
    await endpoint.aclose()
    assert caught.value.after_s == 0.0


# partial outages


@pytest.mark.parametrize(
    "bad", [Spoil(status=500), Spoil(cut=True), Spoil(first_byte_s=30.0)], ids=["500", "cut", "slow"]
)
async def test_every_second_call_fails(bad: Spoil, server: FaultyEndpoint) -> None:
    server.spoils = cycle([bad, GOOD])
    endpoint = server.endpoint(attempts=2, timeout_s=0.3)
    for _ in range(3):
        assert "choices" in await endpoint.post(CHAT, BODY)
    await endpoint.aclose()
    assert len(server.asked) == 6


async def test_one_that_was_killed_is_asked_again_when_it_is_back(server: FaultyEndpoint) -> None:
    endpoint = server.endpoint(attempts=2)
    assert "choices" in await endpoint.post(CHAT, BODY)
    await server.stop()
    with pytest.raises(ModelFailed, match="ConnectError"):
        await endpoint.post(CHAT, BODY)
    await server.start()
    assert "choices" in await endpoint.post(CHAT, BODY)
    await endpoint.aclose()


async def test_an_answer_without_end_is_read_for_so_long_only(server: FaultyEndpoint) -> None:
    server.spoils = repeat(Spoil(endless=True))
    endpoint = server.endpoint(timeout_s=0.5, max_bytes=10**12)
    started = time.monotonic()
    with pytest.raises(ModelFailed, match=r"nothing within 0\.5 s"):
        await endpoint.post(CHAT, BODY)
    await endpoint.aclose()
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("spoil", [Spoil(endless=True), Spoil(body=b"[" + b" " * 3_000_000 + b"]")])
async def test_an_answer_that_is_huge_is_not_read_to_its_end(spoil: Spoil, server: FaultyEndpoint) -> None:
    server.spoils = chain([spoil], repeat(GOOD))
    endpoint = server.endpoint(attempts=3, max_bytes=1_000_000)
    with pytest.raises(ModelFailed, match="is longer than 1000000 bytes"):
        await endpoint.post(CHAT, BODY)
    assert len(server.asked) == 1
    assert "choices" in await endpoint.post(CHAT, BODY)  # on another connection
    await endpoint.aclose()


async def test_an_answer_that_is_too_deep_is_none(server: FaultyEndpoint) -> None:
    server.spoils = repeat(Spoil(body=b"[" * 200_000))
    endpoint = server.endpoint()
    with pytest.raises(ModelFailed, match="is not JSON"):
        await endpoint.post(CHAT, BODY)
    await endpoint.aclose()


# calls at once


async def test_no_more_calls_at_once_than_there_is_room_for(server: FaultyEndpoint) -> None:
    server.spoils = repeat(Spoil(first_byte_s=0.05))
    endpoint = server.endpoint(max_concurrent=3)
    answers = await asyncio.gather(*(endpoint.post(CHAT, BODY) for _ in range(9)))
    await endpoint.aclose()
    assert (len(answers), server.most_running) == (9, 3)


async def test_who_finds_no_room_fails_and_holds_nobody_up(server: FaultyEndpoint) -> None:
    server.spoils = chain([Spoil(first_byte_s=30.0)], repeat(GOOD))
    endpoint = server.endpoint(timeout_s=0.5, max_concurrent=1)
    first = asyncio.create_task(endpoint.post(CHAT, BODY))
    await asyncio.sleep(0.2)
    second = asyncio.create_task(endpoint.post(CHAT, BODY))
    with pytest.raises(ModelFailed, match=r"nothing within 0\.5 s"):
        await first
    assert "choices" in await second  # there was room in time
    server.spoils = repeat(Spoil(first_byte_s=30.0))
    calls = [asyncio.create_task(endpoint.post(CHAT, BODY)) for _ in range(4)]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    await endpoint.aclose()
    assert {type(error) for error in ended} == {ModelFailed}
    assert sum("no room" in str(error) for error in ended) >= 1


async def test_a_pause_takes_up_no_room(server: FaultyEndpoint) -> None:
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def pause(_: float) -> None:
        paused.set()
        await go_on.wait()

    server.spoils = chain([Spoil(status=429)], repeat(GOOD))
    endpoint = server.endpoint(attempts=2, max_concurrent=1, sleep=pause)
    waiting = asyncio.create_task(endpoint.post(CHAT, BODY))
    await paused.wait()
    assert "choices" in await endpoint.post(CHAT, BODY)
    go_on.set()
    assert "choices" in await waiting
    await endpoint.aclose()


async def test_what_lies_there_is_got(server: FaultyEndpoint) -> None:
    server.spoils = iter([Spoil(body=b'{"data": [{"id": "m"}]}')])
    endpoint = server.endpoint()
    assert await endpoint.get("models") == {"data": [{"id": "m"}]}
    await endpoint.aclose()
