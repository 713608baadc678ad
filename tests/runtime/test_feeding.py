"""The long-term index learns what the ledger says: in order, at least once, whatever fails, each user apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Status
from hermes_memory.errors import IndexUnavailable, LedgerUnavailable
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import OutboxEntry
from hermes_memory.runtime.feeding import KEPT_AFTER_S, Feeder, FeedRules
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector
from hermes_memory.testing.faulty_index import FaultyIndex
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan, FaultyLedger
from hermes_memory.testing.sim_clock import SimClock
from tests.dict_index import DictIndex
from tests.runtime.world import Counts, until

BOB = UserKey("app", "bob")
RULES = FeedRules(
    batch=4, together=2, linger_s=0.05, pause_s=5.0, attempts=3, backoff_s=1.0, backoff_max_s=8.0
)


class Bench:
    """A ledger, an index that can fail, and a feeder between them, in simulated time."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.counts, self.inner, self.plan = SimClock(), Counts(), DictIndex(), FaultPlan()
        self.store = SqliteLedger(folder / "ledger.db", synchronous="NORMAL")
        self.ledger = FaultyLedger(self.store, self.plan, self.clock)
        self.index = FaultyIndex(self.inner)
        self.owned: set[UserKey] | None = None
        self.awake: set[UserKey] = set()
        self.versions: dict[UserKey, int] = {}
        self.feeder = self.a_feeder(self.index)

    def a_feeder(self, index: VectorIndex) -> Feeder:
        return Feeder(
            self.ledger, index, lambda text: tuple(text.split()), RULES, self.clock, self.counts,
            owns=lambda key: self.owned is None or key in self.owned, awake=self.awake.__contains__,
        )  # fmt: skip

    async def put(self, *ids: str, key: UserKey = KEY, **changes: object) -> None:
        """Commit memories with vectors and what the index must learn of them."""
        memories = tuple(a_memory(id=id_, user_id=key.user_id, **changes) for id_ in ids)
        entries = tuple(OutboxEntry(op="put", memory_id=id_) for id_ in ids)
        await self.commit(key, memories=memories, vectors={id_: a_vector() for id_ in ids}, outbox=entries)

    async def forget(self, *ids: str, key: UserKey = KEY) -> None:
        entries = tuple(OutboxEntry(op="remove", memory_id=id_) for id_ in ids)
        await self.commit(key, deleted=ids, outbox=entries)

    async def commit(self, key: UserKey, **what: object) -> None:
        version = self.versions.get(key, 0)
        await self.store.commit(a_commit(version, key=key, operation_id=f"op-{version}", **what))
        self.versions[key] = version + 1

    async def erase(self, key: UserKey = KEY) -> None:
        version = self.versions.get(key, 0)
        receipt = await self.store.erase(key, version, 1, f"erase-{version}", NOW)
        self.versions[key] = receipt.version

    async def waiting(self, key: UserKey = KEY, *, buried: bool = False) -> list[tuple[str, str]]:
        entries = await self.store.read_outbox(key, 99, buried=buried)
        return [(entry.memory_id, entry.reason or "") for entry in entries]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    await made.store.open(EMBEDDER)
    yield made
    await made.store.close()


@pytest.fixture
async def running(bench: Bench) -> AsyncIterator[Bench]:
    """The same with the feeder at work."""
    task = asyncio.create_task(bench.feeder.run())
    await until(lambda: bench.clock.sleepers)
    yield bench
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def pass_time(bench: Bench, seconds: float, true: Callable[[], Awaitable[bool]]) -> None:
    """Let time pass in small steps, giving the ledger's threads theirs, until it is true; fails if it never is."""
    left = seconds
    while not await true():
        assert left > 0, "it never came true"
        await bench.clock.advance(0.05)
        await asyncio.sleep(0.001)
        left -= 0.05


async def there(bench: Bench, key: UserKey, ids: list[str]) -> bool:
    return await bench.inner.ids(key) == ids


async def is_true(value: bool) -> bool:
    return value


async def test_the_index_learns_what_was_committed(bench: Bench) -> None:
    await bench.put("a", "b")
    await bench.put("c", key=BOB)
    await bench.put("b", status=Status.ARCHIVED, archived_at=NOW)
    await bench.forget("a")
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["b"]
    assert bench.inner.of[KEY]["b"].archived
    assert await bench.inner.ids(BOB) == ["c"]
    assert await bench.store.outbox_users("", 9) == []
    assert bench.counts.of["hermes_outbox_delivered_total"] == 5


async def test_more_than_a_batch_is_delivered_at_once(bench: Bench) -> None:
    ids = [f"m{number:02}" for number in range(RULES.batch * 3)]
    await bench.put(*ids)
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ids
    assert await bench.waiting() == []


async def test_what_was_said_of_one_memory_is_written_once(bench: Bench) -> None:
    for _ in range(3):
        await bench.put("a")
    await bench.feeder.feed_all()
    assert bench.index.calls["put"] == 1


async def test_a_host_feeds_its_own_users(bench: Bench) -> None:
    await bench.put("a")
    await bench.put("b", key=BOB)
    bench.owned = {BOB}
    await bench.feeder.feed_all()
    assert list(bench.inner.of) == [BOB]
    assert await bench.waiting() == [("a", "")]


async def test_an_erased_user_is_dropped_before_anything_else(bench: Bench) -> None:
    await bench.put("a")
    await bench.feeder.feed_all()
    await bench.erase()
    assert await bench.waiting() == [("", "")]
    await bench.feeder.feed_all()
    assert KEY not in bench.inner.of
    await bench.erase()
    await bench.put("b")
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["b"]
    assert await bench.waiting() == []


async def test_a_crash_between_delivery_and_acknowledgement_delivers_again(bench: Bench) -> None:
    await bench.put("a", "b")
    bench.plan.then(
        *[Fault.NONE] * 7, Fault.FAIL_BEFORE
    )  # users, entries, then twice the reading, then dead ones
    with pytest.raises(LedgerUnavailable):
        await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["a", "b"]
    assert len(await bench.waiting()) == 2
    await bench.a_feeder(bench.index).feed_all()
    assert await bench.inner.ids(KEY) == ["a", "b"]
    assert await bench.waiting() == []


# what it cannot take


async def test_what_is_refused_is_set_aside_and_the_others_go_on(bench: Bench) -> None:
    bench.index.refuses = {"b": "too_large"}
    await bench.put("a", "b", "c")
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["a", "c"]
    assert await bench.waiting() == []
    assert await bench.waiting(buried=True) == [("b", "too_large")]
    assert bench.counts.of["hermes_outbox_buried_total"] == 1
    assert bench.counts.of["hermes_outbox_delivered_total"] == 2


async def test_a_dead_letter_is_forgotten_once_its_memory_is_delivered(bench: Bench) -> None:
    bench.index.refuses = {"a": "too_large", "b": "too_large"}
    await bench.put("a", "b")
    await bench.feeder.feed_all()
    bench.index.refuses.clear()
    await bench.put("a", content="shorter")
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["a"]
    assert await bench.waiting(buried=True) == [("b", "too_large")]
    await bench.forget("b")
    await bench.feeder.feed_all()
    assert await bench.waiting(buried=True) == []


async def test_what_fails_for_a_reason_that_nobody_foresaw_keeps_its_neighbours_not_waiting(
    bench: Bench,
) -> None:
    bench.index.chokes = {"b"}
    await bench.put("a", "b", "c")
    await bench.put("d", key=BOB)
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["a", "c"]
    assert await bench.inner.ids(BOB) == ["d"]
    assert await bench.waiting() == [("b", "")]


async def test_it_is_tried_again_after_a_pause_and_set_aside_in_the_end(bench: Bench) -> None:
    bench.index.chokes = {"b"}
    await bench.put("b")
    for _ in range(RULES.attempts):
        assert await bench.waiting() == [("b", "")]
        await bench.feeder.feed_all()
        await bench.feeder.feed_all()  # too early: it counts as nothing
        await bench.clock.advance(RULES.backoff_max_s)
    assert await bench.waiting() == []
    assert await bench.waiting(buried=True) == [("b", "failed")]


async def test_a_success_in_time_is_a_new_beginning(bench: Bench) -> None:
    for _ in range(2):
        bench.index.chokes = {"a"}
        await bench.put("a")
        for _ in range(RULES.attempts - 1):
            await bench.feeder.feed_all()
            await bench.clock.advance(RULES.backoff_max_s)
        bench.index.chokes = set()
        await bench.feeder.feed_all()
        assert await bench.waiting() == []
        assert await bench.waiting(buried=True) == []


async def test_a_drop_is_never_set_aside(bench: Bench) -> None:
    """An erasure is tried for ever: nobody may stay findable because an index had a bad week."""
    await bench.put("a")
    await bench.feeder.feed_all()
    await bench.erase()

    class Stubborn(FaultyIndex):
        async def drop(self, key: UserKey) -> None:
            raise RuntimeError("not today")

    feeder = bench.a_feeder(Stubborn(bench.inner))
    for _ in range(RULES.attempts * 2):
        await feeder.feed_all()
        await bench.clock.advance(RULES.backoff_max_s)
    assert await bench.waiting() == [("", "")]
    assert await bench.waiting(buried=True) == []
    await bench.feeder.feed_all()
    assert KEY not in bench.inner.of


# outages


async def test_one_users_broken_part_keeps_nobody_waiting_and_is_not_set_aside(bench: Bench) -> None:
    bench.index.broken = {KEY}
    await bench.put("a")
    for number in range(5):
        await bench.put("b", key=UserKey("app", f"user{number}"))
    await bench.feeder.feed_all()
    assert len(bench.inner.of) == 5
    for _ in range(RULES.attempts + 2):
        await bench.clock.advance(RULES.backoff_max_s)
        await bench.feeder.feed_all()
    assert await bench.waiting() == [("a", "")]
    bench.index.broken = set()
    await bench.clock.advance(RULES.backoff_max_s)
    await bench.feeder.feed_all()
    assert await bench.inner.ids(KEY) == ["a"]


async def test_during_an_outage_nobody_is_tried_one_by_one(bench: Bench) -> None:
    for number in range(20):
        await bench.put("a", key=UserKey("app", f"user{number:02}"))
    bench.index.down = True
    with pytest.raises(IndexUnavailable):
        await bench.feeder.feed_all()
    assert bench.index.calls["put"] <= RULES.together


async def test_it_waits_ever_longer_for_an_index_that_is_down_and_then_goes_on(running: Bench) -> None:
    assert not running.feeder.down
    running.index.down = True
    await running.put("a")
    running.feeder.nudge(KEY)
    await pass_time(running, 1, lambda: _down(running))
    pings, puts = running.index.calls["ping"], running.index.calls["put"]
    await running.clock.advance(60)
    tried = running.index.calls["ping"] - pings
    assert 5 <= tried <= 11  # after 1, 2, 4, 8, 8, 8 … seconds
    assert running.index.calls["put"] == puts
    running.index.down = False
    await pass_time(running, RULES.backoff_max_s + 1, lambda: _has(running, "a"))
    assert not running.feeder.down
    await pass_time(running, 1, lambda: _dry(running))


async def test_what_was_taken_just_before_an_outage_is_given_again(running: Bench) -> None:
    """A server that dies may have answered for what it had not written down yet."""
    await running.put("a", "b")
    await running.put("c", key=BOB)
    await pass_time(running, 10, lambda: there(running, KEY, ["a", "b"]))
    await pass_time(running, 10, lambda: there(running, BOB, ["c"]))
    del running.inner.of[KEY]["a"]
    running.index.down = True  # nothing is to be written: only who asks finds out
    await pass_time(running, 10, lambda: is_true(running.feeder.down))
    running.index.down = False
    running.index.calls.clear()
    await pass_time(running, 20, lambda: there(running, KEY, ["a", "b"]))
    assert running.index.calls["remove"]  # to give it the same once more would mend nothing
    assert await running.inner.ids(BOB) == ["c"]


async def test_what_is_old_is_not_asked_after(running: Bench) -> None:
    await running.put("a")
    await pass_time(running, 10, lambda: there(running, KEY, ["a"]))
    await pass_time(running, 10, lambda: is_true(bool(running.feeder._recent)))
    await pass_time(running, KEPT_AFTER_S + 3 * RULES.pause_s, lambda: is_true(not running.feeder._recent))
    assert running.index.calls["ping"]
    running.index.calls.clear()
    for _ in range(3):
        await running.clock.advance(RULES.pause_s)
        await asyncio.sleep(0.01)
    assert not running.index.calls["ping"]


async def test_who_moved_away_meanwhile_is_given_by_another_host(bench: Bench) -> None:
    await bench.put("a")
    await bench.put("b", key=BOB)
    await bench.feeder.feed_all()
    bench.feeder._may_have_lost, bench.owned = True, {BOB}
    bench.inner.of.clear()
    await bench.feeder.see_that_it_kept()
    assert list(bench.inner.of) == [BOB]


async def test_one_whom_the_index_chokes_on_keeps_the_others_not_waiting(bench: Bench) -> None:
    await bench.put("a")
    await bench.put("b", key=BOB)
    await bench.feeder.feed_all()
    bench.feeder._may_have_lost = True
    bench.index.chokes = {"a"}
    bench.inner.of.clear()
    await bench.feeder.see_that_it_kept()
    assert list(bench.inner.of) == [BOB]


async def test_an_outage_in_the_middle_of_giving_again_is_waited_for(bench: Bench) -> None:
    await bench.put("a")
    await bench.feeder.feed_all()
    bench.feeder._may_have_lost, bench.index.down = True, True
    bench.inner.of.clear()
    with pytest.raises(IndexUnavailable):
        await bench.feeder.see_that_it_kept()
    bench.index.down = False
    await bench.feeder.see_that_it_kept()
    assert await bench.inner.ids(KEY) == ["a"]


async def test_it_waits_for_a_ledger_that_is_down(running: Bench) -> None:
    await running.put("a")
    running.plan.then(*[Fault.FAIL_BEFORE] * 3)
    await pass_time(running, 30, lambda: _has(running, "a"))


async def test_an_index_that_is_down_at_the_start_is_opened_later(bench: Bench) -> None:
    bench.index.down = True
    await bench.put("a")
    task = asyncio.create_task(bench.feeder.run())
    await bench.clock.advance(20)
    assert await _down(bench)
    bench.index.down = False
    await pass_time(bench, 20, lambda: _has(bench, "a"))
    assert [bench.feeder.down] == [False]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# when


async def test_a_nudge_is_heard_at_once_and_gathers_others(running: Bench) -> None:
    await running.put("a")
    running.feeder.nudge(KEY)
    await running.clock.advance(RULES.linger_s / 2)
    await running.put("b")
    running.feeder.nudge(KEY)
    await pass_time(running, RULES.linger_s * 4, lambda: _has(running, "a", "b"))
    assert running.index.calls["put"] == 1


async def test_without_a_nudge_it_looks_now_and_then(running: Bench) -> None:
    await running.put("a")
    await running.clock.advance(RULES.pause_s / 2)
    assert KEY not in running.inner.of
    await pass_time(running, RULES.pause_s, lambda: _has(running, "a"))


async def test_a_user_who_sleeps_is_let_go(running: Bench) -> None:
    running.awake = set()
    running.feeder.rest(BOB)
    await until(lambda: running.inner.rested[BOB])
    await running.put("a")  # after a crash: fed, and in use nowhere
    await pass_time(running, RULES.pause_s + 1, lambda: _rested(running, KEY))


async def test_a_user_who_woke_up_meanwhile_is_not_let_go(running: Bench) -> None:
    running.awake.add(KEY)
    running.feeder.rest(KEY)
    running.feeder.rest(BOB)
    await until(lambda: running.inner.rested[BOB])
    await running.put("a")
    await pass_time(running, RULES.pause_s + 1, lambda: _has(running, "a"))
    assert not running.inner.rested[KEY]


async def test_an_index_that_cannot_let_go_is_asked_again_the_next_time(running: Bench) -> None:
    running.index.broken = {BOB}
    running.feeder.rest(BOB)
    running.feeder.rest(KEY)
    await until(lambda: running.inner.rested[KEY])
    assert running.index.calls["rest"] == 2
    running.index.broken = set()
    running.feeder.rest(BOB)
    await until(lambda: running.inner.rested[BOB])


async def _down(bench: Bench) -> bool:
    return bench.feeder.down


async def _has(bench: Bench, *ids: str) -> bool:
    return await bench.inner.ids(KEY) == sorted(ids)


async def _dry(bench: Bench) -> bool:
    return await bench.waiting() == []


async def _rested(bench: Bench, key: UserKey) -> bool:
    return bench.inner.rested[key] > 0
