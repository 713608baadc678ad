"""The user's answer settles a question (SPEC §5, §6)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.app.commands import (
    AnswerConfirmation,
    Delete,
    EndSession,
    FreezeMemory,
    Maintain,
    MarkAsked,
)
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.model import Lock, Memory, Polarity, Scope, Status, Tier
from hermes_memory.errors import NotFound
from hermes_memory.ports.ledger import GrantKind
from tests.small_world import DAY, NOW, affirm, policy, rules, say
from tests.tiny_ledger import Person

ACTIVE, SUPERSEDED, ARCHIVED = Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED


def asked(
    *, frozen: bool = True, person: Person | None = None, **rival: Any
) -> tuple[Person, Memory, Memory]:
    """A question about peanuts (frozen), or about a limit that is safety and pending."""
    person = person or Person()
    dimension, object_, text = (
        ("allergy", "花生", "对花生过敏") if frozen else ("financial_limit", "500", "最多500")
    )
    old = person.remember(say(f"我{text}", dimension=dimension, object=object_))
    person.tell(say("我养猫", dimension="pet", object="猫"))
    person.pass_time(days=1)
    over: dict[str, Any] = {"session": "s2", "at": person.now, "polarity": Polarity.NEGATIVE} | rival
    new = person.remember(say(f"我不再{text}", dimension=dimension, object=object_, **over))
    assert (old.lock is Lock.FROZEN, new.rival_of) == (frozen, old.id)
    return person, old, new


def answer(person: Person, choice: Choice, number: int = 0) -> dict[str, Any]:
    request_id = list(person.state.settings.confirmations)[number]
    result: dict[str, Any] = person.act(AnswerConfirmation(request_id=request_id, choice=choice))
    return result


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize(
    ("choice", "old_status", "new_status"),
    [
        (Choice.OLD, ACTIVE, ARCHIVED), (Choice.NEW, SUPERSEDED, ACTIVE), (Choice.BOTH, ACTIVE, ACTIVE),
        (Choice.NEITHER, SUPERSEDED, ARCHIVED),
    ],
)  # fmt: skip
def test_spec_6_each_answer_moves_the_two_memories_and_no_other(
    choice: Choice, frozen: bool, old_status: Status, new_status: Status
) -> None:
    person, old, new = asked(frozen=frozen)
    others = {m.id: m for m in person.state.memories.values() if m.id not in {old.id, new.id}}
    answer(person, choice)
    assert (person.memory(old.id).status, person.memory(new.id).status) == (old_status, new_status)
    assert all(person.memory(memory_id) == memory for memory_id, memory in others.items())
    assert person.last is not None
    assert {memory.id for memory in person.last.memories} <= {old.id, new.id}


def test_spec_5_the_new_one_takes_the_frozen_ones_place_in_one_commit() -> None:
    person, old, new = asked()
    answer(person, Choice.NEW)
    ended, heir = person.memory(old.id), person.memory(new.id)
    assert (ended.status, ended.lock) == (SUPERSEDED, Lock.FROZEN)
    assert ended.unfreeze_reason is not None
    assert (heir.lock, heir.tier, heir.rival_of, heir.scope) == (Lock.FROZEN, Tier.CORE, None, Scope.USER)
    assert person.last is not None
    assert person.last.grants == {old.id: GrantKind.UNFREEZE}
    ops = [entry.op for entry in person.ledger.audit]
    assert [op for op in ops if op in {"unfrozen", "superseded", "refrozen"}] == [
        "unfrozen",
        "superseded",
        "refrozen",
    ]


def test_spec_5_the_new_one_freezes_although_core_was_full() -> None:
    person, _, new = asked(person=Person(policy(rules(capacity={"core": 1}))))
    answer(person, Choice.NEW)
    assert person.memory(new.id).lock is Lock.FROZEN


def test_spec_5_what_was_not_frozen_does_not_freeze_by_an_answer() -> None:
    person, _, new = asked(frozen=False)
    answer(person, Choice.NEW)
    assert person.memory(new.id).lock is Lock.CONFIRMED  # 0.75 + 0.1, and affirmed


def test_spec_5_the_old_one_is_affirmed_and_keeps_its_meaning() -> None:
    person, old, _ = asked()
    answer(person, Choice.OLD)
    kept = person.memory(old.id)
    assert (kept.lock, kept.confidence, len(kept.confirmations)) == (Lock.FROZEN, 0.85, 1)
    assert person.last is not None
    assert person.last.grants == {}


def test_spec_6_both_stand_for_themselves() -> None:
    person, old, new = asked(frozen=False)
    answer(person, Choice.BOTH)
    assert person.memory(new.id).rival_of is None
    assert len(person.memory(old.id).confirmations) == len(person.memory(new.id).confirmations) == 1


def test_spec_6_the_new_one_takes_scope_and_scene_of_the_old_one() -> None:
    person = Person()
    scene: dict[str, Any] = {"scene": "shop", "scope": Scope.SCENE}
    old = person.remember(say("最多500", dimension="financial_limit", object="500", **scene))
    over: dict[str, Any] = scene | {"session": "s2", "at": NOW + DAY, "polarity": Polarity.NEGATIVE}
    new = person.remember(say("不是最多500", dimension="financial_limit", object="500", **over))
    assert new.rival_of == old.id
    answer(person, Choice.NEW)
    assert (person.memory(new.id).scope, person.memory(new.id).scene) == (Scope.SCENE, "shop")


@pytest.mark.parametrize("choice", Choice)
def test_spec_5_a_rival_that_was_frozen_by_hand_follows_the_answer_too(choice: Choice) -> None:
    person, old, new = asked()
    person.act(FreezeMemory(memory_id=new.id, reason="I mean it"))
    answer(person, choice)
    kept = choice in {Choice.NEW, Choice.BOTH}
    assert person.memory(new.id).status is (ACTIVE if kept else SUPERSEDED)
    assert person.memory(new.id).lock is Lock.FROZEN
    assert person.memory(old.id).status is (SUPERSEDED if choice in {Choice.NEW, Choice.NEITHER} else ACTIVE)


def test_spec_6_an_answer_is_recorded_and_given_once() -> None:
    person, *_ = asked()
    result = answer(person, Choice.OLD)
    assert (result["confirmation"]["status"], result["confirmation"]["answer"]) == ("answered", "old")
    assert [change["op"] for change in result["changes"]] == ["archived", "reinforced"]
    with pytest.raises(NotFound):
        answer(person, Choice.NEW)


def test_spec_6_a_late_answer_or_one_to_nothing_is_not_found() -> None:
    person, *_ = asked()
    person.pass_time(days=30)
    with pytest.raises(NotFound):
        answer(person, Choice.OLD)
    with pytest.raises(NotFound):
        person.act(AnswerConfirmation(request_id="ask_none", choice=Choice.OLD))


def test_spec_6_other_questions_about_what_was_decided_are_closed() -> None:
    person, old, new = asked()
    person.pass_time(days=1)
    again = say(
        "我不再对花生过敏",
        dimension="allergy",
        object="花生",
        session="s3",
        at=person.now,
        polarity=Polarity.NEGATIVE,
    )
    person.tell(again)
    assert len(person.state.settings.confirmations) == 2
    answer(person, Choice.BOTH, 1)
    assert [r["status"] for r in person.state.settings.confirmations.values()] == ["expired", "answered"]
    assert person.memory(old.id).status is person.memory(new.id).status is ACTIVE


def test_spec_4_2_an_answer_keeps_longterm_under_its_cap() -> None:
    person, old, new = asked(frozen=False, person=Person(policy(rules(capacity={"longterm": 1}))))
    answer(person, Choice.BOTH)
    assert {person.memory(memory.id).lock for memory in (old, new)} == {Lock.CONFIRMED}
    held = [m for m in person.state.live.values() if m.tier is Tier.LONGTERM]
    assert len(held) == 1
    assert [entry.op for entry in person.ledger.audit].count("evicted") == 1


def test_spec_11_a_question_about_what_was_erased_is_gone() -> None:
    person, old, _ = asked()
    person.act(Delete(memory_id=old.id))
    assert person.state.settings.confirmations == {}


def test_spec_9_the_night_closes_what_is_over_and_a_second_night_changes_nothing() -> None:
    person, *_ = asked()
    person.pass_time(days=29)
    result = person.act(Maintain(now=person.now))
    assert result["expired_requests"] == 0
    person.pass_time(days=2)  # the night after: until its hour it may be answered
    assert person.act(Maintain(now=person.now))["expired_requests"] == 1
    (request,) = person.state.settings.confirmations.values()
    assert request["status"] == "expired"
    person.act(Maintain(now=person.now))
    assert person.last is None


def test_spec_9_the_night_ages_and_keeps_the_caps() -> None:
    person = Person()
    person.tell(say("我喜欢咖啡", dimension="drink", object="咖啡"))
    person.act(EndSession(session_id="s1"))
    person.pass_time(days=200)
    result = person.act(Maintain(now=person.now))
    assert [(change["op"], change["reason"]) for change in result["changes"]] == [("review", "stale")]
    assert person.ledger.audit[-1].actor == "nightly"


def test_spec_6_an_answer_is_carried_out_on_what_is_still_there() -> None:
    """The rival was archived by the night; the old one can still be confirmed or ended."""
    person, old, new = asked()
    gone = person.memory(new.id).with_(status=ARCHIVED)
    person.ledger.memories[new.id] = gone
    person.restart()
    answer(person, Choice.NEITHER)
    assert (person.memory(old.id).status, person.memory(new.id)) == (SUPERSEDED, gone)


def test_spec_6_an_answer_when_the_old_one_is_gone_keeps_the_new_one() -> None:
    person, old, new = asked(frozen=False)
    gone = person.memory(old.id).with_(status=ARCHIVED)
    person.ledger.memories[old.id] = gone
    person.restart()
    answer(person, Choice.NEW)
    assert (person.memory(old.id), person.memory(new.id).rival_of) == (gone, None)


@pytest.mark.parametrize("side", ["old", "new"])
def test_spec_6_an_answer_is_recognised_in_a_later_turn(side: str) -> None:
    person, old, new = asked()
    question = person.recall("吃什么", session_id="s3")["ask"]
    person.tell(say("吃什么", session="s3", at=person.now, importance=0.1))
    person.act(MarkAsked(session_id="s3", request_id=question["id"]))
    person.pass_time(hours=1)
    chosen = person.memory({"old": old.id, "new": new.id}[side])
    person.tell(affirm(chosen, f"以后一句为准：{chosen.content}", session="s3", at=person.now))
    assert person.state.settings.confirmations[question["id"]]["answer"] == side
