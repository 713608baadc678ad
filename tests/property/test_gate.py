"""SPEC §3.3, §4.1.2: however a proposal is twisted, nothing enters that the user's turns do not say."""

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.core.board import Board
from hermes_memory.core.bounded import Entrance
from hermes_memory.core.candidate import Candidate, Extraction, ExtractionRequest, Span
from hermes_memory.core.model import Memory, Polarity, Turn
from hermes_memory.core.settle import Settlement, Surroundings
from hermes_memory.core.text import numbers
from tests.small_world import NOW, a_turn, default_rules, grounding, never_similar, vector

TURNS = (
    "我住在苏州，在一家医院做护士", "我不吃香菜，也不喝咖啡", "我妈妈对花生过敏", "我养了三只猫，叫小白", "我讨厌开会", "我喜歡喝綠茶，不喜歡咖啡",
    "我女儿今年5岁，在北京上学", "我以前抽烟，去年戒了", "叫我阿北就行", "我每天跑步3公里，周末游泳", "我对海鲜过敏，不过不对牛奶过敏", "我明天下午三点去看牙医",
    "I live in Leeds and work as a nurse", "I don't eat meat but I love fish", "My sister Ana is allergic to nuts", "I have two cats called Max and Luna",
    "I hate meetings", "I used to smoke, I quit last year", "Call me Captain", "I run 5 km every day", "I'm not allergic to milk", "I never drink coffee",
    "My budget is 500 euros", "I moved to Porto in 2019",
)  # fmt: skip
FOREIGN = (
    "火锅", "严重", "上海", "李雷", "狗", "不", "没有", "总是", "四", "9", "2031", "律师", "Xiaohong", "severely", "London", "dog", "not", "never", "don't",
    "always", "seven", "lawyer", "peanuts", "$", "💀", "<b>", "以前", "if", "如果", "用户", "the user", "is", "是", "我", "I",
)  # fmt: skip
_PIECE = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+|[^\w\s]")
_NEGATES = re.compile(r"[不没]|\bnot\b|n't|\bnever\b")
# Written down here by themselves, so that the gate is not asked whether the gate is right.
_ADDS_NOTHING = set("我俺用户的了地得对年月日是本人自己") | {
    "i", "me", "my", "mine", "myself", "the", "a", "an", "user", "s", "am", "is", "are", "m",
}  # fmt: skip
_MARKS = set("，。、；：？！“”‘’（）()《》…—-.,;:?!'\"·/~～")
_SAME = {"have": "has", "has": "have", "do": "does", "does": "do"}
_FIGURES = {"two": "2", "三": "3", "2": "two", "3": "三", "5": "五", "seven": "7", "9": "九", "四": "4"}


@cache
def told() -> list[tuple[Turn, Candidate]]:
    """What the rules read in the turns: every one of them is grounded."""
    extractor, found = load_rule_extractor(), []
    for number, text in enumerate(TURNS):
        turn = a_turn(content=text, message_id=f"m{number}", index=0, session_id=f"s{number}")
        found += [(turn, one) for one in extractor.read(ExtractionRequest(turns=(turn,))).candidates]
    return found


def settled(turn: Turn, candidate: Candidate) -> list[Memory]:
    dimensions = load()
    entrance = Entrance(
        {(turn.session_id, turn.message_id): turn}, dimensions, default_rules().entry, grounding(),
        talk={turn.session_id: (turn,)},
    )  # fmt: skip
    around = Surroundings(
        namespace="n", user_id="u", seed="op", rules=default_rules(), dimensions=dimensions, entrance=entrance,
        similar=never_similar,
    )  # fmt: skip
    board = Board({}, NOW)
    Settlement(board, around).run(
        Extraction(extractor="twisted", candidates=(candidate,)), [vector(candidate.content)]
    )
    return list(board.changed)


@cache
def load() -> Any:
    return load_dimensions(Path(str(files("configs").joinpath("dimensions.toml"))))


def words(text: str) -> list[str]:
    """Words apart, blanks kept with the Latin ones."""
    return re.findall(r"[㐀-鿿]|[^\s㐀-鿿]+\s*|\s+", text)


@st.composite
def twisted(draw: st.DrawFn) -> tuple[Turn, Candidate]:
    """A grounded candidate of which one to four things were changed."""
    turn, candidate = draw(st.sampled_from(told()))
    for _ in range(draw(st.integers(1, 4))):
        candidate = _twist(draw, turn, candidate)
    return turn, candidate


def _twist(draw: st.DrawFn, turn: Turn, candidate: Candidate) -> Candidate:
    field = draw(
        st.sampled_from(("content", "content", "object", "subject", "entities", "polarity", "span", "digits"))
    )
    if field == "polarity":
        return replace(candidate, polarity=candidate.polarity.opposite)
    if field == "entities":
        return replace(candidate, entities=(*candidate.entities, draw(st.sampled_from(FOREIGN))))
    if field == "span":
        start = draw(st.integers(-1, len(turn.content)))
        ids = draw(st.sampled_from((turn.message_id, turn.message_id, "m999")))
        return replace(
            candidate, span=Span(ids, start, draw(st.integers(start, len(turn.content) + 1)), turn.session_id)
        )
    if field == "digits":
        figure = str(draw(st.integers(0, 99)))
        return replace(
            candidate,
            content=re.sub(r"\d+", figure, candidate.content),
            object=re.sub(r"\d+", figure, candidate.object),
        )
    parts = words(getattr(candidate, field))
    at, other = draw(st.integers(0, len(parts))), draw(st.integers(0, len(parts)))
    how = draw(st.sampled_from(("insert", "replace", "drop", "swap")))
    if how == "insert":
        parts.insert(at, draw(st.sampled_from(FOREIGN)) + draw(st.sampled_from(("", " "))))
    elif at < len(parts) and how == "replace":
        parts[at] = draw(st.sampled_from(FOREIGN))
    elif at < len(parts) and how == "drop":
        del parts[at]
    elif at < len(parts) and other < len(parts):
        parts[at], parts[other] = parts[other], parts[at]
    changed: dict[str, Any] = {field: "".join(parts)[:256]}
    return replace(candidate, **changed)


def pieces(text: str) -> set[str]:
    found = set(_PIECE.findall(text.casefold().replace("'", " ' ").replace("n ' t", " not ")))
    return {piece for piece in found if piece not in _MARKS and piece not in _ADDS_NOTHING}


@given(twisted())
def test_spec_3_3_no_word_enters_that_the_user_did_not_say(case: tuple[Turn, Candidate]) -> None:
    turn, candidate = case
    said = pieces(grounding().read(turn.content).plain) | pieces(turn.content)
    said |= {_FIGURES.get(piece, piece) for piece in said} | {_SAME.get(piece, piece) for piece in said}
    for memory in settled(turn, candidate):
        figures = {int(figure) for figure in grounding().read(turn.content).figures}
        days = {str(turn.created_at.year + sign * years) for years in {0, 1} | figures for sign in (-1, 1)}
        days |= {
            number
            for time in (memory.valid_from, memory.valid_to)
            if time
            for number in numbers(f"{time:%Y-%m-%d %H:%M}")
        }
        for text in (memory.content, memory.object, memory.subject, *memory.entities):
            strange = {piece for piece in pieces(text) if not _NEGATES.search(piece)} - said - days
            assert not strange, (text, strange, turn.content)


@given(st.sampled_from(told()), st.sampled_from(("drop", "insert")))
def test_spec_4_1_2_no_negation_is_lost_or_added(told: tuple[Turn, Candidate], how: str) -> None:
    turn, candidate = told
    negates = _NEGATES.search(candidate.content)
    if (how == "drop") is (negates is None):
        return
    if how == "drop":
        content = _NEGATES.sub("", candidate.content)
        assert not settled(turn, replace(candidate, content=content, polarity=Polarity.POSITIVE))
    else:
        for word in ("不", "没有") if re.search("[㐀-鿿]", turn.content) else ("don't ", "never "):
            assert not settled(turn, replace(candidate, content=word + candidate.content))


def test_what_is_twisted_enters_untwisted() -> None:
    """Else the properties would hold of a gate that lets nothing in."""
    assert len(told()) > len(TURNS)
    assert sum(bool(settled(turn, candidate)) for turn, candidate in told()) > 0.9 * len(told())
