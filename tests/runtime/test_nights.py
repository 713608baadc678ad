"""A night in the mailbox of a real host: step by step, with other commands between (SPEC §9, ARCHITECTURE §2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from hermes_memory.app.commands import EraseUser, Maintain, SetPaused
from hermes_memory.app.nights import STEPS
from hermes_memory.runtime.nights import run_night
from hermes_memory.testing.builders import KEY, NOW
from tests.runtime.world import World, a_world, said


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def test_spec_9_a_night_tells_its_steps_and_a_retry_answers_the_same(world: World) -> None:
    host = await world.start()
    await world.remember(host, "我有一只猫")
    await world.pass_time(15 * 60)
    command = Maintain(now=world.clock.now())
    first = await host.execute(KEY, command, "night-1")
    assert set(first) == {"changes", "expired_requests", "steps", "profile_slots"}
    assert list(first["steps"]) == list(STEPS)
    version = world.awake(host).state.version
    again = await host.execute(KEY, command, "night-1", again=True)
    assert again == first
    assert (await host.execute(KEY, command, "night-2"))["changes"] == []
    assert world.awake(host).state.version == version


async def test_spec_9_whoever_waits_comes_between_two_steps(world: World) -> None:
    host = await world.start()
    await world.remember(host, "我有一只猫")
    user = world.awake(host)
    night = asyncio.create_task(user.execute(Maintain(now=world.clock.now()), "night"))
    pause = asyncio.create_task(user.execute(SetPaused(paused=True), "pause"))
    await asyncio.wait({night, pause}, return_when=asyncio.FIRST_COMPLETED)
    assert pause.done()
    assert not night.done()
    await night


async def test_spec_9_an_erasure_between_two_steps_is_respected(world: World) -> None:
    host = await world.start()
    await world.remember(host, "我有一只猫")
    user = world.awake(host)
    night = asyncio.create_task(user.execute(Maintain(now=world.clock.now()), "night"))
    erased = await user.execute(EraseUser(), "erase")
    version = user.state.version
    answer = await night
    assert (erased["remaining"], user.state.memories, user.state.version) == (0, {}, version)
    assert user.state.settings.profile == {}
    assert set(answer["steps"]) == set(STEPS)


async def test_spec_9_days_are_those_of_the_zone_the_user_wrote_from(world: World) -> None:
    host = await world.start()
    command = said("我有一只猫")
    await host.execute(
        KEY, type(command)(session_id="s1", messages=command.messages, timezone="Asia/Shanghai"), "say"
    )
    user = world.awake(host)
    assert user.state.settings.timezone == "Asia/Shanghai"
    await user.execute(Maintain(now=world.clock.now()), "night")


async def test_spec_9_one_step_runs_until_nothing_is_left_of_it() -> None:
    asked: list[tuple[str | None, str]] = []
    left = [True, True, False]

    async def portion(command: Maintain, operation_id: str) -> dict[str, Any]:
        asked.append((command.step, operation_id))
        change = {"op": "archived", "step": "age"}
        return {
            "changes": [change], "expired_requests": 0, "steps": {"age": 1}, "profile_slots": 0, "more": left.pop(0),
        }  # fmt: skip

    answer = await run_night(Maintain(now=NOW, step="age"), "op", portion)
    assert asked == [("age", f"op:age:{number}") for number in range(3)]
    assert answer["steps"]["age"] == len(answer["changes"]) == 3


async def test_spec_9_an_answer_that_an_erasure_took_is_left_out() -> None:
    async def portion(command: Maintain, operation_id: str) -> None:
        del command, operation_id

    answer = await run_night(Maintain(now=NOW), "op", portion)
    assert answer["changes"] == []
