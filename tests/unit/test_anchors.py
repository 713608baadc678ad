"""The four anchors of a conversation's summary, by words and by form (SPEC §3.4, S4 §3.1)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from hermes_memory.adapters.anchor_file import load_anchors
from hermes_memory.core.anchors import THINGS, Kind
from hermes_memory.core.sentences import asks, clauses, sentences
from hermes_memory.errors import InvalidConfig
from tests.small_world import anchors

SHIPPED = (files("configs") / "words" / "anchors.toml").read_text("utf-8")

HELD = [
    ("下周三要和王芳去苏州", {Kind.DATE: "下周三", Kind.NAME: "王芳", Kind.PLACE: "苏州", Kind.PROMISE: "要和"}),
    ("預算不超過三千元", {Kind.NUMBER: "三千元", Kind.PREFERENCE: "不超過"}),
    ("孩子三岁半，一点半放学", {Kind.NUMBER: "三岁半", Kind.NAME: "孩子"}),
    ("我們搬到臺北了", {Kind.PLACE: "臺北", Kind.ABOUT: "搬到"}),
    ("人民医院在哪", {Kind.PLACE: "人民医院"}),
    ("我不吃香菜", {Kind.PREFERENCE: "不吃"}),
    ("有点焦虑", {Kind.MOOD: "焦虑"}),
    ("算了，还是火锅吧", {Kind.MOOD: "算了"}),
    ("跟你开玩笑的", {Kind.MOOD: "开玩笑"}),
    ("just kidding", {Kind.MOOD: "kidding"}),
    ("记得提醒我", {Kind.PROMISE: "记得"}),
    ("《三体》怎么样", {Kind.NAME: "《三体》"}),
    ("iPhone 15 多少钱", {Kind.NAME: "iPhone 15", Kind.NUMBER: "15"}),
    ("I'm flying to Oslo on May 5th with Dr. Smith", {Kind.ABOUT: "I'm", Kind.NUMBER: "5th", Kind.DATE: "May", Kind.NAME: "Oslo"}),
    ("Call me at 3:30 pm tomorrow", {Kind.NUMBER: "3:30 pm", Kind.DATE: "tomorrow"}),
    ("the budget is $1,200.50", {Kind.NUMBER: "$1,200.50", Kind.PREFERENCE: "budget"}),
    ("I don't eat meat", {Kind.PREFERENCE: "don't eat"}),
    ("it makes me nervous", {Kind.MOOD: "nervous"}),
    ("I changed my mind", {Kind.MOOD: "changed my mind"}),
    ("remind me to pay the rent", {Kind.PROMISE: "remind"}),
    ("two weeks near Lake Tahoe", {Kind.NUMBER: "two weeks", Kind.NAME: "Lake Tahoe"}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "held"), HELD, ids=[sentence for sentence, _ in HELD])
def test_spec_3_4_the_anchors_of_a_sentence(sentence: str, held: dict[Kind, str]) -> None:
    found = {(anchor.kind, sentence[anchor.start : anchor.end]) for anchor in anchors().find(sentence)}
    assert set(held.items()) <= found
    assert anchors().marks(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["嗯嗯好的", "哈哈哈哈", "你觉得哪家好？", "原来如此，明白了", "我觉得十分有道理", "万一呢", "Thanks!", "Sounds good",
     "What is the weather like?", "ok lol", "That makes sense.", "how do I write a for loop?", "...", ""],
)  # fmt: skip
def test_what_says_nothing_holds_no_anchor(sentence: str) -> None:
    assert not anchors().marks(sentence)
    assert anchors().cores(sentence, 48) == []


@pytest.mark.parametrize(
    ("sentence", "vows"),
    [("好的，我会在周三提醒您", True), ("已为您预订两张票", True), ("苏州有很多好吃的", False), ("你可以试试3号餐厅", False),
     ("I'll remind you tomorrow.", True), ("Sure, here is a list of 5 hotels.", False)],
)  # fmt: skip
def test_spec_3_4_of_an_assistant_only_promises_and_open_tasks_count(sentence: str, vows: bool) -> None:
    assert anchors().marks(sentence, assistant=True) == vows


@pytest.mark.parametrize(
    ("question", "held"),
    [("你喜欢钓鱼吗？", False), ("我能不吃香菜吗？", True), ("你不喜欢苏州吗？", True), ("能帮我订票吗？", True),
     ("Do you love fishing?", False), ("Do I need a visa?", True), ("你喜欢钓鱼", True)],
)  # fmt: skip
def test_a_question_about_others_states_no_preference(question: str, held: bool) -> None:
    assert anchors().marks(question) == held


def test_a_shrunk_sentence_keeps_things_as_they_stand_and_words_with_their_clause() -> None:
    sentence = "话说那个大家聊起来的时候说到3月5日，我不吃香菜，然后就这样"
    kept = [sentence[a:b] for a, b in anchors().cores(sentence, 48)]
    assert kept == ["3月5日", "我不吃香菜"]


def test_a_clause_that_is_too_long_gives_the_nearest_words() -> None:
    sentence = "很" * 100 + "不吃" + "辣" * 100
    ((start, end),) = anchors().cores(sentence, 30)
    assert "不吃辣辣辣辣" in sentence[start:end]
    assert sentence[start] == "很"
    assert end - start <= 40


def test_a_number_is_never_cut_in_two() -> None:
    digits = "7" * 200
    (core,) = anchors().cores(digits, 48)
    assert core == (0, 200)


def test_a_text_of_no_language_is_read_for_numbers() -> None:
    assert [(a.kind, a.start, a.end) for a in anchors().find("12:30", THINGS)] == [(Kind.NUMBER, 0, 5)]


# the file


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[number", "anchors.toml"),
        ("[number]\nzh = ['a']\nen = ['b']\n", "must hold the tables"),
        (SHIPPED + "\n[more]\nzh = ['a']\nen = ['b']\n", "must hold the tables"),
        (SHIPPED.replace("[vow]", "[vow]\nfr = ['a']"), "must hold zh and en"),
        (SHIPPED.replace("[number]\nzh = [", "[number]\nzh = [ 'a*',"), "must not match nothing"),
        (SHIPPED.replace("[vow]", "[vow]\nx = [").replace("x = [\n", "zh = 3\n", 1), "anchors.toml"),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "anchors.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfig, match=problem):
        load_anchors(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="anchors"):
        load_anchors(tmp_path / "anchors.toml")


# sentences and clauses


def cut(text: str) -> list[str]:
    return [text[a:b] for a, b in sentences(text)]


def test_sentences_end_where_people_end_them() -> None:
    assert cut("我叫王芳。住在苏州！你呢？\n好  的…") == ["我叫王芳。", "住在苏州！", "你呢？", "好  的…"]
    assert cut("It is 3.5 km. See a.txt, Dr. Smith. At 3 p.m. sharp.") == [
        "It is 3.5 km.", "See a.txt, Dr. Smith.", "At 3 p.m. sharp.",
    ]  # fmt: skip
    assert cut("他说“走吧。”然后走了") == ["他说“走吧。”", "然后走了"]
    assert cut(" . ") == ["."]


def test_clauses_leave_the_marks_out() -> None:
    text = "我不吃香菜，对花生过敏, 1,000 元：够了。"
    assert [text[a:b] for a, b in clauses(text)] == ["我不吃香菜", "对花生过敏", "1,000 元", "够了"]


@pytest.mark.parametrize(
    ("text", "question"), [("好吗？", True), ('ok?"', True), ("好。", False), ("", False)]
)
def test_a_question_closes_with_its_mark(text: str, question: bool) -> None:
    assert asks(text) is question
