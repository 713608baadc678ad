"""The fault-injecting ledger breaks what its plan says, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.errors import LedgerUnavailable
from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, an_audit
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan, FaultyLedger
from hermes_memory.testing.ledger_suite import LedgerSuite
from hermes_memory.testing.sim_clock import SimClock


class TestEveryWriteTwice(LedgerSuite):
    """Every write is delivered twice; every promise holds, because every write is idempotent."""

    @pytest.fixture
    def make_ledger(self, tmp_path: Path) -> Callable[[], Ledger]:
        def make() -> Ledger:
            inner = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
            return FaultyLedger(inner, FaultPlan(rates={Fault.DUPLICATE: 1.0}), SimClock())

        return make


@pytest.fixture
def plan() -> FaultPlan:
    return FaultPlan()


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


@pytest.fixture
async def ledger(tmp_path: Path, plan: FaultPlan, clock: SimClock) -> AsyncIterator[FaultyLedger]:
    handle = FaultyLedger(SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL"), plan, clock, delay_s=3)
    await handle.open(EMBEDDER)
    yield handle
    await handle.close()


async def test_a_refused_commit_was_not_applied(ledger: FaultyLedger, plan: FaultPlan) -> None:
    plan.then(Fault.FAIL_BEFORE)
    with pytest.raises(LedgerUnavailable):
        await ledger.commit(a_commit(memories=(a_memory(),)))
    assert await ledger.operation(KEY, "op-0") is None
    assert (await ledger.commit(a_commit())).replayed is False


async def test_a_lost_reply_is_learnt_by_repeating(ledger: FaultyLedger, plan: FaultPlan) -> None:
    plan.then(Fault.FAIL_AFTER)
    with pytest.raises(LedgerUnavailable):
        await ledger.commit(a_commit(result="answer"))
    receipt = await ledger.commit(a_commit(result="answer"))
    assert (receipt.version, receipt.replayed, receipt.result) == (1, True, "answer")


async def test_a_duplicate_changes_nothing(ledger: FaultyLedger, plan: FaultPlan) -> None:
    plan.then(Fault.DUPLICATE, Fault.NONE, Fault.DUPLICATE)
    assert (await ledger.commit(a_commit(audit=(an_audit(),)))).replayed is False
    assert len(await ledger.audit(KEY, 0, 10)) == 1
    assert (await ledger.erase(KEY, 1, 1, "erase", NOW)).version == 2
    assert (await ledger.activate(KEY, 1)).version == 2


async def test_a_delayed_commit_waits_for_simulated_time(
    ledger: FaultyLedger, plan: FaultPlan, clock: SimClock
) -> None:
    plan.then(Fault.DELAY)
    task = asyncio.create_task(ledger.commit(a_commit()))
    await clock.advance(2.9)
    assert not task.done()
    await clock.advance(0.2)
    assert (await task).version == 1


async def test_a_caller_that_repeats_gets_through_any_weather(tmp_path: Path, clock: SimClock) -> None:
    rates = {Fault.FAIL_BEFORE: 0.2, Fault.FAIL_AFTER: 0.2, Fault.DUPLICATE: 0.2}
    ledger = FaultyLedger(SqliteLedger(tmp_path / "l.db", synchronous="NORMAL"), FaultPlan(7, rates), clock)
    await ledger.open(EMBEDDER)
    for version in range(60):
        while True:
            try:
                receipt = await ledger.commit(a_commit(version, audit=(an_audit(),)))
            except LedgerUnavailable:
                continue
            assert receipt.version == version + 1
            break
    assert min(ledger.injected[fault] for fault in Fault if fault is not Fault.DELAY) > 0
    await ledger.close()


def test_a_plan_is_reproducible() -> None:
    rates = {Fault.FAIL_BEFORE: 0.3, Fault.DELAY: 0.3}

    def drawn() -> list[Fault]:
        plan = FaultPlan(seed=3, rates=rates, script=[Fault.DUPLICATE])
        return [plan.draw() for _ in range(50)]

    assert drawn() == drawn()
    assert drawn()[0] is Fault.DUPLICATE
    assert set(drawn()) == {Fault.NONE, Fault.FAIL_BEFORE, Fault.DELAY, Fault.DUPLICATE}
    calm = FaultPlan(rates={Fault.DELAY: 1.0})
    calm.calm()
    assert calm.draw() is Fault.NONE
