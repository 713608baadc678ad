"""Contradictions among what is remembered (SPEC §6, §9)."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.conflicts import contradicts, disjoint
from hermes_memory.core.inspection import Contradiction, inspect
from hermes_memory.core.model import Category, Granularity, Memory, Polarity, Scope, Status
from tests.small_world import DAY, DIMENSIONS, NOW, a_memory, an_evidence

MINUS = Polarity.NEGATIVE


def holds(number: int, dimension: str = "city", value: str = "苏州", **over: Any) -> Memory:
    entry = DIMENSIONS.get(dimension)
    assert entry is not None
    evidence = (an_evidence(session_id=f"s{number}", created_at=NOW + number * DAY),)
    fields = {"category": entry.category, "layer": entry.layer, "dimension": dimension, "object": value}
    return a_memory(**({"id": f"mem-{number}", "content": value, "evidence": evidence} | fields | over))


def found(*memories: Memory) -> list[tuple[str, str]]:
    return [(pair.older.id, pair.newer.id) for pair in inspect(memories, DIMENSIONS)]


def test_spec_9_two_values_of_one_dimension_are_found_the_older_first() -> None:
    old, new = holds(1), holds(2, value="杭州")
    assert inspect([new, old], DIMENSIONS) == [Contradiction(old, new)]


def test_spec_9_a_denial_is_found_in_a_related_dimension_and_in_another_of_the_same_kind() -> None:
    assert found(holds(1, "hometown"), holds(2, polarity=MINUS)) == [("mem-1", "mem-2")]
    assert found(holds(1, "seat", "咖啡"), holds(2, "drink", "咖啡", polarity=MINUS)) == [("mem-1", "mem-2")]


def test_spec_9_what_agrees_is_not_found() -> None:
    assert found(holds(1), holds(2)) == []
    assert found(holds(1, "pet", "猫"), holds(2, "pet", "狗")) == []
    assert found(holds(1, "seat", "咖啡"), holds(2, "drink", "咖啡")) == []
    assert found(holds(1, "seat", "，"), holds(2, "drink", "。", polarity=MINUS)) == []  # names nothing


@pytest.mark.parametrize(
    "over",
    [
        {"status": Status.SUPERSEDED},
        {"status": Status.ARCHIVED},
        {"rival_of": "mem-1"},
        {"subject": "妈妈"},
        {"category": Category.EVENT, "layer": None},
        {"granularity": Granularity.SPAN},
        {"scope": Scope.SESSION},
        {"valid_from": NOW + DAY},
    ],
)
def test_spec_9_what_is_settled_apart_or_no_statement_is_left_out(over: dict[str, Any]) -> None:
    old = holds(1, valid_to=NOW + DAY)
    assert found(old, holds(2, value="杭州")) == [("mem-1", "mem-2")]
    assert found(old, holds(2, value="杭州", **over)) == []


def test_spec_6_a_rival_whose_old_one_has_ended_stands_for_itself() -> None:
    rival = holds(2, value="杭州", rival_of="mem-1")
    assert found(holds(1, status=Status.SUPERSEDED), rival, holds(3, value="无锡")) == [("mem-2", "mem-3")]
    assert found(rival, holds(3, value="无锡")) == [("mem-2", "mem-3")]


def test_spec_4_1_7_only_what_reaches_the_same_place_is_compared() -> None:
    here, there = {"scope": Scope.SCENE, "scene": "travel"}, {"scope": Scope.SCENE, "scene": "dining"}
    assert found(holds(1, **here), holds(2, value="杭州", **here)) == [("mem-1", "mem-2")]
    assert found(holds(1, **here), holds(2, value="杭州", **there)) == []
    session, same = Scope.SESSION, (an_evidence(session_id="s1", created_at=NOW + 2 * DAY),)
    assert found(holds(1, scope=session), holds(2, value="杭州", scope=session)) == []
    assert found(holds(1, scope=session), holds(2, value="杭州", scope=session, evidence=same)) == [
        ("mem-1", "mem-2")
    ]


# properties

values = st.sampled_from(["苏州", "杭州", "安静的地方", "热闹的地方", "咖啡", "冰咖啡", "，"])
whens = st.none() | st.integers(-2, 2).map(lambda days: NOW + timedelta(days=days))


@st.composite
def some_memories(draw: st.DrawFn) -> list[Memory]:
    size = draw(st.integers(0, 7))
    return [
        holds(
            number,
            draw(st.sampled_from(["city", "hometown", "drink", "seat", "environment", "allergy", "pet"])),
            draw(values),
            polarity=draw(st.sampled_from(Polarity)),
            subject=draw(st.sampled_from(["user", "妈妈"])),
            status=draw(st.sampled_from([Status.ACTIVE, Status.ACTIVE, Status.REVIEW, *Status])),
            rival_of=draw(st.none() | st.integers(0, size).map(lambda n: f"mem-{n}")),
            valid_from=draw(whens),
            valid_to=draw(whens),
        )
        for number in range(size)
    ]


@given(some_memories(), st.randoms(use_true_random=False))
def test_spec_9_the_order_in_which_memories_come_makes_no_difference(
    memories: list[Memory], random: Any
) -> None:
    shuffled = list(memories)
    random.shuffle(shuffled)
    assert inspect(shuffled, DIMENSIONS) == inspect(memories, DIMENSIONS)


@given(some_memories())
def test_spec_9_nomination_by_symbols_loses_no_contradiction(memories: list[Memory]) -> None:
    live = {Status.ACTIVE, Status.REVIEW}
    by_id = {memory.id: memory for memory in memories}

    def opposes(memory: Memory) -> bool:
        old = by_id.get(memory.rival_of or "")
        return old is not None and old.status in live

    standing = [memory for memory in memories if memory.status in live and not opposes(memory)]
    expected = {
        frozenset({one.id, other.id})
        for one, other in combinations(standing, 2)
        if contradicts(one, other, DIMENSIONS) and not disjoint(one, other)
    }
    pairs = inspect(memories, DIMENSIONS)
    assert {frozenset({pair.older.id, pair.newer.id}) for pair in pairs} == expected
    assert len(pairs) == len(expected)


@given(some_memories())
def test_spec_6_contradicting_is_mutual(memories: list[Memory]) -> None:
    for one, other in combinations(memories, 2):
        assert contradicts(one, other, DIMENSIONS) == contradicts(other, one, DIMENSIONS)
