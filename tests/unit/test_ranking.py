"""What answers a query, and how well (SPEC §7.1, §7.2, §7.3)."""

from __future__ import annotations

from datetime import datetime
from math import prod
from typing import Any

import numpy as np
import pytest

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.decay import decay
from hermes_memory.core.model import Category, Layer, Lock, Memory, Scope, Status, Tier
from hermes_memory.core.ranking import (
    Query,
    Ranked,
    Shelf,
    always_on,
    current_side,
    in_reach,
    rank,
    relevance,
)
from hermes_memory.core.vectors import VectorTable
from hermes_memory.ports.embedder import Vector
from tests.small_world import (
    CALIBRATION,
    DAY,
    DIMENSIONS,
    NOW,
    a_memory,
    an_evidence,
    default_rules,
    rules,
    words,
)

RULES = default_rules()
SAFE = {"dimension": "allergy", "layer": Layer.RESTRICTION, "safety": True}


def unit(cosine: float) -> Vector:
    """A vector with this cosine to the query's."""
    return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


def a_query(text: str = "?", **over: Any) -> Query:
    values: dict[str, Any] = {
        "text": text, "vector": unit(1.0), "words": words(text), "session_id": None, "scene": None,
        "as_of": NOW + DAY, "top_k": 6,
    }  # fmt: skip
    return Query(**(values | over))


def a_shelf(*held: tuple[Memory, float]) -> Shelf:
    """Memories with the cosine each has to the query."""
    table, index = VectorTable(2), WordIndex()
    for memory, cosine in held:
        table.put(memory.id, unit(cosine))
        index.put(memory.id, words(memory.content))
    return shelf_of({memory.id: memory for memory, _ in held}, table, index)


def shelf_of(memories: dict[str, Memory], table: VectorTable, index: WordIndex) -> Shelf:
    slots: dict[str, dict[str, Memory]] = {}
    for memory in memories.values():
        slots.setdefault(memory.dimension, {})[memory.id] = memory
    rivals = {memory.id: memory for memory in memories.values() if memory.rival_of}
    return Shelf(memories, table, index, slots, rivals)


def ranked(shelf: Shelf, query: Query | None = None) -> list[Ranked]:
    return rank(shelf, query or a_query(), CALIBRATION, RULES, DIMENSIONS)


def ids(shelf: Shelf, query: Query | None = None) -> list[str]:
    return [hit.memory.id for hit in ranked(shelf, query)]


# the score


@pytest.mark.parametrize(
    ("lock", "weight"),
    [(Lock.FROZEN, 1.2), (Lock.UNFROZEN, 1.2), (Lock.CONFIRMED, 1.0), (Lock.PENDING, 0.8)],
)
def test_spec_7_2_a_score_is_the_product_of_its_published_parts(lock: Lock, weight: float) -> None:
    memory = a_memory(
        lock=lock, category=Category.EVENT, layer=None, importance=0.7, negative=True, stability=0.5
    )
    (hit,) = ranked(a_shelf((memory, 0.9)), a_query(as_of=NOW + 15 * DAY))
    assert hit.parts == {
        "relevance": pytest.approx(0.9),
        "decay": decay(memory, NOW + 15 * DAY, RULES.life),
        "lock": weight,
        "importance": 0.7,
        "polarity": 1.2,
    }
    assert hit.score == pytest.approx(prod(hit.parts.values()))


def test_spec_7_2_only_what_is_negative_is_raised() -> None:
    (hit,) = ranked(a_shelf((a_memory(), 0.9)))
    assert hit.parts["polarity"] == 1.0


def test_spec_7_2_best_first_then_the_newest_words_then_the_id() -> None:
    newer = an_evidence(created_at=NOW + 0.5 * DAY)
    shelf = a_shelf(
        (a_memory(id="b"), 0.9), (a_memory(id="a"), 0.9), (a_memory(id="new", evidence=(newer,)), 0.9),
        (a_memory(id="best"), 0.99), (a_memory(id="sure", lock=Lock.CONFIRMED), 0.9),
    )  # fmt: skip
    assert ids(shelf) == ["sure", "best", "new", "a", "b"]


def test_spec_7_2_what_decayed_gives_way_and_the_order_is_by_the_whole_score() -> None:
    faded = a_memory(id="faded", category=Category.EVENT, layer=None)
    shelf = a_shelf((faded, 0.99), *((a_memory(id=str(n)), 0.8 + n / 100) for n in range(5)))
    late = a_query(as_of=NOW + 90 * DAY, top_k=3)
    assert ids(shelf, late) == ["4", "3", "2"]
    everything = ranked(shelf, a_query(as_of=NOW + 90 * DAY, top_k=100))
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    assert everything[-1].memory is faded


def test_spec_7_2_at_most_k() -> None:
    shelf = a_shelf(*((a_memory(id=str(n)), 0.8 + n / 100) for n in range(9)))
    assert ids(shelf) == ["8", "7", "6", "5", "4", "3"]
    assert ids(shelf, a_query(top_k=1)) == ["8"]


# relevance


@pytest.mark.parametrize(("cosine", "found"), [(0.77, True), (0.75, False)])
def test_spec_7_3_the_threshold_is_on_the_calibrated_scale(cosine: float, found: bool) -> None:
    assert bool(ids(a_shelf((a_memory(), cosine)))) is found


def test_spec_7_3_a_bad_best_hit_stays_low_whatever_else_is_there() -> None:
    """Nothing is rescaled per query: a hit has the same relevance alone and among others."""
    low, high = a_memory(id="low", content="x"), a_memory(id="high", content="y")
    alone = relevance(a_shelf((low, 0.8)), a_query(), CALIBRATION, RULES.recall, DIMENSIONS)
    among = relevance(a_shelf((low, 0.8), (high, 0.99)), a_query(), CALIBRATION, RULES.recall, DIMENSIONS)
    assert alone["low"] == among["low"] == pytest.approx(0.8)
    assert relevance(a_shelf((low, 0.5)), a_query(), CALIBRATION, RULES.recall, DIMENSIONS) == {}


def test_spec_7_1_words_and_meaning_join_and_neither_hides_the_other() -> None:
    memory = a_memory(content="zebra")
    both = relevance(a_shelf((memory, 0.5)), a_query("zebra"), CALIBRATION, RULES.recall, DIMENSIONS)
    assert both["mem-1"] == pytest.approx(1 - 0.5 * (1 - 0.6))
    alone = rules(recall={"lexical_weight": 1.0}).recall
    exact = relevance(a_shelf((memory, 0.0)), a_query("zebra"), CALIBRATION, alone, DIMENSIONS)
    assert exact["mem-1"] == pytest.approx(1.0)


def test_spec_7_1_words_alone_do_not_reach_the_threshold_by_default() -> None:
    assert ids(a_shelf((a_memory(content="zebra"), 0.0)), a_query("zebra")) == []


def test_spec_7_1_a_query_that_calls_for_a_slot_finds_its_memories() -> None:
    home, pet = a_memory(dimension="city"), a_memory(id="pet", dimension="pet")
    (hit,) = ranked(a_shelf((home, 0.0), (pet, 0.0)), a_query("你知道我住哪吗"))
    assert (hit.memory.id, hit.parts["relevance"]) == ("mem-1", 0.85)
    (hit,) = ranked(a_shelf((home, 0.95)), a_query("where do I live"))
    assert hit.parts["relevance"] == pytest.approx(0.95)


def test_a_cue_word_is_a_whole_word_or_a_phrase() -> None:
    assert DIMENSIONS.called_by("where do I live?") == {"city"}
    assert DIMENSIONS.called_by("alive") == set()
    assert DIMENSIONS.called_by("can I SIT DOWN here") == {"seat"}


def test_an_empty_shelf_answers_nothing() -> None:
    assert ids(a_shelf(), a_query("住哪")) == []


def test_a_memory_whose_vector_is_missing_is_passed_over() -> None:
    shelf = a_shelf((a_memory(id="a", content="zebra"), 0.9), (a_memory(id="b", content="zebra"), 0.9))
    shelf.vectors.remove("b")
    assert ids(shelf, a_query("zebra")) == ["a"]


def test_a_vector_whose_memory_is_gone_is_passed_over() -> None:
    shelf = a_shelf((a_memory(), 0.9))
    assert ids(shelf_of({}, shelf.vectors, shelf.words)) == []


# reach


@pytest.mark.parametrize(
    ("status", "seen"),
    [(Status.ACTIVE, True), (Status.REVIEW, True), (Status.SUPERSEDED, False), (Status.ARCHIVED, False)],
)
def test_spec_2_review_is_seen_when_the_topic_is_raised_and_the_past_is_not(
    status: Status, seen: bool
) -> None:
    assert in_reach(a_memory(status=status), a_query()) is seen


@pytest.mark.parametrize(("as_of", "seen"), [(NOW - DAY, False), (NOW, True), (NOW + DAY, True)])
def test_spec_7_6_nothing_is_known_before_it_was_said(as_of: datetime, seen: bool) -> None:
    assert in_reach(a_memory(), a_query(as_of=as_of)) is seen


def test_spec_7_6_a_period_that_is_over_is_out_and_an_episode_is_not() -> None:
    assert not in_reach(a_memory(valid_to=NOW + DAY), a_query())
    assert in_reach(a_memory(valid_to=NOW + 2 * DAY), a_query())
    assert in_reach(a_memory(valid_to=NOW, category=Category.EVENT, layer=None), a_query())


@pytest.mark.parametrize(
    ("over", "query", "seen"),
    [
        ({"scope": Scope.USER}, {}, True),
        ({"scope": Scope.SESSION}, {}, False),
        ({"scope": Scope.SESSION}, {"session_id": "s1"}, True),
        ({"scope": Scope.SESSION}, {"session_id": "s2"}, False),
        ({"scope": Scope.SESSION, "scene": "dining"}, {"scene": "dining"}, False),
        ({"scope": Scope.SCENE, "scene": "dining"}, {"scene": "dining"}, True),
        ({"scope": Scope.SCENE, "scene": "dining"}, {"scene": "travel"}, False),
        ({"scope": Scope.SCENE, "scene": "dining"}, {}, False),
        ({"scope": Scope.SCENE, "scene": "dining"}, {"session_id": "s1", "scene": "travel"}, True),
        ({"scope": Scope.SCENE}, {}, False),
    ],
)
def test_spec_4_1_7_scope_bounds_recall(over: dict[str, Any], query: dict[str, Any], seen: bool) -> None:
    assert in_reach(a_memory(**over), a_query(**query)) is seen
    assert bool(ids(a_shelf((a_memory(**over), 0.9)), a_query(**query))) is seen


# what is always there


@pytest.mark.parametrize(
    ("over", "always"),
    [
        ({"layer": Layer.RESTRICTION}, True),
        ({"layer": Layer.RESTRICTION, "lock": Lock.CONFIRMED}, True),
        (SAFE, True),
        (SAFE | {"subject": "女儿"}, True),
        ({"layer": Layer.RESTRICTION, "subject": "女儿"}, False),
        ({"lock": Lock.FROZEN, "subject": "女儿"}, False),
        ({"dimension": "form_of_address", "layer": Layer.STYLE}, True),
        ({"lock": Lock.FROZEN}, True),
        ({"lock": Lock.CONFIRMED}, False),
        ({"lock": Lock.FROZEN, "layer": Layer.PREFERENCE}, False),
        ({"layer": Layer.RESTRICTION, "status": Status.REVIEW}, False),
        (SAFE | {"status": Status.ARCHIVED}, False),
        ({"layer": Layer.RESTRICTION, "rival_of": "x"}, False),
        (SAFE | {"rival_of": "x"}, True),  # every active safety memory, whatever its lock
    ],
)
def test_spec_7_1_what_is_always_there(over: dict[str, Any], always: bool) -> None:
    assert always_on(a_memory(**over)) is always


# two sides (SPEC §6)


def sides(rival: dict[str, Any], query: dict[str, Any], **over: Any) -> list[str]:
    there = {"evidence": (an_evidence(session_id="s2"),), "rival_of": "old"}
    shelf = a_shelf((a_memory(id="old", **over), 0.9), (a_memory(id="new", **(there | over | rival)), 0.9))
    return sorted(ids(shelf, a_query(**query)))


def test_spec_6_in_its_own_session_the_newest_statement_guides() -> None:
    assert sides({"scope": Scope.SESSION}, {"session_id": "s2"}) == ["new"]
    assert sides({"scope": Scope.USER}, {"session_id": "s2"}) == ["new"]


def test_spec_6_in_its_scene_a_rival_guides_too() -> None:
    assert sides({"scope": Scope.SCENE, "scene": "dining"}, {"scene": "dining"}) == ["new"]


@pytest.mark.parametrize("scope", Scope)
def test_spec_6_elsewhere_the_old_one_stands_until_the_user_has_answered(scope: Scope) -> None:
    assert sides({"scope": scope}, {"session_id": "s3"}) == ["old"]


@pytest.mark.parametrize("status", [Status.REVIEW, Status.ARCHIVED])
def test_spec_6_a_rival_that_is_not_active_silences_nothing(status: Status) -> None:
    assert sides({"status": status}, {"session_id": "s2"}) == ["old"]


def test_spec_6_safety_and_frozen_memories_are_never_silenced() -> None:
    assert sides({}, {"session_id": "s2"}, safety=True) == ["new", "old"]
    frozen = {"lock": Lock.PENDING, "tier": Tier.WORKING}
    assert sides(frozen, {"session_id": "s2"}, lock=Lock.FROZEN, tier=Tier.CORE) == ["new", "old"]
    assert sides({}, {"session_id": "s3"}, safety=True) == ["new", "old"]


def test_spec_6_a_rival_of_what_is_gone_speaks_for_itself() -> None:
    rival = a_memory(id="new", rival_of="erased")
    assert current_side([rival], [rival], {"new": rival}, a_query()) == {"new"}
