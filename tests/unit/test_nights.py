"""What a night does to single memories, step by step (SPEC §4.2, §4.3, §5, §6, §9)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from hermes_memory.app.commands import Delete, Incoming, Ingest, Maintain, SetPaused
from hermes_memory.core.board import Board
from hermes_memory.core.days import LocalDay
from hermes_memory.core.merging import DigestRules, digest_events
from hermes_memory.core.model import Category, Layer, Lock, Memory, Role, Scope, Source, Status, Tier
from hermes_memory.core.nightly import clear_pending, cool_down, move_up, rise
from hermes_memory.errors import InvalidInput
from tests.small_world import (
    DAY,
    DIMENSIONS,
    NOW,
    a_memory,
    affirmed,
    an_evidence,
    default_rules,
    policy,
    rules,
    say,
    vector,
)
from tests.tiny_ledger import Person

RULES = default_rules()
MOST = 10
TODAY = LocalDay.of(NOW)
PREFERENCE = {"category": Category.PREFERENCE, "layer": Layer.PREFERENCE, "dimension": "drink"}
EVENT = {"category": Category.EVENT, "layer": None, "dimension": "event"}
STATE = {"category": Category.STATE, "layer": Layer.CONTEXT, "dimension": "need"}


def board_of(*memories: Memory) -> Board:
    return Board({memory.id: memory for memory in memories}, NOW)


def log(board: Board) -> list[tuple[str, str, str | None]]:
    return [(change.op.value, change.reason.value, change.memory_id) for change in board.changes]


# days


@pytest.mark.parametrize(
    ("zone", "then", "days"),
    [
        (UTC, datetime(2026, 5, 1, 23, 59, tzinfo=UTC), 1),
        (UTC, datetime(2026, 5, 2, 0, 1, tzinfo=UTC), 0),
        (timezone(timedelta(hours=8)), datetime(2026, 5, 1, 23, 59, tzinfo=UTC), 0),
        (UTC, datetime(2026, 6, 2, tzinfo=UTC), 0),
        (timezone(timedelta(hours=-8)), datetime(1, 1, 1, tzinfo=UTC), (date(2026, 5, 2) - date(1, 1, 1)).days),
    ],
)  # fmt: skip
def test_spec_4_3_ages_are_whole_days_of_the_zone(zone: Any, then: datetime, days: int) -> None:
    assert LocalDay(date(2026, 5, 2), zone).since(then) == days


def test_spec_9_the_present_of_a_night_is_the_first_moment_of_the_day() -> None:
    east = timezone(timedelta(hours=8))
    assert LocalDay(date(2026, 5, 2), east).begins == datetime(2026, 5, 1, 16, tzinfo=UTC)
    assert LocalDay(date(1, 1, 1), east).begins == datetime(1, 1, 1, tzinfo=UTC)


# cool-down (S1 §5.1)

SCENES = {"home-1": "home", "home-2": "home", "trip": "travel"}


def guessed(*said: tuple[str, float], **over: Any) -> Memory:
    pieces = tuple(
        an_evidence(session_id=name, message_id=f"m{number}", created_at=NOW + days * DAY)
        for number, (name, days) in enumerate(said)
    )
    return a_memory(**{
        "source": Source.INFERRED, "scope": Scope.SCENE, "scene": "home", "confidence": 0.6, "evidence": pieces,
        **PREFERENCE, **over,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "scope"),
    [
        (guessed(("home-1", 0), ("trip", 3)), Scope.USER),
        (guessed(("home-1", 0), ("trip", 4)), Scope.SCENE),  # too long between
        (guessed(("home-1", 0), ("home-2", 1)), Scope.SCENE),  # formal there, and nowhere else
        (guessed(("trip", 0), ("trip", 1)), Scope.SCENE),  # one conversation
        (guessed(("home-1", 0), ("trip", 1), source=Source.EXPLICIT), Scope.SCENE),  # told for the scene
        (guessed(("home-1", 0), ("trip", 1), lock=Lock.CONFIRMED), Scope.SCENE),
        (guessed(("home-1", 0), ("trip", 1), rival_of="other"), Scope.SCENE),
        (guessed(("home-1", 0), ("trip", 1), safety=True), Scope.SCENE),
    ],
)
def test_spec_4_3_an_inference_becomes_formal_once_it_recurred(memory: Memory, scope: Scope) -> None:
    board = board_of(memory)
    assert not cool_down(board, RULES.life, DIMENSIONS, SCENES, MOST)
    assert board["mem-1"].scope is scope
    told = [("moved", "recurred", "mem-1")] if scope is Scope.USER else []
    assert log(board) == told


def test_spec_4_3_what_contradicts_a_standing_statement_stays_weak() -> None:
    held = a_memory(id="held", **PREFERENCE | {"dimension": "seat"}, object="靠窗")
    other = guessed(("home-1", 0), ("trip", 1), dimension="seat", object="过道")
    board = board_of(held, other)
    cool_down(board, RULES.life, DIMENSIONS, SCENES, MOST)
    assert not board.changes


def test_spec_9_a_portion_of_the_cool_down_stops_in_time() -> None:
    said = (("home-1", 0.0), ("trip", 1.0))
    board = board_of(*(guessed(*said, id=name, object=name) for name in "ab"))
    assert cool_down(board, RULES.life, DIMENSIONS, SCENES, 1)
    assert not cool_down(board, RULES.life, DIMENSIONS, SCENES, 1)
    assert len(board.changes) == 2


# locks (SPEC §5)


def test_spec_5_a_lock_that_was_earned_is_given() -> None:
    board = board_of(a_memory(confidence=0.85, confirmations=affirmed("s1")))
    rise(board, RULES, MOST)
    assert log(board) == [("confirmed", "confident", "mem-1")]


def test_spec_4_2_a_freeze_waits_for_room_and_is_done_at_night() -> None:
    full = rules(capacity={"core": 1})
    frozen = a_memory(id="f", lock=Lock.FROZEN, tier=Tier.CORE)
    waits = a_memory(
        id="w", lock=Lock.CONFIRMED, tier=Tier.LONGTERM, confirmations=affirmed("s2", "s3"), object="杭州"
    )
    board = board_of(frozen, waits)
    rise(board, full, MOST)
    assert not board.changes  # the operator knows since it was earned
    board = board_of(waits)
    rise(board, full, MOST)
    assert log(board) == [("frozen", "core_attribute", "w")]


def test_spec_5_a_freeze_candidate_waits_for_the_user() -> None:
    often = a_memory(lock=Lock.CONFIRMED, confirmations=affirmed("s2", "s3", "s4"), **PREFERENCE)
    board = board_of(often)
    rise(board, RULES, MOST)
    assert not board.changes


def test_spec_9_a_portion_of_the_locks_stops_in_time() -> None:
    board = board_of(*(a_memory(id=name, confidence=0.9, confirmations=affirmed("s1")) for name in "ab"))
    assert rise(board, RULES, 1)
    assert not rise(board, RULES, 1)


# tiers (SPEC §4.2)


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ({}, (Tier.LONGTERM, Status.ACTIVE)),
        ({"scope": Scope.SESSION}, (Tier.WORKING, Status.ARCHIVED)),
        ({"scope": Scope.SESSION, "rival_of": "x"}, (Tier.WORKING, Status.ACTIVE)),
        ({"layer": Layer.CONTEXT}, (Tier.WORKING, Status.ACTIVE)),
        ({"evidence": (an_evidence(session_id="open"),)}, (Tier.WORKING, Status.ACTIVE)),
        (
            {"evidence": (an_evidence(session_id="panel"),), "scope": Scope.SESSION},
            (Tier.WORKING, Status.ACTIVE),
        ),
    ],
)
def test_spec_4_2_what_a_session_left_behind_moves(
    over: dict[str, Any], expected: tuple[Tier, Status]
) -> None:
    board = board_of(a_memory(**over))
    assert not move_up(board, {"open"}, {"s1", "open"}, MOST)
    assert (board["mem-1"].tier, board["mem-1"].status) == expected


def test_spec_9_a_portion_of_the_moves_stops_in_time() -> None:
    board = board_of(a_memory(id="a"), a_memory(id="b"))
    assert move_up(board, set(), {"s1"}, 1)
    assert [memory_id for _, _, memory_id in log(board)] == ["a"]


# stale pending (S2 §5.5)

OLD = {"updated_at": NOW - 91 * DAY}


@pytest.mark.parametrize(
    ("over", "goes"),
    [
        (STATE | OLD, True),
        (STATE | {"updated_at": NOW - 90 * DAY}, False),
        (STATE | OLD | {"last_access_at": NOW - DAY}, False),
        (STATE | OLD | {"lock": Lock.CONFIRMED}, False),
        (STATE | OLD | {"rival_of": "x"}, False),
        (STATE | OLD | {"safety": True}, False),
        (OLD | {"tier": Tier.WORKING}, False),  # a declared FACT
        (OLD | {"source": Source.INFERRED, "tier": Tier.LONGTERM}, True),
        (PREFERENCE | OLD | {"tier": Tier.LONGTERM}, False),  # declared for good: §4.3
        (PREFERENCE | OLD | {"tier": Tier.LONGTERM, "source": Source.INFERRED}, True),
        (PREFERENCE | OLD | {"layer": Layer.RESTRICTION, "source": Source.INFERRED}, False),
        (EVENT | OLD, False),  # episodes are digested
    ],
)
def test_spec_9_weak_statements_that_nobody_needed_rest(over: dict[str, Any], goes: bool) -> None:
    board = board_of(a_memory(**over))
    assert not clear_pending(board, RULES.night.stale_pending_days, TODAY, MOST)
    assert log(board) == ([("archived", "stale_pending", "mem-1")] if goes else [])


def test_spec_9_a_portion_of_the_stale_stops_in_time() -> None:
    board = board_of(*(a_memory(id=name, **STATE | OLD) for name in "ab"))
    assert clear_pending(board, 90, TODAY, 1)
    assert not clear_pending(board, 90, TODAY, 1)


# digests (S4 §5.2)

WHICH = DigestRules(date(2025, 10, 3), 3, "said")


def episode(number: int, at: datetime, **over: Any) -> Memory:
    values = EVENT | {
        "id": f"e{number}", "content": f"event {number}", "object": f"event {number}", "updated_at": at,
        "created_at": at, "evidence": (an_evidence(message_id=f"m{number}", created_at=at),),
    } | over  # fmt: skip
    return a_memory(**values)


def digested(*held: Memory, most: int = MOST) -> tuple[Board, list[Memory]]:
    board = board_of(*held)
    made, _ = digest_events(board, WHICH, TODAY, "seed", vector, most)
    return board, [board[memory_id] for memory_id in made]


def test_spec_9_the_episodes_of_a_month_long_over_are_told_together() -> None:
    days = [datetime(2025, 9, day, 12, tzinfo=UTC) for day in (20, 5, 12)]
    board, (told,) = digested(
        *(episode(number, at, outcome="went well" if number == 1 else None) for number, at in enumerate(days))
    )
    assert told.content == "event 1 → went well; event 2; event 0"
    assert [part["id"] for part in told.attributes["parts"]] == ["e1", "e2", "e0"]
    assert {board[f"e{n}"].merged_into for n in range(3)} == {told.id}
    assert {change.reason.value for change in board.changes} == {"digested"}


@pytest.mark.parametrize(
    "over",
    [
        {"lock": Lock.FROZEN, "tier": Tier.CORE},
        {"dimension": "said"},  # kept verbatim by the product's choice
        {"updated_at": NOW},  # told again since
        {"status": Status.REVIEW},
        PREFERENCE,
    ],
)
def test_spec_9_other_things_stay_out_of_a_digest(over: dict[str, Any]) -> None:
    at = datetime(2025, 9, 5, tzinfo=UTC)
    assert digested(*(episode(n, at, **over if n == 0 else {}) for n in range(3)))[1] == []


def test_spec_9_a_month_that_is_not_long_over_waits() -> None:
    assert digested(*(episode(n, datetime(2025, 10, 1 + n, tzinfo=UTC)) for n in range(3)))[1] == []


def test_spec_3_1_what_does_not_fit_one_content_is_told_in_the_next() -> None:
    at = datetime(2025, 9, 5, tzinfo=UTC)
    _, told = digested(*(episode(n, at + n * DAY, content=f"{n} " + "x" * 110) for n in range(5)))
    assert [len(record.attributes["parts"]) for record in told] == [2, 2]  # the fifth stays as it is


def test_spec_9_a_portion_of_digests_ends_with_a_month() -> None:
    months = [datetime(2025, month, 5, tzinfo=UTC) for month in (7, 7, 7, 8, 8, 8)]
    board = board_of(*(episode(number, at) for number, at in enumerate(months)))
    made, more = digest_events(board, WHICH, TODAY, "seed", vector, 1)
    assert (len(made), more) == (1, True)


# the night as a command


def test_spec_9_a_step_is_known_by_name() -> None:
    with pytest.raises(InvalidInput):
        Person().act(Maintain(now=NOW, step="dream"))


def test_spec_9_days_are_those_of_the_zone_the_user_last_wrote_from() -> None:
    someone = Person()
    for zone in ("Europe/Oslo", "Asia/Shanghai"):
        said = Incoming(role=Role.USER, content=f"hello from {zone}")
        someone.act(Ingest(session_id="s1", messages=(said,), timezone=zone), prepared={})
        assert someone.state.settings.timezone == zone


def test_spec_4_2_topics_are_merged_before_a_tier_is_full() -> None:
    held = rules(capacity={"longterm": 10, "working": 10}, night={"merge_share": 0.6})
    someone = Person(policy(held))
    for number in range(9):
        memory = a_memory(
            id=f"m{number}", tier=Tier.LONGTERM, content=f"c{number}", object=f"o{number}",
            **PREFERENCE, source=Source.EXPLICIT,
        )  # fmt: skip
        someone.ledger.memories[memory.id] = memory
        someone.ledger.vectors[memory.id] = vector(memory.id)
    someone.restart()
    answer = someone.act(Maintain(now=someone.now, step="merge"))
    assert answer["steps"] == {"merge": 10}
    assert [memory.granularity.value for memory in someone.state.live.values()] == ["SPAN"]


def test_spec_10_counts_of_long_ago_are_forgotten() -> None:
    someone = Person()
    someone.state.tally = {"2025-01-01": {"recalls": 3}, "2025-12-31": {"recalls": 1}}  # type: ignore[dict-item]
    someone.act(Maintain(now=someone.now, step="tally"))
    assert set(someone.state.tally) == {"2025-12-31"}
    someone.begin()
    someone.act(Maintain(now=someone.now, step="tally"))
    assert someone.last is None


def five_talks() -> Person:
    someone = Person()
    for number in range(5):
        said = say("我喜欢茶", session=f"s{number}", dimension="drink", object="茶", at=NOW + number * DAY)
        someone.now = NOW + number * DAY
        someone.tell(said)
    return someone


def with_topics(someone: Person) -> Person:
    (memory,) = someone.state.live.values()
    memory = memory.with_(topic="tea")
    someone.ledger.memories[memory.id] = memory
    someone.restart()
    return someone


def test_spec_8_habits_are_counted_and_go_with_the_words_they_rest_on() -> None:
    someone = with_topics(five_talks())
    assert someone.act(Maintain(now=someone.now, step="behaviour"))["profile_slots"] == 5
    assert someone.state.settings.behavior["topics"]["value"] == ["tea"]
    (memory_id,) = someone.state.live
    someone.act(Delete(memory_id=memory_id), prepared=[])
    assert "topics" not in someone.state.settings.behavior
    assert memory_id not in repr(someone.state.settings)


def test_spec_9_of_a_user_who_has_paused_nothing_new_is_learnt() -> None:
    someone = five_talks()
    someone.act(SetPaused(paused=True))
    assert someone.act(Maintain(now=someone.now, step="behaviour"))["profile_slots"] == 0
    assert someone.state.settings.behavior == {}


def test_spec_8_what_waited_is_taken_up_at_night() -> None:
    someone = five_talks()
    waiting = [name for name in someone.state.settings.profile if name.startswith("preference/")]
    answer = someone.act(Maintain(now=someone.now, step="profile"))
    assert (waiting, answer["profile_slots"]) == ([], 1)
    assert "preference/drink" in someone.state.settings.profile
