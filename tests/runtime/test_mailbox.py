"""One user's mailbox: one command at a time, reads that never wait, and nothing lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_memory.app.commands import (
    AnswerChallenge,
    Delete,
    Edit,
    EraseUser,
    FreezeMemory,
    GetMemory,
    ListAudit,
    RequestUnfreeze,
    SetConsent,
    SetPaused,
    Summarise,
)
from hermes_memory.errors import (
    ChallengeRefused,
    Fenced,
    LeaseLost,
    LedgerUnavailable,
    NotFound,
    Overloaded,
    VersionConflict,
)
from hermes_memory.testing.builders import KEY
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan
from tests.runtime.world import World, a_world, about, said, soon, until, users


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def test_commands_run_one_at_a_time_in_the_order_they_came(world: World) -> None:
    host = await world.start()
    ledger = world.ledgers["a"]
    ledger.let.clear()
    texts = [f"turn {number}" for number in range(6)]
    tasks = [
        asyncio.create_task(host.execute(KEY, said(text), f"op-{number}"))
        for number, text in enumerate(texts)
    ]
    await until(lambda: ledger.calls["commit"] == 1)
    await world.settle()
    assert ledger.calls["commit"] == 1  # the others wait
    ledger.let.set()
    await asyncio.gather(*tasks)
    assert ledger.versions == [1, 2, 3, 4, 5, 6]
    assert [turn.content for turn in await ledger.store.turns(KEY)] == texts
    assert [turn.index for turn in await ledger.store.turns(KEY)] == list(range(6))


async def test_reads_pass_a_commit_under_way_and_see_the_last_committed_state(world: World) -> None:
    host = await world.start()
    job = await world.remember(host, "a cat")
    ledger = world.ledgers["a"]
    ledger.let.clear()
    slow = asyncio.create_task(host.execute(KEY, Delete(memory_id=job["changes"][0]["memory_id"]), "delete"))
    await until(lambda: ledger.calls["commit"] == 3)
    assert await world.contents(host) == {"a cat"}
    assert (await host.ask(KEY, about("a cat")))["memories"][0]["content"] == "a cat"
    assert not slow.done()
    ledger.let.set()
    await slow
    assert await world.contents(host) == set()


async def test_a_full_mailbox_turns_away_and_then_serves_again(world: World) -> None:
    host = await world.start(max_waiting=3)
    ledger = world.ledgers["a"]
    await host.ask(KEY, Summarise())
    ledger.let.clear()
    tasks = [asyncio.create_task(host.execute(KEY, said(f"turn {n}"), f"op-{n}")) for n in range(3)]
    await until(lambda: ledger.calls["commit"] == 1)
    with pytest.raises(Overloaded) as refused:
        await host.execute(KEY, said("one too many"), "op-3")
    assert refused.value.retry_after_s > 0
    await host.ask(KEY, Summarise())  # reads are not turned away
    ledger.let.set()
    await asyncio.gather(*tasks)
    await host.execute(KEY, said("now there is room"), "op-4")
    assert len(await ledger.store.turns(KEY)) == 4


async def test_the_extraction_s_own_work_is_not_turned_away(world: World) -> None:
    """A full mailbox must not fail the settle that would empty the queue."""
    host = await world.start(max_waiting=1)
    world.distiller.open.clear()
    accepted = await host.execute(KEY, said("a cat"), "op-1")
    wait = asyncio.create_task(host.wait(KEY, accepted["job_id"], 60))
    await until(lambda: world.distiller.running)
    ledger = world.ledgers["a"]
    ledger.let.clear()
    slow = asyncio.create_task(host.execute(KEY, SetConsent(cohort=True), "op-2"))
    await until(lambda: ledger.calls["commit"] == 2)
    world.distiller.open.set()
    await until(lambda: world.awake(host)._waiting == 2)
    ledger.let.set()
    await slow
    job = await soon(wait)
    assert (job["status"], job["attempts"]) == ("done", 0)


async def test_two_hosts_on_one_user_lose_nothing(world: World) -> None:
    """A zombie host, a resharding: the loser of each race reloads and replays, or lets go of the user."""
    first, second = await world.start("a"), await world.start("b")
    hosts = {"a": users(first), "b": users(second)}
    told: list[int] = []

    async def write(name: str) -> None:
        for number in range(8):
            for _ in range(20):
                try:
                    await hosts[name].execute(
                        KEY, said(f"{name}{number}", session=name), f"op-{name}-{number}"
                    )
                except (Fenced, LeaseLost):
                    continue
                break
            told.append((await hosts[name].ask(KEY, Summarise()))["version"])

    await asyncio.gather(write("a"), write("b"))
    kept = await world.ledgers["a"].store.turns(KEY)
    wanted = {f"{name}{number}" for name in "ab" for number in range(8)}
    assert sorted(turn.content for turn in kept) == sorted(wanted)
    versions = sorted(world.ledgers["a"].versions + world.ledgers["b"].versions)
    assert versions == list(range(1, versions[-1] + 1))  # each version was given once
    assert told[-1] == max(told)


async def test_a_host_that_lost_the_user_reloads_before_it_answers_again(world: World) -> None:
    first, second = await world.start("a"), await world.start("b")
    await first.execute(KEY, SetConsent(cohort=True), "op-1")
    await second.execute(KEY, SetConsent(cohort=False), "op-2")  # takes the user over
    with pytest.raises(Fenced):
        await first.execute(KEY, SetConsent(sensitive=True), "op-3")
    assert first.stats()["awake"] == 0
    await users(first).execute(KEY, SetConsent(sensitive=True), "op-3")
    assert (await first.ask(KEY, Summarise()))["version"] == 3
    assert world.awake(first).state.settings.consent == {"cohort": False, "sensitive": True}


async def test_commands_that_wait_behind_a_fenced_one_move_to_the_next_actor(world: World) -> None:
    """None of them is committed by an actor that nobody extracts for any more."""
    first, second = await world.start("a"), await world.start("b")
    await first.execute(KEY, said("one"), "op-1")
    await second.execute(KEY, said("two"), "op-2")
    local = users(first)
    await asyncio.gather(*(local.execute(KEY, said(f"more {n}"), f"op-more-{n}") for n in range(4)))
    user = world.awake(first)
    assert not user.closed
    assert {turn.content for turn in user.state.pending} == {"one", "two", *(f"more {n}" for n in range(4))}


async def test_a_lost_race_reloads_and_decides_again(world: World) -> None:
    """Two writers on one epoch, as after a failover that both survived: exactly one conflict, nothing lost."""
    host = await world.start()
    await host.execute(KEY, SetConsent(cohort=True), "op-1")
    user = world.awake(host)
    behind = await type(user).wake(KEY, user.around)  # a second actor, on the same version
    await host.execute(KEY, SetConsent(sensitive=True), "op-2")
    await behind.execute(SetPaused(paused=True), "op-3")
    assert (behind.state.version, behind.state.settings.paused) == (3, True)
    assert behind.state.settings.consent == {"cohort": True, "sensitive": True}
    assert world.ledgers["a"].calls["commit"] == 4  # three and one conflict
    assert world.ledgers["a"].versions == [1, 2, 3]


async def test_a_race_that_is_always_lost_ends_as_overload(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await world.start()

    async def never(commit: object) -> None:
        raise VersionConflict(0, 1)

    monkeypatch.setattr(world.ledgers["a"], "commit", never)
    with pytest.raises(Overloaded):
        await host.execute(KEY, SetConsent(cohort=True), "op-1")


async def test_the_same_operation_again_changes_nothing(world: World) -> None:
    host = await world.start()
    first = await host.execute(KEY, said("a cat"), "op-1")
    assert await host.execute(KEY, said("a cat"), "op-1", again=True) == first
    assert await host.execute(KEY, said("a cat"), "op-1") == {**first, "accepted": 0, "duplicates": 1}
    await host.execute(KEY, SetConsent(cohort=True), "op-2")
    await host.execute(KEY, SetConsent(cohort=False), "op-3")
    assert await host.execute(KEY, SetConsent(cohort=True), "op-2", again=True) == {
        "consent": {"cohort": True}
    }
    assert await host.execute(KEY, SetConsent(cohort=True), "op-2") == {"consent": {"cohort": True}}
    assert (await host.ask(KEY, Summarise()))["version"] == 3
    assert world.awake(host).state.settings.consent == {"cohort": False}
    assert len(await world.ledgers["a"].store.turns(KEY)) == 1


@pytest.mark.parametrize("fault", [Fault.FAIL_AFTER, Fault.FAIL_BEFORE])
async def test_after_a_lost_reply_the_same_operation_is_done_once(world: World, fault: Fault) -> None:
    host = await world.start()
    await host.execute(KEY, said("one"), "op-1")
    world.plan.then(Fault.NONE, fault)  # the operation is looked up, then the commit
    with pytest.raises(LedgerUnavailable):
        await host.execute(KEY, said("two"), "op-2")
    answer = await host.execute(KEY, said("two"), "op-2", again=True)
    assert (answer["accepted"], answer["duplicates"]) == (1, 0)
    assert [turn.content for turn in await world.ledgers["a"].store.turns(KEY)] == ["one", "two"]
    assert (await host.ask(KEY, Summarise()))["version"] == 2


async def test_a_lost_reply_is_noticed_by_the_next_read(world: World) -> None:
    host = await world.start()
    job = await world.remember(host, "a cat")
    world.plan.then(Fault.NONE, Fault.FAIL_AFTER)  # the raw turns are read, then the commit
    with pytest.raises(LedgerUnavailable):
        await host.execute(KEY, Delete(memory_id=job["changes"][0]["memory_id"]), "delete")
    assert await world.contents(host) == set()


async def test_a_lost_reply_to_an_ingest_does_not_leave_the_turn_unread(world: World) -> None:
    """Nobody asks again; housekeeping finds out that the turn is there."""
    host = await world.start()
    await host.ask(KEY, Summarise())
    world.plan.then(Fault.NONE, Fault.NONE, Fault.FAIL_AFTER)
    with pytest.raises(LedgerUnavailable):
        await host.execute(KEY, said("a cat"), "op-1")
    await world.pass_time(30)
    await until(lambda: world.distiller.read == [["a cat"]])
    await world.pass_time(10)
    assert await world.contents(host) == {"a cat"}


async def test_waiting_for_a_job_whose_acceptance_was_lost(world: World) -> None:
    host = await world.start()
    world.plan.then(Fault.NONE, Fault.NONE, Fault.NONE, Fault.FAIL_AFTER)
    with pytest.raises(LedgerUnavailable):
        await host.execute(KEY, said("a cat"), "op-1")
    accepted = await host.execute(KEY, said("a cat"), "op-1", again=True)
    job = await host.wait(KEY, accepted["job_id"], 60)
    assert job is not None
    assert job["status"] == "done"


async def test_a_cancelled_caller_leaves_state_and_ledger_in_step(world: World) -> None:
    host = await world.start()
    await host.execute(KEY, SetConsent(cohort=True), "op-1")
    ledger = world.ledgers["a"]
    ledger.let.clear()
    before_the_ledger = asyncio.create_task(host.execute(KEY, SetConsent(cohort=False), "op-2"))
    waiting = asyncio.create_task(host.execute(KEY, SetConsent(sensitive=True), "op-3"))
    await until(lambda: ledger.calls["commit"] == 2)
    before_the_ledger.cancel()
    await asyncio.gather(before_the_ledger, return_exceptions=True)
    ledger.let.set()
    await waiting
    assert world.awake(host).state.settings.consent == {"cohort": True, "sensitive": True}

    inside_the_ledger = asyncio.create_task(host.execute(KEY, SetConsent(cohort=False), "op-4"))
    await until(lambda: ledger.calls["commit"] == 4)
    await asyncio.sleep(0)
    inside_the_ledger.cancel()
    await asyncio.gather(inside_the_ledger, return_exceptions=True)
    await host.execute(KEY, SetConsent(cohort=False), "op-4", again=True)  # whether or not it was applied
    await host.execute(KEY, SetPaused(paused=True), "op-5")
    state = world.awake(host).state
    assert (state.version, dict(state.settings.consent)) == (4, {"cohort": False, "sensitive": True})
    kept = await ledger.store.activate(KEY, world.awake(host).around.epoch)
    assert (kept.version, kept.settings) == (state.version, state.settings)


async def test_a_cancelled_caller_who_waits_gives_the_place_back(world: World) -> None:
    host = await world.start(max_waiting=2)
    ledger = world.ledgers["a"]
    await host.ask(KEY, Summarise())
    ledger.let.clear()
    first = asyncio.create_task(host.execute(KEY, said("one"), "op-1"))
    second = asyncio.create_task(host.execute(KEY, said("two"), "op-2"))
    await until(lambda: ledger.calls["commit"] == 1)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    third = asyncio.create_task(host.execute(KEY, said("three"), "op-3"))
    await asyncio.sleep(0)
    ledger.let.set()
    await asyncio.gather(first, third)
    assert [turn.content for turn in await ledger.store.turns(KEY)] == ["one", "three"]


async def test_any_weather_and_nothing_is_lost_or_doubled(world: World) -> None:
    host = await world.start()
    rates = {Fault.FAIL_BEFORE: 0.15, Fault.FAIL_AFTER: 0.15, Fault.DUPLICATE: 0.15}
    world.ledgers["a"].faulty._plan = FaultPlan(7, rates)

    async def persist(number: int) -> None:
        again = False
        while True:
            try:
                await host.execute(
                    KEY, said(f"turn {number}", session=f"s{number % 3}"), f"op-{number}", again
                )
            except LedgerUnavailable:
                again = True
            else:
                return

    for start in range(0, 24, 4):
        await asyncio.gather(*(persist(number) for number in range(start, start + 4)))
    world.weather(0.0)
    assert min(world.ledgers["a"].faulty.injected[fault] for fault in rates) > 0
    kept = await world.ledgers["a"].store.turns(KEY)
    assert sorted(turn.content for turn in kept) == sorted(f"turn {number}" for number in range(24))
    places = [(turn.session_id, turn.index) for turn in kept]
    assert sorted(places) == [(f"s{s}", i) for s in range(3) for i in range(8)]


async def test_an_error_that_was_committed_is_an_error_again(world: World) -> None:
    """A wrong answer to a challenge counts as a try; after a lost reply it is refused again, and counted once."""
    host = await world.start()
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    await host.execute(KEY, FreezeMemory(memory_id=memory_id, reason="sure"), "freeze")
    request = RequestUnfreeze(memory_id=memory_id, reason="wrong", source_session_id="s1")
    challenge = await host.execute(KEY, request, "ask")
    wrong = AnswerChallenge(memory_id=memory_id, challenge_id=challenge["challenge_id"], answer="no")
    for again in (False, True):
        with pytest.raises(ChallengeRefused):
            await host.execute(KEY, wrong, "answer", again=again)
    (kept,) = world.awake(host).state.settings.challenges.values()
    assert kept["tries"] == 1


async def test_erasing_again_gives_the_first_receipt(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    world.plan.then(Fault.FAIL_AFTER)
    with pytest.raises(LedgerUnavailable):
        await host.execute(KEY, EraseUser(), "erase")
    assert await world.contents(host) == set()  # a read does not show what may be gone
    receipt = await host.execute(KEY, EraseUser(), "erase", again=True)
    assert (receipt["erased"]["memories"], receipt["remaining"]) == (1, 0)


async def test_a_late_retry_revives_nobody(world: World) -> None:
    host = await world.start()
    first = await host.execute(KEY, said("a cat"), "op-1")
    await host.execute(KEY, EraseUser(), "erase")
    for again in (False, True):
        answer = await host.execute(KEY, said("a cat"), "op-1", again=again)
        assert (answer["accepted"], answer["duplicates"]) == (0, 1)
    with pytest.raises(NotFound):
        await host.wait(KEY, first["job_id"], 60)
    store = world.ledgers["a"].store
    assert await store.users(None, "", 10) == []
    assert await store.session_owner(KEY.namespace, "s1") is None
    await world.remember(host, "a dog", session="s2")  # who comes back is welcome
    assert await world.contents(host) == {"a dog"}


async def test_an_edit_reads_with_the_model_before_its_turn(world: World) -> None:
    """Nobody's command waits for a model, not even behind an edit."""
    host = await world.start()
    job = await world.remember(host, "a cat")
    memory_id = job["changes"][0]["memory_id"]
    world.distiller.open.clear()
    edit = Edit(memory_id=memory_id, expected_version=1, content="I have a dog")
    slow = asyncio.create_task(host.execute(KEY, edit, "edit"))
    await until(lambda: world.distiller.running)
    await host.execute(KEY, SetPaused(paused=True), "pause")
    assert not slow.done()
    world.distiller.open.set()
    assert (await slow)["content"] == "I have a dog"
    assert (await host.ask(KEY, GetMemory(memory_id=memory_id)))["version"] == 2


async def test_every_change_is_counted_and_audited_once(world: World) -> None:
    host = await world.start()
    world.plan.then(*[Fault.DUPLICATE] * 8)
    await world.remember(host, "a cat")
    audit = await host.ask(KEY, ListAudit())
    assert [(entry["op"], entry["actor"]) for entry in audit["audit"]] == [("added", "extraction")]
    assert world.counts.of["hermes_changes_total"] == 1
