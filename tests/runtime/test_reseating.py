"""The number of hosts changes: users move, who waits is led on, and what was said meanwhile is read."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from actors.placement import Pooled, carried
from hermes_memory.app.commands import GetMemory, SetConsent, Summarise
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import LeaseLost, Overloaded
from hermes_memory.ports.ledger import HostPool
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.seating import Moved
from tests.runtime.world import World, a_world, about, soon, until

POOL = Pooled(HostPool())
KEYS = [UserKey("app", f"user {number}") for number in range(40)]
FIRST, SECOND = (seat.name for seat in POOL.at(HostPool(2, 1)).standing())


def of(hosts: int, name: str) -> list[UserKey]:
    """Whom the host of that name carries in a pool of that size."""
    pool = POOL.at(HostPool(hosts, 1))
    return [key for key in KEYS if pool.seat_of(key).name == name]


STAYS, GOES = of(2, FIRST)[0], of(2, SECOND)[0]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def start(world: World, name: str, hosts: int | None = None, **changes: Any) -> UserHost:
    """A host of the pool; ``hosts`` sets its size first."""
    host = world.host(name, share=partial(carried, POOL, name), **changes)
    if hosts is not None:
        store = world.ledgers[name].store
        await store.open(host._embedder)
        await store.resize_host_pool(hosts)
    await host.start()
    return host


def awake(host: UserHost) -> set[UserKey]:
    return set(host._awake)


def test_moved_crosses_processes_whole() -> None:
    moved = pickle.loads(pickle.dumps(Moved(4, 7)))  # noqa: S301 - our own bytes
    assert (moved.pool, str(moved), moved.retryable) == (HostPool(4, 7), str(Moved(4, 7)), True)


async def test_a_host_refuses_who_is_another_one_s(world: World) -> None:
    host = await start(world, FIRST, hosts=2)
    assert (await host.ask(STAYS, Summarise()))["version"] == 0
    for call in (
        host.ask(GOES, Summarise()),
        host.execute(GOES, SetConsent(cohort=True), "op"),
        host.wait(GOES, "job", 1),
        host.wake(GOES),
    ):
        with pytest.raises(Moved) as moved:
            await call
        assert moved.value.pool == HostPool(2, 1)
    assert awake(host) == {STAYS}


async def test_before_anybody_set_the_size_nobody_is_carried(world: World) -> None:
    host = await start(world, FIRST)
    with pytest.raises(Moved):
        await host.ask(STAYS, Summarise())
    await world.ledgers[FIRST].store.resize_host_pool(1)
    assert (await host.ask(STAYS, Summarise()))["version"] == 0  # it looks before it refuses


async def test_when_the_pool_grows_users_are_let_go_with_everything_written_down(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    job = await world.remember(first, "a cat", key=GOES)
    await world.remember(first, "a dog", session="s2", key=STAYS)
    await first.ask(GOES, about("a cat"))
    second = await start(world, SECOND, hosts=2)
    assert await first.reseat() == HostPool(2, 2)
    assert awake(first) == {STAYS}
    record = await second.ask(GOES, GetMemory(memory_id=job["changes"][0]["memory_id"]))
    assert record["access_count"] == 1
    await second.execute(GOES, SetConsent(cohort=True), "op-1")
    with pytest.raises(Moved):
        await first.execute(GOES, SetConsent(cohort=False), "op-2")


async def test_a_command_that_runs_is_finished_and_those_behind_it_are_led_on(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    ledger = world.ledgers[FIRST]
    ledger.let.clear()
    runs = asyncio.create_task(first.execute(GOES, SetConsent(cohort=True), "op-1"))
    await until(lambda: ledger.calls["commit"] == 1)
    waits = asyncio.create_task(first.execute(GOES, SetConsent(sensitive=True), "op-2"))
    await world.settle()
    await ledger.store.resize_host_pool(2)
    moving = asyncio.create_task(first.reseat())
    await world.settle()
    with pytest.raises(Moved):
        await first.ask(GOES, Summarise())  # at once, not when the command has ended
    ledger.let.set()
    await soon(runs)
    with pytest.raises(LeaseLost):
        await soon(waits)
    await soon(moving)
    second = await start(world, SECOND)
    await second.execute(GOES, SetConsent(sensitive=True), "op-2", again=True)
    assert world.awake(second, GOES).state.settings.consent == {"cohort": True, "sensitive": True}


async def test_who_waits_for_a_job_is_led_on_and_the_turns_are_read_once(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    world.distiller.open.clear()
    job_id = await world.say(first, "a cat", key=GOES)
    wait = asyncio.create_task(first.wait(GOES, job_id, 600))
    await until(lambda: world.distiller.running)
    second = await start(world, SECOND, hosts=2)
    await first.reseat()
    with pytest.raises(Moved):
        await soon(wait)
    assert awake(second) == {GOES}, "found by its unread turn"
    world.distiller.open.set()
    job = await soon(asyncio.create_task(second.wait(GOES, job_id, 600)))
    assert job["status"] == "done"
    assert await world.contents(second, GOES) == {"a cat"}


async def test_without_being_told_a_host_learns_of_the_new_size_by_itself(world: World) -> None:
    first, second = await start(world, FIRST, hosts=1), await start(world, SECOND)
    for key in (STAYS, GOES):
        await first.ask(key, Summarise())
    assert awake(second) == set()
    await world.ledgers[FIRST].store.resize_host_pool(2)
    await world.pass_time(11)
    assert (awake(first), first.pool, second.pool) == ({STAYS}, HostPool(2, 2), HostPool(2, 2))


async def test_a_turn_that_comes_after_the_new_owner_looked_is_found_too(world: World) -> None:
    """The host that the user leaves has not heard of the new size yet."""
    first, second = await start(world, FIRST, hosts=1), await start(world, SECOND)
    world.distiller.open.clear()
    await world.ledgers[SECOND].store.resize_host_pool(2)
    await second.reseat()
    await world.say(first, "a cat", key=GOES)
    await first.reseat()
    assert awake(second) == set()
    await world.pass_time(11)
    assert awake(second) == {GOES}
    world.distiller.open.set()
    await world.pass_time(6)
    await until(lambda: not world.awake(second, GOES).state.pending)
    assert await world.contents(second, GOES) == {"a cat"}


async def test_a_host_that_slept_through_a_resize_does_not_take_its_users_back(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    await first.execute(GOES, SetConsent(cohort=True), "op-1")
    second = await start(world, SECOND, hosts=2)
    await second.execute(GOES, SetConsent(cohort=False), "op-2")
    owner = world.awake(second, GOES).around.epoch
    world.clock._now += timedelta(hours=1)  # nobody renewed
    await first.renew()
    with pytest.raises(Moved):
        await first.execute(GOES, SetConsent(cohort=True), "op-3")
    assert world.awake(second, GOES).around.epoch == owner


async def test_users_of_a_hanging_ledger_keep_nobody_else_from_moving(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    hangs, *others = of(2, SECOND)
    for key in others:
        await first.ask(key, Summarise())
    ledger = world.ledgers[FIRST]
    ledger.let.clear()
    slow = asyncio.create_task(first.execute(hangs, SetConsent(cohort=True), "op-1"))
    await until(lambda: ledger.calls["commit"] == 1)
    await ledger.store.resize_host_pool(2)
    moving = asyncio.create_task(first.reseat())
    await until(lambda: awake(first) == set())
    assert not moving.done()
    ledger.let.set()
    await asyncio.gather(slow, moving)


async def test_several_changes_in_a_row_end_with_the_last(world: World) -> None:
    first = await start(world, FIRST, hosts=1)
    for key in KEYS:
        await first.ask(key, Summarise())
    store = world.ledgers[FIRST].store
    reseats = []
    for hosts in (2, 4, 3, 8):
        await store.resize_host_pool(hosts)
        reseats.append(asyncio.create_task(first.reseat()))
    assert {pool.hosts for pool in await asyncio.gather(*reseats)} <= {2, 4, 3, 8}
    assert await first.reseat() == HostPool(8, 5)
    assert awake(first) == set(of(8, FIRST))


async def test_a_stopped_host_gives_its_lease_back_and_can_be_started_again(world: World) -> None:
    host = await start(world, FIRST, hosts=1)
    await host.execute(GOES, SetConsent(cohort=True), "op-1")
    epoch = host.stats()["epoch"]
    await host.stop()
    with pytest.raises(LeaseLost):
        await host.ask(GOES, Summarise())
    second = await start(world, SECOND)
    await world.clock.advance(0.1)
    with pytest.raises(LeaseLost):
        await world.ledgers[SECOND].store.renew_lease(epoch, 30, world.clock.now())
    await second.stop()
    await host.start()
    assert (await host.ask(GOES, Summarise()))["version"] == 1


# how much a host takes in


async def test_calls_beyond_the_limit_are_refused_and_reads_later_than_writes(world: World) -> None:
    host = await world.start(max_in_flight=4, max_waiting=100)
    await host.ask(STAYS, Summarise())
    ledger = world.ledgers["a"]
    ledger.let.clear()
    writes = [
        asyncio.create_task(host.execute(key, SetConsent(cohort=True), f"op-{key}")) for key in KEYS[:10]
    ]
    await until(lambda: sum(write.done() for write in writes) == 6)
    assert host.stats()["in_flight"] == 4
    assert (await host.ask(STAYS, Summarise()))["version"] == 0
    ledger.let.set()
    done = await asyncio.gather(*writes, return_exceptions=True)
    refused = [error for error in done if isinstance(error, Overloaded)]
    assert len(refused) == 6
    assert all(error.retry_after_s >= 1 for error in refused)
    assert host.stats()["in_flight"] == 0


async def test_too_many_who_wait_for_jobs_are_told_to_ask_later(world: World) -> None:
    """What they said is safe: an error would have it said again."""
    host = await world.start(max_in_flight=2)
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    waits = [asyncio.create_task(host.wait(UserKey("app", "ann"), job_id, 600)) for _ in range(2)]
    await until(lambda: host.stats()["waits"] == 2)
    assert await host.wait(UserKey("app", "ann"), job_id, 600) is None
    world.distiller.open.set()
    assert [job and job["status"] for job in await asyncio.gather(*waits)] == ["done", "done"]
