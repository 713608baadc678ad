"""What answers a query, and how well (SPEC §7.1, §7.2, §7.3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from math import exp, prod
from typing import Any

import numpy as np
import pytest

from hermes_memory.core.asking import Asked, Errand, Period
from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.daytime import Daytimes
from hermes_memory.core.decay import decay
from hermes_memory.core.fusion import Match, Places
from hermes_memory.core.model import Category, Layer, Lock, Memory, Scope, Status, Tier
from hermes_memory.core.ranking import (
    Query,
    Ranked,
    Shelf,
    Yardstick,
    always_on,
    current_side,
    in_reach,
    matched,
    rank,
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
    rules,
    words,
)

RULES = rules(fusion={"cut": 0.0})
YARDSTICK = Yardstick(CALIBRATION, RULES, Daytimes())
SAFE = {"dimension": "allergy", "layer": Layer.RESTRICTION, "safety": True}


def unit(cosine: float) -> Vector:
    """A vector with this cosine to the query's."""
    return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


def a_query(text: str = "?", **over: Any) -> Query:
    values: dict[str, Any] = {
        "text": text, "vector": unit(1.0), "words": words(text), "session_id": None, "scene": None,
        "as_of": NOW + DAY, "top_k": 6, "called": frozenset(DIMENSIONS.called_by(text)),
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
    places = Places()
    for memory in memories.values():
        places.put(memory.id, ((piece.session_id, piece.turn_index) for piece in memory.evidence))
    return Shelf(memories, table, index, slots, rivals, places)


def ranked(shelf: Shelf, query: Query | None = None) -> list[Ranked]:
    return rank(shelf, query or a_query(), YARDSTICK)


def matched_with(shelf: Shelf, query: Query | None = None, **sections: Any) -> dict[str, Match]:
    return matched(shelf, query or a_query(), replace(YARDSTICK, rules=rules(**sections)))


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
        "match": pytest.approx(1 / (1 + exp(RULES.fusion.even - RULES.fusion.meaning * 0.9 / 0.76))),
        "decay": decay(memory, NOW + 15 * DAY, RULES.life),
        "lock": weight,
        "importance": 0.7,
        "polarity": 1.2,
        "fit": 1.0,
        "feedback": 1.0,
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
    alone = matched_with(a_shelf((low, 0.8)))
    among = matched_with(a_shelf((low, 0.8), (high, 0.99)))
    assert alone["low"] == among["low"]
    assert alone["low"].relevance == pytest.approx(0.8)
    assert matched_with(a_shelf((low, 0.5))) == {}


def test_spec_7_1_words_and_meaning_join_and_neither_hides_the_other() -> None:
    memory = a_memory(content="zebra")
    neither = matched_with(a_shelf((memory, 0.5)), a_query("lion"), recall={"threshold": 0.0})["mem-1"]
    both = matched_with(a_shelf((memory, 0.5)), a_query("zebra"))["mem-1"]
    more = matched_with(a_shelf((memory, 0.6)), a_query("zebra"))["mem-1"]
    assert (neither.relevance, neither.match) < (both.relevance, both.match) < (more.relevance, more.match)


def test_spec_7_1_a_stray_word_of_a_long_query_does_not_reach_the_threshold() -> None:
    memory = a_memory(content="zebra")
    assert ids(a_shelf((memory, 0.1)), a_query("zebra")) == ["mem-1"]
    assert ids(a_shelf((memory, 0.1)), a_query("zebra a b c d e f g")) == []


def test_spec_7_2_what_stands_far_below_the_best_stays_out_unless_its_slot_is_called_for() -> None:
    plain, far = a_memory(id="plain", content="zebra"), a_memory(id="far", content="x")
    home = a_memory(id="home", content="y", dimension="city")
    shelf = a_shelf((plain, 0.9), (far, 0.8), (home, 0.8))
    only_meant = replace(YARDSTICK, rules=rules(fusion={"cut": 0.5}))
    seen = [{hit.memory.id for hit in rank(shelf, query, only_meant)} for query in (
        a_query("zebra"), a_query("zebra 住哪"), a_query("zebra", whole=True), a_query("lion"),
    )]  # fmt: skip
    assert seen == [{"plain"}, {"plain", "home"}, {"plain", "far", "home"}, {"plain", "far", "home"}]


def test_spec_7_2_a_query_that_speaks_of_the_user_is_evidence() -> None:
    shelf = a_shelf((a_memory(), 0.6))
    assert ids(shelf) == []
    assert ids(shelf, a_query(asked=Asked(personal=True))) == ["mem-1"]


def test_spec_7_2_an_errand_must_be_met_almost_word_for_word_and_calls_for_no_slot() -> None:
    home = a_memory(dimension="city", content="x")
    errand = Asked(errand=Errand.TRANSLATION)
    assert ids(a_shelf((home, 0.9)), a_query("住哪", asked=errand)) == []
    assert ids(a_shelf((home, 0.99)), a_query("住哪", asked=errand)) == ["mem-1"]
    assert ids(a_shelf((home, 0.9)), a_query("住哪", asked=replace(errand, personal=True))) == ["mem-1"]


def test_spec_7_1_a_time_that_is_asked_for_brings_what_was_said_or_is_true_then() -> None:
    """And what is of another time steps back; what is asked of the past does not fade."""
    day = Asked(periods=(Period(NOW - DAY, NOW + 0.1 * DAY),), about_past=True)
    said = a_memory(id="said", category=Category.EVENT, layer=None)
    since = a_memory(id="since", evidence=(an_evidence(created_at=NOW - 9 * DAY),), valid_from=NOW - DAY)
    other = a_memory(id="other", evidence=(an_evidence(created_at=NOW - 9 * DAY),))
    shelf = a_shelf((said, 0.5), (since, 0.5), (other, 0.9))
    found = {hit.memory.id: hit.parts for hit in ranked(shelf, a_query(asked=day, as_of=NOW + 90 * DAY))}
    assert {name: parts["fit"] for name, parts in found.items()} == {"said": 1.3, "since": 1.3, "other": 0.5}
    assert found["said"]["decay"] == 1.0
    assert "said" not in ids(shelf)


def test_spec_7_1_a_name_is_matched_as_a_whole() -> None:
    """What holds all words of it has more evidence than the same words had apart; half of it counts for nothing."""
    whole, half = a_memory(id="whole", content="red fort"), a_memory(id="half", content="red x")
    shelf = a_shelf((whole, 0.8), (half, 0.8))
    plain, named = (
        {hit.memory.id: hit.parts["match"] for hit in ranked(shelf, a_query("red fort", named=names))}
        for names in ((), (("red", "fort"),))
    )
    assert named["whole"] > plain["whole"]
    assert named["half"] == plain["half"]


# episodes


def a_conversation(*held: tuple[str, float]) -> Shelf:
    """Turns of one conversation as episodes, each with its cosine to the query."""
    memories = [
        (a_memory(id=f"e{n}", content=text, category=Category.EVENT, layer=None, dimension="said",
                  evidence=(an_evidence(turn_index=n),)), cosine)
        for n, (text, cosine) in enumerate(held)
    ]  # fmt: skip
    return a_shelf(*memories)


def test_spec_7_1_the_turns_beside_an_episode_speak_for_it() -> None:
    far = a_conversation(("v", 0.6), ("x", 0.1), ("y", 0.1), ("z", 0.1), ("w", 0.1))
    found = matched_with(far, recall={"threshold": 0.0})
    assert found["e1"].relevance > found["e2"].relevance > found["e3"].relevance
    assert found["e0"].match > found["e1"].match > found["e2"].match > found["e3"].match


def test_spec_7_1_statements_stand_alone() -> None:
    shelf = a_conversation(("zebra", 0.9), ("x", 0.5))
    fact = a_memory(id="fact", content="f", evidence=(an_evidence(turn_index=1),))
    with_fact = a_shelf(
        *((memory, 0.9 if memory.id == "e0" else 0.5) for memory in (*shelf.memories.values(), fact))
    )
    found = matched_with(with_fact, a_query("zebra"), recall={"threshold": 0.0})
    assert found["fact"].relevance == pytest.approx(0.5)
    assert found["e1"].relevance > 0.5


@pytest.mark.parametrize("best", ["episode", "fact"])
def test_what_was_distilled_from_a_turn_and_the_turn_are_one_hit(best: str) -> None:
    cosines = {"episode": 0.9, "fact": 0.9, "other": 0.8} | {best: 0.99}
    episode = a_memory(id="episode", category=Category.EVENT, layer=None, dimension="said")
    fact, other = a_memory(id="fact"), a_memory(id="other", evidence=(an_evidence(turn_index=9),))
    shelf = a_shelf(*((memory, cosines[memory.id]) for memory in (episode, fact, other)))
    assert set(ids(shelf)) == {best, "other"}


def test_spec_7_1_a_query_that_calls_for_a_slot_finds_its_memories() -> None:
    home, pet = a_memory(dimension="city"), a_memory(id="pet", dimension="pet")
    (hit,) = ranked(a_shelf((home, 0.0), (pet, 0.0)), a_query("你知道我住哪吗"))
    assert (hit.memory.id, hit.parts["relevance"]) == ("mem-1", 0.85)
    (hit,) = ranked(a_shelf((home, 0.95)), a_query("where do I live"))
    assert hit.parts["relevance"] == pytest.approx(0.95)


def test_of_many_that_a_slot_holds_those_with_most_evidence_are_looked_at() -> None:
    homes = ((a_memory(id=str(n), dimension="city", importance=1 - n / 100), n / 100) for n in range(40))
    assert ids(a_shelf(*homes), a_query("住哪", top_k=1)) == ["36"]  # the best of the four with most


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
