"""Nights over any memories a user may have: idempotent, at any hour, in any portions, and told in full (SPEC §9)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from hermes_memory.app.commands import Delete, EndSession, Maintain, SetPaused
from hermes_memory.app.nights import STEPS
from hermes_memory.core.model import (
    LIVE,
    MEANING_FIELDS,
    Affirmed,
    Category,
    Granularity,
    Lock,
    Memory,
    Polarity,
    Scope,
    Source,
    Status,
    Tier,
)
from hermes_memory.ports.ledger import Session
from tests.small_world import DIMENSIONS, NOW, a_memory, an_evidence, policy, rules, vector
from tests.tiny_ledger import Person

pytestmark = [pytest.mark.timeout(600)]

SMALL = rules(
    capacity={"working": 6, "longterm": 8, "core": 3, "merge_above": 2},
    night={"portion": 1, "digest_least": 2},
)
ZONE = timezone(timedelta(hours=8))
DAY_OF = datetime(2026, 6, 15, tzinfo=ZONE)
OBJECTS = {
    "city": ("苏州", "杭州"), "pet": ("猫", "狗", "鱼", "兔子"), "drink": ("茶", "咖啡", "可乐", "豆浆"),
    "seat": ("靠窗", "过道"), "food_taboo": ("香菜", "芹菜"), "allergy": ("花生",), "need": ("租房", "买房"),
    "event": ("旅行", "看展", "搬家", "聚餐"), "environment": ("安静", "热闹"),
}  # fmt: skip
SESSIONS = {"s1": "home", "s2": "travel", "s3": None, "s4": "home"}
ages = st.integers(0, 420)


@st.composite
def memories(draw: st.DrawFn, number: int) -> Memory:
    key = draw(st.sampled_from(sorted(OBJECTS)))
    kind = DIMENSIONS.get(key)
    assert kind is not None
    said = [DAY_OF - timedelta(days=draw(ages), hours=draw(st.integers(1, 20))) for _ in range(2)]
    lock = draw(st.sampled_from((Lock.PENDING, Lock.PENDING, Lock.CONFIRMED, Lock.FROZEN)))
    scope = Scope.USER if lock is Lock.FROZEN else draw(st.sampled_from((*[Scope.USER] * 3, *Scope)))
    status = Status.ACTIVE if lock is Lock.FROZEN else draw(st.sampled_from((*[Status.ACTIVE] * 4, *Status)))
    tier = Tier.CORE if lock is Lock.FROZEN else draw(st.sampled_from((Tier.WORKING, Tier.LONGTERM)))
    if tier is Tier.LONGTERM and (scope is Scope.SESSION or kind.layer == "context"):
        tier = Tier.WORKING
    sessions = draw(st.lists(st.sampled_from(sorted(SESSIONS)), min_size=1, max_size=3))
    what = draw(st.sampled_from(OBJECTS[key]))
    return a_memory(
        id=f"mem-{number:02}", dimension=key, category=kind.category, layer=kind.layer, object=what,
        content=f"{key} {what} {number}", content_hash=f"hash-{number}", topic=key, lock=lock, scope=scope,
        scene="home" if scope is Scope.SCENE else None, status=status, tier=tier,
        archived_at=max(said) if status is Status.ARCHIVED else None, safety=kind.safety is not None,
        source=draw(st.sampled_from((Source.EXPLICIT, Source.INFERRED))),
        polarity=draw(st.sampled_from((Polarity.POSITIVE, Polarity.POSITIVE, Polarity.NEGATIVE))),
        confidence=draw(st.sampled_from((0.5, 0.75, 0.95))), importance=draw(st.sampled_from((0.5, 0.8))),
        access_count=draw(st.sampled_from((0, 0, 5))), contradictions=draw(st.sampled_from((0, 0, 0, 3))),
        created_at=min(said), updated_at=max(said),
        confirmations=tuple(
            Affirmed(session_id=name, message_id=f"c-{name}", at=max(said))
            for name in draw(st.sets(st.sampled_from(sorted(SESSIONS)), max_size=3))
        ),
        evidence=tuple(
            an_evidence(session_id=name, message_id=f"m{number}-{at}", created_at=said[at % 2])
            for at, name in enumerate(sessions)
        ),
        outcome=draw(st.sampled_from((None, None, "很好"))) if kind.category is Category.EVENT else None,
    )  # fmt: skip


@st.composite
def lives(draw: st.DrawFn) -> list[Memory]:
    held = [draw(memories(number)) for number in range(draw(st.integers(0, 16)))]
    frozen = 0
    kept = []
    for memory in held:
        frozen += memory.lock is Lock.FROZEN
        if memory.lock is not Lock.FROZEN or frozen <= SMALL.capacity.core:
            kept.append(memory)
    live = [memory for memory in kept if memory.status in LIVE and memory.lock is not Lock.FROZEN]
    for memory in live[:1]:
        rival_of = draw(st.sampled_from((None, live[-1].id)))
        if rival_of != memory.id:
            kept[kept.index(memory)] = memory.with_(rival_of=rival_of)
    return kept


def person(held: list[Memory], portion: int = 1, at: datetime = DAY_OF) -> Person:
    someone = Person(policy(replace(SMALL, night=replace(SMALL.night, portion=portion))), at)
    for memory in held:
        someone.ledger.memories[memory.id] = memory
        someone.ledger.vectors[memory.id] = vector(memory.content)
    for name, scene in SESSIONS.items():
        ended = name != "s4"
        someone.ledger.sessions[name] = Session(
            id=name, started_at=NOW, last_at=NOW, turns=1, scene=scene, ended=ended
        )
    someone.restart()
    return someone


def whole(someone: Person) -> Any:
    return someone.act(Maintain(now=someone.now), prepared=ZONE)


def step(someone: Person, name: str) -> list[dict[str, Any]]:
    """One step in as many portions as it takes."""
    changes = []
    while True:
        answer = someone.act(Maintain(now=someone.now, step=name), prepared=ZONE)
        changes += answer["changes"]
        if not (answer["more"] and answer["changes"]):
            return changes


def meaning(memory: Memory) -> list[Any]:
    return [getattr(memory, name) for name in MEANING_FIELDS]


def canonical(someone: Person) -> Any:
    """The state without how often it was written."""
    told = {
        memory.id: memory.with_(version=0, history=tuple(replace(one, version=0) for one in memory.history))
        for memory in someone.ledger.memories.values()
    }
    return told, someone.ledger.settings.confirmations


@given(lives())
def test_spec_9_a_second_night_of_the_same_day_changes_nothing(held: list[Memory]) -> None:
    someone = person(held)
    whole(someone)
    before = canonical(someone)
    for hours in (0, 10, 13):
        someone.pass_time(hours=hours)
        answer = whole(someone)
        assert someone.last is None, answer
    assert canonical(someone) == before


@given(lives(), st.integers(1, 4))
def test_spec_9_the_hour_decides_nothing(held: list[Memory], portion: int) -> None:
    early = person(held, portion, at=DAY_OF + timedelta(minutes=10))
    late = person(held[::-1], portion, at=DAY_OF + timedelta(hours=23, minutes=50))
    for name in STEPS:
        step(early, name)
        step(late, name)
        late.restart()
    assert canonical(early) == canonical(late)


@given(lives(), st.integers(0, len(STEPS)))
def test_spec_9_a_night_that_was_cut_short_is_finished_by_the_next_try(held: list[Memory], cut: int) -> None:
    undisturbed, cut_short = person(held), person(held)
    for name in STEPS:
        step(undisturbed, name)
    for name in list(STEPS)[:cut]:
        step(cut_short, name)
    cut_short.restart()
    for name in STEPS:
        step(cut_short, name)
    assert canonical(undisturbed) == canonical(cut_short)


@given(lives())
def test_spec_9_every_change_is_told_the_frozen_stand_and_the_caps_hold(held: list[Memory]) -> None:
    someone = person(held)
    before = dict(someone.ledger.memories)
    changes = [change for name in STEPS for change in step(someone, name)]
    told = {change["memory_id"] for change in changes}
    after = someone.ledger.memories
    differing = {i for i in before.keys() | after.keys() if before.get(i) != after.get(i)}
    assert differing <= told
    assert all(set(change) == {"op", "memory_id", "reason", "message_id", "step"} for change in changes)
    for memory in held:
        if memory.lock is Lock.FROZEN:
            assert meaning(after[memory.id]) == meaning(memory)
        if memory.granularity is Granularity.ATOMIC:
            assert memory.id in after  # nothing is physically deleted
    for tier in Tier:
        live = [memory for memory in after.values() if memory.status in LIVE and memory.tier is tier]
        assert len(live) <= SMALL.capacity.of(tier)


COMMANDS = st.sampled_from(("delete", "end", "pause", "nothing"))


@given(lives(), st.lists(COMMANDS, min_size=len(STEPS), max_size=len(STEPS)))
@settings(max_examples=50)
def test_spec_9_other_commands_come_between_two_steps(held: list[Memory], between: list[str]) -> None:
    someone = person(held)
    gone = set()
    for name, what in zip(STEPS, between, strict=True):
        step(someone, name)
        if what == "delete" and someone.state.memories:
            gone.add(victim := sorted(someone.state.memories)[0])
            someone.act(Delete(memory_id=victim), prepared=[])
        elif what == "end":
            someone.act(EndSession(session_id="s4"))
        elif what == "pause":
            someone.act(SetPaused(paused=True))
    assert not gone & set(someone.ledger.memories)
    frozen = [memory for memory in held if memory.lock is Lock.FROZEN and memory.id not in gone]
    assert all(meaning(someone.ledger.memories[memory.id]) == meaning(memory) for memory in frozen)
    for name in STEPS:
        step(someone, name)
    someone.begin()
    whole(someone)
    assert someone.last is None


def test_spec_9_a_night_is_never_of_the_future() -> None:
    someone = person(
        [a_memory(id="m", source=Source.INFERRED, tier=Tier.LONGTERM, updated_at=DAY_OF - timedelta(days=5))]
    )
    answer = someone.act(Maintain(now=DAY_OF + timedelta(days=4000)), prepared=UTC)
    assert answer["changes"] == []
