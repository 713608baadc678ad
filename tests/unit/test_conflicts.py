"""Contradictions by symbols, and the rows of the resolution table (SPEC §6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermes_memory.core.candidate import Marker
from hermes_memory.core.conflicts import (
    Dispute,
    Outcome,
    Resolution,
    comparable,
    contradicts,
    disjoint,
    resolve,
)
from hermes_memory.core.frozen import source_confidence
from hermes_memory.core.model import Category, Layer, Lock, Memory, Polarity, Scope, Source, Status
from hermes_memory.core.reasons import Reason
from tests.small_world import (
    DAY,
    DIMENSIONS,
    NOW,
    a_candidate,
    a_memory,
    a_turn,
    affirmed,
    an_evidence,
    default_rules,
)

MINUS = Polarity.NEGATIVE
TURN = a_turn(session_id="s2", message_id="n0", content="我住在杭州")


def old(dimension: str = "city", value: str = "苏州", **over: Any) -> Memory:
    known = DIMENSIONS.get(dimension)
    fields = {"category": known.category, "layer": known.layer} if known else {}
    return a_memory(**({"dimension": dimension, "object": value} | fields | over))


def clash(memory: Memory, dimension: str = "city", value: str = "杭州", **over: Any) -> bool:
    return contradicts(a_candidate(TURN, dimension=dimension, object=value, **over), memory, DIMENSIONS)


# detection


def test_spec_6_a_single_valued_dimension_with_another_object_conflicts() -> None:
    assert clash(old())


def test_spec_6_the_predicate_does_not_matter() -> None:
    assert clash(old(predicate="moved_to"), predicate="lives_in")


def test_spec_6_the_same_object_with_the_same_polarity_agrees() -> None:
    assert not clash(old(), value="苏州")


def test_spec_6_the_same_object_with_opposite_polarity_conflicts() -> None:
    assert clash(old("drink", "咖啡"), "drink", "咖啡", polarity=MINUS)
    assert clash(old("drink", "咖啡", polarity=MINUS), "drink", "咖啡")


def test_spec_6_multi_valued_dimensions_coexist() -> None:
    assert not clash(old("pet", "猫"), "pet", "狗")
    assert not clash(old("allergy", "花生"), "allergy", "虾")


def test_spec_4_1_8_near_and_opposite_values_of_one_group_conflict() -> None:
    assert clash(old("environment", "安静的地方"), "environment", "热闹的地方")
    assert not clash(old("environment", "安静的地方"), "environment", "靠窗的地方")


def test_spec_6_an_unknown_dimension_is_open_and_multi_valued() -> None:
    assert not clash(old("shoe", "红"), "shoe", "蓝")
    assert clash(old("shoe", "红"), "shoe", "红", polarity=MINUS)


def test_spec_6_other_subjects_never_conflict() -> None:
    assert not clash(old(subject="妈妈"))
    assert clash(old(subject="妈妈"), subject="妈妈")


def test_spec_6_episodes_never_conflict() -> None:
    assert not clash(old("event", "苏州"), "event", "苏州", polarity=MINUS)
    assert not clash(old("event", "苏州"), "city", "苏州", polarity=MINUS)


def test_spec_6_related_single_valued_dimensions_are_only_nominated() -> None:
    """家乡苏州 and 住在杭州 are two facts."""
    assert not clash(old("hometown", "苏州"))
    assert clash(old("hometown", "苏州"), "city", "苏州", polarity=MINUS)


def test_spec_6_one_denied_and_another_affirmed_agree() -> None:
    assert not clash(old(polarity=MINUS))
    assert not clash(old(), polarity=MINUS)


def test_spec_6_opposite_polarity_needs_one_kind_of_statement() -> None:
    assert not clash(old("seat", "咖啡"), "food_taboo", "咖啡", polarity=MINUS)
    assert clash(old("seat", "咖啡"), "drink", "咖啡", polarity=MINUS)  # the same layer


def test_spec_2_periods_that_do_not_meet_agree() -> None:
    first = a_memory(valid_from=NOW, valid_to=NOW + DAY)
    then = a_memory(valid_from=NOW + DAY, valid_to=None)
    assert disjoint(first, then)
    assert disjoint(then, first)
    assert not disjoint(first, a_memory(valid_from=NOW + DAY / 2))
    assert not disjoint(a_memory(), then)


# what may be compared (SPEC §4.1.7)


def reaches(memory: Memory, reach: Scope, scene: str | None = None, **over: Any) -> bool:
    turn = a_turn(session_id="s2", message_id="n0", content="我住在杭州", scene=scene)
    return comparable(a_candidate(turn, **over), memory, reach, turn)


@pytest.mark.parametrize(
    ("status", "current"),
    [(Status.ACTIVE, True), (Status.REVIEW, True), (Status.SUPERSEDED, False), (Status.ARCHIVED, False)],
)
def test_spec_6_only_what_is_current_can_be_contradicted(status: Status, current: bool) -> None:
    assert reaches(old(status=status), Scope.USER) is current


@pytest.mark.parametrize("marker", [Marker.TEMPORARY, Marker.CONDITIONAL])
def test_spec_4_1_7_what_holds_only_today_does_not_contradict_what_holds_in_general(marker: Marker) -> None:
    assert not reaches(old(), Scope.SESSION, markers=frozenset({marker}))
    assert not reaches(old(), Scope.SCENE, "travel", markers=frozenset({marker}))


def test_spec_4_1_7_what_is_meant_for_here_does_not_contradict_what_holds_in_general() -> None:
    assert not reaches(old(), Scope.SCENE, "travel", scope=Scope.SCENE)


def test_spec_6_what_is_only_weak_still_contradicts() -> None:
    assert reaches(old(), Scope.SESSION, source=Source.INFERRED)
    assert reaches(old(), Scope.SESSION, markers=frozenset({Marker.HEDGED}))


def test_spec_6_one_message_stands_together_unless_it_marks_a_change() -> None:
    """早上九点上班，下午六点下班; but "I live in Oslo. No wait, in Bergen"."""
    here = an_evidence(session_id="s2", message_id="n0")
    assert not reaches(old(evidence=(here,)), Scope.USER)
    assert reaches(old(evidence=(here,)), Scope.USER, markers=frozenset({Marker.CORRECTION}))
    assert reaches(old(evidence=(here,)), Scope.USER, markers=frozenset({Marker.LASTING_CHANGE}))
    assert reaches(old(evidence=(an_evidence(), here)), Scope.USER)
    assert reaches(old(evidence=()), Scope.USER)


def test_spec_6_a_general_statement_contradicts_a_narrow_one() -> None:
    assert reaches(old(scope=Scope.SESSION), Scope.USER)
    assert reaches(old(scope=Scope.SCENE, scene="travel"), Scope.USER)


def test_spec_4_1_7_two_scenes_do_not_meet() -> None:
    memory = old(scope=Scope.SCENE, scene="travel")
    assert reaches(memory, Scope.SCENE, "travel", scope=Scope.SCENE)
    assert not reaches(memory, Scope.SCENE, "dining", scope=Scope.SCENE)


def test_spec_4_1_7_two_sessions_do_not_meet() -> None:
    here, there = an_evidence(session_id="s2"), an_evidence(session_id="s1")
    assert reaches(old(scope=Scope.SESSION, evidence=(there, here)), Scope.SESSION, scope=Scope.SESSION)
    assert not reaches(old(scope=Scope.SESSION, evidence=(there,)), Scope.SESSION, scope=Scope.SESSION)


# the table


def row(memory: Memory, said_days: float = 1, **over: Any) -> Resolution:
    markers = frozenset(over.pop("markers", ()))
    candidate = a_candidate(TURN, dimension=memory.dimension, object="杭州", markers=markers, **over)
    sure = source_confidence(candidate, default_rules())
    said_at = NOW + timedelta(days=said_days)
    return resolve(Dispute(candidate, memory, said_at, sure, default_rules(), DIMENSIONS))


def test_spec_6_fact_the_newest_verified_statement_wins() -> None:
    assert row(old()) == Resolution(Outcome.REPLACE, Reason.NEWEST_WINS)
    assert row(old(), markers={Marker.CORRECTION}) == Resolution(Outcome.REPLACE, Reason.CORRECTION)


@pytest.mark.parametrize(
    ("lock", "days", "outcome"),
    [
        (Lock.CONFIRMED, 180, Outcome.REPLACE),
        (Lock.CONFIRMED, 180.5, Outcome.ASK),
        (Lock.PENDING, 500, Outcome.REPLACE),
    ],
)
def test_spec_6_fact_a_confirmed_one_older_than_180_days_is_asked_about(
    lock: Lock, days: float, outcome: Outcome
) -> None:
    assert row(old(lock=lock), days).outcome is outcome


def test_spec_6_the_gap_counts_from_the_last_time_it_was_said() -> None:
    again = an_evidence(session_id="s9", created_at=NOW + 100 * DAY)
    assert row(old(lock=Lock.CONFIRMED, evidence=(an_evidence(), again)), 200).outcome is Outcome.REPLACE


def test_spec_6_fact_an_inferred_one_asks_first() -> None:
    assert row(old(), source=Source.INFERRED) == Resolution(Outcome.ASK, Reason.ASK_FIRST)


@pytest.mark.parametrize("marker", [Marker.CORRECTION, Marker.LASTING_CHANGE])
def test_spec_6_preference_an_explicit_correction_replaces_at_once(marker: Marker) -> None:
    """其实, 不对, 更正, from now on."""
    assert row(old("seat"), markers={marker}) == Resolution(Outcome.REPLACE, Reason.CORRECTION)


def test_spec_6_preference_otherwise_the_new_one_is_a_weak_rival() -> None:
    assert row(old("seat")) == Resolution(Outcome.RIVAL, Reason.WEAK_RIVAL, weaken=True)


def test_spec_6_state_a_marked_correction_wins() -> None:
    memory = old("need", confidence=0.98, confirmations=affirmed("s3"))
    assert row(memory, markers={Marker.CORRECTION}) == Resolution(Outcome.REPLACE, Reason.CORRECTION)


@pytest.mark.parametrize(
    ("memory", "candidate", "outcome"),
    [
        ({"confidence": 0.75}, {}, Outcome.REPLACE),  # a tie goes to the newer
        ({"confidence": 0.76}, {}, Outcome.RIVAL),
        ({"confidence": 0.46, "confirmations": affirmed("s3")}, {}, Outcome.RIVAL),  # affirmed +0.3
        ({"confidence": 0.45, "confirmations": affirmed("s3")}, {}, Outcome.REPLACE),
        ({"confidence": 0.75}, {"source": Source.INFERRED}, Outcome.RIVAL),  # 0.6 − 0.2
        ({"confidence": 0.60, "source": Source.INFERRED}, {"source": Source.INFERRED}, Outcome.REPLACE),
        ({"confidence": 0.90, "source": Source.INFERRED}, {}, Outcome.REPLACE),  # 0.9 − 0.2
        ({"confidence": 0.96, "source": Source.INFERRED}, {}, Outcome.RIVAL),
    ],
)
def test_spec_6_state_within_seven_days_the_higher_confidence_wins(
    memory: dict[str, Any], candidate: dict[str, Any], outcome: Outcome
) -> None:
    assert row(old("need", **memory), 7, **candidate).outcome is outcome


def test_spec_6_state_after_seven_days_the_newer_wins() -> None:
    memory = old("need", confidence=0.98, confirmations=affirmed("s3"))
    assert row(memory, 7.1) == Resolution(Outcome.REPLACE, Reason.NEWEST_WINS)


@pytest.mark.parametrize("dimension", ["allergy", "financial_limit"])
def test_spec_6_safety_is_never_automatic(dimension: str) -> None:
    memory = old(dimension, safety=True)
    for markers in ({Marker.CORRECTION}, set()):
        assert row(memory, markers=markers) == Resolution(Outcome.ASK, Reason.SAFETY)


def test_spec_6_what_is_safety_by_its_dimension_is_too() -> None:
    assert row(old("allergy", safety=False)).reason is Reason.SAFETY


@pytest.mark.parametrize("lock", [Lock.FROZEN, Lock.UNFROZEN])
def test_spec_5_a_frozen_memory_is_asked_about(lock: Lock) -> None:
    memory = old(lock=lock, safety=True)
    assert row(memory, 1, markers={Marker.CORRECTION}) == Resolution(Outcome.ASK, Reason.FROZEN)


def test_spec_2_an_older_statement_is_a_past_period_and_never_supersedes() -> None:
    for lock in Lock:
        assert row(old(lock=lock), -1) == Resolution(Outcome.PAST, Reason.PAST_PERIOD)
    assert row(old(), 0).outcome is Outcome.REPLACE


@pytest.mark.parametrize(
    ("lock", "outcome"),
    [(Lock.CONFIRMED, Outcome.KEEP), (Lock.FROZEN, Outcome.ASK), (Lock.PENDING, Outcome.REPLACE)],
)
def test_spec_5_emotion_never_changes_a_confirmed_or_frozen_memory(lock: Lock, outcome: Outcome) -> None:
    assert row(old(lock=lock), emotional=True).outcome is outcome


@pytest.mark.parametrize(
    ("over", "outcome"),
    [
        ({}, Outcome.REPLACE),  # 0.95
        ({"markers": {Marker.CORRECTION}}, Outcome.REPLACE),  # 1.0
        ({"markers": {Marker.HEDGED}}, Outcome.ASK),  # 0.7
        ({"source": Source.INFERRED}, Outcome.ASK),  # 0.6
    ],
)
def test_spec_5_a_confirmed_memory_needs_sure_words(over: dict[str, Any], outcome: Outcome) -> None:
    assert row(old(lock=Lock.CONFIRMED), **over).outcome is outcome


def test_spec_6_when_categories_differ_the_dimension_picks_the_row() -> None:
    memory = old("seat", category=Category.FACT)
    assert row(memory, category=Category.PREFERENCE).outcome is Outcome.RIVAL
    memory = old("city", category=Category.PREFERENCE)
    assert row(memory, category=Category.FACT).outcome is Outcome.REPLACE


def test_spec_6_when_categories_differ_in_an_open_dimension_the_old_one_picks_the_row() -> None:
    memory = old("shoe", category=Category.PREFERENCE, layer=Layer.PREFERENCE)
    assert row(memory, category=Category.FACT).outcome is Outcome.RIVAL
