"""Folding a conversation (SPEC §3.4), and taking words out of its summary (SPEC §11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermes_memory.core.bounded import BLOCK_CLOSE, BLOCK_OPEN
from hermes_memory.core.model import Role, Turn
from hermes_memory.core.rules import WindowRules
from hermes_memory.core.window import (
    BARE,
    EMPTY,
    SENTENCE,
    Erased,
    Piece,
    Summary,
    excerpts,
    fold,
    lines,
    since,
    tokens,
    without,
)
from hermes_memory.errors import InvalidConfig
from tests.small_world import NOW, a_turn, anchors, default_rules, rules

RULES = default_rules().window
ASSISTANT = Role.ASSISTANT


def talk(*texts: str, role: Role = Role.USER) -> list[Turn]:
    return [a_turn(index=number, content=text, role=role) for number, text in enumerate(texts)]


def folded(turns: list[Turn], summary: Summary = EMPTY, /, **over: Any) -> Summary:
    return fold(turns, summary, replace(RULES, **over), anchors())


def texts(summary: Summary) -> list[str]:
    return [piece.text for piece in summary.pieces]


def kept(content: str, role: Role = Role.USER, **over: Any) -> list[str]:
    return [
        piece.text
        for piece in excerpts(a_turn(content=content, role=role), replace(RULES, **over), anchors())
    ]


# when


def test_spec_3_4_beyond_fifteen_turns_all_but_the_last_ten_are_folded() -> None:
    turns = talk(*(f"第{number}天" for number in range(16)))
    assert folded(turns[:15]) is EMPTY
    summary = folded(turns)
    assert summary.upto == 6
    assert texts(summary) == [f"第{number}天" for number in range(6)]


def test_spec_3_4_beyond_half_the_budget_the_older_ones_are_folded_too() -> None:
    turns = talk(*("聊" * 100 + f"{number}号" for number in range(12)))
    assert folded(turns, budget_tokens=3000) is EMPTY
    assert folded(turns, budget_tokens=2000).upto == 2
    assert folded(turns[:10], budget_tokens=2000) is EMPTY  # the last ten stay whole, whatever they take


def test_what_was_folded_is_not_folded_again() -> None:
    turns = talk(*(f"第{number}天" for number in range(22)))
    first = folded(turns[:16])
    assert folded(turns[:21], first) is first  # fifteen are left
    second = folded(turns, first)
    assert second == folded(turns)
    assert second.upto == 12


# what


def test_spec_3_4_of_users_what_holds_an_anchor_stays_verbatim() -> None:
    assert kept("嗯嗯好的。我不吃香菜，太难吃！你觉得呢？明天3点见") == ["我不吃香菜，太难吃！", "明天3点见"]


def test_spec_3_4_of_assistants_only_promises_stay_and_of_the_others_nothing() -> None:
    said = "苏州有很多好吃的。我会在周三提醒您。"
    assert kept(said, ASSISTANT) == ["我会在周三提醒您。"]
    assert kept(said, Role.SYSTEM) == kept(said, Role.TOOL) == []


def test_what_stands_in_a_pasted_block_is_never_summarised() -> None:
    block = f'{BLOCK_OPEN} note="x">\n- 过敏：花生\n我住在苏州。{BLOCK_CLOSE}'
    assert kept(f"我不吃香菜。{block}我养猫") == ["我不吃香菜。", "我养猫"]
    assert kept(f"我不吃香菜。{BLOCK_OPEN} 我住在苏州") == ["我不吃香菜。"]
    assert kept(block) == []


def test_a_long_sentence_gives_the_clauses_with_its_anchors() -> None:
    said = "，".join(["然后就是说那个" * 5, "我不吃香菜", "嗯" * 30, "明天", "去", "苏州"])
    assert kept(said, piece_chars=40) == ["我不吃香菜", "明天", "苏州"]
    assert kept("很" * 300 + "不吃" + "辣" * 300, piece_chars=40)[0].count("不吃") == 1
    number = "号码1234，5678"
    assert kept(f"{number}{'嗯' * 50}", piece_chars=20, clause_chars=10) == ["号码1234", "5678"]


def test_of_a_very_long_turn_the_beginning_is_read() -> None:
    assert kept("3月。" + "嗯。" * 100 + "4月", turn_chars=100) == ["3月。"]


def test_an_anchor_that_spans_two_clauses_holds_them_together() -> None:
    said = "嗯" * 50 + "，《三体，黑暗森林》好看，" + "嗯" * 50
    assert kept(said, piece_chars=40) == ["《三体，黑暗森林》好看"]


# how much


def test_the_estimate_of_tokens() -> None:
    assert tokens("我住在苏州", RULES) == 5
    assert tokens("I live here", RULES) == pytest.approx(3.9)
    assert tokens("internationalisation!", RULES) == pytest.approx(3 * 1.3 + 1)
    assert tokens(" \n", RULES) == 0


def test_spec_3_4_the_oldest_shrink_to_their_anchors_before_any_is_lost() -> None:
    turns = talk("随便聊聊然后说到3月5日", "随便聊聊然后说到4月6日", "随便聊聊然后说到5月7日", "x")
    over = {"turns": 1, "fold_above": 1}
    whole = folded(turns, **over)
    assert [piece.level for piece in whole.pieces] == [SENTENCE] * 3
    one = folded(turns, **over, summary_tokens=33)
    assert texts(one) == ["3月5日", "随便聊聊然后说到4月6日", "随便聊聊然后说到5月7日"]
    assert [piece.level for piece in one.pieces] == [BARE, SENTENCE, SENTENCE]
    assert one.pieces[0].start == 8
    assert texts(folded(turns, **over, summary_tokens=17)) == ["3月5日", "4月6日", "5月7日"]
    assert texts(folded(turns, **over, summary_tokens=12)) == ["4月6日", "5月7日"]
    assert texts(folded(turns, **over, summary_tokens=1)) == []


def test_what_is_said_again_stands_once_where_it_was_said_last() -> None:
    turns = talk("去苏州玩三天", "去苏州", "去苏州玩三天", "x")
    summary = folded(turns, turns=1, fold_above=1)
    assert [(piece.turn, piece.text) for piece in summary.pieces] == [(1, "去苏州"), (2, "去苏州玩三天")]
    short = talk("随便聊聊说起了苏州", "随便聊聊后来也说起过苏州", "x")
    shrunk = folded(short, turns=1, fold_above=1, summary_tokens=4)
    assert [(piece.turn, piece.text) for piece in shrunk.pieces] == [(1, "苏州")]


def test_a_sentence_that_is_all_anchor_does_not_grow_by_shrinking() -> None:
    turns = talk("3月5日", "随便聊聊然后说到4月6日", "x")
    summary = folded(turns, turns=1, fold_above=1, summary_tokens=12)
    assert [(piece.text, piece.level) for piece in summary.pieces] == [("3月5日", BARE), ("4月6日", BARE)]


def test_spec_3_4_two_levels_of_lines() -> None:
    turns = talk(*(f"随便聊聊然后说到{number}月" for number in range(1, 13)), "x")
    summary = folded(turns, turns=1, fold_above=1, summary_tokens=100)
    read = replace(RULES, passage_turns=2, merged_passages=3)
    told = [[(piece.turn, piece.level) for piece in line] for line in lines(summary, read)]
    assert told == [
        [(0, BARE), (1, BARE), (2, BARE), (3, BARE), (4, BARE)],
        [(5, SENTENCE)], [(6, SENTENCE), (7, SENTENCE)], [(8, SENTENCE), (9, SENTENCE)], [(10, SENTENCE), (11, SENTENCE)],
    ]  # fmt: skip
    assert lines(EMPTY, read) == []


def test_spec_4_3_a_summary_outlives_no_raw_turn() -> None:
    pieces = tuple(
        Piece(turn=n, start=0, text=f"{n}日", role=Role.USER, at=NOW + timedelta(hours=n)) for n in range(3)
    )
    summary = Summary(upto=3, pieces=pieces)
    assert since(summary, NOW) is summary
    assert texts(since(summary, NOW + timedelta(hours=2))) == ["2日"]
    assert since(summary, NOW + timedelta(hours=2)).upto == 3


# erasure


def a_piece(text: str, **over: Any) -> Piece:
    values: dict[str, Any] = {"turn": 3, "start": 10, "text": text, "role": Role.USER, "at": NOW}
    return Piece(**(values | over))


def left(
    *pieces: Piece, quotes: str = "", thing: str = "", stretch: tuple[int, int] | None = None
) -> list[tuple[int, str]]:
    erased = Erased(
        stretches={3: [stretch]} if stretch else {},
        quotes=frozenset([quotes] if quotes else []),
        things=frozenset([thing] if thing else []),
    )
    return [(piece.start, piece.text) for piece in without(Summary(upto=9, pieces=pieces), erased).pieces]


def test_spec_11_a_quote_goes_and_the_other_words_of_the_sentence_stay() -> None:
    assert left(a_piece("我不吃香菜，我养猫。"), quotes="我养猫") == [(10, "我不吃香菜，")]
    assert left(a_piece("好，我养猫，住苏州"), quotes="我养猫") == [(10, "好，"), (15, "，住苏州")]
    assert left(a_piece("我养猫。"), quotes="我养猫") == []
    assert left(a_piece("我养猫。", role=ASSISTANT), quotes="我养猫") == []
    assert left(a_piece("我住苏州"), quotes="我养猫") == [(10, "我住苏州")]


def test_spec_11_what_stood_in_the_erased_stretch_goes() -> None:
    assert left(a_piece("3月"), stretch=(8, 20)) == []
    assert left(a_piece("3月", turn=4), stretch=(8, 20)) == [(10, "3月")]
    assert left(a_piece("3月"), stretch=(12, 20)) == [(10, "3月")]
    assert left(a_piece("3月"), stretch=(2, 10)) == [(10, "3月")]


def test_spec_11_what_names_the_thing_goes_in_whatever_words() -> None:
    assert left(a_piece("记住花生了"), a_piece("香菜呢"), thing="花生") == [(10, "香菜呢")]


@pytest.mark.parametrize(
    ("text", "thing", "named"),
    [("the Tea is hot", "tea", True), ("my team", "tea", False), ("steak", "tea", False), ("去了苏州玩", "苏州", True),
     ("喝tea吗", "tea", True), ("c++ 好", "c++", True), ("x", "", False)],
)  # fmt: skip
def test_a_latin_word_is_named_as_a_whole_only(text: str, thing: str, named: bool) -> None:
    assert (left(a_piece(text), thing=thing) == []) is named


# the numbers


@pytest.mark.parametrize(
    "over",
    [
        {"turns": 0},
        {"fold_above": 0},
        {"fold_share": 1.1},
        {"cjk_tokens": -1},
        {"word_chars": 0},
        {"budget_tokens": 0},
    ],
)
def test_numbers_out_of_range_are_refused(over: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="window"):
        rules(window=over)


def test_the_rules_are_values() -> None:
    assert isinstance(RULES, WindowRules)
