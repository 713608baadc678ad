"""The cold archive answers when the active memories do not, and what it gives is active again (SPEC §4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.app.commands import BringBack, Delete, Recall
from hermes_memory.app.recall import recall
from hermes_memory.core.asking import Asked
from hermes_memory.core.model import Memory, Polarity, Status
from tests.small_world import policy, rules, say, vector, words
from tests.tiny_ledger import Person

DRINKS = ("红茶", "绿茶", "咖啡")


def with_an_archive(**over: Any) -> tuple[Person, Memory]:
    """A person whose first drink was evicted for want of room."""
    person = Person(policy(rules(capacity={"working": 2}, fusion={"words": 0.0})))
    for number, drink in enumerate(DRINKS):
        person.tell(
            say(
                f"我爱喝{drink}", dimension="drink", object=drink, at=person.now, message=f"m{number}", **over
            )
        )
        person.pass_time(minutes=1)
    (evicted,) = [m for m in person.state.memories.values() if m.status is Status.ARCHIVED]
    assert evicted.object == "红茶"
    return person, evicted


def asked(person: Person, text: str = "我爱喝红茶", of: Asked | None = None) -> Any:
    wanted = Recall(query=text, vector=vector(text), words=words(text), asked=of)
    return recall(person.state, wanted, person.policy, person.now)


def test_spec_4_3_a_hit_of_the_archive_is_shown_and_comes_back() -> None:
    person, evicted = with_an_archive()
    found = asked(person)
    assert [record["id"] for record in found.answer["memories"]] == [evicted.id]
    assert "红茶" in found.answer["context"]
    assert found.returned == (evicted.id,)
    person.pass_time(days=3)
    person.act(BringBack(memory_ids=found.returned))
    back = person.memory(evicted.id)
    assert (back.status, back.archived_at, back.updated_at) == (Status.ACTIVE, None, person.now)
    assert person.ledger.audit[-2].reason == "recalled"  # and the oldest of working made room
    assert asked(person).returned == ()


def test_spec_4_3_the_archive_is_not_asked_while_active_memories_answer() -> None:
    person, evicted = with_an_archive()
    found = asked(person, "我爱喝咖啡")
    assert found.returned == ()
    assert evicted.id not in {record["id"] for record in found.answer["memories"]}


def test_spec_4_3_what_comes_only_because_of_who_is_asked_about_gives_way_to_the_archive() -> None:
    """Unless the archive does no better."""
    person, evicted = with_an_archive()
    found = asked(person, of=Asked(personal=True))
    assert [record["id"] for record in found.answer["memories"]] == [evicted.id]
    neither = asked(person, "我爱喝", of=Asked(personal=True))
    assert neither.returned == ()
    assert neither.answer["memories"]


def test_spec_4_3_what_was_archived_more_than_a_year_ago_stays() -> None:
    person, _ = with_an_archive()
    person.pass_time(days=366)
    assert asked(person).returned == ()


def test_spec_6_what_is_contradicted_now_does_not_come_back() -> None:
    person, _ = with_an_archive()
    person.tell(
        say(
            "我不喝红茶了",
            dimension="drink",
            object="红茶",
            polarity=Polarity.NEGATIVE,
            at=person.now,
            message="no",
        )
    )
    assert asked(person).returned == ()


def test_what_was_put_aside_for_being_wrong_or_merged_does_not_come_back() -> None:
    person, evicted = with_an_archive()
    for reason in ("session_ended", "verified", "old_said_again", "disproved", "merged"):
        revision = evicted.history[-1].__class__(
            **{name: getattr(evicted.history[-1], name) for name in evicted.history[-1].__slots__}
            | {"reason": reason}
        )
        person.state._place(evicted.with_(history=(revision,)), None)
        assert asked(person).returned == ()


def test_bringing_back_what_is_not_there_changes_nothing() -> None:
    person, evicted = with_an_archive()
    person.act(BringBack(memory_ids=("never there", evicted.id)))
    assert person.memory(evicted.id).status is Status.ACTIVE
    person.begin()
    person.act(BringBack(memory_ids=(evicted.id,)))
    assert person.last is None


def test_the_archive_comes_back_after_a_restart() -> None:
    person, evicted = with_an_archive()
    person.restart()
    assert asked(person).returned == (evicted.id,)
    assert person.state.vector(evicted.id) is not None


@pytest.mark.parametrize("gone", [True, False])
def test_an_erased_memory_leaves_the_archive(gone: bool) -> None:
    person, evicted = with_an_archive()
    if gone:
        person.act(Delete(memory_id=evicted.id))
    assert (person.state.vector(evicted.id) is None) is gone
    assert (asked(person).returned == ()) is gone
