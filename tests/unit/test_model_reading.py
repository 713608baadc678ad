"""A model's whole answer: turns and memories by alias, affirmations, corrections, a reason for each refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes_memory.adapters.model_extractor.contract import Answer
from hermes_memory.adapters.model_extractor.prompt import sheet_of
from hermes_memory.adapters.model_extractor.reading import Read
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.model import Memory, Polarity, Role, Status
from hermes_memory.core.reasons import Reason
from hermes_memory.testing.builders import a_memory, a_turn
from tests.model_answers import floor, reader, statement

CELLO = a_memory(id="cello", object="cello", dimension="instrument", content="I play the cello")
NO_CELLO = a_memory(
    id="no-cello",
    object="cello",
    dimension="instrument",
    content="I don't play the cello",
    polarity=Polarity.NEGATIVE,
)
CITY = a_memory(id="city", object="Bergen", dimension="city", content="I live in Bergen")


def read(text: str, answer: dict[str, Any], *known: Memory, said: str = "") -> Read:
    turns = (
        a_turn(content=text),
        a_turn(index=1, message_id="m1", role=Role.ASSISTANT, content="I knit socks."),
    )
    before = (a_turn(role=Role.ASSISTANT, content=said),) if said else ()
    request = ExtractionRequest(turns=turns, context=before, known=known)
    sheet = sheet_of(request)
    parsed = Answer.model_validate_json(json.dumps(answer))
    return reader().read(parsed, sheet, request, floor().hear(request))


def reasons(found: Read) -> list[str]:
    return [one.reason for one in found.refusals]


def affirm(quote: str, memory: str = "M1", turn: str = "T1") -> dict[str, Any]:
    return {"confirmations": [{"memory": memory, "turn": turn, "quote": quote}]}


def test_words_that_name_it_affirm_it() -> None:
    found = read("Yes, I still play the cello.", affirm("I still play the cello"), CELLO)
    assert [(one.memory_id, one.span.message_id) for one in found.affirmations] == [("cello", "m0")]
    assert reasons(found) == []


def test_once_is_enough() -> None:
    twice = {"confirmations": affirm("I still play the cello")["confirmations"] * 2}
    assert len(read("Yes, I still play the cello.", twice, CELLO).affirmations) == 1


def test_a_longer_object_may_be_named_by_its_first_word() -> None:
    long = a_memory(
        id="long", object="cello and bass", dimension="instrument", content="I play the cello and bass"
    )
    assert read("Yes, I still play the cello.", affirm("I still play the cello"), long).affirmations


@pytest.mark.parametrize(
    ("text", "quote", "memory", "reason"),
    [
        ("Ok. Tell me about the cello.", "Ok", CELLO, Reason.FILLER),
        ("Yes, the same as before.", "the same as before", CELLO, Reason.UNGROUNDED),
        ("Do I play the cello?", "I play the cello", CELLO, Reason.QUESTION),
        ("If I play the cello, leave.", "I play the cello", CELLO, Reason.HYPOTHETICAL),
        ("Maybe I play the cello still.", "Maybe I play the cello still", CELLO, Reason.NOT_SURE_ENOUGH),
        ("My sister plays the cello.", "plays the cello", CELLO, Reason.UNGROUNDED),
        ("I don't play the cello.", "play the cello", CELLO, Reason.UNGROUNDED),
        ("I play the cello.", "I play the cello", NO_CELLO, Reason.UNGROUNDED),
        ("I stopped playing the cello.", "playing the cello", CELLO, Reason.UNGROUNDED),
        ("I like the moon.", "I play the cello", CELLO, Reason.UNGROUNDED),
        ("He said I play the cello.", "I play the cello", CELLO, Reason.QUOTATION),
        (
            "I play the cello.",
            "I play the cello",
            a_memory(object="cello", status=Status.ARCHIVED),
            Reason.UNGROUNDED,
        ),
    ],
)
def test_what_affirms_nothing(text: str, quote: str, memory: Memory, reason: Reason) -> None:
    found = read(text, affirm(quote), memory)
    assert (found.affirmations, reasons(found)) == ([], [reason])


def test_memories_go_by_their_aliases_only() -> None:
    for alias in ("M2", "M0", "cell"):
        assert reasons(read("I play the cello.", affirm("I play the cello", alias), CELLO)) == [
            Reason.UNKNOWN_MEMORY
        ]


def test_turns_too() -> None:
    answer = affirm("I play the cello", turn="T9")
    assert reasons(read("I play the cello.", answer, CELLO)) == [Reason.UNGROUNDED]


def test_the_assistants_words_are_nobodys() -> None:
    knit = statement("I knit socks", "socks", "hobby")
    assert reasons(read("Nice weather there.", {"statements": [{**knit, "turn": "T2"}]})) == [
        Reason.NOT_A_USER_TURN
    ]
    assert reasons(read("Nice weather there.", {"statements": [knit]})) == [Reason.NOT_A_USER_TURN]
    said = statement("many love jazz", "jazz", "music")
    assert reasons(read("Nice weather there.", {"statements": [said]}, said="Oh, many love jazz.")) == [
        Reason.NOT_A_USER_TURN
    ]


def test_a_correction_takes_the_memorys_place() -> None:
    answer = {
        "statements": [statement("I live in Oslo", "Oslo", "district")],
        "corrections": [{"memory": "M1", "statement": 1}],
    }
    found = read("Actually, I live in Oslo, not Bergen.", answer, CITY)
    assert [(one.dimension, one.object) for one in found.candidates] == [("city", "Oslo")]
    assert reasons(found) == []


@pytest.mark.parametrize(
    ("text", "quote", "memory", "number", "reason"),
    [
        ("I live in Oslo.", "I live in Oslo", "M1", 1, Reason.UNGROUNDED),
        ("Actually, I live in Oslo.", "I live in Oslo", "M7", 1, Reason.UNKNOWN_MEMORY),
        ("Actually, I live in Oslo.", "I live in Oslo", "M1", 2, Reason.SCHEMA),
        ("Actually, I live in Oslo.", "I live in Oslo", "M2", 1, Reason.UNGROUNDED),
    ],
)
def test_a_claimed_correction_is_refused_and_the_statement_stands(
    text: str, quote: str, memory: str, number: int, reason: Reason
) -> None:
    answer = {
        "statements": [statement(quote, "Oslo", "city")],
        "corrections": [{"memory": memory, "statement": number}],
    }
    found = read(text, answer, CITY, CELLO)
    assert [one.object for one in found.candidates] == ["Oslo"]
    assert reasons(found) == [reason]


def test_a_correction_of_what_was_refused_is_nothing_more() -> None:
    answer = {
        "statements": [statement("I live in Rome", "Rome", "city")],
        "corrections": [{"memory": "M1", "statement": 1}],
    }
    found = read("Actually, I live in Oslo.", answer, CITY)
    assert (found.candidates, reasons(found)) == ([], [Reason.UNGROUNDED])


def test_what_is_said_twice_is_kept_once() -> None:
    same = statement("I live in Oslo", "Oslo", "city")
    assert len(read("I live in Oslo.", {"statements": [same, same]}).candidates) == 1


def test_two_things_of_one_sentence_have_words_of_their_own() -> None:
    answer = {
        "statements": [
            statement("I moved to Ghent in 2022", "Ghent", "city"),
            statement("for my PhD in robotics", "PhD in robotics", "education"),
        ]
    }
    found = read("I moved to Ghent in 2022 for my PhD in robotics.", answer)
    assert [one.content for one in found.candidates] == [
        "I moved to Ghent in 2022 for my PhD in robotics",
        "for my PhD in robotics",
    ]


def test_a_turn_of_which_nothing_is_said_has_a_reason() -> None:
    assert reasons(read("The lamp is on.", {"nothing": True})) == [Reason.LOW_VALUE]
