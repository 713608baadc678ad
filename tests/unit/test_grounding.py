"""How statements are compared with the words they rest on (SPEC §4.1.2), and the lists behind it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_memory.adapters.grounding_file import CUES, load_grounding
from hermes_memory.core.grounding import numeral
from hermes_memory.errors import InvalidConfig
from tests.small_world import grounding

WORDS = Path(__file__).resolve().parents[2] / "configs" / "words"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("三", 3), ("十", 10), ("十二", 12), ("二十", 20), ("三百五十", 350), ("两千零八", 2008), ("二〇二四", 2024), ("一万", 10_000), ("三万五千", 35_000),
        ("十万", 100_000), ("万", 10_000), ("零", 0),
    ],
)  # fmt: skip
def test_chinese_numerals_have_values(text: str, value: int) -> None:
    assert numeral(text) == value


@pytest.mark.parametrize(
    ("thing", "text", "stands"),
    [
        ("苏州", "我住在苏州", True),
        ("蘇州", "我住在苏州", True),
        ("苏州", "我住在蘇州", True),
        ("New York", "I live in New-York!", True),
        ("rat", "I am grateful", False),
        ("peanut", "I like peanuts", True),
        ("dog Rex", "I have a dog called Rex", True),
        ("dog Tom", "I have a dog called Rex", False),
        ("3只猫", "我养了三只猫", True),
        ("三只猫", "我养了3只猫", True),
        ("三只猫", "我养了13只猫", False),
        ("7", "seven cats", True),
        ("seven cats", "7 cats", True),
        ("8", "seven cats", False),
        ("花生", "我喜欢花，生意好", False),
        ("York的房子", "我喜欢New York的房子", True),
        ("ve been there", "I've been there", True),
        ("！！", "我喜欢！！", False),
        ("9 lives", "nine lives", True),
    ],
)
def test_spec_4_1_2_a_thing_stands_in_a_text(thing: str, text: str, stands: bool) -> None:
    ground = grounding()
    assert ground.stands(thing, ground.read(text)) is stands


@pytest.mark.parametrize(
    ("content", "text", "strange"),
    [
        ("我喜欢猫", "我喜欢猫", []),
        ("用户喜欢猫", "我喜欢猫", []),
        ("我喜欢狗", "我喜欢猫", ["狗"]),
        ("我养了三只猫", "我养了3只猫", []),
        ("The user has two cats", "I have 2 cats", []),
        ("The user has two dogs", "I have 2 cats", ["dog"]),
        ("I am living here", "I'm living here", []),
        ("I do not smoke", "I don't smoke", []),
        ("我的喜欢", "我喜欢", []),
        ("it is here", "it costs here", []),
    ],
)
def test_spec_4_1_2_words_that_nobody_said_are_found(content: str, text: str, strange: list[str]) -> None:
    ground = grounding()
    assert ground.strange(ground.read(content), [ground.read(text)]) == strange


@pytest.mark.parametrize(
    ("content", "text", "negated"),
    [
        ("我喜欢猫", "我不喜欢猫", True),
        ("我喜欢猫", "猫我不喜欢", True),
        ("我喜欢甜的", "我不吃辣，喜欢甜的", False),
        ("我吃姜", "我不吃葱、姜、蒜", True),
        ("I eat fish", "I don't eat meat, fish or eggs", True),
        ("I love fish", "I don't eat meat but I love fish", False),
        ("I have cancer", "I have cancer and no smartphone", False),
        ("I like cats", "Cats I don't like", True),
        ("I like cats", "I like cats, not dogs", False),
        ("这家店不错", "这家店不错", False),
        ("我没错过", "我没错过", True),
        ("我对花生过敏", "我对花生不过敏", True),
        ("not only do I ski", "not only do I ski", False),
        ("xyz", "I never sleep", True),  # no word in common: the whole text
    ],
)
def test_spec_4_1_2_negations_are_looked_for_around_the_words(content: str, text: str, negated: bool) -> None:
    ground = grounding()
    said, quote = ground.read(content), ground.read(text)
    assert {ground.negated(quote, start, end) for start, end in ground.around(said, quote)} == {negated}


def test_every_place_is_looked_at_where_the_words_stand_equally_close() -> None:
    ground = grounding()
    said, quote = ground.read("喜欢猫"), ground.read("我喜欢猫。他不喜欢猫")
    assert {ground.negated(quote, start, end) for start, end in ground.around(said, quote)} == {True, False}
    apart, twice = ground.read("cats dogs"), ground.read("cats or dogs, no cats, dogs")
    assert len(ground.around(apart, twice)) == 1
    (here,) = ground.around(ground.read("dogs cats"), ground.read("cats, cats, then dogs"))
    assert here == (4, 21)
    assert len(ground.around(apart, ground.read("cats or dogs. No cats or dogs"))) == 2


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("好的。你对什么过敏？", "你对什么过敏？"),
        ("Hello! Any allergies? And your name?", " And your name?"),
        ("你住在北京吗", "你住在北京吗"),
        ("I see.", ""),
        ("", ""),
    ],
)
def test_spec_3_3_the_last_question_is_found(text: str, question: str) -> None:
    assert grounding().question(text) == question


@pytest.mark.parametrize(
    ("text", "short"),
    [("花生", True), ("我" * 25, False), ("just peanuts", True), ("a " * 13, False)],
)
def test_spec_3_3_an_answer_is_short(text: str, short: bool) -> None:
    assert grounding().short(grounding().read(text)) is short


def test_spec_5_an_unknown_class_has_no_words() -> None:
    assert not grounding().cue("unheard-of", grounding().read("我对花生过敏"))


def test_spec_5_words_that_say_nothing_do_not_tie_two_texts() -> None:
    ground = grounding()
    assert not ground.shares("我住在苏州", ground.read("在这里"))
    assert ground.shares("我住在苏州", ground.read("还住那儿"))


# the file


def broken(tmp_path: Path, change: Callable[[str], str]) -> Path:
    directory = tmp_path / "words"
    shutil.copytree(WORDS, directory)
    path = directory / "grounding.toml"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def test_the_shipped_file_has_words_for_every_class() -> None:
    assert set(load_grounding(WORDS / "grounding.toml").lexicon.cues) == CUES


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("[negators]", "[negators", "grounding.toml"),
        ("[negators]", "[deniers]", "grounding.toml"),
        ("[cues.allergy]", "[cues.allergies]", "grounding.toml.cues"),
        ("answer_chars = 24", "answer_chars = 0", "grounding.toml.answer_chars"),
        ("answer_words = 12", 'answer_words = "12"', "grounding.toml.answer_words"),
        ('zh = ["是"]', "zh = [7]", "grounding.toml.copulas"),
        ('zh = ["是"]', 'zh = "是"', "grounding.toml.copulas"),
        ('zh = ["是"]', 'fr = ["est"]', "grounding.toml.copulas"),
        ("zh = '不|没", "zh = '(不|没", "grounding.toml.negators"),
        ("zh = '不|没", "fr = '不|没", "grounding.toml.negators"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in (WORDS / "grounding.toml").read_text(encoding="utf-8")
    with pytest.raises(InvalidConfig, match=where.replace(".", r"\.")):
        load_grounding(broken(tmp_path, lambda text: text.replace(old, new, 1)))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"grounding\.toml"):
        load_grounding(tmp_path / "grounding.toml")
