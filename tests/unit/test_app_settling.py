"""An extraction comes back (SPEC §4.1, §4.2; ARCHITECTURE §4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hermes_memory.app.commands import (
    EndIdleSessions,
    EndSession,
    FailExtraction,
    SetConsent,
    SetPaused,
    Settle,
)
from hermes_memory.app.desk import PARKED, alert_id_of
from hermes_memory.core.candidate import Marker, Refusal, Usage
from hermes_memory.core.model import Lock, Polarity, Scope, Status, Tier
from hermes_memory.core.rules import Consent
from hermes_memory.ports.ledger import NOTHING_SPENT, JobStatus, Spent
from tests.small_world import DAY, HOUR, KEY, NOW, a_memory, affirm, policy, rules, say
from tests.tiny_ledger import Person


def test_a_parked_extraction_and_a_full_core_tier_alert_an_operator() -> None:
    person = Person(policy(rules(capacity={"core": 1})))
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    waiting = person.remember(say("我对虾过敏", dimension="allergy", object="虾", message="m2"))
    assert person.last is not None
    assert [(alert.kind, alert.memory_id) for alert in person.last.alerts] == [("core_full", waiting.id)]
    said = say("我养猫", message="m3")
    job_id = person.ingest(said)["job_id"]
    places = tuple((turn.session_id, turn.index) for turn in person.state.pending)
    person.act(FailExtraction(turns=places, generation=0, reason="broken", parked=False))
    assert not person.last.alerts
    person.act(FailExtraction(turns=places, generation=0, reason="broken", parked=True))
    assert [(alert.kind, alert.job_id) for alert in person.last.alerts] == [("extraction_parked", job_id)]


def parked(person: Person) -> str:
    """Two turns of one job that could not be read; the job."""
    one, two = say("我住在苏州", object="苏州"), say("我养猫", dimension="pet", object="猫")
    job_id: str = person.ingest(one, two)["job_id"]
    places = tuple((turn.session_id, turn.index) for turn in person.state.pending)
    person.act(FailExtraction(turns=places, generation=0, reason="broken", parked=True))
    return job_id


def test_a_parked_job_fails_until_all_its_turns_are_read_and_then_its_alert_goes() -> None:
    person = Person()
    job_id = parked(person)
    one, two = say("我住在苏州", object="苏州"), say("我养猫", dimension="pet", object="猫")
    first = tuple((turn.session_id, turn.index) for turn in person.state.pending)[:1]
    person.act(replace(person.settle_command(one, two), turns=first))
    job = person.ledger.jobs[job_id]
    assert (job.status, job.reason, job.pending_turns) == (JobStatus.FAILED, "broken", 1)
    assert person.last is not None
    assert not person.last.seen_to
    rest = tuple((turn.session_id, turn.index) for turn in person.state.pending)
    person.act(FailExtraction(turns=rest, generation=0, reason="still broken", parked=False))
    assert person.ledger.jobs[job_id].status is JobStatus.FAILED  # while it is tried anew
    person.act(person.settle_command(one, two))
    job = person.ledger.jobs[job_id]
    assert (job.status, job.reason, job.pending_turns) == (JobStatus.DONE, None, 0)
    assert person.last.seen_to == (alert_id_of(KEY, PARKED, job_id),)


def test_spec_11_who_pauses_has_nothing_parked() -> None:
    person = Person()
    job_id = parked(person)
    person.act(SetPaused(paused=True))
    assert person.ledger.jobs[job_id].status is JobStatus.DONE
    assert person.last is not None
    assert person.last.seen_to == (alert_id_of(KEY, PARKED, job_id),)


def test_what_was_parked_and_is_given_up_has_failed_and_its_alert_stays() -> None:
    person = Person()
    job_id = parked(person)
    person.pass_time(days=2)
    person.act(EndIdleSessions())
    job = person.ledger.jobs[job_id]
    assert (job.status, job.reason) == (JobStatus.FAILED, "outdated")
    assert person.last is not None
    assert person.last.seen_to == ()


def test_tokens_of_a_model_are_counted_for_the_day() -> None:
    person = Person()
    usage = Usage(calls=1, tokens_in=90, tokens_cached=80, tokens_out=10)
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    places = tuple((turn.session_id, turn.index) for turn in person.state.pending)
    person.act(
        FailExtraction(turns=places, generation=0, reason="broken", parked=False, day="2026-05-01", tokens=7)
    )
    assert person.state.settings.spent == Spent("2026-05-01", 7)
    command = person.settle_command(said)
    extraction = replace(command.distilled.extraction, usage=usage)
    person.act(
        replace(command, distilled=replace(command.distilled, extraction=extraction), day="2026-05-01")
    )
    assert person.state.settings.spent == Spent("2026-05-01", 107)
    person.act(
        FailExtraction(turns=(("s9", 9),), generation=0, reason="x", parked=False, day="2026-05-02", tokens=3)
    )
    assert person.state.settings.spent == Spent("2026-05-02", 3)  # though no job is concerned


def test_a_failure_of_before_an_erasure_says_nothing() -> None:
    person = Person()
    person.ingest(say("我养猫"))
    before = person.state.version
    places = tuple((turn.session_id, turn.index) for turn in person.state.pending)
    person.act(FailExtraction(turns=places, generation=7, reason="broken", parked=True, tokens=9))
    assert (person.state.version, person.state.settings.spent) == (before, Spent())


def test_a_settlement_without_a_model_spends_nothing() -> None:
    person = Person()
    person.tell(say("我住在苏州", object="苏州"))
    assert person.last is not None
    assert person.last.settings is not None
    assert person.last.settings.spent == NOTHING_SPENT
    assert list(person.last.settings.profile) == ["identity/city"]


@pytest.mark.parametrize(
    ("day", "left", "then"),
    [
        ("2026-05-01", 40, Spent("2026-05-01", 45)),
        ("2026-05-02", 0, Spent("2026-05-02", 5)),
        ("2026-04-30", 40, Spent("2026-05-01", 45)),  # a zone further west: no day back
    ],
)
def test_tokens_of_a_day(day: str, left: int, then: Spent) -> None:
    spent = Spent("2026-05-01", 40)
    assert (spent.on(day), spent.more(day, 5)) == (left, then)
    assert Spent().more(day, 5) == Spent(day, 5)


def test_what_was_said_is_remembered_with_its_vector() -> None:
    person = Person()
    memory = person.remember(say("我住在苏州", object="苏州"))
    assert (memory.namespace, memory.user_id) == (KEY.namespace, KEY.user_id)
    assert memory.id in person.state.shelf.vectors
    assert memory.id in person.ledger.vectors
    assert person.state.pending == []
    assert [(e.op, e.reason, e.memory_id, e.version) for e in person.ledger.audit] == [
        ("added", "new", memory.id, 2)
    ]


def test_the_job_closes_with_its_own_changes() -> None:
    person = Person()
    one, two = say("我住在苏州", object="苏州"), say("我养猫", dimension="pet", object="猫")
    first = person.ingest(one)["job_id"]
    second = person.ingest(two)["job_id"]
    person.act(person.settle_command(one, two))
    for job_id, said in ((first, one), (second, two)):
        job = person.ledger.jobs[job_id]
        assert (job.status, job.pending_turns, job.version) == (JobStatus.DONE, 0, person.state.version)
        assert [(change["op"], change["message_id"]) for change in job.changes] == [
            ("added", said.turn.message_id)
        ]
    assert person.state.jobs == {}


def test_a_job_runs_until_all_its_turns_are_settled() -> None:
    person = Person()
    one, two = say("我住在苏州", object="苏州"), say("我养猫", dimension="pet", object="猫")
    job_id = person.ingest(one, two)["job_id"]
    whole = person.settle_command(one, two)
    person.act(replace(whole, turns=whole.turns[:1]))
    assert (person.state.jobs[job_id].status, person.state.jobs[job_id].pending_turns) == (
        JobStatus.RUNNING,
        1,
    )
    assert [m.object for m in person.state.memories.values()] == ["苏州"]
    person.act(whole)  # the first turn was settled meanwhile: only the second one counts
    assert sorted(m.object for m in person.state.memories.values()) == ["猫", "苏州"]
    assert person.ledger.jobs[job_id].status is JobStatus.DONE


def test_changes_that_belong_to_no_message_go_to_the_last_job() -> None:
    person = Person(policy(rules(capacity={"working": 1})))
    person.tell(say("我住在苏州", object="苏州"))
    said = say("我养猫", dimension="pet", object="猫", at=NOW + HOUR)
    job_id = person.ingest(said)["job_id"]
    person.act(person.settle_command(said))
    assert [change["op"] for change in person.ledger.jobs[job_id].changes] == ["added", "evicted"]


def test_a_result_of_an_older_generation_is_dropped() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    late = replace(person.settle_command(said), generation=person.state.generation - 1)
    assert person.act(late) == {}
    assert person.last is None
    assert len(person.state.pending) == 1


def test_a_result_of_turns_that_were_settled_meanwhile_is_dropped() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    command = person.settle_command(said)
    person.act(command)
    assert person.act(command) == {}
    assert person.last is None


def test_spec_11_a_result_that_comes_after_a_pause_is_dropped() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    command = person.settle_command(said)
    person.act(SetPaused(paused=True))
    assert person.act(command) == {}
    assert person.state.memories == {}


def test_what_speaks_of_other_turns_is_refused() -> None:
    """Its ids are anybody's words: they are not kept."""
    person = Person()
    one, other = say("我住在苏州", object="苏州"), say("我养猫", dimension="pet", object="猫", session="s9")
    person.ingest(one)
    refusals = (Refusal("m9", "filler", "s9"), Refusal(one.turn.message_id, "filler", "s1"))
    person.act(person.settle_command(other, one, affirm(a_memory(), session="s9"), refusals=refusals))
    assert [m.object for m in person.state.memories.values()] == ["苏州"]
    told = [(entry.reason, entry.message_id) for entry in person.ledger.audit]
    own = one.turn.message_id
    assert told == [("not_a_user_turn", None), ("new", own), ("not_a_user_turn", None), ("filler", own)]


def test_an_extraction_without_candidates_settles_its_turns() -> None:
    person = Person()
    said = replace(say("你好"), candidates=())
    person.tell(said)
    assert (person.state.pending, person.state.memories) == ([], {})


def test_spec_2_candidates_are_settled_in_the_order_of_statement_time() -> None:
    """Sent in the wrong order, said in the right one: the newer statement stands."""
    person = Person()
    newer = say("我住在杭州", object="杭州", at=NOW)
    older = say("我住在苏州", object="苏州", at=NOW - 90 * DAY)
    person.tell(newer, older)
    states = {m.object: m.status for m in person.state.memories.values()}
    assert states == {"杭州": Status.ACTIVE, "苏州": Status.SUPERSEDED}


def test_spec_4_1_8_likeness_is_on_the_calibrated_scale() -> None:
    person = Person()
    old = person.remember(say("I drink black coffee", dimension="drink", object="black coffee"))
    near = say("I drink coffee", dimension="drink", object="coffee", at=NOW + HOUR)
    person.ingest(near)
    command = person.settle_command(near)
    same = person.state.shelf.vectors.get(old.id)
    assert same is not None
    person.act(replace(command, distilled=replace(command.distilled, vectors=np.stack([same]))))
    assert list(person.state.memories) == [old.id]
    assert len(person.memory(old.id).evidence) == 2


def test_spec_4_1_8_a_memory_without_a_vector_is_like_nothing() -> None:
    person = Person()
    person.remember(say("I drink coffee", dimension="drink", object="coffee"))
    for memory_id in list(person.state.shelf.vectors.ids):
        person.state.shelf.vectors.remove(memory_id)
    person.remember(say("I drink black coffee", dimension="drink", object="black coffee", at=NOW + HOUR))


def test_spec_4_2_turns_that_come_late_into_an_ended_session_are_put_away_at_once() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    command = person.settle_command(said)
    person.act(EndSession(session_id="s1"))
    person.act(command)
    (memory,) = person.state.memories.values()
    assert memory.tier is Tier.LONGTERM


def test_spec_4_2_the_caps_hold_after_every_settlement() -> None:
    person = Person(policy(rules(capacity={"working": 2})))
    for number in range(5):
        name = "一二三四五"[number]
        person.tell(say(f"我养{name}", dimension="pet", object=name, at=NOW + number * HOUR))
        assert sum(m.tier is Tier.WORKING for m in person.state.live.values()) <= 2
    assert [e.op for e in person.ledger.audit].count("evicted") == 3
    assert len(person.state.memories) == 5  # nothing vanishes


@pytest.mark.parametrize(("given", "kept"), [(None, 0), (False, 0), (True, 1)])
def test_spec_4_1_3_consent_is_the_users(given: bool | None, kept: int) -> None:
    person = Person(policy(rules(entry={"sensitive_consent": Consent.ASK})))
    person.act(SetConsent(sensitive=given))
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    assert len(person.state.memories) == kept


def test_spec_4_1_8_a_reactivated_memory_is_found_by_its_vector_again() -> None:
    person = Person()
    said = say("今天想吃辣", dimension="drink", object="辣", scope=Scope.SESSION)
    memory = person.remember(said)
    person.act(EndSession(session_id="s1"))
    assert memory.id not in person.state.shelf.vectors
    person.pass_time(hours=1)
    person.tell(say("今天想吃辣", dimension="drink", object="辣", session="s2", at=NOW + HOUR))
    assert person.memory(memory.id).status is Status.ACTIVE
    assert memory.id in person.state.shelf.vectors
    assert person.recall("今天想吃辣", session_id="s2")["memories"][0]["id"] == memory.id


def test_spec_6_a_question_ends_when_a_later_turn_has_answered_it() -> None:
    person = Person()
    old = person.remember(say("我住在苏州", object="苏州"))
    person.tell(say("我住在苏州", object="苏州", at=NOW + HOUR))
    assert person.memory(old.id).lock is Lock.CONFIRMED
    person.pass_time(days=200)
    person.tell(say("我住在杭州", object="杭州", session="s2", at=person.now))
    (request,) = person.state.settings.confirmations.values()
    assert request["status"] == "open"
    person.pass_time(hours=1)
    person.tell(say("我住在苏州", object="苏州", session="s2", at=person.now))
    (request,) = person.state.settings.confirmations.values()
    assert request["status"] == "expired"


def test_spec_5_the_settlement_of_a_turn_against_a_frozen_memory_passes_the_store() -> None:
    person = Person()
    old = person.remember(say("我对花生过敏", dimension="allergy", object="花生"))
    assert old.lock is Lock.FROZEN
    person.pass_time(days=1)
    rival = person.remember(
        say(
            "其实我对花生不过敏", dimension="allergy", object="花生", polarity=Polarity.NEGATIVE, session="s2",
            at=person.now, markers=frozenset({Marker.CORRECTION}),
        )
    )  # fmt: skip
    assert rival.rival_of == old.id
    assert person.memory(old.id) == old.with_(contradictions=1)
    assert len(person.state.settings.confirmations) == 1


def test_a_job_that_nobody_knows_any_more_is_not_waited_for() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    person.state.jobs.clear()
    assert person.act(person.settle_command(said)) == {"jobs": []}
    assert len(person.state.memories) == 1


def test_deciding_is_pure() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    command: Settle = person.settle_command(said)
    first, again = (person.decide(command, operation_id="op-x").commit for _ in range(2))
    assert first is not None
    assert again is not None
    assert replace(first, vectors={}) == replace(again, vectors={})
    assert person.state.memories == {}
