"""How long memories live, and how many there may be (SPEC §4.2, §4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.core.board import Board
from hermes_memory.core.life import age, end_session, keep_caps
from hermes_memory.core.model import Category, Layer, Lock, Memory, Scope, Source, Status, Tier
from hermes_memory.core.rules import Rules
from tests.small_world import DAY, NOW, a_memory, an_evidence, default_rules, rules, vector

LIFE = default_rules().life
PREFERENCE = {"category": Category.PREFERENCE, "layer": Layer.PREFERENCE}
EVENT = {"category": Category.EVENT, "layer": None}


def board_of(*memories: Memory, days: float = 0) -> Board:
    return Board({memory.id: memory for memory in memories}, NOW + days * DAY)


def caps(board: Board, held: Rules) -> None:
    keep_caps(board, held, "seed", vector)


def log(board: Board) -> list[tuple[str, str, str | None]]:
    return [(change.op.value, change.reason.value, change.memory_id) for change in board.changes]


# the end of a session


@pytest.mark.parametrize(
    ("over", "tier", "status"),
    [
        ({}, Tier.LONGTERM, Status.ACTIVE),
        ({"scope": Scope.SCENE, "scene": "travel"}, Tier.LONGTERM, Status.ACTIVE),
        ({"scope": Scope.SESSION}, Tier.WORKING, Status.ARCHIVED),
        ({"layer": Layer.CONTEXT}, Tier.WORKING, Status.ACTIVE),
        ({"layer": Layer.CONTEXT, "scope": Scope.SESSION}, Tier.WORKING, Status.ARCHIVED),
        ({"scope": Scope.SESSION, "rival_of": "other"}, Tier.WORKING, Status.ACTIVE),  # rivals live on
        ({"rival_of": "other"}, Tier.LONGTERM, Status.ACTIVE),
        ({"status": Status.REVIEW}, Tier.LONGTERM, Status.REVIEW),
        ({"status": Status.SUPERSEDED}, Tier.WORKING, Status.SUPERSEDED),
        ({"tier": Tier.LONGTERM}, Tier.LONGTERM, Status.ACTIVE),
        ({"lock": Lock.FROZEN, "tier": Tier.CORE, "scope": Scope.SESSION}, Tier.CORE, Status.ACTIVE),
        ({"evidence": (an_evidence(session_id="s2"),)}, Tier.WORKING, Status.ACTIVE),  # of another session
    ],
)
def test_spec_4_2_what_a_session_leaves(over: dict[str, Any], tier: Tier, status: Status) -> None:
    board = board_of(a_memory(**over))
    end_session(board, "s1")
    assert (board["mem-1"].tier, board["mem-1"].status) == (tier, status)
    moved = (tier, status) != (over.get("tier", Tier.WORKING), over.get("status", Status.ACTIVE))
    assert len(board.changes) == moved


def test_spec_4_2_the_end_of_a_session_is_reported() -> None:
    board = board_of(a_memory(), a_memory(id="b", scope=Scope.SESSION))
    end_session(board, "s1")
    assert log(board) == [("moved", "session_ended", "mem-1"), ("archived", "session_ended", "b")]
    assert board["b"].archived_at == NOW


# capacity


def test_spec_4_2_below_the_caps_nothing_moves() -> None:
    board = board_of(*(a_memory(id=str(n)) for n in range(3)))
    caps(board, rules(capacity={"working": 3}))
    assert not board.changes


def test_spec_4_2_working_gives_up_its_oldest_and_says_so() -> None:
    held = [a_memory(id=str(n), updated_at=NOW + (n % 3) * DAY, importance=n / 10) for n in range(5)]
    board = board_of(*held, days=9)
    caps(board, rules(capacity={"working": 3}))
    assert log(board) == [("evicted", "capacity", "0"), ("evicted", "capacity", "3")]
    assert board["0"].status is Status.ARCHIVED
    assert board.count(Tier.WORKING) == 3


def test_spec_4_2_longterm_gives_up_what_retention_values_least() -> None:
    held = [
        a_memory(id="dear", tier=Tier.LONGTERM, importance=0.9, confidence=0.9),
        a_memory(id="unsure", tier=Tier.LONGTERM, importance=0.9, confidence=0.2),
        a_memory(id="faded", tier=Tier.LONGTERM, importance=0.9, confidence=0.9, **EVENT),
        a_memory(id="slight", tier=Tier.LONGTERM, importance=0.5, confidence=0.9),
    ]
    board = board_of(*held, days=100)
    caps(board, rules(capacity={"longterm": 2}))
    assert {memory_id for _, _, memory_id in log(board)} == {"unsure", "faded"}


def test_spec_4_2_a_frozen_memory_is_never_evicted() -> None:
    frozen = a_memory(id="f", lock=Lock.FROZEN, tier=Tier.LONGTERM, importance=0.0)
    board = board_of(frozen, a_memory(id="a", tier=Tier.LONGTERM))
    caps(board, rules(capacity={"longterm": 1}))
    assert (board["f"], board["a"].status) == (frozen, Status.ARCHIVED)


def test_spec_4_2_tiers_are_independent_and_only_the_living_count() -> None:
    board = board_of(
        a_memory(id="w"), a_memory(id="l", tier=Tier.LONGTERM), a_memory(id="x", status=Status.ARCHIVED),
        a_memory(id="r", tier=Tier.LONGTERM, status=Status.REVIEW),
    )  # fmt: skip
    caps(board, rules(capacity={"working": 1, "longterm": 2}))
    assert not board.changes


def test_spec_4_2_each_tier_has_its_cap() -> None:
    capacity = default_rules().capacity
    assert [capacity.of(tier) for tier in Tier] == [200, 1000, 50]


# ageing


def aged(memory: Memory, days: float) -> Memory:
    board = board_of(memory, days=days)
    age(board, LIFE)
    return board[memory.id]


@pytest.mark.parametrize(
    ("days", "accesses", "status"),
    [(180, 0, Status.ACTIVE), (181, 2, Status.REVIEW), (181, 3, Status.ACTIVE), (181, 0, Status.REVIEW)],
)
def test_spec_4_3_review_is_for_what_is_older_than_180_days_and_seldom_used(
    days: int, accesses: int, status: Status
) -> None:
    assert aged(a_memory(access_count=accesses, **PREFERENCE), days).status is status


def test_spec_4_3_age_counts_from_the_last_update() -> None:
    assert aged(a_memory(updated_at=NOW + 100 * DAY, **PREFERENCE), 200).status is Status.ACTIVE


def test_spec_4_3_declared_facts_are_exempt_and_inferred_ones_are_not() -> None:
    assert aged(a_memory(), 2000).status is Status.ACTIVE
    assert aged(a_memory(source=Source.OPERATOR), 2000).status is Status.ACTIVE
    assert aged(a_memory(source=Source.INFERRED), 200).status is Status.REVIEW
    assert aged(a_memory(source=Source.INFERRED), 400).status is Status.ARCHIVED


@pytest.mark.parametrize(
    ("days", "importance", "status"),
    [(180, 0.5, Status.ACTIVE), (181, 0.59, Status.ARCHIVED), (181, 0.6, Status.REVIEW)],
)
def test_spec_4_3_an_unimportant_event_is_archived_after_180_days(
    days: int, importance: float, status: Status
) -> None:
    assert aged(a_memory(importance=importance, **EVENT), days).status is status


@pytest.mark.parametrize("kind", [PREFERENCE, EVENT])
@pytest.mark.parametrize(
    ("days", "over", "status"),
    [
        (365, {}, Status.REVIEW),
        (366, {}, Status.ARCHIVED),
        (366, {"access_count": 1}, Status.REVIEW),
        (366, {"lock": Lock.CONFIRMED}, Status.REVIEW),
        (366, {"lock": Lock.FROZEN, "tier": Tier.CORE}, Status.ACTIVE),
    ],
)
def test_spec_4_3_what_was_never_used_in_a_year_is_archived_unless_confirmed_or_frozen(
    kind: dict[str, Any], days: int, over: dict[str, Any], status: Status
) -> None:
    assert aged(a_memory(importance=0.7, **kind, **over), days).status is status


def test_spec_4_3_review_is_no_shelter_from_the_archive() -> None:
    memory = aged(a_memory(status=Status.REVIEW, **PREFERENCE), 366)
    assert (memory.status, memory.history[-1].reason) == (Status.ARCHIVED, "stale")


def test_spec_4_3_what_is_in_review_is_not_reviewed_again() -> None:
    board = board_of(a_memory(status=Status.REVIEW, **PREFERENCE), days=200)
    age(board, LIFE)
    assert not board.changes


@pytest.mark.parametrize(
    ("over", "status"),
    [
        ({"contradictions": 2}, Status.ACTIVE),
        ({"contradictions": 3}, Status.ARCHIVED),
        ({"contradictions": 3, "lock": Lock.CONFIRMED}, Status.ACTIVE),
        ({"contradictions": 3, "safety": True}, Status.ACTIVE),  # never automatic (SPEC §6)
    ],
)
def test_spec_4_3_what_was_disproved_three_times_is_archived(over: dict[str, Any], status: Status) -> None:
    assert aged(a_memory(**over), 1).status is status


@pytest.mark.parametrize(("days", "status"), [(30, Status.ACTIVE), (31, Status.ARCHIVED)])
def test_spec_6_a_rival_outlives_its_session_by_30_days(days: float, status: Status) -> None:
    assert aged(a_memory(rival_of="other", scope=Scope.SESSION), days).status is status


@pytest.mark.parametrize("status", [Status.SUPERSEDED, Status.ARCHIVED])
def test_spec_4_3_what_no_longer_lives_does_not_age(status: Status) -> None:
    memory = a_memory(status=status, **PREFERENCE)
    assert aged(memory, 2000) == memory


def test_spec_9_a_second_night_changes_nothing() -> None:
    board = board_of(a_memory(**PREFERENCE), a_memory(id="e", importance=0.1, **EVENT), days=200)
    age(board, LIFE)
    again = Board({memory.id: memory for memory in board}, NOW + 200 * DAY)
    age(again, LIFE)
    assert (len(board.changes), len(again.changes)) == (2, 0)


def test_spec_4_2_a_full_tier_merges_one_topic_before_it_evicts() -> None:
    held = [a_memory(id=str(n), topic="pet", dimension="pet", object=f"猫{n}") for n in range(7)]
    board = board_of(*held)
    caps(board, rules(capacity={"working": 3}))
    assert {change.op for change in board.changes} == {"merged"}
    assert all(board[memory.id].merged_into for memory in held)
