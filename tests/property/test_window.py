"""Random conversations: what a summary keeps, what it may cost, and that the steps do not matter (SPEC §3.4)."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given

from hermes_memory.core.model import Role, Turn
from hermes_memory.core.rules import WindowRules
from hermes_memory.core.sentences import sentences
from hermes_memory.core.window import BARE, EMPTY, Summary, excerpts, fold, lines, tokens
from tests.small_world import a_turn, anchors, default_rules

ANCHORS = anchors()
RULES = replace(default_rules().window, turns=2, fold_above=2)
PARTS = (
    "嗯嗯好的。", "我不吃香菜，", "对花生过敏。", "预算不超过{n}元，", "下周三和王芳去苏州，", "{n}月{n}日", "记得提醒我", "算了，我改主意了。",
    "有点焦虑", "电话是{n}", "你觉得呢？", "今天天气不错", "我妈妈", "\n", "，", "然后就是说那个", "三点半到上海虹桥站", "《三体》很好看。",
    "I prefer the window seat. ", "I'm flying to Oslo on May {n}, ", "remind me to call Dr. Smith at {n}:30 pm. ", "ok, ",
    "never mind, ", "my budget is ${n},000.50 ", "what do you think? ", "I am so stressed! ", "lorem ipsum dolor ", "Bob ", "x{n}y",
)  # fmt: skip
TEXT = st.lists(
    st.builds(lambda part, n: part.replace("{n}", str(n)), st.sampled_from(PARTS), st.integers(0, 99_999)),
    min_size=1, max_size=8,
).map("".join)  # fmt: skip
ROLE = st.sampled_from((Role.USER, Role.USER, Role.USER, Role.ASSISTANT, Role.TOOL))


@st.composite
def conversations(draw: st.DrawFn) -> list[Turn]:
    said = draw(st.lists(st.tuples(TEXT, ROLE), min_size=3, max_size=12))
    return [a_turn(index=number, content=text, role=role) for number, (text, role) in enumerate(said)]


def written(summary: Summary, rules: WindowRules = RULES) -> str:
    return "\n".join("；".join(piece.text for piece in line) for line in lines(summary, rules))


def with_budget(summary_tokens: int) -> WindowRules:
    return replace(RULES, summary_tokens=summary_tokens)


def marks_of(turns: list[Turn]) -> set[str]:
    """Every anchor of what these turns may give."""
    found = set()
    for turn in turns:
        for piece in excerpts(turn, RULES, ANCHORS):
            wanted = ANCHORS.find(piece.text)
            found |= {piece.text[anchor.start : anchor.end] for anchor in wanted}
    return found


@given(conversations())
def test_spec_3_4_every_number_and_every_anchor_of_the_folded_turns_stands_in_the_summary(
    turns: list[Turn],
) -> None:
    summary = fold(turns, EMPTY, with_budget(10_000), ANCHORS)
    folded = turns[:-2]
    text = written(summary)
    numbers = {n for t in folded if t.role is Role.USER for n in re.findall(r"\d+", t.content)}
    assert all(number in text for number in numbers)
    assert all(mark in text for mark in marks_of(folded))


@given(conversations())
def test_spec_3_4_shrunk_to_its_anchors_the_summary_still_has_them_all(turns: list[Turn]) -> None:
    """The least budget that holds the bare anchors holds them; what stays is less than the sentences."""
    whole = fold(turns, EMPTY, with_budget(10_000), ANCHORS)
    most = int(tokens(written(whole), RULES))
    for budget in range(most, 0, -max(1, most // 12)):
        summary = fold(turns, EMPTY, with_budget(budget), ANCHORS)
        assert tokens(written(summary), RULES) <= budget
        if not all(mark in written(summary) for mark in marks_of(turns[:-2])):
            assert all(piece.level == BARE for piece in summary.pieces)  # all shrank before any was lost
            return


@given(conversations(), st.integers(1, 60))
def test_spec_3_4_the_summary_never_exceeds_its_budget(turns: list[Turn], budget: int) -> None:
    rules = with_budget(budget)
    summary = EMPTY
    for end in range(len(turns) + 1):
        summary = fold(turns[:end], summary, rules, ANCHORS)
        assert tokens(written(summary, rules), rules) <= budget


@given(conversations(), st.sampled_from((20, 60, 120, 400, 10_000)), st.integers(1, 4))
def test_spec_3_4_folding_step_by_step_keeps_the_same_as_folding_at_once(
    turns: list[Turn], budget: int, step: int
) -> None:
    rules, steps = with_budget(budget), EMPTY
    for end in (*range(0, len(turns), step), len(turns)):
        steps = fold(turns[:end], steps, rules, ANCHORS)
    at_once = fold(turns, EMPTY, rules, ANCHORS)
    assert steps.upto == at_once.upto
    if all(mark in written(at_once) for mark in marks_of(turns[:-2])):
        assert all(mark in written(steps) for mark in marks_of(turns[:-2]))


@given(conversations(), st.integers(1, 400))
def test_spec_3_4_a_summary_says_only_what_was_said_in_its_place(turns: list[Turn], budget: int) -> None:
    summary = fold(turns, EMPTY, with_budget(budget), ANCHORS)
    for piece in summary.pieces:
        turn = turns[piece.turn]
        assert turn.content[piece.start : piece.start + len(piece.text)] == piece.text
        assert (turn.role, piece.turn < len(turns) - 2) == (piece.role, True)
        assert piece.text.strip()
    places = [(piece.turn, piece.start) for piece in summary.pieces]
    assert len(places) == len(set(places))
    assert fold(turns, EMPTY, with_budget(budget), ANCHORS) == summary


@given(st.text(alphabet="a1 .。,，!？?\n“”A王I'm 我不吃;:：《》"))
def test_sentences_cover_everything_but_blanks(text: str) -> None:
    at = 0
    for start, end in sentences(text):
        assert not text[at:start].strip("。！？!?；;…\n.”\"’')）」』 \t\r\u3000")
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not text[at:].strip("。！？!?；;…\n.”\"’')）」』 \t\r\u3000")
