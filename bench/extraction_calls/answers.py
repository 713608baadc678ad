"""What the recording endpoint answers in a model's place: what the rules read, in the form that each system asks for.

So both systems are told of the same statements, and important ones are asked about a second time as often as they would
be. A real model would find others; how long its answers are is an estimate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.extraction_calls.recorder import form_of
from bench.persona_chats import said_turn
from hermes_memory.adapters.model_extractor.contract import (
    FORM,
    MAX_QUOTE_CHARS,
    MAX_STATEMENTS,
    MAX_WORDS_CHARS,
    OPINION_FORM,
)
from hermes_memory.adapters.rule_extractor import RuleExtractor
from hermes_memory.core.candidate import Candidate, ExtractionRequest, SpeechAct
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Category, Polarity, Role

_ACTS = frozenset({SpeechAct.DIRECTIVE, SpeechAct.OPINION})
Announced = Sequence[Mapping[str, str]]


class OurAnswers:
    """Answers to our own prompt; ``request`` is what is being read."""

    def __init__(self, rules: RuleExtractor, dimensions: Dimensions) -> None:
        self._rules, self._dimensions = rules, dimensions
        self.request: ExtractionRequest | None = None

    def __call__(self, body: Mapping[str, Any]) -> str:
        form = form_of(body)
        if form == OPINION_FORM:
            asked = json.loads(body["messages"][-1]["content"])["statements"]
            return _json({"verdicts": ["yes"] * len(asked)})
        if form != FORM or self.request is None:
            raise ValueError(f"an answer of the form {form} was asked for")
        return _json(self._answer(self.request))

    def _answer(self, request: ExtractionRequest) -> dict[str, Any]:
        read = self._rules.read(request)
        turns = {
            (turn.session_id, turn.message_id): (f"T{number}", turn.content)
            for number, turn in enumerate(request.turns, start=1)
        }
        memories = {memory.id: f"M{number}" for number, memory in enumerate(request.known, start=1)}
        statements = [
            self._statement(one, *turns[one.span.session_id, one.span.message_id])
            for one in read.candidates[:MAX_STATEMENTS]
        ]
        confirmations = [
            {
                "memory": memories[one.memory_id],
                "turn": turns[one.span.session_id, one.span.message_id][0],
                "quote": turns[one.span.session_id, one.span.message_id][1][one.span.start : one.span.end][
                    :MAX_QUOTE_CHARS
                ],
            }
            for one in read.affirmations
            if one.memory_id in memories
        ]
        if not statements and not confirmations:
            return {"nothing": True}
        return {"statements": statements} | ({"confirmations": confirmations} if confirmations else {})

    def _statement(self, one: Candidate, alias: str, text: str) -> dict[str, Any]:
        said = {
            "quote": text[one.span.start : one.span.end][:MAX_QUOTE_CHARS], "turn": alias,
            "object": one.object[:MAX_WORDS_CHARS],
            "dimension": one.dimension,
        }  # fmt: skip
        more = {
            "subject": (one.subject, one.subject != USER),
            "polarity": (one.polarity.value, one.polarity is not Polarity.POSITIVE),
            "negative": (True, one.negative),
            "category": (one.category.value, one.category is Category.EVENT),
            "act": (one.speech_act.value, one.speech_act in _ACTS),
            "safety": (True, bool(self._dimensions.safety(one.dimension))),
        }
        return said | {key: value for key, (value, needed) in more.items() if needed}


class PeerAnswers:
    """Answers to mem0's prompt: the user's sentences as facts, which is less than the 15 to 80 words it asks for."""

    def __init__(self, rules: RuleExtractor) -> None:
        self._rules = rules
        self._answer = ""

    def announce(self, messages: Announced) -> None:
        """What is read next."""
        turns = [
            said_turn("peer", index, one["content"], Role(one["role"])) for index, one in enumerate(messages)
        ]
        read = self._rules.read(ExtractionRequest(turns=tuple(turns)))
        facts = dict.fromkeys(f"User said: {one.content}" for one in read.candidates)
        self._answer = _json(
            {
                "memory": [
                    {"id": str(number), "text": text, "attributed_to": "user"}
                    for number, text in enumerate(facts)
                ]
            }
        )

    def __call__(self, body: Mapping[str, Any]) -> str:
        return self._answer


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
