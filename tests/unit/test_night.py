"""The night over all users (SPEC §9, ARCHITECTURE §6): each user once, resumable anywhere, with the same report."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.commands import Aggregate, Command, Maintain
from hermes_memory.app.night import MOST_FAILED, Checkpoint, Night, NightRun, Outrun, Pacing, ShardProgress
from hermes_memory.app.night_closing import NamespaceClosing
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.night_sums import NightSums
from hermes_memory.errors import InvalidInput, LedgerUnavailable, ModelFailed, OutcomeUnknown, Overloaded
from hermes_memory.testing.builders import EMBEDDER, a_commit, a_memory

RULES = load_settings().rules.quality
COHORTS = load_settings().rules.cohorts
PACING = Pacing(
    page=3, in_flight=2, shards=4, share=0.5, deadline_s=60.0, backoff_s=1.0, backoff_most_s=8.0
)  # fmt: skip
DATE, TONIGHT = "2026-03-02", datetime(2026, 3, 2, 3, tzinfo=UTC)
KEYS = [UserKey(space, f"user{number}") for space in ("a", "b") for number in range(12)]


class Killed(BaseException):
    """The process is gone, here and now."""


class Actors:
    """Users who answer as actors do: the same operation id a second time gives the first answer again."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.nows: set[datetime] = set()
        self.answers: dict[str, dict[str, Any]] = {}
        self.troubles: dict[str, list[Exception]] = {}
        self.counts = {"welcome": 1, "unwelcome": 3}
        self.kept = 2

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        assert isinstance(command, Maintain)
        if trouble := self.troubles.get(str(key)):
            raise trouble.pop(0)
        self.calls[str(key)] += 1
        self.nows.add(command.now)
        fresh = {
            "changes": [{"id": "m", "step": "decay", "reason": "forgotten"}],
            "expired_requests": 1, "profile_slots": 2,
        }  # fmt: skip
        return self.answers.setdefault(operation_id, fresh)

    async def ask(self, key: UserKey, query: Any) -> dict[str, Any]:
        assert isinstance(query, Aggregate) and query.since == "2026-02-24"  # seven days, today among them
        return {
            "tally": dict(self.counts) if self.kept else {}, "memories": self.kept, "by_status": {"active": self.kept},
            "version": 3, "paused": key.user_id == "user0", "cohort": None,
        }  # fmt: skip

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> None:
        raise AssertionError("a night waits for no job")


class Fragile:
    """A ledger whose process is killed before or after the n-th call."""

    def __init__(self, inner: SqliteLedger, at: int = 10**9, *, after: bool = False) -> None:
        self.inner, self.left, self.after = inner, at, after
        self.failing: list[Exception] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Killed
            if self.failing:
                raise self.failing.pop(0)
            answer = await method(*arguments, **named)
            if self.left == 0:
                raise Killed
            return answer

        return call


class World:
    """A ledger with 24 users of two namespaces, their actors, and a clock that only sleeping moves."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger, self.actors = ledger, Actors()
        self.seconds = 0.0
        self.slept: list[float] = []
        self.told: list[ShardProgress] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def night(self, ledger: Any = None, **pacing: Any) -> Night:
        used = ledger or self.ledger
        values = {name: getattr(PACING, name) for name in Pacing.__slots__} | pacing
        return Night(
            used, self.actors, Pacing(**values), NamespaceClosing(used, RULES, COHORTS), window_days=7,
            told=self.told.append, sleep=self.sleep, monotonic=lambda: self.seconds, chance=lambda: 0.5,
        )  # fmt: skip


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    ledger = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
    await ledger.open(EMBEDDER)
    for key in KEYS:
        await ledger.commit(a_commit(key=key, memories=(a_memory(id="a", user_id=key.user_id),)))
    yield World(ledger)
    await ledger.close()


async def test_each_user_is_seen_to_once_and_the_report_adds_them_up(world: World) -> None:
    report = await world.night().run(DATE, TONIGHT)
    assert world.actors.calls == {str(key): 1 for key in KEYS}
    assert report["users"] == {"seen": 24, "done": 24, "empty": 0, "paused": 2, "failed": 0}
    assert report["changes"] == {"decay/forgotten": 24}
    assert (report["expired_requests"], report["profile_slots"], sum(report["seconds"])) == (24, 48, 24)
    assert {name: (of["users"], of["memories"]) for name, of in report["namespaces"].items()} == {
        "a": (12, 24), "b": (12, 24),
    }  # fmt: skip
    assert sum(told.seen for told in world.told if told.finished) == 24
    run = await world.night().open(DATE, TONIGHT)
    assert sum([(await world.night().progress(run, shard)).seen for shard in range(run.shards)]) == 24


async def test_a_second_run_of_the_date_gives_the_report_there_is(world: World) -> None:
    first = await world.night().run(DATE, TONIGHT)
    assert await world.night().run(DATE, TONIGHT.replace(hour=9)) == first
    assert sum(world.actors.calls.values()) == 24


async def test_alarms_of_quality_open_and_close(world: World) -> None:
    """SPEC §10: 12 of 48 signals were welcome, and 0.40 is the least."""
    report = await world.night().run(DATE, TONIGHT)
    assert report["namespaces"]["a"]["alerts"] == ["recall_hit_rate"]
    (alert,) = await world.ledger.alerts("a", "", 10)
    assert (alert.kind, alert.measured, alert.key) == ("quality_recall_hit_rate", (0.25, 0.4), None)
    world.actors.counts = {"welcome": 3, "unwelcome": 1, "proposed": 10, "ungrounded": 5}
    report = await world.night().run("2026-03-02-b", TONIGHT)
    assert report["namespaces"]["a"]["alerts"] == ["ungrounded_rate"]
    (alert,) = await world.ledger.alerts("a", "", 10)
    assert (alert.kind, alert.measured) == ("quality_ungrounded_rate", (0.5, 0.05))


@pytest.mark.parametrize("after", [False, True])
async def test_killed_between_any_two_steps_it_ends_as_if_it_had_not_been(
    tmp_path: Path, after: bool
) -> None:
    """SPEC §9: resumable. Each call to the ledger is a place to die at, until none is left."""
    wanted: dict[str, Any] = {}
    for at in range(0, 200):
        ledger = SqliteLedger(tmp_path / f"{at}.db", synchronous="NORMAL")
        await ledger.open(EMBEDDER)
        for key in KEYS[::2]:
            await ledger.commit(a_commit(key=key, memories=(a_memory(id="a", user_id=key.user_id),)))
        world, killed = World(ledger), False
        try:
            if at:
                await world.night(Fragile(ledger, at, after=after)).run(DATE, TONIGHT)
        except Killed:
            killed = True
        report = await world.night().run(DATE, TONIGHT.replace(hour=5))
        alerts = [await ledger.alerts(space, "", 10) for space in ("a", "b")]
        await ledger.close()
        wanted = wanted or {"report": report, "alerts": alerts, "nows": set()}
        assert (report["users"], report["changes"]) == (
            wanted["report"]["users"],
            wanted["report"]["changes"],
        )
        assert report["namespaces"] == wanted["report"]["namespaces"]
        assert len(world.actors.nows) == 1
        if at and not killed:
            assert at > 30
            return
    raise AssertionError("it never came to its end")


async def test_a_run_that_was_overtaken_lets_go(world: World) -> None:
    old, new = world.night(), world.night()
    run = await old.open(DATE, TONIGHT)
    at = await old._claimed(run, 0)
    await new._claimed(run, 0)
    with pytest.raises(Outrun, match="another run"):
        await old._keep(run, 0, at)
    assert (await new.shard(run, 0)).finished


async def test_an_answer_that_was_lost_is_no_other_run(world: World) -> None:
    night = world.night()
    run = await night.open(DATE, TONIGHT)
    at = await night._claimed(run, 0)
    await world.ledger.put_note("", run.note("shard-00"), at.dump(), expected=at.revision)
    await night._keep(run, 0, at)
    assert at.revision == 2


async def test_no_report_before_every_shard_is_through(world: World) -> None:
    night = world.night()
    run = await night.open(DATE, TONIGHT)
    await night.shard(run, 0)
    with pytest.raises(Outrun):
        await night.finish(run)


async def test_whoever_is_busy_is_asked_again_as_late_as_they_say(world: World) -> None:
    """ARCHITECTURE §6: back-pressure from the hosts."""
    world.actors.troubles[str(KEYS[0])] = [Overloaded(7.0), OutcomeUnknown(), ModelFailed("it", "busy", 9.0)]
    report = await world.night(share=1.0).run(DATE, TONIGHT)
    assert report["users"]["failed"] == 0
    assert [pause for pause in world.slept if pause] == [7.0, 2.0, 9.0]


async def test_one_who_cannot_be_reached_is_tried_once_more_at_the_end(world: World) -> None:
    world.actors.troubles[str(KEYS[0])] = [OutcomeUnknown(), OutcomeUnknown()]
    report = await world.night(deadline_s=1.5).run(DATE, TONIGHT)
    assert (report["users"]["done"], report["failures"]) == (24, {})


async def test_one_who_stays_away_is_counted_and_no_hindrance(world: World) -> None:
    world.actors.troubles[str(KEYS[0])] = [InvalidInput("step", "none"), InvalidInput("step", "none")]
    report = await world.night().run(DATE, TONIGHT)
    assert (report["users"]["done"], report["users"]["failed"]) == (23, 1)
    assert report["failures"] == {"invalid_input": 1}


async def test_more_failures_than_are_named_are_counted(world: World) -> None:
    """The driver's memory is bounded, whatever happens."""
    world.actors.troubles[str(KEYS[0])] = [InvalidInput("step", "none")]
    night, at = world.night(), Checkpoint("me", failed=["a/x"] * MOST_FAILED)
    await night._page(await night.open(DATE, TONIGHT), KEYS[:1], at)
    assert (len(at.failed), at.lost) == (MOST_FAILED, 1)


async def test_a_ledger_that_is_away_for_a_moment_is_waited_for(world: World) -> None:
    ledger = Fragile(world.ledger)
    night = world.night(ledger)
    run = await night.open(DATE, TONIGHT)
    ledger.failing = [LedgerUnavailable("busy")] * 2
    assert (await night.shard(run, 0)).finished
    ledger.failing = [LedgerUnavailable("gone")] * 50
    with pytest.raises(LedgerUnavailable):
        await night.shard(run, 1)


async def test_it_rests_in_proportion_to_what_it_takes(world: World) -> None:
    """A share of a quarter: three times as long asleep as at work."""

    async def slow(key: UserKey, command: Command, operation_id: str) -> Any:
        world.seconds += 1.0
        return {"changes": []}

    world.actors.execute = slow  # type: ignore[method-assign]
    night = world.night(share=0.25, in_flight=1)
    await night._page(await night.open(DATE, TONIGHT), KEYS[:2], Checkpoint("me"))
    assert world.slept == [3.0, 3.0]


async def test_it_does_not_rest_for_a_host_that_was_away(world: World) -> None:
    """A user who was waited for, for a minute: the others wait no longer than between two tries."""

    async def late(key: UserKey, command: Command, operation_id: str) -> Any:
        world.seconds += 60.0
        return {"changes": []}

    world.actors.execute = late  # type: ignore[method-assign]
    night = world.night(share=0.25, in_flight=1)
    await night._page(await night.open(DATE, TONIGHT), KEYS[:1], Checkpoint("me"))
    assert world.slept == [PACING.backoff_most_s]


async def test_one_who_was_erased_meanwhile_is_empty(world: World) -> None:
    world.actors.kept = 0

    async def erased(key: UserKey, command: Command, operation_id: str) -> Any:
        return None

    world.actors.execute = erased  # type: ignore[method-assign]
    report = await world.night().run(DATE, TONIGHT)
    assert (report["users"]["empty"], report["namespaces"], report["changes"]) == (24, {}, {})


async def test_a_note_that_went_while_it_began_is_no_trouble(world: World) -> None:
    class Forgetful(Fragile):
        async def note(self, *_: Any) -> None:
            return None

    run = await world.night(Forgetful(world.ledger)).open(DATE, TONIGHT)
    assert run == NightRun(date=DATE, now=TONIGHT, since="2026-02-24", shards=4)


def test_sums_of_parts_are_the_sums_of_the_whole() -> None:
    aggregate = {"tally": {"x": 2}, "memories": 1, "paused": True, "version": 1, "cohort": None}
    parts = [NightSums(), NightSums()]
    for number, part in enumerate(parts):
        part.add("b" if number else "a", {"changes": [{"reason": "old"}]}, aggregate, 10.0**number)
    whole = NightSums.load(parts[1].dump())
    whole.merge(NightSums.load(parts[0].dump()))
    assert whole.dump()["spaces"] == {
        "a": {"memories": 1, "tally": {"x": 2}, "users": 1}, "b": {"memories": 1, "tally": {"x": 2}, "users": 1},
    }  # fmt: skip
    assert (whole.done, whole.paused, whole.changes) == (2, 2, Counter({"maintain/old": 2}))


async def test_of_two_drivers_that_end_at_once_the_first_one_tells(world: World) -> None:
    """The first may have taken out of the checkpoints what the sums need (S2 §7.2, SPEC §9)."""
    report = await world.night().run(DATE, TONIGHT)

    class Late(Fragile):
        early = True

        async def note(self, namespace: str, name: str) -> Any:
            if name.endswith("/report") and self.early:
                self.early = False
                return None
            return await world.ledger.note(namespace, name)

    async def never(namespace: str, sums: Any, run: NightRun) -> dict[str, Any]:
        raise AssertionError

    late = world.night(Late(world.ledger))
    late._closing = never
    assert await late.finish(await late.open(DATE, TONIGHT)) == report
