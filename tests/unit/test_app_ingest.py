"""Turns come in (SPEC §2, §4.1.3, §4.2; API, Capture)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermes_memory.app.commands import (
    EndIdleSessions,
    EndSession,
    FailExtraction,
    Incoming,
    Ingest,
    MarkAsked,
    SetConsent,
    SetPaused,
)
from hermes_memory.app.ingest import check_ids, check_times, repeated
from hermes_memory.app.users import operation_id_of
from hermes_memory.core.model import EvidenceKind, Role, Scope, Status, Tier
from hermes_memory.errors import InvalidInput, MessageIdReused
from hermes_memory.ports.ledger import JobStatus
from tests.small_world import DAY, HOUR, NOW, policy, rules, say
from tests.tiny_ledger import Person


def message(content: str = "我住在苏州", **over: Any) -> Incoming:
    return Incoming(**({"role": Role.USER, "content": content} | over))


def post(*messages: Incoming, **over: Any) -> Ingest:
    return Ingest(**({"session_id": "s1", "messages": messages, "timezone": "Asia/Shanghai"} | over))


# new turns


def test_turns_are_appended_and_wait_for_extraction() -> None:
    person = Person()
    answer = person.act(post(message(id="a"), message("好的", id="b", role=Role.ASSISTANT), scene="dining"))
    assert (answer["accepted"], answer["duplicates"]) == (2, 0)
    first, second = person.state.pending
    assert (first.index, first.message_id, first.content, first.role) == (0, "a", "我住在苏州", Role.USER)
    assert (second.index, second.role, second.scene, second.timezone) == (
        1,
        Role.ASSISTANT,
        "dining",
        "Asia/Shanghai",
    )
    assert {turn.job_id for turn in (first, second)} == {answer["job_id"]}
    job = person.state.jobs[answer["job_id"]]
    assert (job.status, job.pending_turns, job.accepted) == (JobStatus.QUEUED, 2, 2)
    session = person.state.sessions["s1"]
    assert (session.turns, session.ended, session.scene, session.last_at) == (2, False, "dining", NOW)


def test_spec_2_statement_time_is_kept_and_receipt_time_is_ours() -> None:
    person = Person()
    person.act(post(message(created_at=NOW - 90 * DAY), message()))
    backfilled, fresh = person.state.pending
    assert (backfilled.created_at, backfilled.received_at) == (NOW - 90 * DAY, NOW)
    assert fresh.created_at == fresh.received_at == NOW


def test_spec_4_1_3_secrets_are_masked_before_anything_is_stored() -> None:
    person = Person()
    person.act(post(message("key sk-abc123 ok", id="a")))
    assert person.last is not None
    assert person.state.pending[0].content == "key [secret] ok"
    assert "sk-abc123" not in repr(person.last)


def test_indexes_go_on_from_request_to_request() -> None:
    person = Person()
    person.act(post(message("a")))
    person.act(post(message("b"), message("c")))
    assert [turn.index for turn in person.state.pending] == [0, 1, 2]


def test_spec_3_3_what_is_typed_into_the_panel_is_a_user_turn_of_its_own_kind() -> None:
    person = Person()
    person.act(post(message(), kind=EvidenceKind.PANEL))
    assert person.state.pending[0].kind is EvidenceKind.PANEL


# duplicates


def test_a_message_sent_again_is_a_duplicate_and_changes_nothing() -> None:
    person = Person()
    first = person.act(post(message(id="a")))
    again = person.act(post(message(id="a")))
    assert again == {"job_id": first["job_id"], "accepted": 0, "duplicates": 1}
    assert person.last is None
    assert len(person.state.pending) == 1


def test_only_the_new_ones_of_a_request_are_taken() -> None:
    person = Person()
    person.act(post(message(id="a")))
    answer = person.act(post(message(id="a"), message("我养猫", id="b")))
    assert (answer["accepted"], answer["duplicates"]) == (1, 1)
    assert [turn.message_id for turn in person.state.pending] == ["a", "b"]


def test_a_message_twice_in_one_request_is_taken_once() -> None:
    answer = Person().act(post(message(id="a"), message(id="a")))
    assert (answer["accepted"], answer["duplicates"]) == (1, 1)


def test_messages_without_ids_are_new_each_time() -> None:
    person = Person()
    person.act(post(message(), message()))
    person.act(post(message()))
    assert len({turn.message_id for turn in person.state.pending}) == 3


def test_an_id_is_unique_per_session() -> None:
    person = Person()
    person.act(post(message(id="a")))
    answer = person.act(post(message("我养猫", id="a"), session_id="s2"))
    assert answer["accepted"] == 1


@pytest.mark.parametrize("over", [{"content": "我住在杭州"}, {"role": Role.ASSISTANT}])
def test_an_id_with_other_content_is_refused_and_changes_nothing(over: dict[str, Any]) -> None:
    person = Person()
    person.act(post(message(id="a")))
    for request in (
        post(message(**({"id": "a"} | over))),
        post(message("新", id="n"), message(**({"id": "a"} | over))),
    ):
        with pytest.raises(MessageIdReused) as caught:
            person.act(request)
        assert caught.value.message_id == "a"
    assert len(person.state.turns) == 1


def test_an_id_with_two_contents_in_one_request_is_refused() -> None:
    request = post(message(id="a"), message("我住在杭州", id="a"))
    with pytest.raises(MessageIdReused):
        Person().act(request)
    with pytest.raises(MessageIdReused):
        check_ids(request)
    check_ids(post(message(id="a"), message(id="a"), message(), message("x")))


def test_a_retry_finds_its_first_job_also_after_an_erasure() -> None:
    request = post(message(id="a"), message(id="b"))
    assert repeated(request, {"job_id": "job_1"}) == {"job_id": "job_1", "accepted": 0, "duplicates": 2}
    assert repeated(request, None)["accepted"] == 0


# time


@pytest.mark.parametrize(
    ("ahead", "refused"), [(timedelta(seconds=60), False), (timedelta(seconds=61), True)]
)
def test_a_message_may_not_lie_more_than_a_minute_ahead(ahead: timedelta, refused: bool) -> None:
    request = post(message(created_at=NOW - DAY), message(created_at=NOW + ahead))
    if not refused:
        check_times(request, NOW)
        return
    with pytest.raises(InvalidInput) as caught:
        check_times(request, NOW)
    assert caught.value.field == "messages.1.created_at"


# operation ids


def test_a_retry_of_messages_with_ids_is_the_same_operation() -> None:
    first, again = (operation_id_of(post(message(id="a"), message("x", id="b"))) for _ in range(2))
    assert first == again
    assert first != operation_id_of(post(message(id="a"), message("y", id="b")))
    assert first != operation_id_of(post(message(id="a"), message("x", id="b"), session_id="s2"))
    assert first != operation_id_of(post(message(id="a"), message("x", id="b", role=Role.ASSISTANT)))


def test_a_message_without_an_id_makes_a_new_operation_each_time() -> None:
    request = post(message(id="a"), message())
    assert operation_id_of(request) != operation_id_of(request)
    assert operation_id_of(EndSession(session_id="s1")) != operation_id_of(EndSession(session_id="s1"))


def test_the_callers_request_id_names_the_operation_per_kind_of_command() -> None:
    end, pause = EndSession(session_id="s1"), SetPaused(paused=True)
    assert operation_id_of(end, "r1") == operation_id_of(end, "r1")
    assert operation_id_of(end, "r1") != operation_id_of(pause, "r1")


# paused (SPEC §11)


def test_spec_11_while_paused_nothing_is_kept_and_the_job_says_so() -> None:
    person = Person()
    person.act(SetPaused(paused=True))
    answer = person.act(post(message(id="a")))
    assert answer["accepted"] == 0
    assert (person.state.turns, person.ledger.messages, person.state.sessions) == ({}, {}, {})
    job = person.ledger.jobs[answer["job_id"]]
    assert job.status is JobStatus.DONE
    assert [(change["op"], change["reason"], change["message_id"]) for change in job.changes] == [
        ("refused", "paused", "a")
    ]


def test_spec_11_what_was_ignored_can_be_sent_again_after_the_pause() -> None:
    person = Person()
    person.act(SetPaused(paused=True))
    person.act(post(message(id="a")))
    person.act(SetPaused(paused=False))
    assert person.act(post(message(id="a")))["accepted"] == 1


def test_spec_11_turns_that_wait_are_not_read_any_more_once_paused() -> None:
    person = Person()
    job_id = person.act(post(message()))["job_id"]
    person.act(SetPaused(paused=True))
    assert person.state.pending == []
    job = person.ledger.jobs[job_id]
    assert (job.status, job.reason, job.pending_turns) == (JobStatus.DONE, "paused", 0)


def test_spec_11_pausing_twice_changes_nothing() -> None:
    person = Person()
    assert person.act(SetPaused(paused=False)) == {"paused": False}
    assert person.last is None
    person.act(SetPaused(paused=True))
    assert person.state.settings.paused


# consent (SPEC §4.1.3)


def test_spec_4_1_3_consent_is_recorded_answer_by_answer() -> None:
    person = Person()
    assert person.act(SetConsent(sensitive=True)) == {"consent": {"sensitive": True}}
    assert person.act(SetConsent(cohort=False)) == {"consent": {"sensitive": True, "cohort": False}}
    assert person.act(SetConsent(sensitive=True)) == {"consent": {"sensitive": True, "cohort": False}}
    assert person.last is None


# the end of a session (SPEC §4.2)


def test_spec_4_2_the_end_of_a_session_moves_what_lasts() -> None:
    person = Person()
    lasting = person.remember(say("我住在苏州", object="苏州"))
    passing = person.remember(say("今天想吃辣", dimension="drink", object="辣", scope=Scope.SESSION))
    assert person.act(EndSession(session_id="s1")) == {"session_id": "s1", "ended": True}
    assert person.memory(lasting.id).tier is Tier.LONGTERM
    assert person.memory(passing.id).status is Status.ARCHIVED
    assert person.state.sessions["s1"].ended
    assert person.state.turns == {}  # the window ends with the session


def test_an_unknown_or_ended_session_is_ended_already() -> None:
    person = Person()
    assert person.act(EndSession(session_id="x"))["ended"]
    person.act(post(message()))
    person.act(EndSession(session_id="s1"))
    person.act(EndSession(session_id="s1"))
    assert person.last is None


def test_a_message_opens_an_ended_session_again() -> None:
    person = Person()
    person.act(post(message()))
    person.act(EndSession(session_id="s1"))
    person.act(post(message("又见面了")))
    assert not person.state.sessions["s1"].ended
    assert person.state.pending[-1].index == 1


def test_spec_4_2_a_session_ends_after_ten_idle_minutes_unless_turns_wait() -> None:
    person = Person()
    person.tell(say("我住在苏州", object="苏州"))
    person.act(post(message("我养猫"), session_id="s2"))
    person.pass_time(minutes=9.9)
    assert person.act(EndIdleSessions()) == {"ended": []}
    person.pass_time(minutes=0.2)
    assert person.act(EndIdleSessions()) == {"ended": ["s1"]}
    assert not person.state.sessions["s2"].ended
    assert person.act(EndIdleSessions()) == {"ended": []}
    assert person.last is None


def test_spec_4_3_a_turn_that_nobody_could_read_is_given_up_after_a_day() -> None:
    person = Person()
    job_id = person.act(post(message("我养猫"), message("我住在苏州")))["job_id"]
    person.pass_time(hours=24)
    person.act(EndIdleSessions())
    assert len(person.state.pending) == 2
    person.pass_time(minutes=1)
    assert person.act(EndIdleSessions()) == {"ended": ["s1"]}
    assert person.state.pending == []
    assert person.last is not None
    (job,) = person.last.jobs
    assert (job.id, job.status, job.reason, job.pending_turns) == (job_id, JobStatus.FAILED, "outdated", 0)
    assert [change["reason"] for change in job.changes] == ["outdated", "outdated"]
    assert [(entry.op, entry.reason) for entry in person.ledger.audit] == [("refused", "outdated")] * 2


def test_spec_4_3_only_the_outdated_turns_of_a_job_are_given_up() -> None:
    person = Person()
    person.act(post(message("我养猫")))
    person.pass_time(hours=23)
    person.act(post(message("我养狗")))
    person.pass_time(hours=2)
    person.act(EndIdleSessions())
    assert [turn.content for turn in person.state.pending] == ["我养狗"]
    assert not person.state.sessions["s1"].ended


def test_spec_4_2_the_end_of_a_session_keeps_longterm_under_its_cap() -> None:
    for command in (EndSession(session_id="s1"), EndIdleSessions()):
        person = Person(policy(rules(capacity={"longterm": 2})))
        person.tell(
            *(
                say(f"我养{name}", dimension="pet", object=name, importance=0.6 + n / 10)
                for n, name in enumerate("猫狗鸟")
            )
        )
        person.pass_time(hours=1)
        person.act(command)
        held = [m.object for m in person.state.live.values() if m.tier is Tier.LONGTERM]
        assert sorted(held) == ["狗", "鸟"]
        assert [e.op for e in person.ledger.audit if e.reason == "capacity"] == ["evicted"]


# questions and failures


def test_spec_6_a_question_is_handed_out_once() -> None:
    person = Person()
    person.act(post(message()))
    person.act(MarkAsked(session_id="s1", request_id="none"))
    assert "s1" in person.state.asked
    assert person.act(MarkAsked(session_id="unknown", request_id="none")) is None
    assert person.last is None


@pytest.mark.parametrize(("parked", "status"), [(False, JobStatus.RUNNING), (True, JobStatus.FAILED)])
def test_a_failed_extraction_is_counted_and_the_turns_stay(parked: bool, status: JobStatus) -> None:
    person = Person()
    job_id = person.act(post(message()))["job_id"]
    person.act(
        FailExtraction(turns=(("s1", 0), ("s1", 9)), generation=0, reason="extraction_failed", parked=parked)
    )
    job = person.state.jobs[job_id]
    assert (job.status, job.attempts, job.reason) == (status, 1, "extraction_failed")
    assert len(person.state.pending) == 1


def test_a_failure_of_turns_that_are_gone_changes_nothing() -> None:
    person = Person()
    person.act(FailExtraction(turns=(("s1", 0),), generation=0, reason="x", parked=True))
    assert person.last is None
    person.tell(say("我住在苏州", object="苏州", at=NOW - HOUR))
    person.act(FailExtraction(turns=(("s1", 0),), generation=0, reason="x", parked=True))
    assert person.last is None
