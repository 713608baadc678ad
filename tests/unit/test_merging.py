"""Many memories of one topic become one record that keeps them addressable (SPEC §3.2, §4.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hermes_memory.app.commands import (
    ConfirmMemory,
    Delete,
    EndSession,
    EraseKind,
    FreezeMemory,
    GetProfile,
    Recall,
)
from hermes_memory.app.editing import Reading
from hermes_memory.app.recall import recall
from hermes_memory.app.views import VIEWS
from hermes_memory.core.candidate import Marker
from hermes_memory.core.model import (
    MAX_CONTENT_CHARS,
    Granularity,
    Lock,
    Memory,
    Polarity,
    Scope,
    Status,
    Tier,
)
from hermes_memory.errors import Illegal, InvalidInput
from hermes_memory.ports.ledger import GrantKind
from tests.small_world import policy, rules, say, vector
from tests.tiny_ledger import Person

DRINKS = ("红茶", "绿茶", "咖啡", "豆浆", "果汁", "奶昔", "可乐")


def a_full_life(count: int = 7, cap: int = 4, **over: Any) -> Person:
    """A person whose working tier overflowed with drinks, so that they are one record now."""
    person = Person(policy(rules(capacity={"working": cap, "longterm": 50, "core": 3})))
    for number, drink in enumerate(DRINKS[:count]):
        person.tell(
            say(
                f"我爱喝{drink}", dimension="drink", object=drink, at=person.now, message=f"m{number}", **over
            )
        )
        person.pass_time(minutes=1)
    return person


def merged_in(person: Person) -> Memory:
    (span,) = [m for m in person.state.memories.values() if m.granularity is Granularity.SPAN]
    return span


def part_of(person: Person, drink: str) -> Memory:
    (part,) = [
        m for m in person.state.memories.values() if m.object == drink and m.granularity is Granularity.ATOMIC
    ]
    return part


@pytest.fixture
def person() -> Person:
    """Six drinks are one record, the seventh stands beside it."""
    return a_full_life(cap=5)


def test_spec_4_2_one_topic_is_merged_and_nothing_is_evicted(person: Person) -> None:
    span = merged_in(person)
    assert span.content == "；".join(f"我爱喝{drink}" for drink in DRINKS[:6])
    assert (span.status, span.tier, span.lock, span.scope) == (
        Status.ACTIVE, Tier.WORKING, Lock.PENDING, Scope.USER,
    )  # fmt: skip
    parts = [part_of(person, drink) for drink in DRINKS[:6]]
    assert {(part.status, part.merged_into) for part in parts} == {(Status.ARCHIVED, span.id)}
    assert span.attributes["parts"] == [{"id": p.id, "content": p.content, "object": p.object} for p in parts]
    assert [piece.quote for piece in span.evidence] == [part.content for part in parts]
    assert part_of(person, DRINKS[6]).status is Status.ACTIVE
    assert {entry.reason for entry in person.ledger.audit} == {"new", "merged"}


def test_spec_4_2_a_merged_record_is_found_between_its_parts(person: Person) -> None:
    middle = np.sum([vector(f"我爱喝{drink}") for drink in DRINKS[:6]], axis=0)
    found = person.state.vector(merged_in(person).id)
    assert found is not None
    assert np.allclose(found, middle / np.linalg.norm(middle), atol=1e-6)


@pytest.mark.parametrize(
    "over",
    [
        {"scope": Scope.SESSION}, {"negative": True, "polarity": Polarity.NEGATIVE}, {"subject": "妈妈"},
    ],
)  # fmt: skip
def test_spec_4_2_what_differs_or_is_apart_is_not_merged(over: dict[str, Any]) -> None:
    person = Person(policy(rules(capacity={"working": 5, "longterm": 50})))
    for number, drink in enumerate(DRINKS):
        own = over if number % 2 or over.get("subject") is None else {}
        person.tell(
            say(
                f"我妈妈和我都不爱喝{drink}",
                dimension="drink",
                object=drink,
                message=f"m{number}",
                at=person.now,
                **{"polarity": Polarity.NEGATIVE} | own,
            )
        )
        person.pass_time(minutes=1)
    assert all(m.granularity is Granularity.ATOMIC for m in person.state.memories.values())
    assert sum(entry.op == "evicted" for entry in person.ledger.audit) == 2


def test_spec_4_2_safety_and_frozen_memories_stay_apart() -> None:
    person = Person(policy(rules(capacity={"working": 5, "longterm": 50, "core": 50})))
    for number in range(8):
        person.tell(
            say(f"我对{number}号过敏", dimension="allergy", object=f"{number}号", message=f"m{number}")
        )
        person.tell(
            say(f"最多花{number}块", dimension="financial_limit", object=f"{number}块", message=f"f{number}")
        )
    assert all(m.granularity is Granularity.ATOMIC for m in person.state.memories.values())
    assert sum(m.lock is Lock.FROZEN for m in person.state.memories.values()) == 8


def test_spec_3_1_a_merged_content_is_never_longer_than_a_memory_may_be() -> None:
    person = Person(policy(rules(capacity={"working": 7, "longterm": 50})))
    for number in range(9):
        text = f"我爱喝{number}" + "很特别的茶" * 16
        person.tell(
            say(text, dimension="drink", object=f"{number}很特别的茶", message=f"m{number}", at=person.now)
        )
        person.pass_time(minutes=1)
    spans = [m for m in person.state.memories.values() if m.granularity is Granularity.SPAN]
    assert spans
    assert all(len(span.content) <= MAX_CONTENT_CHARS for span in spans)
    assert all(len(span.attributes["parts"]) >= 2 for span in spans)


def test_spec_4_2_confirmed_ones_merge_among_themselves_and_stay_confirmed() -> None:
    person = Person(policy(rules(capacity={"working": 50, "longterm": 5})))
    for number, drink in enumerate(DRINKS):
        person.tell(
            say(f"我爱喝{drink}", dimension="drink", object=drink, at=person.now, message=f"m{number}")
        )
        person.act(ConfirmMemory(memory_id=part_of(person, drink).id, session_id="panel"))
        person.pass_time(minutes=1)
    span = merged_in(person)
    assert (span.lock, span.tier) == (Lock.CONFIRMED, Tier.LONGTERM)


# what happens to a part


def test_spec_3_2_a_part_said_again_stands_for_itself_and_the_record_is_written_anew(person: Person) -> None:
    person.tell(
        say("我爱喝绿茶", dimension="drink", object="绿茶", session="s2", at=person.now, message="again")
    )
    part, span = part_of(person, "绿茶"), merged_in(person)
    assert (part.status, part.merged_into, len(part.evidence)) == (Status.ACTIVE, None, 2)
    assert "绿茶" not in span.content
    assert part.id not in {listed["id"] for listed in span.attributes["parts"]}


def test_spec_3_2_a_part_is_contradicted_as_if_it_stood_alone(person: Person) -> None:
    person.tell(
        say(
            "其实我不爱喝绿茶", dimension="drink", object="绿茶", polarity=Polarity.NEGATIVE, session="s2",
            at=person.now, message="no", markers=frozenset({Marker.CORRECTION}),
        )
    )  # fmt: skip
    old = next(m for m in person.state.memories.values() if m.content == "我爱喝绿茶")
    assert (old.status, old.merged_into) == (Status.SUPERSEDED, None)
    assert "绿茶" not in merged_in(person).content


def test_spec_3_2_an_edited_part_rebuilds_the_record(person: Person) -> None:
    person.edit(part_of(person, "绿茶"), Reading(vector("我爱喝白茶"), None), content="我爱喝白茶")
    assert "我爱喝白茶" in merged_in(person).content
    assert "绿茶" not in merged_in(person).content


def test_spec_11_a_deleted_part_leaves_no_word_in_the_record(person: Person) -> None:
    person.act(Delete(memory_id=part_of(person, "绿茶").id))
    assert "绿茶" not in repr(list(person.ledger.memories.values()))


def test_spec_11_a_deleted_record_takes_its_parts_along(person: Person) -> None:
    receipt = person.act(Delete(memory_id=merged_in(person).id))
    assert receipt["erased"]["memories"] == 7
    assert [m.object for m in person.state.memories.values()] == [DRINKS[6]]


def test_spec_11_a_kind_is_erased_with_records_and_parts(person: Person) -> None:
    person.act(EraseKind(kind="preference"))
    assert not person.state.memories


def test_spec_3_2_a_record_with_one_part_left_dissolves(person: Person) -> None:
    span = merged_in(person)
    for drink in DRINKS[:5]:
        person.act(Delete(memory_id=part_of(person, drink).id))
    left = part_of(person, DRINKS[5])
    assert (left.status, left.merged_into) == (Status.ACTIVE, None)
    assert span.id not in person.state.memories
    assert person.last is not None
    assert person.last.grants[span.id] is GrantKind.ERASE


# what a merged record is not


def test_spec_3_2_a_merged_record_takes_no_part_in_conflicts_locks_and_edits(person: Person) -> None:
    span = merged_in(person)
    with pytest.raises(InvalidInput):
        person.edit(span, content="我什么都爱喝")
    with pytest.raises(Illegal):
        person.act(FreezeMemory(memory_id=span.id, reason="by hand"))
    for session in ("a", "b", "c", "d"):
        person.act(ConfirmMemory(memory_id=span.id, session_id=session))
    assert merged_in(person).lock is Lock.CONFIRMED


def test_spec_8_slots_go_on_working_on_the_parts(person: Person) -> None:
    taken = {"preference/drink": sorted(person.state.memories)}  # as the night takes them up
    person.ledger.settings = replace(person.ledger.settings, profile=taken)
    person.restart()
    slot = VIEWS[GetProfile](person.state, GetProfile(), person.policy)["preference"]["drink"]
    assert set(slot["value"]) == set(DRINKS)


def test_spec_7_1_recall_answers_a_slot_from_the_parts(person: Person) -> None:
    found = person.state.vector(merged_in(person).id)
    assert found is not None
    wanted = Recall(query="?", vector=found, words=())
    answer = recall(person.state, wanted, person.policy, person.now).answer
    assert answer["memories"][0]["id"] == merged_in(person).id
    assert set(DRINKS[:6]) <= set(answer["profile"]["preference"]["drink"]["value"])


def test_a_record_and_its_parts_come_back_after_a_restart(person: Person) -> None:
    before = person.state
    person.restart()
    assert person.state.parts == before.parts
    assert person.state.memories == before.memories


def test_spec_4_2_the_end_of_a_session_merges_too() -> None:
    person = Person(policy(rules(capacity={"working": 50, "longterm": 4})))
    for number, drink in enumerate(DRINKS):
        person.tell(
            say(f"我爱喝{drink}", dimension="drink", object=drink, message=f"m{number}", at=person.now)
        )
    person.act(EndSession(session_id="s1"))
    assert merged_in(person).tier is Tier.LONGTERM


def test_a_usual_life_merges_nothing() -> None:
    person = a_full_life(cap=200)
    assert all(m.granularity is Granularity.ATOMIC for m in person.state.memories.values())
