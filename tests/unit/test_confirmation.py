"""Confirmation requests are first-class (SPEC §6)."""

from __future__ import annotations

import pytest

from hermes_memory.app.records import request_of, request_record
from hermes_memory.core.confirmation import Choice, ConfirmationRequest, RequestStatus, ask
from hermes_memory.core.model import Memory
from tests.small_world import DAY, NOW, a_memory, an_evidence


def quoting(memory_id: str, words: str) -> Memory:
    return a_memory(id=memory_id, evidence=(an_evidence(quote="…"), an_evidence(quote=words)))


def a_request(old: str = "我住在苏州", new: str = "我住在杭州") -> ConfirmationRequest:
    return ask("ask_1", quoting("o", old), quoting("n", new), "frozen", NOW, NOW + 30 * DAY)


def test_spec_6_a_request_quotes_both_and_names_the_old_one_first() -> None:
    request = a_request()
    assert request.question == "您之前说过“我住在苏州”，后来又说“我住在杭州”。现在以哪个为准？"
    assert (request.memory_ids, request.quotes) == (("o", "n"), ("我住在苏州", "我住在杭州"))
    assert [(option.choice, option.label) for option in request.options] == [
        (Choice.OLD, "仍是：我住在苏州"), (Choice.NEW, "改为：我住在杭州"), (Choice.BOTH, "两者都对"),
        (Choice.NEITHER, "两者都不对"),
    ]  # fmt: skip
    assert (request.status, request.answer, request.asked_in) == (RequestStatus.OPEN, None, None)


def test_spec_6_the_question_is_in_the_language_of_the_newer_words() -> None:
    english = a_request(new="I live in Rome")
    assert english.question == "You said “我住在苏州” before and “I live in Rome” later. Which one holds now?"
    assert english.options[1].label == "Now: I live in Rome"


def test_spec_6_braces_in_what_was_said_are_only_words() -> None:
    assert "{new} {0}" in a_request(old="{new} {0}").question


def test_spec_3_3_what_an_operator_entered_is_quoted_by_its_content() -> None:
    memory = a_memory(evidence=(), content="用户住在苏州")
    assert ask("a", memory, memory, "frozen", NOW, NOW).quotes == ("用户住在苏州", "用户住在苏州")


@pytest.mark.parametrize(
    ("status", "days", "open_"),
    [
        (RequestStatus.OPEN, 29.9, True), (RequestStatus.OPEN, 30, False), (RequestStatus.ANSWERED, 1, False),
        (RequestStatus.EXPIRED, 1, False),
    ],
)  # fmt: skip
def test_spec_6_a_request_waits_until_it_is_answered_or_expires(
    status: RequestStatus, days: float, open_: bool
) -> None:
    assert a_request().with_(status=status).open_at(NOW + days * DAY) is open_


def test_a_request_survives_its_record() -> None:
    request = a_request().with_(status=RequestStatus.ANSWERED, answer=Choice.NEW, asked_in="s2")
    assert request_of(request_record(request)) == request
