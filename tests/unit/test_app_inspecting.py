"""What contradicts although it stands is put to the user: at night and when a session begins (SPEC §6, §9)."""

from __future__ import annotations

import pytest

from hermes_memory.app.commands import AnswerConfirmation, FreezeMemory, Incoming, Ingest, Maintain
from hermes_memory.app.editing import Reading
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.model import Lock, Memory, Role
from tests.small_world import a_candidate, say, vector
from tests.tiny_ledger import Person


def two_cities() -> tuple[Person, Memory, Memory]:
    """An edit put a second city beside the first."""
    person = Person()
    old = person.remember(say("我住在苏州", object="苏州"))
    person.pass_time(days=1)
    pet = person.remember(
        say("我养猫", dimension="pet", object="猫", session="s2", at=person.now, message="m2")
    )
    said = say("我住在北京", object="北京", session="panel", at=person.now)
    read = Reading(vector("我住在北京"), a_candidate(said.turn, dimension="city", object="北京"))
    person.edit(pet, read, content="我住在北京")
    new = person.memory(pet.id)
    assert (new.dimension, new.rival_of, old.rival_of) == ("city", None, None)
    return person, old, new


def new_session(person: Person) -> None:
    message = Incoming(role=Role.USER, content="早上好", id="hello")
    person.act(Ingest(session_id="s9", messages=(message,), timezone="UTC"))


@pytest.mark.parametrize("at_night", [True, False])
def test_spec_6_the_newer_is_the_rival_and_the_user_is_asked(at_night: bool) -> None:
    person, old, new = two_cities()
    person.act(Maintain(now=person.now)) if at_night else new_session(person)
    assert (person.memory(old.id).rival_of, person.memory(new.id).rival_of) == (None, old.id)
    (request,) = person.state.settings.confirmations.values()
    assert (request["memory_ids"], request["reason"], request["status"]) == (
        [old.id, new.id],
        "inspected",
        "open",
    )
    assert [entry.op for entry in person.ledger.audit][-1] == "rival"


def test_spec_9_a_second_night_changes_nothing() -> None:
    person, _, _ = two_cities()
    person.act(Maintain(now=person.now))
    person.begin()
    person.act(Maintain(now=person.now))
    assert person.last is None


def test_spec_6_what_the_user_let_stand_is_not_asked_again() -> None:
    person, old, new = two_cities()
    person.act(Maintain(now=person.now))
    (request_id,) = person.state.settings.confirmations
    person.act(AnswerConfirmation(request_id=request_id, choice=Choice.BOTH))
    person.act(Maintain(now=person.now))
    assert (person.memory(old.id).rival_of, person.memory(new.id).rival_of) == (None, None)
    assert len(person.state.settings.confirmations) == 1


def test_spec_5_a_frozen_memory_is_never_the_rival() -> None:
    person, old, new = two_cities()
    person.act(FreezeMemory(memory_id=new.id, reason="sure"))
    person.act(Maintain(now=person.now))
    assert person.memory(new.id).lock is Lock.FROZEN
    assert (person.memory(old.id).rival_of, person.memory(new.id).rival_of) == (new.id, None)


def test_a_session_that_goes_on_is_not_inspected() -> None:
    person, old, new = two_cities()
    message = Incoming(role=Role.USER, content="早上好", id="hello")
    person.act(Ingest(session_id="s2", messages=(message,), timezone="UTC"))
    assert (person.memory(old.id).rival_of, person.memory(new.id).rival_of) == (None, None)
