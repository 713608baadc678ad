"""Who watches asks all hosts at once, and waits for none that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from ray.exceptions import ActorDiedError

from actors import users
from actors.placement import Pooled, Seat
from actors.users import RayUsers


class Method:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def remote(self) -> Any:
        return self._answer()


class Actor:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.stats = self.metrics = Method(answer)


async def hanging() -> Any:
    await asyncio.sleep(60)


async def dead() -> Any:
    raise ActorDiedError


def answering(value: Any) -> Callable[[], Any]:
    async def answer() -> Any:
        await asyncio.sleep(0.05)
        return value

    return answer


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RayUsers]:
    def made(*answers: Callable[[], Any]) -> RayUsers:
        def start(seat: Seat, *_: Any) -> Any:
            return Actor(answers[int(seat.name.rpartition("-")[2])])

        monkeypatch.setattr(users, "start_host", start)
        monkeypatch.setattr(users, "WATCH_S", 0.3)
        return RayUsers(Pooled(len(answers)), {}, "data", 10.0, 30.0)

    return made


async def test_a_host_that_hangs_or_died_is_told_and_not_waited_for(watched: Callable[..., RayUsers]) -> None:
    started = time.monotonic()
    found = await watched(answering({"awake": 3}), hanging, dead, answering({"awake": 5})).stats()
    assert time.monotonic() - started < 1.0
    assert list(found) == [f"hermes-host-{number}" for number in range(4)]
    assert found["hermes-host-0"] == {"awake": 3}
    assert isinstance(found["hermes-host-1"], TimeoutError)
    assert isinstance(found["hermes-host-2"], ActorDiedError)
    assert found["hermes-host-3"] == {"awake": 5}


async def test_metrics_of_a_host_that_is_away_are_none(watched: Callable[..., RayUsers]) -> None:
    found = await watched(answering(b"x 1"), hanging, dead).metrics()
    assert found == {"hermes-host-0": b"x 1", "hermes-host-1": None, "hermes-host-2": None}
