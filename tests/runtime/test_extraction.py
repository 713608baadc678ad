"""The extraction beside the mailbox: when a batch closes, what late results may do, and how failure ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.app.commands import (
    Command,
    Delete,
    Edit,
    EndSession,
    EraseKind,
    EraseUser,
    GetMemory,
    Incoming,
    Ingest,
    ListAudit,
    SetPaused,
)
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.errors import ExtractionFailed, NotFound
from hermes_memory.runtime.host import UserHost
from hermes_memory.testing.builders import KEY
from hermes_memory.testing.faulty_ledger import Fault
from tests.runtime.world import World, a_world, said, soon, until


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def status(world: World, job_id: str, name: str = "a") -> tuple[str, int, str | None]:
    found = await world.ledgers[name].store.job(KEY.namespace, job_id)
    assert found is not None
    return found[1].status.value, found[1].attempts, found[1].reason


async def asleep(world: World, sleepers: int) -> None:
    """The two loops of the host sleep, and whoever else is expected to."""
    await until(lambda: world.clock.sleepers == sleepers)


# when a batch closes


async def test_the_timer_closes_a_batch(world: World) -> None:
    host = await world.start()
    job_id = await world.say(host, "a cat")
    await world.pass_time(4.9)
    assert world.distiller.read == []
    await world.pass_time(0.2)
    await until(lambda: world.distiller.read == [["a cat"]])
    job = await host.wait(KEY, job_id, 60)
    assert job is not None
    assert [change["op"] for change in job["changes"]] == ["added"]


async def test_the_timer_runs_from_the_first_turn(world: World) -> None:
    host = await world.start()
    await world.say(host, "a cat")
    await world.pass_time(3)
    await world.say(host, "a dog")
    await world.pass_time(2.1)
    await until(lambda: world.distiller.read == [["a cat", "a dog"]])


async def test_a_full_count_closes_a_batch_at_once(world: World) -> None:
    host = await world.start()
    await world.say(host, "a cat", "a dog")
    await world.settle()
    assert world.distiller.read == []
    await world.say(host, "a fish", "a bird")
    await until(lambda: world.distiller.read == [["a cat", "a dog", "a fish"]])
    await world.pass_time(6)
    await until(lambda: world.distiller.read[1:] == [["a bird"]])


async def test_much_text_closes_a_batch_at_once_and_a_batch_holds_no_more(world: World) -> None:
    host = await world.start()
    long, longer = "a cat " * 12, "a dog " * 30
    await world.say(host, long)
    await world.settle()
    assert world.distiller.read == []
    await world.say(host, longer)
    await until(lambda: world.distiller.read == [[long], [longer]])  # longer is too much even alone


async def test_someone_who_waits_closes_the_batch_at_once(world: World) -> None:
    host = await world.start()
    await world.say(host, "a cat")
    job_id = await world.say(host, "a dog")
    job = await soon(asyncio.create_task(host.wait(KEY, job_id, 60)))
    assert world.distiller.read == [["a cat", "a dog"]]
    (dog,) = [memory for memory in await world.memories(host) if memory["content"] == "a dog"]
    assert [change["memory_id"] for change in job["changes"]] == [
        dog["id"]
    ]  # each job hears of its own words


async def test_the_end_of_the_conversation_closes_the_batch_at_once(world: World) -> None:
    host = await world.start()
    await world.say(host, "a cat", session="s1")
    await world.say(host, "a dog", session="s2")
    await host.execute(KEY, EndSession(session_id="s1"), "end")
    await until(lambda: world.distiller.read == [["a cat", "a dog"]])


async def test_the_model_sees_the_turns_before_and_what_the_words_touch(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    await world.remember(host, "a dog", session="s2")
    await world.remember(host, "the cat sleeps")
    request = world.distiller.requests[-1]
    assert [turn.content for turn in request.context] == ["a cat"]  # of this conversation
    assert "a cat" in {memory.content for memory in request.known}


async def test_one_extraction_at_a_time_for_each_user(world: World) -> None:
    host = await world.start()
    other = UserKey("app", "bob")
    world.distiller.open.clear()
    await world.say(host, "one", "two", "three", "four", "five", "six", "seven")
    await world.say(host, "one", "two", "three", session="s2", key=other)
    await until(lambda: world.distiller.running == 2)  # of different users, side by side
    await world.pass_time(20)
    assert [turns for turns in world.distiller.read if "four" in turns] == []
    world.distiller.open.set()
    await world.pass_time(6)
    await until(lambda: len(world.distiller.requests) == 4)
    assert world.distiller.most_running == 2


# what comes while the model reads


async def start_reading(world: World, host: UserHost, *texts: str, session: str = "s1") -> str:
    world.distiller.open.clear()
    job_id = await world.say(host, *texts, session=session)
    await world.pass_time(5.1)
    await until(lambda: world.distiller.running == 1)
    return job_id


async def finish_reading(world: World) -> None:
    world.distiller.open.set()
    await until(lambda: world.distiller.running == 0)
    await world.pass_time(0.1)


async def test_an_edit_does_not_wait_and_its_outcome_stands(world: World) -> None:
    host = await world.start()
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    await start_reading(world, host, "a cat", session="s2")  # says it again
    edit = Edit(memory_id=memory_id, expected_version=1, scene="home")
    assert (await host.execute(KEY, edit, "edit"))["scene"] == "home"
    await finish_reading(world)
    await until(lambda: not world.awake(host).state.pending)
    record = await host.ask(KEY, GetMemory(memory_id=memory_id))
    assert (record["scene"], len(record["evidence"])) == ("home", 2)  # the repetition met the edited memory


@pytest.mark.parametrize(
    "command", [SetPaused(paused=True), EraseUser()], ids=lambda command: type(command).__name__
)
async def test_a_late_result_is_dropped(world: World, command: Command) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    await start_reading(world, host, "a dog")
    await host.execute(KEY, command, "stop")
    await finish_reading(world)
    await world.pass_time(60)
    assert "a dog" not in await world.contents(host)
    assert len(world.distiller.read) == 2  # and nothing is read again


async def test_pausing_and_resuming_does_not_bring_a_late_result_back(world: World) -> None:
    host = await world.start()
    job_id = await start_reading(world, host, "a dog")
    await host.execute(KEY, SetPaused(paused=True), "pause")
    await host.execute(KEY, SetPaused(paused=False), "resume")
    await finish_reading(world)
    await world.pass_time(60)
    assert await world.contents(host) == set()
    job = await host.wait(KEY, job_id, 0)
    assert job is not None
    assert (job["status"], job["reason"], job["changes"]) == ("done", "paused", [])


async def test_what_was_deleted_is_not_read_back_from_a_waiting_turn(world: World) -> None:
    """The deletion also takes the words out of turns that wait, even out of one that a model is reading."""
    host = await world.start()
    job = await world.remember(host, "a cat")
    job_id = await start_reading(world, host, "a cat")  # the same words again, in flight
    await host.execute(KEY, Delete(memory_id=job["changes"][0]["memory_id"]), "delete")
    await finish_reading(world)
    late = await host.wait(KEY, job_id, 60)
    assert late is not None
    assert [(change["op"], change["reason"]) for change in late["changes"]] == [("refused", "ungrounded")]
    assert await world.contents(host) == set()


async def test_a_kind_that_was_erased_is_not_read_back(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    await start_reading(world, host, "a cat", "a dog")
    receipt = await host.execute(KEY, EraseKind(kind="identity"), "erase")
    assert receipt["erased"]["memories"] == 1
    await finish_reading(world)
    await until(lambda: not world.awake(host).state.pending)
    assert await world.contents(host) == {"a dog"}  # said before, but not yet a memory when it was erased


async def test_after_an_erasure_a_failing_model_is_not_shown_the_words_again(world: World) -> None:
    host = await world.start()
    await start_reading(world, host, "a secret")
    world.distiller.failures = [ExtractionFailed("no answer")] * 5
    await host.execute(KEY, EraseUser(), "erase")
    await finish_reading(world)
    await world.pass_time(60)
    assert world.distiller.read == [["a secret"]]


async def test_who_comes_back_after_an_erasure_is_read_again(world: World) -> None:
    """The same session and turn number as a turn that was parked before."""
    host = await world.start()
    world.distiller.failures = [ExtractionFailed("no answer")] * 3
    job_id = await world.say(host, "a cat")
    await world.pass_time(30)
    assert await status(world, job_id) == ("failed", 3, "extraction failed: no answer")
    await host.execute(KEY, EraseUser(), "erase")
    await world.remember(host, "a dog")
    assert await world.contents(host) == {"a dog"}


async def test_the_gates_run_on_the_state_as_it_is_when_the_result_comes(world: World) -> None:
    host = await world.start()
    await start_reading(world, host, "a cat")
    before = world.awake(host).state.version
    await host.execute(KEY, said("a dog"), "op-later")  # other turns come meanwhile
    await finish_reading(world)
    await world.pass_time(6)
    await until(lambda: not world.awake(host).state.pending)
    assert await world.contents(host) == {"a cat", "a dog"}
    assert world.awake(host).state.version == before + 3


# failure


async def test_a_failing_model_is_tried_again_with_growing_pauses(world: World) -> None:
    host = await world.start()
    world.distiller.failures = [ExtractionFailed("no answer"), ExtractionFailed("no answer")]
    job_id = await world.say(host, "a cat")
    await world.pass_time(5.1)
    await until(lambda: len(world.distiller.requests) == 1)
    await asleep(world, 3)
    assert await status(world, job_id) == ("running", 1, "extraction failed: no answer")
    await world.pass_time(1.8)
    assert len(world.distiller.requests) == 1
    await world.pass_time(0.2)
    await until(lambda: len(world.distiller.requests) == 2)
    await asleep(world, 3)
    await world.pass_time(3.8)
    assert len(world.distiller.requests) == 2
    await world.pass_time(0.3)
    await until(lambda: not world.awake(host).state.pending)
    assert await status(world, job_id) == ("done", 2, None)
    assert await world.contents(host) == {"a cat"}


async def test_what_cannot_be_read_is_parked_and_read_again_after_a_restart(world: World) -> None:
    host = await world.start()
    world.distiller.failures = [ExtractionFailed("no answer")] * 3
    job_id = await world.say(host, "a cat")
    job = asyncio.create_task(host.wait(KEY, job_id, 300))
    await world.pass_time(30)
    record = await soon(job)
    assert (record["status"], record["attempts"]) == ("failed", 3)
    assert record["reason"] == "extraction failed: no answer"
    assert [turn.content for turn in world.awake(host).state.pending] == ["a cat"]
    await world.pass_time(100)
    assert len(world.distiller.requests) == 3  # nobody tries again by itself
    await world.remember(host, "a dog")  # and it stands in nobody's way
    assert await world.contents(host) == {"a dog"}

    await world.stop(host)
    host = await world.start()
    await world.pass_time(6)
    await until(lambda: not world.awake(host).state.pending)
    assert await world.contents(host) == {"a cat", "a dog"}
    assert (await status(world, job_id))[0] == "done"


async def test_a_bug_in_the_distiller_ends_as_a_failed_job_not_as_a_dead_loop(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    host = await world.start()
    world.distiller.failures = [ValueError("what the user said")] * 3
    with caplog.at_level(logging.WARNING):
        job_id = await world.say(host, "a cat")
        await world.pass_time(30)
    assert await status(world, job_id) == ("failed", 3, "ValueError")  # its text may hold what was said
    await world.remember(host, "a dog")


async def test_a_bug_in_the_loop_itself_is_survived(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    host = await world.start()
    await host.execute(KEY, SetPaused(paused=False), "wake")
    broken = host._awake[KEY].extraction
    monkeypatch.setattr(broken, "_batch", lambda: 1 / 0)
    job_id = await world.say(host, "a cat")
    await world.pass_time(6)
    monkeypatch.undo()
    await world.pass_time(66)
    await until(lambda: not world.awake(host).state.pending)
    assert (await status(world, job_id))[0] == "done"


async def test_a_ledger_that_is_away_costs_the_turns_nothing(world: World) -> None:
    """The outage lasts longer than all attempts would: nothing is parked, and the turn is read afterwards."""
    host = await world.start(lease_s=300)
    job_id = await world.say(host, "a cat")
    world.weather(1.0)
    await world.pass_time(25)
    world.weather(0.0)
    await world.pass_time(60)
    await until(lambda: not world.awake(host).state.pending)
    assert await status(world, job_id) == ("done", 0, None)
    assert await world.contents(host) == {"a cat"}


async def test_a_failure_that_cannot_be_recorded_is_not_the_last_word(world: World) -> None:
    host = await world.start(lease_s=300)
    world.distiller.failures = [ExtractionFailed("no answer")] * 3
    job_id = await world.say(host, "a cat")
    await world.pass_time(8)
    await until(lambda: len(world.distiller.requests) == 2)
    await world.settle()
    world.weather(1.0)  # when the last attempt fails
    await world.pass_time(25)
    assert (await status(world, job_id))[0] == "running"
    world.weather(0.0)
    await world.pass_time(60)
    await until(lambda: not world.awake(host).state.pending)
    assert (await status(world, job_id))[0] == "done"


async def test_a_settle_whose_reply_was_lost_tells_those_who_wait(world: World) -> None:
    host = await world.start()
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    wait = asyncio.create_task(host.wait(KEY, job_id, 300))
    await until(lambda: world.distiller.running)
    world.plan.then(Fault.FAIL_AFTER)
    world.distiller.open.set()
    await world.pass_time(5)
    assert (await soon(wait))["status"] == "done"
    assert world.distiller.read == [["a cat"]]  # and the model is not asked again
    assert await world.contents(host) == {"a cat"}


# waiting


async def test_two_wait_for_one_job(world: World) -> None:
    host = await world.start()
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    waits = [asyncio.create_task(host.wait(KEY, job_id, 60)) for _ in range(2)]
    impatient = asyncio.create_task(host.wait(KEY, job_id, 3))
    await until(lambda: world.distiller.running)
    await world.pass_time(3.1)
    assert await soon(impatient) is None
    assert not any(wait.done() for wait in waits)
    world.distiller.open.set()
    records = [await soon(wait) for wait in waits]
    assert [record["status"] for record in records] == ["done", "done"]
    assert not world.awake(host).watches


async def test_a_wait_that_is_cancelled_leaves_no_watch(world: World) -> None:
    host = await world.start()
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    wait = asyncio.create_task(host.wait(KEY, job_id, 60))
    await until(lambda: world.awake(host).watches)
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)
    assert not world.awake(host).watches


async def test_waiting_for_what_is_over_or_unknown_does_not_wait(world: World) -> None:
    host = await world.start()
    job = await world.remember(host, "a cat")
    again = await soon(asyncio.create_task(host.wait(KEY, job["job_id"], 60)))
    assert again == job
    with pytest.raises(NotFound):
        await host.wait(KEY, "job_unknown", 60)
    with pytest.raises(NotFound):  # another user's job is nobody's business
        await host.wait(UserKey("app", "bob"), job["job_id"], 60)


async def test_an_erasure_lets_go_of_who_waits(world: World) -> None:
    host = await world.start()
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    wait = asyncio.create_task(host.wait(KEY, job_id, 60))
    await until(lambda: world.distiller.running)
    await host.execute(KEY, EraseUser(), "erase")
    await until(wait.done)
    assert isinstance(wait.exception(), NotFound)


# fields of the turn


async def test_only_user_turns_become_evidence(world: World) -> None:
    host = await world.start()
    messages: list[dict[str, Any]] = [
        {"role": Role.ASSISTANT, "content": "Any pets?"},
        {"role": Role.USER, "content": "a cat"},
    ]
    command = Ingest(session_id="s1", messages=tuple(Incoming(**m) for m in messages), timezone="UTC")
    accepted = await host.execute(KEY, command, "op-1")
    await host.wait(KEY, accepted["job_id"], 60)
    assert await world.contents(host) == {"a cat"}
    audit = await host.ask(KEY, ListAudit())
    assert {entry["actor"] for entry in audit["audit"]} == {"extraction"}
