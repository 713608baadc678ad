"""A host with a long-term index: what its users say reaches the index soon, and what is erased leaves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.app.commands import EraseUser
from hermes_memory.core.ids import UserKey
from hermes_memory.runtime.feeding import Feeder, FeedRules
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.long_term import LongTerm, SearchRules
from hermes_memory.testing.builders import KEY
from hermes_memory.testing.faulty_index import FaultyIndex
from tests.dict_index import DictIndex
from tests.runtime.world import World, a_world
from tests.small_world import words

BOB = UserKey("app", "bob")
SEARCH = SearchRules(nominations=9, timeout_s=30.0, failures=2, pause_s=5.0)
FEED = FeedRules(
    batch=9, together=2, linger_s=0.05, pause_s=600.0, attempts=3, backoff_s=1.0, backoff_max_s=8.0
)


class Place:
    """A world with one index for all hosts."""

    def __init__(self, world: World) -> None:
        self.world, self.inner = world, DictIndex()
        self.index = FaultyIndex(self.inner)

    async def host(self, name: str = "a", **changes: Any) -> UserHost:
        made = self.world.host(name, **changes)
        made._long_term = LongTerm(self.index, SEARCH)
        made._feeder = Feeder(
            self.world.ledgers[name].store, self.index, words, FEED, self.world.clock, self.world.counts,
            owns=made._is_owned, awake=made._awake.__contains__,
        )  # fmt: skip
        await made.start()
        return made

    async def until(self, true: Callable[[], Awaitable[bool]], seconds: float = 5.0) -> None:
        """Let a little time pass, far less than the pause between two looks, until it is true."""
        left = seconds
        while not await true():
            assert left > 0, "it never came true"
            await self.world.pass_time(0.05)
            await asyncio.sleep(0.001)
            left -= 0.05

    async def holds(self, count: int, key: UserKey = KEY) -> bool:
        return await self.inner.count(key) == count


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with a_world(tmp_path) as world:
        yield Place(world)


async def test_what_is_said_reaches_the_index_at_once(place: Place) -> None:
    host = await place.host()
    await place.world.remember(host, "a cat", "a dog")
    await place.until(lambda: place.holds(2))
    store = place.world.ledgers["a"].store
    await place.until(lambda: _dry(store))


async def test_an_erased_user_leaves_the_index_at_once(place: Place) -> None:
    host = await place.host()
    await place.world.remember(host, "a cat")
    await place.world.remember(host, "a bird", session="s2", key=BOB)
    await place.until(lambda: place.holds(1))
    await host.execute(KEY, EraseUser(), "erase")
    await place.until(lambda: place.holds(0))
    assert KEY not in place.inner.of
    await place.until(lambda: place.holds(1, BOB))


async def test_an_outage_keeps_nobody_waiting_and_is_made_up_for(place: Place) -> None:
    host = await place.host()
    await place.until(lambda: _answers(host))
    place.index.down = True
    await place.world.remember(host, "a cat")
    await place.world.pass_time(3)
    assert await place.world.contents(host)
    place.index.down = False
    await place.until(lambda: place.holds(1), seconds=2 * FEED.backoff_max_s)


async def test_what_a_crash_left_is_fed_by_the_next_host(place: Place) -> None:
    host = await place.host()
    await place.until(lambda: _answers(host))
    place.index.down = True
    await place.world.remember(host, "a cat")
    await place.world.crash(host)
    place.index.down = False
    await place.host()
    await place.until(lambda: place.holds(1))


async def test_a_user_who_falls_asleep_is_let_go_by_the_index(place: Place) -> None:
    host = await place.host(idle_s=60.0)
    await place.world.remember(host, "a cat")
    await place.until(lambda: place.holds(1))
    assert not place.inner.rested[KEY]
    await place.world.pass_time(1000)
    assert place.inner.rested[KEY] == 1
    assert KEY not in host._awake


async def test_an_index_that_is_down_does_not_keep_a_host_from_starting_or_stopping(place: Place) -> None:
    place.index.down = True
    host = await place.host()
    await place.world.remember(host, "a cat")
    await place.world.stop(host)


async def _dry(store: object) -> bool:
    return not await store.outbox_users("", 9)  # type: ignore[attr-defined]


async def _answers(host: UserHost) -> bool:
    return host._feeder is not None and not host._feeder.down
