"""Simulated time has one driver and one order."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from hermes_memory.testing.sim_clock import START, SimClock


async def test_time_stands_still_until_it_is_driven() -> None:
    clock = SimClock()
    assert clock.now() == START
    await clock.advance(90)
    assert clock.now() == START + timedelta(seconds=90)


async def test_sleepers_wake_in_order_each_at_its_moment() -> None:
    clock = SimClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, delay_s: float) -> None:
        await clock.sleep(delay_s)
        woken.append((name, (clock.now() - START).total_seconds()))

    async with asyncio.TaskGroup() as tasks:
        for name, delay_s in (("late", 30), ("first", 10), ("second", 10), ("now", 0)):
            tasks.create_task(sleeper(name, delay_s))
        await clock.advance(20)
        assert woken == [("now", 0), ("first", 10), ("second", 10)]
        assert clock.sleepers == 1
        await clock.advance(20)
    assert [name for name, _ in woken] == ["now", "first", "second", "late"]
    assert clock.now() == START + timedelta(seconds=40)


async def test_a_loop_that_sleeps_runs_through_months_in_no_time() -> None:
    clock, days = SimClock(), []

    async def nightly() -> None:
        while True:
            await clock.sleep(86_400)
            days.append(clock.now())

    task = asyncio.create_task(nightly())
    began_s = time.monotonic()
    await clock.advance(180 * 86_400)
    task.cancel()
    assert len(days) == 180
    assert days[-1] == START + timedelta(days=180)
    assert time.monotonic() - began_s < 5


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = SimClock()
    task = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleepers == 0
    await clock.advance(10)
