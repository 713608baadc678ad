"""A language model that reads turns is away, busy or spent: what waits, for how long, and how it ends (simulated time)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.app.commands import EraseUser, SetPaused
from hermes_memory.core.candidate import OVER_BUDGET, ExtractionRequest, Usage
from hermes_memory.errors import ExtractionFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.ledger import Alert, Spent
from hermes_memory.runtime.counting import Prices
from hermes_memory.runtime.extraction import LONGEST_PAUSE_S
from hermes_memory.runtime.host import UserHost
from hermes_memory.testing.builders import KEY
from tests.runtime.world import Distiller, World, a_world, said, soon, until

BATCH_S, PARKED_S = 5.0, 900.0  # of the world's rules
ONE_CALL = Usage(calls=1, tokens_in=900, tokens_cached=600, tokens_out=100)
SLOW: dict[str, Any] = {
    "lease_s": 10**6,
    "housekeeping_s": 100.0,
    "idle_s": 10**6,
}  # so that hours pass quickly


@dataclass
class Reader(Distiller):
    """A distiller that takes tokens, and at the end of a user's budget does as ``broke`` says."""

    usage: Usage = ONE_CALL
    broke: str = "parks"
    down: bool = False
    reads: list[ExtractionRequest] = field(default_factory=list)  # what a model was asked

    async def distil(self, request: ExtractionRequest) -> Distilled:
        if self.down:
            self.requests.append(request)
            raise ExtractionFailed("no answer", 0.0, 40)
        if request.tokens_left == 0:
            self.requests.append(request)
            if self.broke == "parks":
                raise ExtractionFailed(OVER_BUDGET)
            found = await super().distil(request)
            return replace(found, extraction=replace(found.extraction, fell_back=OVER_BUDGET))
        found = await super().distil(request)
        self.reads.append(request)
        return replace(found, extraction=replace(found.extraction, usage=self.usage))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        made.distiller = Reader()
        yield made


def reader(world: World) -> Reader:
    assert isinstance(world.distiller, Reader)
    return world.distiller


async def job(world: World, job_id: str, name: str = "a") -> tuple[str, str | None]:
    found = await world.ledgers[name].store.job(KEY.namespace, job_id)
    assert found is not None
    return found[1].status.value, found[1].reason


async def alerts(world: World, name: str = "a") -> list[Alert]:
    found: list[Alert] = await world.ledgers[name].store.alerts(KEY.namespace, "", 99)
    return found


async def read(world: World, host: UserHost) -> None:
    await until(lambda: not world.awake(host).state.pending)
    await world.settle()


# pauses


@pytest.mark.parametrize(
    ("asked_s", "pause_s"), [(0.5, 2.0), (45.0, 45.0), (120.0, 120.0), (10**9, LONGEST_PAUSE_S)]
)
async def test_a_pause_that_the_model_asks_for_is_kept(asked_s: float, pause_s: float, world: World) -> None:
    host = await world.start(lease_s=10_000)
    reader(world).failures = [ExtractionFailed("busy", asked_s)]
    job_id = await world.say(host, "a cat")
    await world.pass_time(BATCH_S + 0.1)
    await until(lambda: len(world.distiller.requests) == 1)
    await world.pass_time(pause_s - 0.5)
    assert len(world.distiller.requests) == 1
    await world.pass_time(1.0)
    await read(world, host)
    assert await job(world, job_id) == ("done", None)


async def test_the_last_try_is_told_so(world: World) -> None:
    host = await world.start()
    reader(world).failures = [ExtractionFailed("no answer")] * 3
    await world.say(host, "a cat")
    await world.pass_time(30)
    assert [request.last_try for request in world.distiller.requests] == [False, False, True]


# parked


async def parked(world: World, host: UserHost, *texts: str) -> str:
    """Turns that a model which is away could not read; the job."""
    reader(world).down = True
    job_id = await world.say(host, *texts)
    await world.pass_time(30)
    assert await job(world, job_id) == ("failed", "extraction failed: no answer")
    reader(world).down = False
    return job_id


async def test_what_is_parked_is_read_when_the_model_is_back_and_its_alert_goes(world: World) -> None:
    host = await world.start(**SLOW)
    job_id = await parked(world, host, "a cat")
    assert [(alert.kind, alert.job_id) for alert in await alerts(world)] == [("extraction_parked", job_id)]
    tries = len(world.distiller.requests)
    host.measure()
    assert world.counts.of["hermes_extraction_parked_turns"] == 1
    await world.pass_time(PARKED_S - 60)
    assert len(world.distiller.requests) == tries
    await world.pass_time(60)
    await read(world, host)
    assert await job(world, job_id) == ("done", None)
    assert (await alerts(world), await world.contents(host)) == ([], {"a cat"})
    host.measure()
    assert world.counts.of["hermes_extraction_parked_turns"] == 0


async def test_a_model_that_stays_away_is_asked_once_each_time_and_new_turns_pass(world: World) -> None:
    host = await world.start(**SLOW)
    job_id = await parked(world, host, "a cat")
    reader(world).down = True
    before = len(world.distiller.requests)
    await world.pass_time(PARKED_S * 2 + 10)
    assert [r.last_try for r in world.distiller.requests[before:]] == [True, True]
    assert await job(world, job_id) == ("failed", "extraction failed: no answer")
    reader(world).down = False
    await world.remember(host, "a dog")
    assert await world.contents(host) == {"a dog"}  # before the other's turn comes again
    await world.pass_time(PARKED_S)
    await read(world, host)
    assert await world.contents(host) == {"a dog", "a cat"}
    assert len(await alerts(world)) == 0


async def test_who_sleeps_over_it_is_woken_by_the_host(world: World) -> None:
    host = await world.start(**{**SLOW, "idle_s": 60.0})
    job_id = await parked(world, host, "a cat")
    await world.pass_time(250)
    assert KEY not in host._awake
    await world.pass_time(PARKED_S)  # it is woken, read and asleep again
    assert await job(world, job_id) == ("done", None)
    assert await alerts(world) == []


async def test_a_host_that_starts_reads_what_another_parked(world: World) -> None:
    host = await world.start(**SLOW)
    job_id = await parked(world, host, "a cat")
    await world.crash(host)
    host = await world.start("b")
    await world.pass_time(BATCH_S + 1)
    await read(world, host)
    assert (await job(world, job_id, "b"), await alerts(world, "b")) == (("done", None), [])


async def test_a_job_stays_failed_until_all_of_it_is_read(world: World) -> None:
    """Four turns are two batches: the first is parked, the second is read."""
    host = await world.start()
    reader(world).failures = [ExtractionFailed("no answer")] * 3
    job_id = await world.say(host, "a cat", "a dog", "a fish", "a bird")
    await world.pass_time(40)
    await until(lambda: len(world.awake(host).state.pending) == 3)
    assert await job(world, job_id) == ("failed", "extraction failed: no answer")
    record = await soon(asyncio.create_task(host.wait(KEY, job_id, 60)))
    assert record["status"] == "failed"
    await world.pass_time(PARKED_S)
    await read(world, host)
    assert await job(world, job_id) == ("done", None)
    assert len(await world.memories(host)) == 4
    assert await alerts(world) == []


async def test_who_pauses_leaves_no_alert(world: World) -> None:
    host = await world.start(**SLOW)
    job_id = await parked(world, host, "a cat")
    await host.execute(KEY, SetPaused(paused=True), "pause")
    assert (await job(world, job_id), await alerts(world)) == (("done", "paused"), [])
    asked = len(world.distiller.requests)
    await world.pass_time(PARKED_S * 2)
    assert len(world.distiller.requests) == asked


# a ledger that is away meanwhile


async def test_what_was_read_is_not_read_again_because_the_ledger_was_away(world: World) -> None:
    host = await world.start(lease_s=10_000)
    world.distiller.open.clear()
    job_id = await world.say(host, "a cat")
    await world.pass_time(BATCH_S + 0.1)
    await until(lambda: world.distiller.running == 1)
    world.weather(1.0)
    world.distiller.open.set()
    await world.pass_time(100)
    world.weather(0.0)
    await world.pass_time(70)
    await read(world, host)
    assert await job(world, job_id) == ("done", None)
    assert len(reader(world).reads) == 1
    assert world.awake(host).state.settings.spent.tokens == 1_000


# the budget


def spent(world: World, host: UserHost) -> Spent:
    return world.awake(host).state.settings.spent


async def test_tokens_are_counted_in_the_commits_that_are_made_anyway(world: World) -> None:
    host = await world.start()
    reader(world).failures = [ExtractionFailed("no answer", 0.0, 70)]
    await world.say(host, "a cat")
    before = world.ledgers["a"].calls["commit"]
    await world.pass_time(20)
    await read(world, host)
    assert spent(world, host) == Spent("2026-01-01", 1_070)
    assert world.ledgers["a"].calls["commit"] == before + 2  # the failure, the settlement
    told = world.counts.told
    kinds = {
        kind: told["hermes_extraction_tokens_total", kind] for kind in ("read", "cached", "written", "failed")
    }
    assert kinds == {"read": 300, "cached": 600, "written": 100, "failed": 70}
    await world.crash(host)
    host = await world.start("b")
    await host.wake(KEY)
    assert spent(world, host) == Spent("2026-01-01", 1_070)


async def test_an_erased_users_count_goes_too(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    assert spent(world, host).tokens
    await host.execute(KEY, EraseUser(), "erase")
    assert spent(world, host) == Spent()


BUDGET: dict[str, Any] = {"tokens_per_day": 1_500}


async def test_what_is_left_is_told_and_then_the_day_is_waited_for(world: World) -> None:
    """The world begins at noon UTC; the day that counts is the user's."""
    host = await world.start(batch=BUDGET, **{**SLOW, "housekeeping_s": 3_600.0})
    for text in ("a cat", "a dog"):
        await world.remember(host, text)
    assert [request.tokens_left for request in world.distiller.requests] == [1_500, 500]
    job_id = await world.say(host, "a fish")
    await world.pass_time(60)
    assert await job(world, job_id) == ("failed", OVER_BUDGET)
    assert len(await alerts(world)) == 1
    assert world.distiller.requests[-1].tokens_left == 0
    asked = len(world.distiller.requests)
    await world.pass_time(11.9 * 3_600)
    assert len(world.distiller.requests) == asked  # not before midnight
    await world.pass_time(0.2 * 3_600)
    await read(world, host)
    assert await job(world, job_id) == ("done", None)
    assert world.distiller.requests[-1].tokens_left == 1_500
    assert spent(world, host) == Spent("2026-01-02", 1_000)
    assert await alerts(world) == []


async def test_the_day_is_the_one_where_the_user_is(world: World) -> None:
    """At noon UTC on the first it is already the second in Kiritimati."""
    host = await world.start(batch=BUDGET)
    await in_zone(world, host, "Pacific/Kiritimati", "a cat")
    assert spent(world, host) == Spent("2026-01-02", 1_000)
    await in_zone(world, host, "Pacific/Pago_Pago", "a dog")  # no day back to spend anew
    assert spent(world, host) == Spent("2026-01-02", 2_000)
    await in_zone(world, host, "no/such", "a fish")
    assert world.distiller.requests[-1].tokens_left == 0


async def in_zone(world: World, host: UserHost, zone: str, text: str) -> None:
    accepted = await host.execute(KEY, replace(said(text), timezone=zone), f"op-{text}")
    await soon(asyncio.create_task(host.wait(KEY, accepted["job_id"], 60)))


async def test_the_rules_read_on_where_they_are_the_fall_back(world: World) -> None:
    reader(world).broke = "rules"
    host = await world.start(batch=BUDGET)
    for text in ("a cat", "a dog", "a fish"):
        await world.remember(host, text)
    assert len(reader(world).reads) == 2
    assert await world.contents(host) == {"a cat", "a dog", "a fish"}
    assert world.counts.told["hermes_extraction_fallbacks_total", OVER_BUDGET] == 1


async def test_without_a_budget_nothing_is_said_of_it(world: World) -> None:
    host = await world.start()
    await world.remember(host, "a cat")
    assert world.distiller.requests[-1].tokens_left is None


# what it costs


async def test_what_a_reading_costs_is_counted(world: World) -> None:
    host = await world.start(batch={"prices": Prices(read=2.0, cached=0.5, written=10.0)})
    reader(world).usage = Usage(
        calls=2, tokens_in=900, tokens_cached=600, tokens_out=100, invalid=1, repairs=1, opinions=3
    )
    await world.remember(host, "a cat", "a dog", "a fish")
    of = world.counts.of
    assert of["hermes_extraction_cost_total"] == pytest.approx((300 * 2 + 600 * 0.5 + 100 * 10) / 1e6)
    named = ("calls", "invalid_answers", "repairs", "second_opinions")
    assert [of[f"hermes_extraction_{name}_total"] for name in named] == [2, 1, 1, 3]
    assert of["hermes_extraction_turns_per_call"] == of["hermes_extraction_tokens_per_turn"] == 1


async def test_a_reading_without_a_model_counts_nothing_of_one(world: World) -> None:
    reader(world).usage = Usage()
    host = await world.start()
    await world.remember(host, "a cat")
    assert not [name for name in world.counts.of if "call" in name or "token" in name or "cost" in name]
    assert spent(world, host) == Spent()


# an erasure meanwhile


@pytest.mark.parametrize("speaks_again", [False, True])
async def test_what_fails_after_an_erasure_leaves_nothing_of_it(speaks_again: bool, world: World) -> None:
    """The places of an erased user come again: a failed try of before says nothing of them."""
    host = await world.start(batch={"attempts": 1})
    reader(world).failures = [ExtractionFailed("no answer", 0.0, 70)]
    world.distiller.open.clear()
    await world.say(host, "a cat")
    await world.pass_time(BATCH_S + 0.1)
    await until(lambda: world.distiller.running == 1)
    await host.execute(KEY, EraseUser(), "erase")
    job_id = await world.say(host, "a dog") if speaks_again else ""
    version = world.awake(host).state.version
    world.distiller.open.set()
    await until(lambda: not world.distiller.running)
    await world.settle()
    assert (spent(world, host), world.awake(host).state.version) == (Spent(), version)
    assert await alerts(world) == []
    if speaks_again:
        await world.pass_time(BATCH_S + 0.1)
        await read(world, host)
        assert await job(world, job_id) == ("done", None)


async def test_what_was_settled_is_held_no_longer(world: World) -> None:
    """Nor what an erased user said: the words of a batch are a host's for as long as it is read."""
    host = await world.start(batch={"attempts": 1})
    world.distiller.open.clear()
    await world.say(host, "a cat")
    await world.pass_time(BATCH_S + 0.1)
    await until(lambda: world.distiller.running == 1)
    await host.execute(KEY, EraseUser(), "erase")
    world.distiller.open.set()
    await until(lambda: not world.distiller.running)
    await world.settle()
    assert host._awake[KEY].extraction._unsettled is None
    await world.remember(host, "a dog")
    await world.settle()
    assert host._awake[KEY].extraction._unsettled is None
