"""A host of many users: waking, sleeping, the lease, housekeeping, and what a recall leaves behind."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from hermes_memory.app.commands import (
    EndSession,
    EraseUser,
    GetMemory,
    ListConfirmations,
    Maintain,
    SetConsent,
    Summarise,
)
from hermes_memory.core.candidate import Candidate
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Polarity, Turn
from hermes_memory.errors import EmbedderMismatch, Fenced, LeaseLost, LedgerUnavailable, SessionOwned
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.seating import Moved
from hermes_memory.testing.builders import KEY
from hermes_memory.testing.faulty_ledger import Fault
from tests.runtime.world import World, a_world, about, said, soon, until, users
from tests.small_world import a_candidate, policy, rules

BOB = UserKey("app", "bob")
CAROL = UserKey("app", "carol")
ONE_MINUTE = policy(rules(life={"session_idle_minutes": 1.0}))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


def awake(host: UserHost) -> set[str]:
    return {key.user_id for key in host._awake}


# waking


async def test_many_first_calls_wake_a_user_once(world: World) -> None:
    host = await world.start()
    reads = [host.ask(KEY, Summarise()) for _ in range(10)]
    writes = [host.execute(KEY, said(f"turn {n}"), f"op-{n}") for n in range(5)]
    await asyncio.gather(*reads, *writes)
    assert world.ledgers["a"].calls["activate"] == 1
    assert world.counts.of["hermes_activations_total"] == 1
    assert host.stats()["awake"] == 1


async def test_a_first_caller_who_leaves_takes_the_waking_from_nobody(world: World) -> None:
    host = await world.start()
    first = asyncio.create_task(host.ask(KEY, Summarise()))
    second = asyncio.create_task(host.ask(KEY, Summarise()))
    await asyncio.sleep(0)
    first.cancel()
    assert (await soon(second))["version"] == 0
    assert world.ledgers["a"].calls["activate"] == 1


async def test_a_waking_that_fails_is_tried_again_by_the_next_call(world: World) -> None:
    host = await world.start()
    world.plan.then(Fault.FAIL_BEFORE)
    with pytest.raises(LedgerUnavailable):
        await host.ask(KEY, Summarise())
    assert (await host.ask(KEY, Summarise()))["version"] == 0
    assert host._waking == {}


# sleeping


async def test_the_idle_are_put_to_sleep_and_wake_as_they_were(world: World) -> None:
    host = await world.start(idle_s=60)
    await world.remember(host, "a cat")
    await world.pass_time(45)
    await world.remember(host, "a dog", session="s2", key=BOB)
    await world.pass_time(30)
    assert awake(host) == {"bob"}
    assert world.counts.of["hermes_passivations_total"] == 1
    assert await world.contents(host) == {"a cat"}


async def test_a_read_keeps_a_user_awake(world: World) -> None:
    host = await world.start(idle_s=60)
    for _ in range(5):
        await host.ask(KEY, Summarise())
        await world.pass_time(40)
    assert awake(host) == {"ann"}


async def test_over_the_memory_budget_the_longest_idle_goes_first(world: World) -> None:
    host = await world.start(memory_budget_bytes=50_000)  # an empty user counts 20,000
    for key in (KEY, BOB, CAROL):
        await host.ask(key, Summarise())
        await world.clock.advance(0.5)
    await host.ask(KEY, Summarise())
    assert awake(host) == {"ann", "bob", "carol"}
    await world.pass_time(10)
    await until(lambda: awake(host) == {"ann", "carol"})
    assert host.stats()["cost_bytes"] <= 50_000


async def test_the_busy_are_never_put_to_sleep(world: World) -> None:
    host = await world.start(memory_budget_bytes=0, idle_s=0)
    world.distiller.open.clear()
    await world.say(host, "a cat")  # unread turns
    await host.ask(BOB, Summarise())  # nothing to do
    ledger = world.ledgers["a"]
    await host.ask(CAROL, Summarise())
    ledger.let.clear()
    slow = asyncio.create_task(host.execute(CAROL, SetConsent(cohort=True), "op-slow"))  # a commit under way
    await until(lambda: ledger.calls["commit"] == 2)
    await world.pass_time(25)
    assert awake(host) == {"ann", "carol"}
    ledger.let.set()
    world.distiller.open.set()
    await slow
    await world.pass_time(25)
    assert awake(host) == set()
    assert await world.contents(host) == {"a cat"}


async def test_no_budget_at_all_still_serves(world: World) -> None:
    """A user who is put to sleep at every chance is woken at every call, and nothing is left unread."""
    host = await world.start(memory_budget_bytes=0, idle_s=0, housekeeping_s=0.5)
    for number in range(4):
        job = asyncio.create_task(world.remember(host, f"pet {number}"))
        await world.pass_time(3)
        assert (await soon(job))["status"] == "done"
    assert await world.contents(host) == {f"pet {number}" for number in range(4)}


async def test_access_counts_are_written_down_before_sleep(world: World) -> None:
    host = await world.start(idle_s=60, housekeeping_s=100)
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    for _ in range(3):
        assert (await host.ask(KEY, about("a cat")))["memories"]
    await world.pass_time(105)
    assert awake(host) == set()
    record = await host.ask(KEY, GetMemory(memory_id=memory_id))
    assert (record["access_count"], record["version"]) == (3, 1)


async def test_access_counts_of_who_stays_awake_are_written_down_too(world: World) -> None:
    """Ageing looks at them, and a crash loses only the newest."""
    host = await world.start()
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    await host.ask(KEY, about("a cat"))
    await world.pass_time(11)
    assert (await host.ask(KEY, GetMemory(memory_id=memory_id)))["access_count"] == 1
    await host.ask(KEY, about("a cat"))
    await world.crash(host)
    host = await world.start()
    assert (await host.ask(KEY, GetMemory(memory_id=memory_id)))["access_count"] == 1


async def test_access_counts_wait_for_a_ledger_that_is_away_and_are_counted_once(world: World) -> None:
    host = await world.start(lease_s=300)
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    await host.ask(KEY, about("a cat"))
    world.weather(1.0)
    await world.pass_time(15)
    await host.ask(KEY, about("a cat"))
    world.weather(0.0)
    await world.pass_time(15)
    await world.remember(host, "a cat", session="s2")  # a commit of the very memory
    await world.pass_time(15)
    await world.stop(host)
    host = await world.start()
    assert (await host.ask(KEY, GetMemory(memory_id=memory_id)))["access_count"] == 2


# sessions


async def test_a_silent_session_ends_after_its_minutes(world: World) -> None:
    host = await world.start(policy=ONE_MINUTE)
    await world.remember(host, "a cat")
    await world.pass_time(50)
    assert (await world.memories(host))[0]["tier"] == "working"
    await world.pass_time(30)
    assert world.awake(host).state.sessions["s1"].ended
    assert (await world.memories(host))[0]["tier"] == "longterm"
    await world.remember(host, "a dog")
    assert not world.awake(host).state.sessions["s1"].ended


async def test_a_session_that_went_silent_while_the_user_slept_ends_at_the_next_waking(world: World) -> None:
    host = await world.start(policy=ONE_MINUTE, idle_s=20)
    await world.remember(host, "a cat")
    await world.pass_time(45)
    assert awake(host) == set()
    await world.pass_time(60)
    assert (await world.memories(host))[0]["tier"] == "longterm"  # already for the call that wakes


async def test_time_to_sleep_and_time_to_end_a_session_together(world: World) -> None:
    host = await world.start(policy=ONE_MINUTE, idle_s=60)
    await world.remember(host, "a cat")
    await world.pass_time(75)
    assert awake(host) == set()
    (session,) = (await world.ledgers["a"].store.activate(KEY, 1)).sessions
    assert session.ended


async def test_ending_a_session_twice_or_an_unknown_one_changes_nothing(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    for number in range(2):
        await host.execute(KEY, EndSession(session_id="s1"), f"end-{number}")
        await host.execute(KEY, EndSession(session_id="nobody's"), f"end-unknown-{number}")
    assert (await host.ask(KEY, Summarise()))["version"] == 3
    assert set(world.awake(host).state.sessions) == {"s1"}


# the lease


async def test_a_lost_lease_refuses_reads_too_and_the_host_starts_over(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    epoch = host.stats()["epoch"]
    world.clock._now += timedelta(seconds=31)  # the process stood still: nobody renewed
    with pytest.raises(LeaseLost):
        await host.ask(KEY, Summarise())
    with pytest.raises(LeaseLost):
        await host.execute(KEY, SetConsent(cohort=True), "op-1")
    with pytest.raises(LeaseLost):
        await host.wait(KEY, "job", 1)
    with pytest.raises(LeaseLost):
        await host.wake(KEY)
    await world.pass_time(11)
    assert host.stats()["epoch"] > epoch
    assert await world.contents(host) == {"a cat"}
    await host.execute(KEY, SetConsent(cohort=True), "op-2")


async def test_in_this_process_a_lost_lease_is_taken_again_at_once(world: World) -> None:
    """A laptop that slept: its user sees no error."""
    host = await world.start()
    await world.remember(host, "a cat")
    epoch = host.stats()["epoch"]
    world.clock._now += timedelta(hours=8)
    assert (await users(host).ask(KEY, Summarise()))["version"] == 3  # the session ended meanwhile
    assert host.stats()["epoch"] > epoch
    world.clock._now += timedelta(hours=8)
    await users(host).execute(KEY, SetConsent(cohort=True), "op-1")
    assert host._renewing.locked() is False


async def test_after_a_lost_lease_the_unread_turns_are_found_again(world: World) -> None:
    host = await world.start(lease_s=20)
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    await world.say(host, "a dog", session="s2", key=BOB)
    wait = asyncio.create_task(users(host).wait(KEY, job_id, 600))
    await world.pass_time(5.1)
    await until(lambda: world.distiller.running == 2)
    lost = world.awake(host)
    world.clock._now += timedelta(seconds=21)
    await world.pass_time(30)
    assert lost.closed
    await until(lambda: world.distiller.running == 2)  # again, on the new actors
    world.distiller.open.set()
    assert (await soon(wait))["status"] == "done"  # who waits was led on to the new one
    await until(lambda: not world.awake(host, BOB).state.pending)


async def test_a_lease_is_kept_while_one_user_s_command_hangs(world: World) -> None:
    host = await world.start(policy=ONE_MINUTE)
    await world.remember(host, "a cat")
    ledger = world.ledgers["a"]
    ledger.let.clear()
    slow = asyncio.create_task(host.execute(KEY, SetConsent(cohort=True), "op-slow"))
    await until(lambda: ledger.calls["commit"] == 3)
    await world.pass_time(100)
    assert (await host.ask(BOB, Summarise()))["version"] == 0
    ledger.let.set()
    await slow


async def test_a_new_host_of_the_same_name_takes_over(world: World) -> None:
    old = await world.start("a")
    await world.remember(old, "a cat")
    new = world.host("a2")
    new.name = "a"
    await new.start()
    await new.execute(KEY, SetConsent(cohort=True), "op-1")
    with pytest.raises(Fenced):
        await old.execute(KEY, SetConsent(cohort=False), "op-2")
    await world.pass_time(11)  # the old one learns that its lease is gone, and gets a new epoch
    await old.execute(KEY, SetConsent(cohort=False), "op-3")
    assert world.awake(old).state.settings.consent == {"cohort": False}


async def both_read(world: World, first: UserHost, second: UserHost) -> None:
    """The first host reads a turn, and the second takes its user over and reads the same turn."""
    world.distiller.open.clear()
    await world.say(first, "a cat")
    await world.pass_time(6)
    await until(lambda: world.distiller.running == 1)
    await second.wake(KEY)
    await world.pass_time(6)
    await until(lambda: world.distiller.running == 2)


async def test_background_work_of_a_fenced_host_lets_go_of_the_user(world: World) -> None:
    """Its extraction does not take the user back from the host that has it now."""
    first, second = await world.start("a"), await world.start("b")
    await both_read(world, first, second)
    owner, taken = world.awake(second).around.epoch, world.ledgers["a"].calls["activate"]
    world.ledgers["b"].let.clear()
    world.distiller.open.set()
    await until(lambda: awake(first) == set() or world.awake(first).closed)
    world.ledgers["b"].let.set()
    await until(lambda: not world.awake(second).state.pending)
    await world.pass_time(30)
    await until(lambda: awake(first) == set())
    assert world.ledgers["a"].calls["activate"] == taken
    assert world.awake(second).around.epoch == owner
    await second.execute(KEY, SetConsent(cohort=True), "op-1")  # and is not fenced
    assert await world.contents(second) == {"a cat"}


async def test_a_batch_that_two_hosts_settle_is_applied_once(world: World) -> None:
    """The later commit is a replay of the earlier one: not refused, and nothing is written by it."""
    first, second = await world.start("a"), await world.start("b")
    await both_read(world, first, second)
    world.ledgers["a"].let.clear()
    world.distiller.open.set()
    await until(lambda: not world.awake(second).state.pending)
    world.ledgers["a"].let.set()
    await world.pass_time(30)
    assert len(world.ledgers["b"].versions) == 1
    assert len(world.ledgers["a"].versions) == 1  # what was said
    assert await world.contents(first) == await world.contents(second) == {"a cat"}


async def test_who_waits_on_a_fenced_actor_is_served_by_the_next_one(world: World) -> None:
    first, second = await world.start("a"), await world.start("b")
    world.distiller.open.clear()
    job_id = await world.say(first, "a cat")
    wait = asyncio.create_task(first.wait(KEY, job_id, 600))
    await until(lambda: world.distiller.running)
    await second.execute(KEY, SetConsent(cohort=True), "op-1")
    with pytest.raises(Fenced):
        await first.execute(KEY, SetConsent(sensitive=True), "op-2")
    world.distiller.open.set()
    await world.pass_time(10)
    assert (await soon(wait))["status"] == "done"


# recovery


async def test_after_a_crash_only_owned_users_with_unread_turns_are_woken(world: World) -> None:
    host = await world.start()
    world.distiller.open.clear()
    await world.say(host, "a cat")
    await world.say(host, "a dog", session="s2", key=BOB)
    await host.execute(CAROL, SetConsent(cohort=True), "op-1")  # nothing unread
    await world.ledgers["a"].store.resize_host_pool(2)
    await world.crash(host)
    world.distiller.open.set()
    host = await world.start(share=lambda pool: lambda key: (key == KEY) is (pool.hosts == 2))
    assert awake(host) == {"ann"}
    await world.pass_time(6)
    await until(lambda: not world.awake(host).state.pending)
    assert world.distiller.read[-1] == ["a cat"]
    with pytest.raises(Moved):
        await host.ask(BOB, Summarise())


async def test_one_user_who_cannot_be_read_keeps_nobody_else_asleep(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    host = await world.start()
    world.distiller.open.clear()
    await world.say(host, "a cat")
    await world.say(host, "a dog", session="s2", key=BOB)
    await world.crash(host)
    with caplog.at_level(logging.ERROR):
        host = world.host()
        world.ledgers["a"].unreadable.add(KEY)
        await host.start()
    assert awake(host) == {"bob"}
    assert "could not be woken" in caplog.text
    assert "ann" not in caplog.text


async def test_a_start_that_failed_can_be_tried_again(world: World) -> None:
    host = world.host()
    world.plan.then(Fault.FAIL_BEFORE)
    with pytest.raises(LedgerUnavailable):
        await host.start()
    world.plan.then(Fault.NONE, Fault.FAIL_BEFORE)
    with pytest.raises(LedgerUnavailable):
        await host.start()
    assert world.clock.sleepers == 0  # no loop is left over
    await host.start()
    await world.remember(host, "a cat")


async def test_another_embedding_model_is_refused(world: World) -> None:
    await world.stop(await world.start())
    host = world.host(embedder=EmbedderInfo("another", 8))
    with pytest.raises(EmbedderMismatch):
        await host.start()


# weather


async def test_while_the_ledger_is_away_commands_fail_and_later_ones_work(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    world.weather(1.0)
    for number in range(3):
        with pytest.raises(LedgerUnavailable):
            await host.execute(KEY, SetConsent(cohort=True), f"op-{number}")
        with pytest.raises(LedgerUnavailable):
            await host.ask(BOB, Summarise())  # nobody can be woken
        await world.pass_time(5)
    world.weather(0.0)
    await host.execute(KEY, SetConsent(cohort=True), "op-9")
    assert (await host.ask(BOB, Summarise()))["version"] == 0
    assert world.awake(host).state.settings.consent == {"cohort": True}


async def test_an_outage_longer_than_the_lease_ends_in_a_new_epoch(world: World) -> None:
    host = await world.start(lease_s=20)
    await world.say(host, "a cat")
    epoch = host.stats()["epoch"]
    world.weather(1.0)
    await world.pass_time(60)
    with pytest.raises(LeaseLost):
        await host.ask(KEY, Summarise())
    world.weather(0.0)
    await world.pass_time(30)
    assert host.stats()["epoch"] > epoch
    await until(lambda: awake(host) == {"ann"} and not world.awake(host).state.pending)
    assert await world.contents(host) == {"a cat"}


async def test_the_store_is_swept(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    await host.execute(KEY, EndSession(session_id="s1"), "end")
    assert len(await world.ledgers["a"].store.turns(KEY)) == 1
    world.clock._now += timedelta(hours=25)
    await world.pass_time(60)
    assert world.ledgers["a"].calls["sweep"] >= 2
    assert await world.ledgers["a"].store.turns(KEY) == []
    assert await world.contents(host) == {"a cat"}


async def test_housekeeping_survives_a_bug_in_one_user(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    host = await world.start(idle_s=25)
    await host.ask(KEY, Summarise())
    await host.ask(BOB, Summarise())

    async def stumble() -> None:
        raise ValueError("what the user said")

    monkeypatch.setattr(world.awake(host), "tidy", stumble)
    await world.pass_time(120)  # far longer than a lease
    assert await world.contents(host) == set()
    assert "bob" not in awake(host)


async def test_what_one_host_erased_another_one_does_not_show(world: World) -> None:
    first, second = await world.start("a"), await world.start("b")
    await world.remember(first, "a cat")
    world.distiller.open.clear()
    await world.say(first, "a dog")
    await world.pass_time(6)
    await until(lambda: world.distiller.running)
    await second.execute(KEY, EraseUser(), "erase")
    world.distiller.open.set()
    await world.pass_time(20)
    assert await world.contents(first) == set()
    assert await world.contents(second) == set()
    kept = await world.ledgers["a"].store.activate(KEY, 1)
    assert (kept.generation, kept.turns, kept.jobs) == (1, (), ())


async def test_stopping_leaves_nothing_behind(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    waking = asyncio.create_task(host.ask(BOB, Summarise()))
    world.distiller.open.clear()
    await world.say(host, "a dog")
    before = asyncio.all_tasks()
    await world.stop(host)
    await asyncio.gather(waking, return_exceptions=True)
    await asyncio.sleep(0)
    left = {task for task in before if not task.done()} - {asyncio.current_task()}
    assert left == set()
    with pytest.raises(LeaseLost):
        await host.ask(KEY, Summarise())


# what a recall leaves behind


async def test_recalls_bump_no_version_and_commit_nothing(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    commits = world.ledgers["a"].calls["commit"]
    for _ in range(5):
        answer = await host.ask(KEY, about("a cat"))
        assert answer["version"] == 2
    await world.pass_time(11)
    assert world.ledgers["a"].calls["commit"] == commits
    assert (await world.memories(host))[0]["version"] == 1
    assert (await world.memories(host))[0]["access_count"] == 5


async def test_maintenance_sees_the_recalls_of_just_now(world: World) -> None:
    host = await world.start(housekeeping_s=10**6, lease_s=10**9)
    await world.remember(host, "a cat")
    await host.ask(KEY, about("a cat"))
    await host.execute(KEY, Maintain(now=world.clock.now()), "night")
    assert (await world.memories(host))[0]["access_count"] == 1


def about_nuts(turn: Turn) -> tuple[Candidate, ...]:
    """An allergy freezes at once; a contradiction of it is asked about."""
    sign = Polarity.NEGATIVE if "not" in turn.content.split() else Polarity.POSITIVE
    return (a_candidate(turn, dimension="allergy", object="nuts", polarity=sign),)


async def question(world: World, host: UserHost) -> str:
    """Leave one open question; its id."""
    world.distiller.propose = about_nuts
    await world.remember(host, "allergic to nuts", session="s1")
    await world.remember(host, "not allergic to nuts", session="s2")
    (request,) = (await host.ask(KEY, ListConfirmations()))["confirmations"]
    request_id: str = request["id"]
    return request_id


async def test_a_question_is_handed_out_once_in_a_session(world: World) -> None:
    host = await world.start()
    request_id = await question(world, host)
    assert (await host.ask(KEY, about("nuts")))["ask"] is None  # no session, no question
    answers = [(await host.ask(KEY, about("nuts", session="s2")))["ask"] for _ in range(3)]
    assert [answer and answer["id"] for answer in answers] == [request_id, None, None]
    await until(lambda: world.awake(host).quiet)
    assert world.awake(host).state.sessions["s2"].asked
    (record,) = (await host.ask(KEY, ListConfirmations()))["confirmations"]
    assert (record["status"], record["asked_in"]) == ("open", "s2")


async def test_a_question_asked_just_before_the_end_is_not_asked_again(world: World) -> None:
    """Neither after an orderly stop, nor after a reload of the state."""
    host = await world.start()
    await question(world, host)
    ledger = world.ledgers["a"]
    ledger.let.clear()
    assert (await host.ask(KEY, about("nuts", session="s2")))["ask"] is not None
    await until(lambda: ledger.calls["commit"] > 4)
    stop = asyncio.create_task(world.stop(host))
    await world.settle()
    ledger.let.set()
    await stop
    host = await world.start()
    assert (await host.ask(KEY, about("nuts", session="s2")))["ask"] is None


async def test_what_only_the_memory_knows_survives_a_reload(world: World) -> None:
    host = await world.start(housekeeping_s=10**6, lease_s=10**9)
    await question(world, host)
    world.weather(1.0)  # the mark cannot be written
    assert (await host.ask(KEY, about("nuts", session="s2")))["ask"] is not None
    await until(lambda: not world.awake(host)._tasks)
    counted = dict(world.awake(host).state.access)
    assert counted
    world.weather(0.0)
    await host.execute(KEY, SetConsent(cohort=True), "op-1")  # reloads
    assert world.awake(host).state.access == counted
    assert (await host.ask(KEY, about("nuts", session="s2")))["ask"] is None


async def test_a_session_of_another_user_is_refused(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat", session="hers")
    with pytest.raises(SessionOwned):
        await host.ask(BOB, about("a cat", session="hers"))
    with pytest.raises(SessionOwned):
        await world.say(host, "a dog", session="hers", key=BOB)
    with pytest.raises(SessionOwned):
        await host.execute(BOB, EndSession(session_id="hers"), "end")
    assert (await host.ask(BOB, about("a cat", session="nobody's")))["memories"] == []
    assert await world.ledgers["a"].store.session_owner("app", "nobody's") is None  # and is not created
    other_app = UserKey("other", "bob")
    assert (await host.ask(other_app, about("a cat", session="hers")))["memories"] == []


async def test_users_do_not_disturb_each_other(world: World) -> None:
    host = await world.start()
    keys = [UserKey("app", f"user {number}") for number in range(12)]
    numbers = itertools.count()

    async def live(key: UserKey) -> None:
        for _ in range(3):
            await world.say(
                host, f"{key.user_id} has pet {next(numbers)}", session=f"s-{key.user_id}", key=key
            )

    await asyncio.gather(*(live(key) for key in keys))
    await world.pass_time(6)
    for key in keys:
        await until(lambda key=key: not world.awake(host, key).state.pending)  # type: ignore[misc]  # bound now
        found = await world.contents(host, key)
        assert len(found) == 3
        assert all(text.startswith(f"{key.user_id} ") for text in found)
