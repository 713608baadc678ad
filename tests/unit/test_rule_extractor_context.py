"""SPEC §3.3, §5: who may be evidence, answers to a question, affirmation of what is known."""

import asyncio
from datetime import UTC, datetime

import pytest

from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.model import Category, Layer, Memory, Polarity, Role, Scope, Status
from tests.unit.rule_turns import candidates, extractor, read, turn

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def memory(thing: str, dimension: str, polarity: str = "+", status: Status = Status.ACTIVE) -> Memory:
    return Memory(
        id=f"mem-{thing}", namespace="n", user_id="u", category=Category.PREFERENCE, layer=Layer.PREFERENCE,
        subject="user", predicate=dimension, object=thing, dimension=dimension, polarity=Polarity(polarity),
        content=thing, content_hash="h", scope=Scope.USER, status=status, confidence=0.75, source_confidence=0.95,
        stability=0.6, importance=0.7, created_at=WHEN, updated_at=WHEN,
    )  # fmt: skip


@pytest.mark.parametrize("role", [Role.SYSTEM, Role.ASSISTANT, Role.TOOL])
@pytest.mark.parametrize(
    "content", ["用户住在成都，对花生过敏", "I live in Paris and I am allergic to nuts."]
)
def test_only_user_turns_are_read(role: Role, content: str) -> None:
    found = read(turn(content, role=role))
    assert not found.candidates
    assert not found.refusals


@pytest.mark.parametrize(
    ("question", "said", "dimension", "things"),
    [
        ("请问您有什么过敏吗？", "花生。", "allergy", ["花生"]),
        ("有没有过敏的东西？", "虾和蟹", "allergy", ["虾", "蟹"]),
        ("您有什么忌口吗？", "香菜", "food_taboo", ["香菜"]),
        ("怎么称呼您？", "周舟", "name", ["周舟"]),
        ("您住在哪个城市？", "合肥", "city", ["合肥"]),
        ("您做什么工作？", "园艺师", "occupation", ["园艺师"]),
        ("Any allergies?", "Peanuts.", "allergy", ["Peanuts"]),
        ("Do you have any allergies?", "yes, shellfish and soy", "allergy", ["shellfish", "soy"]),
        ("What is your name?", "Marguerite", "name", ["Marguerite"]),
        ("Where do you live?", "Gdansk", "city", ["Gdansk"]),
        ("Window or aisle?", "Aisle, please.", "seat_preference", ["Aisle"]),
        ("What's your favourite colour?", "Turquoise", "colour", ["Turquoise"]),
    ],
)
def test_a_question_may_supply_the_predicate(
    question: str, said: str, dimension: str, things: list[str]
) -> None:
    found = read(turn(question, role=Role.ASSISTANT), turn(said, index=1)).candidates
    assert [(item.dimension, item.object) for item in found] == [(dimension, thing) for thing in things]
    for item in found:
        assert item.object in said[item.span.start : item.span.end]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("您对花生过敏，对吗？", "嗯"),
        ("有什么过敏吗？", "没有"),
        ("有什么忌口吗？", "没有，都可以"),
        ("Any allergies?", "No."),
        ("Any allergies?", "yes"),
        ("Are you allergic to nuts?", "yes."),
        ("Where do you live?", "ok"),
        ("What is your name?", "why?"),
    ],
)
def test_a_bare_answer_stores_nothing(question: str, said: str) -> None:
    assert not read(turn(question, role=Role.ASSISTANT), turn(said, index=1)).candidates


def test_a_question_of_another_session_supplies_nothing() -> None:
    asked = turn("Any allergies?", role=Role.ASSISTANT, session="other")
    assert not read(turn("Peanuts.", index=1), context=(asked,)).candidates
    here = turn("Any allergies?", role=Role.ASSISTANT)
    assert read(turn("Peanuts.", index=1), context=(here,)).candidates


AFFIRMED = [
    ("对，我就是喜欢靠窗的座位", "靠窗的座位", "seat_preference", "+"),
    ("老样子，我只喝美式", "美式", "drink_preference", "+"),
    ("没错，我还是不吃香菜", "香菜", "food_taboo", "-"),
    ("嗯，我仍然喜欢爬山", "爬山", "sport", "+"),
    ("是的，我对花生过敏", "花生", "allergy", "+"),
    ("Yes, I'm still allergic to shellfish.", "shellfish", "allergy", "+"),
    ("Right, I prefer aisle seats", "aisle seats", "seat_preference", "+"),
    ("Exactly, I don't eat pork", "pork", "food_taboo", "-"),
    ("I still live in Lisbon", "Lisbon", "city", "+"),
    ("As always, I take oat milk latte", "oat milk latte", "drink_preference", "+"),
]


@pytest.mark.parametrize(("said", "thing", "dimension", "polarity"), AFFIRMED)
def test_an_affirmation_names_what_it_affirms(said: str, thing: str, dimension: str, polarity: str) -> None:
    known = memory(thing, dimension, polarity)
    found = read(said, known=(known, memory("something else entirely", dimension)))
    assert [item.memory_id for item in found.affirmations] == [known.id]
    assert not [item for item in found.candidates if item.object == thing]


@pytest.mark.parametrize("said", ["嗯嗯", "对", "是的", "ok", "yes", "right", "对，没错", "Yes, exactly."])
def test_a_bare_yes_affirms_nothing(said: str) -> None:
    found = read(said, known=(memory("靠窗的座位", "seat_preference"), memory("tea", "drink_preference")))
    assert not found.affirmations
    assert not found.candidates


@pytest.mark.parametrize(
    ("said", "thing", "dimension", "status"),
    [
        ("对，我现在不喜欢靠窗了", "靠窗", "seat_preference", Status.ACTIVE),
        ("Yes, I no longer like tea.", "tea", "drink_preference", Status.ACTIVE),
        ("是的，我喜欢爬山", "爬山", "sport", Status.ARCHIVED),
        ("我喜欢爬山", "爬山", "sport", Status.ACTIVE),
        ("yes, I love cheese", "tea", "drink_preference", Status.ACTIVE),
    ],
)
def test_a_denial_an_archived_one_or_a_plain_repetition_is_no_affirmation(
    said: str, thing: str, dimension: str, status: Status
) -> None:
    found = read(said, known=(memory(thing, dimension, status=status),))
    assert not found.affirmations
    assert found.candidates


def test_the_same_sentence_many_times_is_read_once() -> None:
    assert len(candidates("我喜欢喝茶。I like tea. " * 500)) == 2


def test_extract_is_the_pure_read() -> None:
    request = ExtractionRequest(turns=(turn("我住在苏州"),))
    reader = extractor()
    assert asyncio.run(reader.extract(request)) == reader.read(request)
    assert reader.name == reader.read(request).extractor == "rules/1"


def test_an_unread_statement_about_the_user_is_a_modest_note() -> None:
    for content in ("我前几天把相机落在出租车上了", "I once sang on a cruise ship for a whole summer."):
        (found,) = candidates(content)
        assert (found.dimension, found.category, found.layer) == ("note", "EVENT", None)
        assert 0.5 <= found.importance <= 0.6
        assert found.content in content


def test_a_masked_secret_is_never_stored() -> None:
    for content in (
        "我的身份证号是[id]",
        "my api key is [secret]",
        "我的密码是 [password]",
        "I live at [address]",
    ):
        assert not candidates(content)
    assert [item.object for item in candidates("我住在上海市[address]")] in (["上海"], [])
