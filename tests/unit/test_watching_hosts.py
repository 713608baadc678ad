"""Who watches asks all hosts at once, and waits for none that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from actors import watching
from actors.placement import Seat
from actors.watching import Watch
from hermes_memory.errors import LeaseLost

Answer = Callable[[str], Awaitable[Any]]


async def hanging(_: str) -> Any:
    await asyncio.sleep(60)


async def dead(_: str) -> Any:
    raise LeaseLost


def answering(**values: Any) -> Answer:
    async def answer(method: str) -> Any:
        await asyncio.sleep(0.05)
        return values[method]

    return answer


class Hosts:
    def __init__(self, *answers: Answer) -> None:
        self._answers = {f"host-{number}": answer for number, answer in enumerate(answers)}

    def seats(self) -> list[Seat]:
        return [Seat(name) for name in self._answers]

    async def call(self, seat: Seat, method: str, *arguments: Any, timeout_s: float) -> Any:
        assert not arguments
        assert timeout_s <= watching.WATCH_S
        return await self._answers[seat.name](method)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WATCH_S", 0.4)


async def test_a_host_that_hangs_or_died_is_told_and_not_waited_for() -> None:
    hosts = Hosts(answering(stats={"awake": 3}), hanging, dead, hanging, answering(stats={"awake": 5}))
    started = time.monotonic()
    found = await Watch(hosts).stats()
    assert time.monotonic() - started < 0.8  # together
    assert list(found) == [f"host-{number}" for number in range(5)]
    assert found["host-0"] == {"awake": 3}
    assert isinstance(found["host-1"], TimeoutError)
    assert isinstance(found["host-2"], LeaseLost)
    assert found["host-4"] == {"awake": 5}


async def test_metrics_of_a_host_that_is_away_are_none() -> None:
    found = await Watch(Hosts(answering(metrics=b"x 1"), hanging, dead)).metrics()
    assert found == {"host-0": b"x 1", "host-1": None, "host-2": None}


async def test_without_hosts_there_is_nothing_to_ask() -> None:
    assert await Watch(Hosts()).stats() == {}
    assert await Watch(Hosts()).metrics() == {}
