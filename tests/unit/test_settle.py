"""A settlement: candidates through both gates, on the board (SPEC §4.1.8, §5, §6)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.core.candidate import Marker, Refusal, SpeechAct
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.model import (
    Category,
    Layer,
    Lock,
    Memory,
    Polarity,
    Role,
    Scope,
    Source,
    Status,
    Tier,
)
from tests.small_world import (
    DAY,
    HOUR,
    NOW,
    Said,
    a_memory,
    affirmed,
    remembered,
    say,
    settle,
)

MINUS = Polarity.NEGATIVE
FIX = frozenset({Marker.CORRECTION})


def city(name: str, **over: Any) -> Said:
    return say(f"我住在{name}", object=name, **over)


def seat(name: str, **over: Any) -> Said:
    return say(f"我喜欢坐{name}", dimension="seat", object=name, **over)


def peanuts(polarity: Polarity = Polarity.POSITIVE, **over: Any) -> Said:
    text = "我对花生过敏" if polarity is Polarity.POSITIVE else "我对花生不过敏"
    return say(text, dimension="allergy", object="花生", polarity=polarity, **over)


def rest(*memories: Memory) -> list[Memory]:
    """Bystanders that nothing in these tests is about."""
    return [
        *memories,
        a_memory(
            id="mother",
            subject="妈妈",
            dimension="city",
            object="无锡",
            content="妈妈住在无锡",
            content_hash="x1",
        ),
        a_memory(id="cat", dimension="pet", object="猫", content="用户养猫", content_hash="x2"),
        a_memory(id="gone", dimension="city", object="北京", content_hash="x3", status=Status.SUPERSEDED),
    ]


def pair(*, weak: Memory | None = None) -> tuple[Memory, Memory]:
    """A standing preference and its rival of a later session."""
    old = remembered(seat("靠窗"))
    settled = settle([old], seat("过道", session="s2", at=NOW + DAY), seed="rival")
    return settled.board[old.id], weak or settled.new


# new


def test_spec_3_3_a_new_memory_rests_on_the_users_words() -> None:
    said = city("苏州")
    made = settle([], said).new
    (piece,) = made.evidence
    assert piece.quote == said.turn.content[piece.start : piece.end] == "我住在苏州"
    assert (piece.session_id, piece.message_id, piece.role) == ("s1", said.turn.message_id, Role.USER)
    assert (piece.turn_index, piece.extractor, piece.created_at) == (0, "test-1", NOW)


def test_spec_2_times_of_meaning_are_statement_times() -> None:
    made = settle([], city("苏州", at=NOW - 90 * DAY), now=NOW).new
    assert made.created_at == made.updated_at == made.stated_at == NOW - 90 * DAY


def test_the_same_operation_gives_the_same_ids_and_another_gives_others() -> None:
    first, again, other = (settle([], city("苏州"), seed=seed).new.id for seed in ("a", "a", "b"))
    assert first == again != other


def test_spec_4_1_a_refusal_is_logged_with_its_message_and_touches_nothing() -> None:
    said = city("苏州", importance=0.1)
    settled = settle(rest(), said)
    assert not settled.board.changed
    (change,) = settled.board.changes
    assert (change.op, change.reason, change.message_id) == ("refused", "low_value", said.turn.message_id)


def test_spec_4_1_what_the_extractor_refused_is_logged_too() -> None:
    settled = settle([], refusals=(Refusal("m1", "filler"),))
    assert [(c.op, c.reason, c.message_id) for c in settled.board.changes] == [("refused", "filler", "m1")]


def test_spec_4_1_5_a_one_off_opinion_is_an_event_and_contradicts_nothing() -> None:
    standing = remembered(say("我喜欢这家餐厅", dimension="drink", object="这家餐厅"))
    said = say(
        "这家餐厅太差，讨厌", dimension="drink", object="这家餐厅", polarity=MINUS, speech_act=SpeechAct.OPINION,
        session="s2", at=NOW + DAY, markers=FIX,
    )  # fmt: skip
    settled = settle([standing], said)
    assert (settled.new.category, settled.new.layer) == (Category.EVENT, None)
    assert settled.board[standing.id] == standing


def test_spec_4_1_7_the_scene_is_kept_with_the_scene_scope_only() -> None:
    scoped = settle([], city("苏州", scene="travel", scope=Scope.SCENE)).new
    general = settle([], city("苏州", scene="travel")).new
    assert (scoped.scope, scoped.scene) == (Scope.SCENE, "travel")
    assert (general.scope, general.scene) == (Scope.USER, None)


def test_spec_3_1_the_topic_falls_back_to_the_dimension() -> None:
    assert settle([], city("苏州")).new.topic == "city"
    assert settle([], city("苏州", topic="home")).new.topic == "home"


# said again (SPEC §4.1.8)


def test_spec_4_1_8_the_same_words_add_evidence_and_confidence_and_nothing_else() -> None:
    old = remembered(city("苏州"))
    settled = settle(rest(old), city("苏州", at=NOW + HOUR))
    assert [m.id for m in settled.board.changed] == [old.id]
    twin = settled.board[old.id]
    assert (len(twin.evidence), len(twin.confirmations), twin.confidence) == (2, 1, 0.85)
    assert settled.ops() == ["reinforced", "confirmed"]
    assert twin.version == old.version + 1


def test_spec_4_1_8_case_width_and_punctuation_make_no_difference() -> None:
    old = remembered(say("I live in Oslo.", object="Oslo"))
    settled = settle([old], say("i live in ＯＳＬＯ", object="oslo", at=NOW + HOUR))
    assert [m.id for m in settled.board.changed] == [old.id]


def test_spec_4_1_8_the_same_object_in_other_words_is_a_duplicate() -> None:
    old = remembered(city("苏州"))
    again = say("苏州是我家所在", object="苏州", at=NOW + HOUR)
    assert [m.id for m in settle([old], again).board.changed] == [old.id]


@pytest.mark.parametrize(("likeness", "duplicate"), [(0.85, True), (0.84, False)])
def test_spec_4_1_8_a_wider_object_needs_calibrated_likeness(likeness: float, duplicate: bool) -> None:
    old = remembered(say("I drink black coffee", dimension="drink", object="black coffee"))
    again = say("I drink coffee", dimension="drink", object="coffee", at=NOW + HOUR)
    settled = settle([old], again, similar=lambda _, __: likeness)
    assert (len(settled.all()) == 1) is duplicate


def test_spec_4_1_8_within_one_batch_only_the_same_words_are_alike() -> None:
    one = say("I drink black coffee", dimension="drink", object="black coffee")
    two = say("I drink coffee", dimension="drink", object="coffee", at=NOW + HOUR)
    assert len(settle([], one, two, similar=lambda _, __: 1.0).all()) == 2


def test_spec_4_1_8_a_narrower_object_says_more_and_is_no_duplicate() -> None:
    old = remembered(say("I drink coffee", dimension="drink", object="coffee"))
    again = say("I drink black coffee", dimension="drink", object="black coffee", at=NOW + HOUR)
    assert settle([old], again, similar=lambda _, __: 1.0).new.object == "black coffee"


def test_spec_4_1_8_likeness_alone_never_decides() -> None:
    """喜欢安静 and 喜欢热闹 are near in vector space and opposite."""
    old = remembered(say("我喜欢安静", dimension="environment", object="安静"))
    other = say("我喜欢热闹", dimension="environment", object="热闹", at=NOW + HOUR)
    settled = settle([old], other, similar=lambda _, __: 1.0)
    assert settled.new.rival_of == old.id


@pytest.mark.parametrize(
    "over",
    [{"subject": "妈妈"}, {"polarity": Polarity.POSITIVE}, {"dimension": "hometown"}, {"dimension": "event"}],
)
def test_spec_4_1_8_another_subject_side_or_dimension_is_another_memory(over: dict[str, Any]) -> None:
    old = remembered(say("我妈妈不喜欢苏州", object="苏州", polarity=MINUS))
    said = say("我妈妈讨厌苏州", object="苏州", at=NOW + HOUR, **{"polarity": MINUS} | over)
    assert len(settle([old], said, similar=lambda _, __: 1.0).all()) == 2


def test_spec_4_1_8_words_that_protect_are_not_absorbed_by_a_memory_that_does_not() -> None:
    """The same words edited into a memory of another dimension carry no safety flag and are not always on."""
    edited = remembered(say("我对花生过敏", object="花生"))
    assert not edited.safety
    settled = settle([edited], peanuts(at=NOW + HOUR))
    assert (settled.new.safety, settled.new.lock) == (True, Lock.FROZEN)


def test_spec_4_1_8_an_event_is_no_twin_of_a_fact_in_the_same_words() -> None:
    old = remembered(city("苏州"))
    assert settle([old], city("苏州", dimension="event", at=NOW + HOUR)).new.id != old.id


def test_spec_4_1_8_twins_within_one_batch_are_found() -> None:
    one = say("I drink coffee", dimension="drink", object="coffee")
    two = say("I drink coffee!", dimension="drink", object="coffee", at=NOW + HOUR)
    assert len(settle([], one, two).all()) == 1


def test_spec_4_1_8_within_one_batch_likeness_compares_the_new_vectors() -> None:
    one = say("I drink coffee", dimension="drink", object="coffee")
    two = say("I drink black coffee", dimension="drink", object="black coffee", at=NOW + HOUR)
    assert len(settle([], one, two).all()) == 2


def test_replaying_the_same_turn_changes_nothing() -> None:
    said = city("苏州")
    old = remembered(said)
    settled = settle([old], said)
    assert (settled.board.changed, settled.board.changes) == ((), [])


def test_spec_4_1_8_a_review_ends_when_it_is_said_again() -> None:
    old = remembered(city("苏州"), status=Status.REVIEW)
    settled = settle([old], city("苏州", session="s2", at=NOW + 200 * DAY))
    assert settled.board[old.id].status is Status.ACTIVE
    assert settled.ops()[0] == "reactivated"


def test_spec_5_a_frozen_memory_in_review_is_not_moved_by_a_repetition() -> None:
    old = remembered(city("苏州"), status=Status.REVIEW, lock=Lock.FROZEN, tier=Tier.CORE)
    twin = settle([old], city("苏州", session="s2", at=NOW + DAY)).board[old.id]
    assert (twin.status, len(twin.evidence)) == (Status.REVIEW, 2)


def test_spec_4_1_8_an_archived_twin_is_reactivated_with_its_clocks_and_its_vector() -> None:
    old = remembered(city("苏州"), status=Status.ARCHIVED, archived_at=NOW)
    settled = settle([old], city("苏州", session="s2", at=NOW + 90 * DAY))
    twin = settled.board[old.id]
    assert (twin.status, twin.archived_at, twin.updated_at) == (Status.ACTIVE, None, NOW + 90 * DAY)
    assert old.id in settled.vectors
    assert len(settled.all()) == 1


def test_spec_4_1_7_what_was_archived_comes_back_as_far_as_it_is_said_to_reach_now() -> None:
    """A rival of the frozen 苏州 was archived; "today in 杭州" brings it back for today, not at user scope."""
    frozen = remembered(city("苏州"), lock=Lock.FROZEN, tier=Tier.CORE)
    archived = remembered(
        city("杭州"), status=Status.ARCHIVED, archived_at=NOW, rival_of=frozen.id, tier=Tier.LONGTERM
    )
    today = city("杭州", session="s3", at=NOW + DAY, markers=frozenset({Marker.TEMPORARY}))
    back = settle([frozen, archived], today).board[archived.id]
    assert (back.status, back.scope, back.rival_of, back.tier) == (
        Status.ACTIVE,
        Scope.SESSION,
        None,
        Tier.WORKING,
    )


def test_spec_4_1_8_an_active_twin_goes_before_one_in_review_or_archived() -> None:
    archived = remembered(city("苏州"), id="archived", status=Status.ARCHIVED)
    review = remembered(city("苏州"), id="review", status=Status.REVIEW)
    active = remembered(city("苏州"), id="active")
    again = city("苏州", session="s2", at=NOW + DAY)
    assert [m.id for m in settle([archived, review, active], again).board.changed] == ["active"]
    assert [m.id for m in settle([archived, review], again).board.changed] == ["review"]


def test_spec_4_1_9_an_archived_twin_comes_back_only_through_the_conflict_gate() -> None:
    """苏州 was evicted, 杭州 took its place; 苏州 again replaces 杭州 instead of standing beside it."""
    archived = remembered(city("苏州"), status=Status.ARCHIVED, archived_at=NOW)
    current = remembered(city("杭州", session="s2", at=NOW + DAY))
    settled = settle([archived, current], city("苏州", session="s3", at=NOW + 2 * DAY))
    assert settled.board[archived.id].status is Status.ACTIVE
    assert settled.board[current.id].status is Status.SUPERSEDED
    assert len(settled.all()) == 2
    assert len(settled.board[archived.id].evidence) == 2


def test_spec_4_1_9_what_was_said_for_today_reaches_further_only_through_the_conflict_gate() -> None:
    """ "Today in 杭州" stood beside 苏州; "I live in 杭州" replaces 苏州."""
    old = remembered(city("苏州"))
    today = settle(
        [old], city("杭州", at=NOW + HOUR, markers=frozenset({Marker.TEMPORARY})), seed="today"
    ).new
    assert (today.scope, today.rival_of) == (Scope.SESSION, None)
    settled = settle([old, today], city("杭州", at=NOW + 2 * HOUR))
    assert settled.board[old.id].status is Status.SUPERSEDED
    assert (settled.board[today.id].scope, settled.board[today.id].status) == (Scope.USER, Status.ACTIVE)
    assert settled.board[today.id].confidence == 0.85
    assert sorted(settled.ops()) == ["confirmed", "reinforced", "superseded"]
    assert len(settled.all()) == 2


def test_spec_4_1_9_a_repetition_of_an_older_time_leaves_what_it_is_about_where_it_was() -> None:
    current = remembered(city("苏州", at=NOW + 9 * DAY))
    today = remembered(city("杭州", markers=frozenset({Marker.TEMPORARY})))
    settled = settle([current, today], city("杭州", session="s2", at=NOW + DAY), now=NOW + 10 * DAY)
    assert settled.board[current.id] == current
    assert (settled.board[today.id].scope, len(settled.board[today.id].evidence)) == (Scope.SESSION, 2)


def test_spec_5_what_comes_back_confirmed_does_not_freeze_at_once() -> None:
    """A form of address that was confirmed, archived, and is said again against another one."""
    name: dict[str, Any] = {"dimension": "form_of_address", "object": "老王"}
    archived = remembered(
        say("叫我老王", **name),
        lock=Lock.CONFIRMED,
        tier=Tier.LONGTERM,
        status=Status.ARCHIVED,
        archived_at=NOW,
    )
    other = remembered(
        say("叫我小王", dimension="form_of_address", object="小王"), lock=Lock.PENDING, tier=Tier.WORKING
    )
    settled = settle([archived, other], say("叫我老王", session="s2", at=NOW + DAY, markers=FIX, **name))
    assert (settled.board[archived.id].lock, settled.board[archived.id].status) == (
        Lock.CONFIRMED,
        Status.ACTIVE,
    )
    assert settled.board[other.id].status is Status.SUPERSEDED


def test_spec_6_an_archived_twin_against_a_safety_memory_is_its_rival() -> None:
    archived = remembered(peanuts(MINUS), status=Status.ARCHIVED, archived_at=NOW)
    standing = remembered(peanuts(session="s2", at=NOW + DAY))
    settled = settle([archived, standing], peanuts(MINUS, session="s3", at=NOW + 2 * DAY))
    assert settled.board[archived.id].rival_of == standing.id
    assert [request.memory_ids for request in settled.asked] == [(standing.id, archived.id)]


def test_spec_2_an_archived_twin_that_was_true_before_stays_in_the_archive() -> None:
    archived = remembered(city("苏州"), status=Status.ARCHIVED, archived_at=NOW)
    current = remembered(city("杭州", session="s2", at=NOW + 9 * DAY))
    settled = settle([archived, current], city("苏州", session="s3", at=NOW + DAY), now=NOW + 10 * DAY)
    assert settled.board[archived.id].status is Status.ARCHIVED
    assert len(settled.board[archived.id].evidence) == 2
    assert settled.board[current.id] == current


def test_spec_4_1_8_what_is_superseded_is_no_twin() -> None:
    old = remembered(city("苏州"), status=Status.SUPERSEDED)
    settled = settle([old], city("苏州", session="s2", at=NOW + DAY))
    assert settled.board[old.id] == old
    assert settled.new.id != old.id


def test_spec_6_a_new_period_of_the_same_fact_is_two_periods() -> None:
    old = remembered(
        say(
            "I lived in Oslo years ago", object="Oslo", valid_from=NOW - 2000 * DAY, valid_to=NOW - 1000 * DAY
        )
    )
    again = say("Now I live in Oslo", object="Oslo", valid_from=NOW, at=NOW + DAY, session="s2")
    settled = settle([old], again)
    assert settled.board[old.id] == old
    assert settled.new.valid_from == NOW


def test_spec_6_periods_that_do_not_meet_can_both_be_true() -> None:
    past = remembered(
        say("I lived in Oslo before", object="Oslo", valid_from=NOW - 2000 * DAY, valid_to=NOW - 1000 * DAY)
    )
    now = say("I live in Rome now", object="Rome", valid_from=NOW - 1000 * DAY, session="s2", at=NOW + DAY)
    assert settle([past], now).ops() == ["added"]
    present = remembered(say("I live in Rome now", object="Rome", valid_from=NOW - 1000 * DAY))
    before = say(
        "I lived in Oslo before", object="Oslo", valid_to=NOW - 1000 * DAY, session="s2", at=NOW + DAY
    )
    assert settle([present], before).ops() == ["added"]


def test_spec_6_one_day_said_twice_is_one_period() -> None:
    old = remembered(say("I live in Oslo now", object="Oslo", valid_from=NOW))
    again = say("I live in Oslo now", object="Oslo", valid_from=NOW + HOUR, at=NOW + DAY)
    assert [m.id for m in settle([old], again).board.changed] == [old.id]


def test_spec_4_1_7_said_again_in_general_it_reaches_further() -> None:
    old = remembered(city("苏州", scene="travel", scope=Scope.SCENE))
    twin = settle([old], city("苏州", session="s2", at=NOW + DAY)).board[old.id]
    assert (twin.scope, twin.scene) == (Scope.USER, None)


def test_spec_4_1_7_said_again_for_today_it_does_not_shrink() -> None:
    old = remembered(city("苏州"))
    today = city("苏州", session="s2", at=NOW + DAY, markers=frozenset({Marker.TEMPORARY}))
    assert settle([old], today).board[old.id].scope is Scope.USER


def test_spec_4_1_7_an_inferred_statement_reaches_further_once_met_in_another_session() -> None:
    guess: dict[str, Any] = {"source": Source.INFERRED}
    old = remembered(city("苏州", **guess))
    assert old.scope is Scope.SESSION
    here = settle([old], city("苏州", at=NOW + HOUR, **guess)).board[old.id]
    there = settle([old], city("苏州", session="s2", at=NOW + DAY, **guess)).board[old.id]
    assert (here.scope, there.scope) == (Scope.SESSION, Scope.USER)


def test_spec_5_a_repetition_of_a_frozen_memory_adds_evidence_and_keeps_its_meaning() -> None:
    old = remembered(city("苏州"), lock=Lock.FROZEN, tier=Tier.CORE, scope=Scope.SCENE, scene="travel")
    twin = settle([old], city("苏州", session="s2", at=NOW + DAY)).board[old.id]
    assert (twin.scope, twin.scene, twin.lock, len(twin.evidence)) == (Scope.SCENE, "travel", Lock.FROZEN, 2)


# facts


def test_spec_6_fact_the_newest_wins_and_the_old_one_keeps_its_history() -> None:
    old = remembered(city("苏州"))
    others = rest()
    settled = settle([old, *others], city("杭州", session="s2", at=NOW + DAY))
    ended = settled.board[old.id]
    assert (ended.status, ended.valid_to) == (Status.SUPERSEDED, NOW + DAY)
    (revision,) = ended.history
    assert (revision.object, revision.status, revision.reason) == ("苏州", Status.ACTIVE, "newest_wins")
    assert settled.new.status is Status.ACTIVE
    assert settled.ops() == ["superseded", "added"]
    assert all(settled.board[bystander.id] == bystander for bystander in others)


def test_spec_6_fact_an_end_that_was_said_is_kept() -> None:
    old = remembered(city("苏州"), valid_to=NOW + 99 * DAY)
    settled = settle([old], city("杭州", session="s2", at=NOW + DAY))
    assert settled.board[old.id].valid_to == NOW + 99 * DAY


def test_spec_2_an_older_backfilled_fact_becomes_a_past_period() -> None:
    current = remembered(city("杭州"))
    others = rest()
    settled = settle([current, *others], city("苏州", session="s2", at=NOW - 90 * DAY), now=NOW + DAY)
    assert (settled.new.status, settled.new.valid_to) == (Status.SUPERSEDED, NOW)
    assert settled.reasons() == ["past_period"]
    assert [m.id for m in settled.board.changed] == [settled.new.id]


def test_spec_6_fact_ask_first_keeps_both_and_asks() -> None:
    old = remembered(city("苏州"), lock=Lock.CONFIRMED)
    others = rest()
    settled = settle([old, *others], city("杭州", session="s2", at=NOW + 200 * DAY))
    assert (settled.new.rival_of, settled.new.scope, settled.new.status) == (
        old.id,
        Scope.USER,
        Status.ACTIVE,
    )
    standing = settled.board[old.id]
    assert (standing.status, standing.contradictions, standing.confidence) == (
        Status.ACTIVE,
        1,
        old.confidence,
    )
    assert standing.version == old.version  # a counter makes no new version (SPEC §5)
    (request,) = settled.asked
    assert request.memory_ids == (old.id, settled.new.id)
    assert request.quotes == ("我住在苏州", "我住在杭州")
    assert "我住在苏州" in request.question
    assert [option.choice for option in request.options] == list(Choice)
    assert request.expires_at - request.created_at == 30 * DAY
    assert all(settled.board[bystander.id] == bystander for bystander in others)


def test_spec_6_a_candidate_that_ends_two_memories_ends_both() -> None:
    one, two = (remembered(city(name)) for name in ("苏州", "无锡"))
    settled = settle([one, two], city("杭州", session="s2", at=NOW + DAY))
    assert {settled.board[m.id].status for m in (one, two)} == {Status.SUPERSEDED}


def test_spec_6_the_most_careful_outcome_decides_over_several() -> None:
    frozen = remembered(city("苏州"), lock=Lock.FROZEN, tier=Tier.CORE)
    other = remembered(city("无锡"))
    settled = settle([other, frozen], city("杭州", session="s2", at=NOW + DAY))
    assert settled.new.rival_of == frozen.id
    assert settled.board[other.id] == other


# preferences and rivals


def test_spec_6_preference_a_correction_replaces_at_once() -> None:
    old = remembered(seat("靠窗"))
    settled = settle([old], seat("过道", at=NOW + HOUR, markers=FIX))
    assert settled.board[old.id].status is Status.SUPERSEDED
    assert settled.board[old.id].valid_to is None
    assert settled.new.rival_of is None


def test_spec_6_preference_the_rival_is_weak_and_the_old_one_loses_a_step() -> None:
    old, rival = pair()
    assert (rival.rival_of, rival.scope, rival.status) == (old.id, Scope.SESSION, Status.ACTIVE)
    assert (old.status, old.confidence, old.contradictions) == (Status.ACTIVE, 0.65, 1)


def test_spec_6_preference_in_a_scene_the_rival_belongs_to_the_scene() -> None:
    old = remembered(seat("靠窗"))
    rival = settle([old], seat("过道", session="s2", at=NOW + DAY, scene="train")).new
    assert (rival.scope, rival.scene) == (Scope.SCENE, "train")


def test_spec_6_the_rival_wins_when_a_later_session_says_it_again() -> None:
    old, rival = pair()
    settled = settle([old, rival], seat("过道", session="s3", at=NOW + 2 * DAY))
    winner = settled.board[rival.id]
    assert settled.board[old.id].status is Status.SUPERSEDED
    assert (winner.rival_of, winner.scope, winner.status) == (None, Scope.USER, Status.ACTIVE)
    assert "rival_confirmed" in settled.reasons()


def test_spec_6_the_rival_takes_the_scene_of_the_old_one_too() -> None:
    old, rival = pair()
    old = old.with_(scope=Scope.SCENE, scene="train")
    settled = settle([old, rival], seat("过道", session="s3", at=NOW + 2 * DAY, scene="train"))
    assert (settled.board[rival.id].scope, settled.board[rival.id].scene) == (Scope.SCENE, "train")


def test_spec_6_the_rival_said_again_in_its_own_session_stays_a_rival() -> None:
    old, rival = pair()
    settled = settle([old, rival], seat("过道", session="s2", at=NOW + 2 * DAY))
    assert settled.board[rival.id].rival_of == old.id
    assert settled.board[old.id].status is Status.ACTIVE


def test_spec_2_the_rival_said_in_a_session_before_it_stays_a_rival() -> None:
    """The order of sessions is that of statement time: a backfilled one is not a later one."""
    old, rival = pair()
    settled = settle([old, rival], seat("过道", session="s0", at=NOW + HOUR), now=NOW + 2 * DAY)
    assert settled.board[rival.id].rival_of == old.id
    assert settled.board[old.id].status is Status.ACTIVE


def test_spec_6_a_correction_lets_the_rival_win_at_once() -> None:
    old, rival = pair()
    settled = settle([old, rival], seat("过道", session="s2", at=NOW + 2 * DAY, markers=FIX))
    assert settled.board[rival.id].rival_of is None
    assert settled.board[old.id].status is Status.SUPERSEDED


def test_spec_6_the_old_one_said_again_archives_the_rival() -> None:
    old, rival = pair()
    settled = settle([old, rival], seat("靠窗", session="s3", at=NOW + 2 * DAY))
    assert settled.board[rival.id].status is Status.ARCHIVED
    assert settled.board[old.id].status is Status.ACTIVE
    assert "old_said_again" in settled.reasons()


def test_spec_2_the_old_one_said_before_the_rival_archives_nothing() -> None:
    old, rival = pair()
    settled = settle([old, rival], seat("靠窗", session="s0", at=NOW + HOUR), now=NOW + 2 * DAY)
    assert settled.board[rival.id].status is Status.ACTIVE


def test_spec_6_a_rival_once_given_up_starts_anew() -> None:
    old, rival = pair()
    rival = rival.with_(status=Status.ARCHIVED, archived_at=NOW)
    settled = settle([old, rival], seat("过道", session="s3", at=NOW + 5 * DAY))
    again = settled.board[rival.id]
    assert (again.status, again.rival_of, again.scope) == (Status.ACTIVE, old.id, Scope.SESSION)
    assert settled.board[old.id].status is Status.ACTIVE


def test_spec_6_a_rival_that_only_an_archived_memory_opposes_stands_for_itself() -> None:
    old, rival = pair()
    for gone in (Status.ARCHIVED, Status.SUPERSEDED):
        settled = settle([old.with_(status=gone), rival], seat("过道", session="s3", at=NOW + 5 * DAY))
        assert (settled.board[rival.id].rival_of, settled.board[rival.id].scope) == (None, Scope.USER)


def test_spec_4_1_9_a_rival_whose_old_one_went_stands_only_through_the_conflict_gate() -> None:
    """靠窗 was evicted, its rival 过道 stayed; 前排 came; 过道 again is now a rival of 前排."""
    old, rival = pair()
    old = old.with_(status=Status.ARCHIVED, archived_at=NOW)
    front = settle([old], seat("前排", session="s3", at=NOW + 2 * DAY), seed="front").new
    settled = settle([old, rival, front], seat("过道", session="s4", at=NOW + 3 * DAY))
    assert settled.board[rival.id].rival_of == front.id
    assert settled.board[front.id].status is Status.ACTIVE


def test_spec_4_1_9_a_rival_of_what_went_is_contradicted_like_any_other() -> None:
    old, rival = pair()
    old = old.with_(status=Status.ARCHIVED, archived_at=NOW)
    settled = settle([old, rival], seat("前排", session="s3", at=NOW + 2 * DAY, markers=FIX))
    assert settled.board[rival.id].status is Status.SUPERSEDED


def test_spec_6_a_rival_whose_old_one_was_erased_stands_for_itself() -> None:
    _, rival = pair()
    settled = settle([rival], seat("过道", session="s3", at=NOW + 5 * DAY))
    assert (settled.board[rival.id].rival_of, settled.board[rival.id].scope) == (None, Scope.USER)


def test_spec_6_the_rivals_of_what_was_replaced_oppose_its_heir() -> None:
    """No two sides of a single-valued dimension stand at once."""
    old, rival = pair()
    settled = settle([old, rival], seat("前排", session="s3", at=NOW + 5 * DAY, markers=FIX))
    assert settled.board[rival.id].rival_of == settled.new.id


def test_spec_6_when_one_rival_wins_the_other_opposes_it() -> None:
    old, rival = pair()
    third = settle([old, rival], seat("前排", session="s2", at=NOW + 2 * DAY), seed="third").new
    settled = settle([old, rival, third], seat("过道", session="s3", at=NOW + 3 * DAY))
    assert settled.board[third.id].rival_of == rival.id


def test_spec_6_a_rival_that_the_heir_does_not_contradict_stands_for_itself() -> None:
    old = remembered(say("我爱喝酒", dimension="drink", object="酒"))
    rival = settle(
        [old],
        say("我不爱喝酒", dimension="drink", object="酒", polarity=MINUS, session="s2", at=NOW + DAY),
        seed="r",
    ).new
    board = {m.id: m for m in (old, rival)}
    wine = say(
        "我不喝酒了",
        dimension="drink",
        object="酒",
        polarity=MINUS,
        session="s2",
        at=NOW + 2 * DAY,
        markers=FIX,
    )
    settled = settle(board.values(), wine)
    assert settled.board[rival.id].rival_of is None
    assert settled.board[old.id].status is Status.SUPERSEDED


# confirmed memories


def test_spec_5_hedged_words_against_a_confirmed_memory_are_kept_as_rival_and_asked() -> None:
    old = remembered(seat("靠窗"), lock=Lock.CONFIRMED)
    hedged = seat("过道", session="s2", at=NOW + DAY, markers=frozenset({Marker.HEDGED}))
    settled = settle([old], hedged)
    assert settled.new.rival_of == old.id
    assert [request.reason for request in settled.asked] == ["not_sure_enough"]
    assert settled.board[old.id].confidence == old.confidence  # asked, not weakened


def test_spec_5_hedged_words_said_again_never_replace_a_confirmed_memory() -> None:
    old = remembered(seat("靠窗"), lock=Lock.CONFIRMED)
    hedged = {"markers": frozenset({Marker.HEDGED})}
    rival = settle([old], seat("过道", session="s2", at=NOW + DAY, **hedged), seed="r").new
    settled = settle([old, rival], seat("过道", session="s3", at=NOW + 2 * DAY, **hedged))
    assert settled.board[old.id].status is Status.ACTIVE
    assert settled.board[rival.id].rival_of == old.id
    assert len(settled.asked) == 1


def test_spec_6_a_fact_asked_about_waits_for_the_answer_however_often_it_is_said() -> None:
    old = remembered(city("苏州"), lock=Lock.CONFIRMED)
    rival = settle([old], city("杭州", session="s2", at=NOW + 200 * DAY), seed="r").new
    settled = settle([old, rival], city("杭州", session="s3", at=NOW + 201 * DAY))
    assert settled.board[old.id].status is Status.ACTIVE
    assert settled.board[rival.id].rival_of == old.id


def test_spec_5_a_lock_never_falls_by_a_step() -> None:
    old = remembered(seat("靠窗"), lock=Lock.CONFIRMED, confidence=0.8)
    settled = settle([old], seat("过道", session="s2", at=NOW + DAY))
    assert (settled.board[old.id].confidence, settled.board[old.id].lock) == (0.7, Lock.CONFIRMED)


def test_spec_5_venting_against_a_confirmed_memory_changes_nothing() -> None:
    old = remembered(seat("靠窗"), lock=Lock.CONFIRMED)
    settled = settle([old], seat("过道", session="s2", at=NOW + DAY, emotional=True))
    assert not settled.board.changed
    assert settled.ops() == ["refused"]


# safety and frozen


def test_spec_6_safety_is_asked_and_the_old_one_stays() -> None:
    old = remembered(peanuts(), lock=Lock.CONFIRMED, tier=Tier.LONGTERM)
    settled = settle([old], peanuts(MINUS, session="s2", at=NOW + DAY, markers=FIX))
    assert settled.board[old.id].status is Status.ACTIVE
    assert settled.new.rival_of == old.id
    assert [request.reason for request in settled.asked] == ["safety"]


def test_spec_5_a_turn_against_a_frozen_memory_changes_nothing_in_it() -> None:
    old = remembered(peanuts())
    assert old.lock is Lock.FROZEN
    settled = settle([old], peanuts(MINUS, session="s2", at=NOW + DAY, markers=FIX))
    assert settled.board[old.id] == old.with_(contradictions=1)
    assert not settled.board.opened
    assert (settled.new.rival_of, settled.new.lock) == (old.id, Lock.PENDING)
    (request,) = settled.asked
    assert request.quotes == ("我对花生过敏", "更正：我对花生不过敏")
    assert "我对花生不过敏" in request.question


def test_spec_5_a_later_session_against_a_frozen_memory_counts_and_asks_again() -> None:
    old = remembered(peanuts())
    rival = settle([old], peanuts(MINUS, session="s2", at=NOW + DAY), seed="r").new
    settled = settle([old, rival], peanuts(MINUS, session="s3", at=NOW + 2 * DAY, markers=FIX))
    assert settled.board[old.id] == old.with_(contradictions=1)
    assert settled.board[rival.id].rival_of == old.id
    assert [request.memory_ids for request in settled.asked] == [(old.id, rival.id)]


def test_spec_5_a_rival_frozen_by_hand_keeps_its_meaning_when_its_old_one_goes() -> None:
    old, rival = pair()
    frozen = rival.with_(lock=Lock.FROZEN, tier=Tier.CORE)
    settled = settle([old, frozen], seat("过道", session="s3", at=NOW + 3 * DAY))
    winner = settled.board[rival.id]
    assert (winner.rival_of, winner.scope, winner.lock) == (None, Scope.SESSION, Lock.FROZEN)


def test_spec_5_a_rival_frozen_by_hand_is_not_archived_by_the_old_one() -> None:
    old, rival = pair()
    frozen = rival.with_(lock=Lock.FROZEN, tier=Tier.CORE)
    settled = settle([old, frozen], seat("靠窗", session="s3", at=NOW + 3 * DAY))
    assert settled.board[rival.id].status is Status.ACTIVE


# states


def test_spec_6_state_the_surer_one_stands_and_the_new_one_is_its_rival() -> None:
    old = remembered(
        say("我要租房", dimension="need", object="租房"), confidence=0.9, confirmations=affirmed("s1")
    )
    settled = settle([old], say("我要买房", dimension="need", object="买房", session="s2", at=NOW + DAY))
    assert settled.new.rival_of == old.id
    assert settled.reasons()[0] == "higher_confidence"
    assert settled.board[old.id].confidence == 0.9


def test_spec_3_1_a_superseded_state_has_an_end() -> None:
    old = remembered(say("我要租房", dimension="need", object="租房"))
    settled = settle([old], say("我要买房", dimension="need", object="买房", session="s2", at=NOW + DAY))
    assert settled.board[old.id].valid_to == NOW + DAY
    assert settled.new.layer is Layer.CONTEXT


def test_spec_3_1_what_was_corrected_more_than_twice_is_negative() -> None:
    memories, negative = [remembered(city("苏州"))], []
    for number, name in enumerate(("北京", "上海", "广州"), 1):
        said = say(
            f"不对，我住在{name}", object=name, session=f"s{number + 1}", at=NOW + number * DAY,
            message=f"m{number}", markers=frozenset({Marker.CORRECTION}),
        )  # fmt: skip
        settled = settle(memories, said, now=NOW + number * DAY, seed=f"seed-{number}")
        memories = list(settled.all().values())
        negative.append(settled.new.negative)
    assert negative == [False, False, True]
