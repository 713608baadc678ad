"""What a night must not do to what binds, what is frozen, and what was merged before (SPEC §4.2, §4.3, §5, §7.1, §8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermes_memory.app.commands import GetProfile, Maintain
from hermes_memory.app.views import VIEWS
from hermes_memory.core.board import Board
from hermes_memory.core.days import LocalDay
from hermes_memory.core.merging import DigestRules, digest_events, mend, release
from hermes_memory.core.model import LIVE, Category, Granularity, Lock, Memory, Polarity, Source, Tier
from tests.small_world import DAY, DIMENSIONS, NOW, a_memory, an_evidence, vector
from tests.tiny_ledger import Person


def a_statement(memory_id: str, dimension: str, thing: str, **over: Any) -> Memory:
    kind = DIMENSIONS.get(dimension)
    assert kind is not None
    at = over.pop("at", NOW - 3 * DAY)
    values: dict[str, Any] = {
        "dimension": dimension, "category": kind.category, "layer": kind.layer, "object": thing,
        "content": f"{dimension} {thing}", "content_hash": memory_id, "safety": kind.safety is not None,
        "created_at": at, "updated_at": at, "tier": Tier.LONGTERM,
        "evidence": (an_evidence(message_id=memory_id, created_at=at),),
    }  # fmt: skip
    return a_memory(id=memory_id, **values | over)


def one_who_keeps(*memories: Memory) -> Person:
    person = Person(now=NOW)
    for memory in memories:
        person.ledger.memories[memory.id] = memory
        person.ledger.vectors[memory.id] = vector(memory.content)
    person.restart()
    return person


def test_spec_5_of_two_frozen_memories_no_night_moves_either() -> None:
    frozen: dict[str, Any] = {"lock": Lock.FROZEN, "tier": Tier.CORE}
    held = [
        a_statement("a", "city", "苏州", **frozen),
        a_statement("b", "city", "杭州", at=NOW - 2 * DAY, **frozen),
    ]
    person = one_who_keeps(*held)
    person.act(Maintain(now=person.now))
    assert [person.memory(memory.id) for memory in held] == held


BINDING = [
    ("food_taboo", "香菜", {"polarity": Polarity.NEGATIVE}),
    ("allergy", "花生", {"source": Source.INFERRED}),
]


@pytest.mark.parametrize(("dimension", "thing", "over"), BINDING)
def test_spec_7_1_a_restriction_is_told_after_200_nights(
    dimension: str, thing: str, over: dict[str, Any]
) -> None:
    person = one_who_keeps(a_statement("a", dimension, thing, **over))
    for _ in range(20):
        person.pass_time(days=10)
        person.act(Maintain(now=person.now))
    assert thing in person.recall("晚饭吃什么")["context"]
    profile = VIEWS[GetProfile](person.state, GetProfile(), person.policy)
    assert dimension in profile["restriction"]


def test_spec_4_3_no_age_archives_what_concerns_safety() -> None:
    person = one_who_keeps(a_statement("a", "allergy", "花生", source=Source.INFERRED))
    person.pass_time(days=800)
    person.act(Maintain(now=person.now))
    assert person.memory("a").status in LIVE


def test_spec_4_2_what_left_a_record_is_merged_into_another_one() -> None:
    """The same night's seed made the same id, and the parts that had stayed were in no record any more."""
    at = NOW - 150 * DAY
    held = [
        a_statement(f"e{n}", "event", f"看展{n}", category=Category.EVENT, at=at + timedelta(hours=n))
        for n in range(6)
    ]
    rules, today = DigestRules((NOW - 90 * DAY).date(), 3, "said"), LocalDay.of(NOW)

    def digested(memories: dict[str, Memory]) -> Board:
        board = Board(memories, NOW)
        digest_events(board, rules, today, "night:today", lambda _: vector("看展"), 9)
        return board

    first = {memory.id: memory for memory in digested({memory.id: memory for memory in held})}
    board = Board(first, NOW)
    for memory_id in ("e0", "e1", "e2"):
        release(board, board[memory_id], None)
    mend(board, lambda _: vector("看展"))
    after = digested({memory.id: memory for memory in board})
    records = {one.id: one for one in after if one.granularity is Granularity.SPAN}
    assert len(records) == 2
    for memory in held:
        record = records[after[memory.id].merged_into or ""]
        assert memory.id in {part["id"] for part in record.attributes["parts"]}
