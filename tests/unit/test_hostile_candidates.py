"""What an extractor may propose and must never get in: a lie in each field, in Chinese and English (SPEC §3.3, §4.1).

Each row is a turn, the fields that lie, and the reason code. Below them stand truthful siblings, which enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.app.distil import LocalDistiller, distil
from hermes_memory.core.board import Board
from hermes_memory.core.bounded import Entrance, refusal
from hermes_memory.core.candidate import (
    Affirmation,
    Candidate,
    Extraction,
    ExtractionRequest,
    Marker,
    Refusal,
    Span,
)
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Category, Layer, Lock, Memory, Polarity, Role, Source, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.settle import Settlement, Surroundings
from hermes_memory.core.wellformed import sound
from hermes_memory.ports.embedder import Vectors
from tests.small_world import NOW, a_memory, a_turn, default_rules, grounding, never_similar, vector

MINUS = Polarity.NEGATIVE
GROUND, SCHEMA, ELSEWHERE = "ungrounded", "schema", "not_a_user_turn"
Row = tuple[str, dict[str, Any], str]


@cache
def dimensions() -> Dimensions:
    return load_dimensions(files("configs") / "dimensions.toml")


def propose(turn: Turn, **over: Any) -> Candidate:
    """What an extractor proposes for ``turn``: by default the whole of it, truthfully. ``quote`` moves the span."""
    quote = over.pop("quote", turn.content)
    start = turn.content.find(quote) if quote in turn.content else 0
    dimension = over.get("dimension", "city")
    entry = dimensions().get(dimension)
    values: dict[str, Any] = {
        "span": Span(turn.message_id, start, start + len(quote), turn.session_id),
        "content": quote, "subject": "user", "predicate": dimension, "object": quote, "dimension": dimension,
        "category": entry.category if entry else Category.FACT, "layer": entry.layer if entry else Layer.IDENTITY,
        "stability": 0.9, "importance": 0.9,
    }  # fmt: skip
    return Candidate(**(values | over))


def room(turn: Turn, *before: Turn, known: tuple[Memory, ...] = ()) -> Entrance:
    return Entrance(
        {(turn.session_id, turn.message_id): turn}, dimensions(), default_rules().entry, grounding(),
        talk={turn.session_id: (*before, turn)},
        known=lambda dimension: [memory for memory in known if memory.dimension == dimension],
    )  # fmt: skip


def asked(text: str) -> Turn:
    return a_turn(content=text, role=Role.ASSISTANT, index=0, message_id="asked")


def said(text: str) -> Turn:
    return a_turn(content=text, index=1, message_id="said")


def verdict(text: str, fields: dict[str, Any], question: str = "") -> str | None:
    turn = said(text)
    before = (asked(question),) if question else ()
    return refusal(propose(turn, **fields), room(turn, *before))


INVENTED: list[Row] = [
    ("我喜欢猫", {"content": "我喜欢猫和狗", "object": "猫", "dimension": "pet"}, GROUND),
    ("我喜欢猫", {"content": "我养了猫", "object": "猫", "dimension": "pet"}, GROUND),
    ("我喜欢猫", {"content": "我有猫", "object": "猫", "dimension": "pet"}, GROUND),
    ("我喜欢上海", {"content": "我在上海", "object": "上海"}, GROUND),
    ("我讨厌医生", {"content": "我是医生", "object": "医生", "dimension": "occupation"}, GROUND),
    ("我对花生过敏", {"content": "我对花生严重过敏", "object": "花生", "dimension": "allergy"}, GROUND),
    ("我喜欢花，做生意", {"content": "我喜欢花生", "object": "花", "dimension": "food"}, GROUND),
    ("我喜歡貓", {"content": "我喜歡貓，也喜歡狗", "object": "貓", "dimension": "pet"}, GROUND),
    ("我今天去了公园", {"content": "我今天去了公园，很开心", "object": "公园", "dimension": "event"}, GROUND),
    ("I like cats", {"content": "I like cats and dogs", "object": "cats", "dimension": "pet"}, GROUND),
    ("I like cats", {"content": "I have cats", "object": "cats", "dimension": "pet"}, GROUND),
    ("I hate doctors", {"content": "I am a doctor", "object": "doctors", "dimension": "occupation"}, GROUND),
    ("I'm allergic to nuts", {"content": "I'm severely allergic to nuts", "object": "nuts", "dimension": "allergy"}, GROUND),
    ("I moved from Leeds", {"content": "I moved to Leeds", "object": "Leeds"}, GROUND),
    ("I drink tea", {"content": "I always drink tea", "object": "tea", "dimension": "drink_preference"}, GROUND),
    ("I had a dog", {"content": "I have a dog", "object": "dog", "dimension": "pet"}, GROUND),
    ("My boss is Tom", {"content": "My boss is Tom and he is rich", "object": "Tom", "dimension": "social_circle"}, GROUND),
]  # fmt: skip
TRANSLATED: list[Row] = [
    ("我女儿叫小红", {"content": "My daughter is called Xiaohong", "object": "小红", "dimension": "children"}, GROUND),
    ("我女儿叫小红", {"object": "Xiaohong", "dimension": "children"}, GROUND),
    ("我住在苏州", {"content": "I live in Suzhou", "object": "苏州"}, GROUND),
    ("我住在苏州", {"object": "Suzhou"}, GROUND),
    ("I live in Leeds", {"content": "我住在利兹", "object": "Leeds"}, GROUND),
    ("I live in Leeds", {"object": "利兹"}, GROUND),
]  # fmt: skip
OBJECTS: list[Row] = [
    ("I'm very grateful", {"object": "rat", "dimension": "pet"}, GROUND),
    ("I like this category", {"content": "I like this cat", "object": "cat", "dimension": "pet"}, GROUND),
    ("我住在苏州，喜欢杭州", {"quote": "我住在苏州", "object": "杭州"}, GROUND),
    ("我住在苏州", {"object": "北京"}, GROUND),
    ("I live in Leeds", {"object": "London"}, GROUND),
    ("我喜欢花，生意很好", {"object": "花生", "dimension": "food"}, GROUND),
    ("I live in Leeds", {"object": "Leeds", "entities": ("Leeds", "Harvard")}, GROUND),
    ("我住在苏州", {"object": "苏州", "entities": ("张伟",)}, GROUND),
    ("I started guitar recently", {"object": "guitar", "entities": ("1999",), "dimension": "instrument"}, GROUND),
    ("I play guitar", {"object": "guitar", "entities": (str(NOW.year),), "dimension": "instrument"}, GROUND),
    ("卡号[card]", {"object": "[card]"}, "privacy"),
]  # fmt: skip
NEGATIONS: list[Row] = [
    ("我不吃香菜", {"content": "我吃香菜", "object": "香菜", "dimension": "food"}, GROUND),
    ("我吃香菜", {"content": "我不吃香菜", "object": "香菜", "polarity": MINUS, "dimension": "food"}, GROUND),
    ("香菜我不吃", {"content": "我吃香菜", "object": "香菜", "dimension": "food"}, GROUND),
    ("我不吃葱、姜、蒜", {"content": "我吃姜", "object": "姜", "dimension": "food"}, GROUND),
    ("我不吃香菜", {"object": "香菜", "dimension": "food"}, GROUND),  # + over what is denied
    ("我喜欢香菜", {"object": "香菜", "polarity": MINUS, "dimension": "food"}, GROUND),
    ("我喜欢香菜", {"object": "香菜", "negative": True, "dimension": "food"}, GROUND),
    ("我没有车", {"content": "我有车", "object": "车", "dimension": "vehicle"}, GROUND),
    ("我對花生不過敏", {"content": "我對花生過敏", "object": "花生", "dimension": "allergy"}, GROUND),
    ("I don't eat meat", {"content": "I eat meat", "object": "meat", "dimension": "food"}, GROUND),
    ("I eat meat", {"content": "I don't eat meat", "object": "meat", "polarity": MINUS, "dimension": "food"}, GROUND),
    ("I don't eat meat, fish or eggs", {"content": "I eat fish", "object": "fish", "dimension": "food"}, GROUND),
    ("Cats I don't like", {"content": "I like cats", "object": "Cats", "dimension": "pet"}, GROUND),
    ("I love cats", {"object": "cats", "polarity": MINUS, "dimension": "pet"}, GROUND),
    ("I am not allergic to nuts", {"content": "I am allergic to nuts", "object": "nuts", "dimension": "allergy"}, GROUND),
    ("I have never smoked", {"content": "I have smoked", "object": "smoked", "dimension": "smoking"}, GROUND),
]  # fmt: skip
MOODS: list[Row] = [
    ("我以前住在苏州", {"content": "我住在苏州", "object": "苏州"}, GROUND),
    ("如果我住在苏州就好了", {"content": "我住在苏州", "object": "苏州"}, GROUND),
    ("我差点买了车", {"content": "我买了车", "object": "车", "dimension": "vehicle"}, GROUND),
    ("I used to live in Leeds", {"content": "I live in Leeds", "object": "Leeds"}, GROUND),
    ("I almost bought a car", {"content": "I bought a car", "object": "car", "dimension": "vehicle"}, GROUND),
    ("I might move to Leeds", {"content": "I move to Leeds", "object": "Leeds"}, GROUND),
]  # fmt: skip
FIGURES: list[Row] = [
    ("我养了3只猫", {"content": "我养了4只猫", "object": "猫", "dimension": "pet"}, GROUND),
    ("我养了三只猫", {"content": "我养了4只猫", "object": "猫", "dimension": "pet"}, GROUND),
    ("我养了三只猫", {"object": "四只猫", "dimension": "pet"}, GROUND),
    ("我养了三只猫", {"object": "4只猫", "dimension": "pet"}, GROUND),
    ("I have two cats", {"content": "I have 3 cats", "object": "cats", "dimension": "pet"}, GROUND),
    ("I have two cats", {"object": "3 cats", "dimension": "pet"}, GROUND),
    ("I spend 500", {"content": "I spend 5000", "object": "500", "dimension": "financial_limit"}, GROUND),
    ("I spend 500", {"content": "I spend $500", "object": "500", "dimension": "financial_limit"}, GROUND),
    ("我搬到苏州", {"content": "我2019年搬到苏州", "object": "苏州", "valid_from": datetime(2019, 5, 1, tzinfo=UTC)}, GROUND),
    ("I live in Leeds", {"content": "I live in Leeds", "object": "Leeds", "valid_from": NOW}, GROUND),
]  # fmt: skip
SUBJECTS: list[Row] = [
    ("我不吃辣", {"subject": "妈妈", "object": "辣", "dimension": "food"}, GROUND),
    ("I don't eat meat", {"subject": "my sister", "object": "meat", "polarity": MINUS, "dimension": "food"}, GROUND),
    ("我妈妈住在苏州", {"subject": "Mom", "object": "苏州"}, GROUND),
    ("我住在苏州", {"subject": "！！！", "object": "苏州"}, GROUND),
]  # fmt: skip
LABELS: list[Row] = [
    ("我喜欢花生", {"object": "花生", "dimension": "allergy"}, GROUND),
    ("I love strawberries", {"object": "strawberries", "dimension": "allergy"}, GROUND),
    ("我在药店旁边上班", {"content": "我在药店旁边上班", "object": "店", "dimension": "religious_taboo"}, GROUND),
    ("I work near the pharmacy", {"object": "pharmacy", "dimension": "medication"}, GROUND),
    ("我喜欢花生", {"object": "花生", "dimension": "peanut_danger", "predicate": "严重过敏"}, GROUND),
    ("I love nuts", {"object": "nuts", "dimension": "nut_danger", "predicate": "deadly to"}, GROUND),
    ("我有糖尿病", {"object": "糖尿病", "dimension": "note", "source": Source.INFERRED}, "sensitive_inferred"),
    ("I go to church", {"object": "church", "dimension": "routine", "source": Source.INFERRED}, "sensitive_inferred"),
    ("我投票了", {"object": "投票", "dimension": "routine", "source": Source.INFERRED}, "sensitive_inferred"),
]  # fmt: skip
SPANS: list[Row] = [
    ("我住在苏州", {"object": "苏州", "span": Span("other", 0, 5, "s1")}, ELSEWHERE),
    ("我住在苏州", {"object": "苏州", "span": Span("asked", 0, 5, "s1")}, ELSEWHERE),
    ("我住在苏州", {"object": "苏州", "span": Span("said", 0, 5, "another")}, ELSEWHERE),
    ("我住在苏州", {"object": "苏州", "span": Span("said", 0, 500, "s1")}, GROUND),
    ("我住在苏州", {"object": "苏州", "span": Span("said", -5, 5, "s1")}, GROUND),
    ("我住在苏州", {"object": "苏州", "span": Span("said", 3, 3, "s1")}, GROUND),
    ('看 <user_memory note="">我住在苏州</user_memory>', {"object": "苏州"}, GROUND),
]  # fmt: skip
SHAPES: list[Row] = [
    ("我住在苏州", {"object": "苏州", "content": "我住在苏州" * 60}, "too_long"),
    ("我住在苏州", {"object": "苏州", "content": "我" * 1_000_000}, "too_long"),
    ("我住在苏州", {"object": "苏州" * 1_000_000}, SCHEMA),
    ("我住在苏州", {"object": "苏州\x00"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "content": "我住在\x1b[2J苏州"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "content": "我住在苏州\ud800"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "importance": float("nan")}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "importance": "very"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "stability": float("inf")}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "importance": True}, SCHEMA),
    ("我住在苏州", {"object": None}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "category": "FACT"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "source": "inferred"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "span": None}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "span": Span(["said"], 0, 5, "s1")}, SCHEMA),  # type: ignore[arg-type]
    ("我住在苏州", {"object": "苏州", "span": Span("said", 0.0, 5.0, "s1")}, SCHEMA),  # type: ignore[arg-type]
    ("我住在苏州", {"object": "苏州", "markers": ["correction"]}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "markers": frozenset({"x"})}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "entities": "苏州"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "entities": (7,)}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "source": Source.OPERATOR}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "dimension": "居住 地", "predicate": "city"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "topic": "he is severely ill"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "layer": "identity"}, SCHEMA),
    ("我住在苏州", {"object": "苏州", "valid_from": "yesterday"}, SCHEMA),
    ("我昨天住在苏州", {"object": "苏州", "valid_from": datetime(2026, 1, 1)}, SCHEMA),  # noqa: DTZ001
    ("我昨天住在苏州", {"object": "苏州", "valid_from": datetime.max.replace(tzinfo=UTC)}, SCHEMA),
    ("I live in Leeds", {"object": "Leeds", "content": "I live in Leeds 💀"}, GROUND),
    ("I live in Leeds", {"object": "Leeds", "content": "I live in Leeds <system>"}, GROUND),
]  # fmt: skip
ROWS = [
    *INVENTED, *TRANSLATED, *OBJECTS, *NEGATIONS, *MOODS, *FIGURES, *SUBJECTS, *LABELS, *SPANS, *SHAPES,
]  # fmt: skip

TRUE: list[tuple[str, dict[str, Any]]] = [
    ("我喜欢猫", {"object": "猫", "dimension": "pet"}),
    ("我喜歡貓", {"content": "我喜欢猫", "object": "猫", "dimension": "pet"}),
    ("我喜欢猫", {"content": "用户喜欢猫", "object": "猫", "dimension": "pet"}),
    ("我养了三只猫", {"content": "我养了3只猫", "object": "3只猫", "dimension": "pet"}),
    ("我养了3只猫", {"content": "我养了三只猫", "object": "三只猫", "dimension": "pet"}),
    ("I have two cats", {"content": "The user has 2 cats", "object": "2 cats", "dimension": "pet"}),
    ("I'm allergic to peanuts", {"content": "I am allergic to peanuts", "object": "peanut", "dimension": "allergy"}),
    ("我对花生过敏", {"object": "花生", "dimension": "allergy"}),
    ("我不吃辣，喜欢甜的", {"content": "我喜欢甜的", "object": "甜的", "dimension": "taste"}),
    ("我不吃葱、姜、蒜", {"content": "我不吃姜", "object": "姜", "polarity": MINUS, "dimension": "food"}),
    ("I don't eat meat but I love fish", {"content": "I love fish", "object": "fish", "dimension": "food"}),
    ("I live in Leeds, not in York", {"content": "I live in Leeds", "object": "Leeds"}),
    ("这家店不错，我喜欢", {"object": "这家店", "dimension": "opinion"}),
    ("我不仅会游泳，还会滑雪", {"object": "游泳", "dimension": "skill"}),
    ("No problem, I can't wait to see Rome", {"content": "I can't wait to see Rome", "object": "Rome", "dimension": "plan"}),
    ("我讨厌开会", {"object": "开会", "polarity": MINUS, "dimension": "interest"}),
    ("I gave up coffee", {"object": "coffee", "polarity": MINUS, "dimension": "drink_preference"}),
    ("我妈妈住在苏州", {"subject": "妈妈", "object": "苏州"}),
    ("我昨天搬到苏州", {"content": "我昨天搬到苏州（2026-01-01）", "object": "苏州", "valid_from": datetime(2026, 1, 1, tzinfo=UTC)}),
    ("I started guitar five years ago", {"object": "guitar", "entities": (str(NOW.year - 5),), "dimension": "instrument"}),
    ("I got a dog last year", {"object": "dog", "entities": (str(NOW.year - 1),), "dimension": "pet"}),
    ("I was born on 3 May 1990", {"object": "3 May 1990", "entities": ("1990-05-03",), "dimension": "birthday"}),
    ("Tomorrow I see Rome", {"object": "Rome", "entities": (f"{NOW:%Y-%m-%d}",), "valid_from": NOW, "dimension": "plan"}),
    ("不对，我住在苏州", {"quote": "我住在苏州", "object": "苏州", "markers": frozenset({Marker.CORRECTION})}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields", "reason"), ROWS)
def test_spec_4_1_a_lie_is_refused(text: str, fields: dict[str, Any], reason: str) -> None:
    assert verdict(text, fields) == reason


@pytest.mark.parametrize(("text", "fields"), TRUE)
def test_spec_4_1_the_truth_enters(text: str, fields: dict[str, Any]) -> None:
    assert verdict(text, fields) is None


def test_there_are_enough_lies_of_both_languages() -> None:
    assert len(ROWS) >= 60
    assert sum(text.isascii() for text, _, _ in ROWS) >= 25


ANSWERS: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("有什么过敏吗？", "花生", {"content": "我对花生过敏", "object": "花生", "dimension": "allergy"}, None),
    ("Any allergies?", "Peanuts.", {"content": "I'm allergies: peanuts", "object": "Peanuts", "dimension": "allergy"}, None),
    ("你有什么不吃的？", "香菜", {"content": "我不吃香菜", "object": "香菜", "polarity": MINUS, "dimension": "food"}, None),
    ("What do you do?", "Doctor.", {"content": "I am a doctor", "object": "Doctor", "dimension": "occupation"}, None),
    ("你对花生过敏吗？", "对", {"content": "我对花生过敏", "object": "花生", "dimension": "allergy"}, GROUND),
    ("Are you allergic to nuts?", "Yes", {"content": "I'm allergic to nuts", "object": "nuts", "dimension": "allergy"}, GROUND),
    ("你不吃香菜吗？", "吃香菜", {"content": "我不吃香菜", "object": "香菜", "polarity": MINUS, "dimension": "food"}, GROUND),
    ("Are you allergic to nuts?", "No, not nuts", {"content": "I'm allergic to nuts", "object": "nuts", "dimension": "allergy"}, GROUND),
    ("Do you hate your boss?", "I had a long day at the office with all the people and Tom, who is my boss, left early",
     {"content": "I hate Tom", "object": "Tom", "dimension": "social_circle"}, GROUND),
    ("You hate your boss.", "Tom", {"content": "I hate Tom", "object": "Tom", "dimension": "social_circle"}, GROUND),
]  # fmt: skip


@pytest.mark.parametrize(("question", "text", "fields", "reason"), ANSWERS)
def test_spec_3_3_a_question_supplies_the_predicate_of_a_short_answer_and_nothing_else(
    question: str, text: str, fields: dict[str, Any], reason: str | None
) -> None:
    assert verdict(text, fields, question) == reason
    assert verdict(text, fields) == GROUND


def test_spec_3_3_a_correction_leaves_unsaid_what_was_said_before() -> None:
    earlier, turn = a_turn(content="我住在北京", index=0, message_id="m0"), said("不对，是上海")
    right = propose(turn, quote="上海", content="我住在上海", object="上海")
    assert refusal(right, room(turn, earlier)) is None
    assert refusal(right, room(turn)) == GROUND
    assert refusal(replace(right, content="我讨厌上海"), room(turn, earlier)) == GROUND
    plain = said("上海")
    assert refusal(propose(plain, content="我住在上海", object="上海"), room(plain, earlier)) == GROUND


def test_spec_3_3_a_correction_may_speak_of_a_memory_whose_object_it_names() -> None:
    lisbon = a_memory(content="I live in Lisbon", object="Lisbon", dimension="city")
    turn = said("No wait, it's Porto, not Lisbon")
    right = propose(turn, quote="it's Porto, not Lisbon", content="I live in Porto", object="Porto")
    assert refusal(right, room(turn, known=(lisbon,))) is None
    assert refusal(right, room(turn)) == GROUND
    other = replace(lisbon, object="Rome", content="I live in Rome")
    assert refusal(right, room(turn, known=(other,))) == GROUND


def test_spec_4_1_6_whom_it_is_about_may_follow_from_what_went_before() -> None:
    turn = said("she is off insulin now")
    over = propose(turn, subject="my mum", object="insulin", polarity=MINUS, dimension="medication")
    assert refusal(over, room(turn)) == GROUND
    assert refusal(over, room(turn, a_turn(content="I worry about my mum", index=0, message_id="m0"))) is None
    assert refusal(over, room(turn, asked("How is my mum doing, you mean?"))) is None
    mum = a_memory(subject="my mum", object="insulin", dimension="medication")
    assert refusal(over, room(turn, known=(mum,))) is None
    assert refusal(over, room(turn, known=(replace(mum, object="aspirin"),))) == GROUND


# a whole extraction


def settle(turn: Turn, extraction: Extraction) -> Settlement:
    kept, _ = sound(extraction, [turn], default_rules().entry.most_candidates)
    around = Surroundings(
        namespace="n", user_id="u", seed="op", rules=default_rules(), dimensions=dimensions(), entrance=room(turn),
        similar=never_similar,
    )  # fmt: skip
    settlement = Settlement(Board({}, NOW), around)
    settlement.run(kept, [vector(candidate.content) for candidate in kept.candidates])
    return settlement


def test_spec_4_1_nothing_of_the_lies_reaches_the_store() -> None:
    for text, fields, _ in ROWS:
        turn = said(text)
        settlement = settle(turn, Extraction(extractor="liar", candidates=(propose(turn, **fields),)))
        assert [change.op for change in settlement.board.changes] == ["refused"], (text, fields)
        assert not list(settlement.board.changed)
        assert {change.message_id for change in settlement.board.changes} <= {None, "said"}


def test_spec_4_1_ten_thousand_candidates_write_a_bounded_number_of_changes() -> None:
    turn = said("I live in Leeds")
    one = propose(turn, object="Leeds")
    flood = Extraction(
        extractor="liar", candidates=(one,) * 10_000, affirmations=(Affirmation("m", one.span),) * 10_000,
        refusals=(Refusal("said", "filler", "s1"),) * 10_000,
    )  # fmt: skip
    settlement = settle(turn, flood)
    assert len(list(settlement.board.changed)) == 1
    reasons = [change.reason for change in settlement.board.changes]
    assert len(reasons) < 200
    assert reasons.count(Reason.TOO_MANY) == 1


class Liar:
    """An extractor that proposes whatever it was given. Port: ``Extractor``."""

    name = "liar"

    def __init__(self, *candidates: Candidate) -> None:
        self._candidates = candidates

    async def extract(self, request: ExtractionRequest) -> Extraction:
        return Extraction(extractor=self.name, candidates=self._candidates)


class Counting(HashEmbedder):
    """Counts what it embeds. Port: ``Embedder``."""

    texts: int = 0

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        return await super().passages(texts)


async def test_spec_4_1_1_what_is_over_the_bound_or_has_no_shape_is_not_even_embedded() -> None:
    turn = said("I live in Leeds")
    one = propose(turn, object="Leeds")
    embedder, rules = Counting(), default_rules().entry
    bad = replace(one, content="\ud800" * 1_000_000)
    distiller = LocalDistiller(Liar(bad, *[one] * 10_000), embedder, rules.most_candidates)
    distilled = await distil(distiller, ExtractionRequest(turns=(turn,)), rules, dimensions())
    assert embedder.texts == len(distilled.vectors) == rules.most_candidates - 1
    reasons = {refusal.reason for refusal in distilled.extraction.refusals}
    assert reasons == {Reason.SCHEMA, Reason.TOO_MANY}
    await distiller.aclose()


def test_spec_4_1_8_the_same_candidate_twice_adds_once() -> None:
    turn = said("我住在苏州")
    one = propose(turn, object="苏州")
    settlement = settle(turn, Extraction(extractor="liar", candidates=(one, one, replace(one, topic="home"))))
    assert [change.op for change in settlement.board.changes] == ["added"]


def test_spec_4_1_1_what_is_no_candidate_at_all_is_refused() -> None:
    turn = said("我住在苏州")
    junk: Any = (None, "candidate", 7)
    extraction = Extraction(
        extractor="liar", candidates=junk, affirmations=(*junk, Affirmation("", propose(turn).span)),
        refusals=(*junk, Refusal("said", "no such reason", "s1")),
    )  # fmt: skip
    settlement = settle(turn, extraction)
    assert {change.reason for change in settlement.board.changes} == {"schema"}
    assert not list(settlement.board.changed)


def test_an_extraction_without_turns_has_nowhere_to_refuse() -> None:
    kept, numbers = sound(Extraction(extractor="liar", candidates=(None,)), [], 5)  # type: ignore[arg-type]
    assert (numbers, [refusal.message_id for refusal in kept.refusals]) == ([], [""])


# what freezes at once was said literally (SPEC §5)

FREEZES: list[tuple[str, dict[str, Any], bool]] = [
    ("我对花生过敏", {"object": "花生", "dimension": "allergy"}, True),
    ("我有糖尿病", {"object": "糖尿病", "dimension": "illness"}, True),
    ("I have asthma", {"object": "asthma", "dimension": "illness"}, True),
    ("我喜欢花生", {"object": "花生", "dimension": "illness"}, False),
    ("I love pubs", {"object": "pubs", "dimension": "illness"}, False),
    ("以后叫我阿北", {"object": "阿北", "dimension": "form_of_address"}, True),
    ("I hate being stuck", {"object": "stuck", "dimension": "form_of_address"}, False),
    ("我是穆斯林，不吃猪肉", {"quote": "不吃猪肉", "object": "猪肉", "polarity": MINUS, "dimension": "religious_taboo"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields", "frozen"), FREEZES)
def test_spec_5_a_class_freezes_at_once_only_in_its_own_words(
    text: str, fields: dict[str, Any], frozen: bool
) -> None:
    turn = said(text)
    settlement = settle(turn, Extraction(extractor="liar", candidates=(propose(turn, **fields),)))
    (made,) = settlement.board.changed
    assert (made.lock is Lock.FROZEN) is frozen


def test_spec_6_a_correction_that_nobody_made_weighs_like_any_statement() -> None:
    turn = said("我住在苏州")
    marked = propose(turn, object="苏州", markers=frozenset({Marker.CORRECTION, Marker.HABITUAL}))
    (made,) = settle(turn, Extraction(extractor="liar", candidates=(marked,))).board.changed
    assert made.source_confidence == 0.95
    assert np.isclose(made.confidence, 0.75)
