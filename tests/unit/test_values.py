"""What an object names (SPEC §4.1.8, §6)."""

from __future__ import annotations

import re

import pytest

from hermes_memory.core.values import Reader, Terms, Wording, tokens

READER = Reader(
    Wording(
        fillers=("a", "the", "food", "的", "一只"),
        narrow=("晚上|in the evening",),
        apart=("on planes", "on trains"),
        which=("older", "另一"),
        past=("以前|used to",),
        negators=("不", "not", "without"),
        occasions=(re.compile(r"when (?P<what>\w+ \w+)"),),
    )
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Two Cats", ("two", "cat")),
        ("cherries, dishes, boxes, dresses", ("cherry", "dish", "box", "dress")),
        ("tennis and glass and bus", ("tennis", "and", "glass", "and", "bus")),
        ("my sister's ties", ("my", "sister", "ty")),
        ("hiking", ("hik",)),
        ("hike", ("hik",)),
        ("running", ("run",)),
        ("selling", ("sell",)),
        ("king", ("king",)),
        ("Ｏｓｌｏ 12.5", ("oslo", "12.5")),
        ("十二点和苏州", ("十二", "点", "和", "苏", "州")),
        ("，。", ()),
    ],
)
def test_spec_4_1_8_case_width_number_and_form_make_no_difference(text: str, found: tuple[str, ...]) -> None:
    assert tokens(text) == found


def test_spec_6_terms_find_values_by_any_of_their_words() -> None:
    terms = Terms(["quiet|安静", "loud|lively|热闹"])
    assert terms.named_in("a Quiet bar") == {0}
    assert terms.named_in("安静，不要热闹") == {0, 1}
    assert terms.named_in("disquieting") == frozenset()
    assert terms.named_in("lively") == {1}
    assert Terms([]).named_in("quiet") == frozenset()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the spicy food", ("spicy",)),
        ("food", ("food",)),  # it names nothing else
        ("blood type is a", ("blood", "typ", "is", "a")),  # no article stands at the end
        ("一只安静的猫", ("安", "静", "猫")),
        ("", ()),
    ],
)
def test_spec_6_words_that_say_nothing_are_no_part_of_a_value(text: str, value: tuple[str, ...]) -> None:
    assert READER.value(text) == value


@pytest.mark.parametrize(
    ("longer", "shorter", "finer"),
    [
        ("instant coffee", "coffee", True),
        ("coffee", "coffee", False),
        ("coffee cake", "coffee", False),  # a cake
        ("鸡蛋", "鸡", False),
        ("红酒", "酒", True),
        ("not coffee", "coffee", False),
        ("不带家具", "带家具", False),
        ("tea", "", False),
    ],
)
def test_spec_6_the_head_comes_last(longer: str, shorter: str, finer: bool) -> None:
    assert READER.refines(READER.value(longer), READER.value(shorter)) is finer


@pytest.mark.parametrize(
    ("longer", "shorter", "held"),
    [
        ("black coffee in cups", "coffee", True),
        ("coffee", "coffee", True),
        ("coffee", "black coffee", False),
        ("coffee without milk", "coffee", False),
        ("room 12", "room", False),
        ("三室", "室", False),
        ("", "", True),
    ],
)
def test_spec_4_1_8_more_words_around_may_mean_the_same(longer: str, shorter: str, held: bool) -> None:
    assert READER.holds(READER.value(longer), READER.value(shorter)) is held


def test_spec_6_circumstances_by_word_and_by_shape() -> None:
    assert READER.circumstances("tea in the evening") == {0}
    assert READER.circumstances("tea when writing emails") == {("writ", "email")}
    assert READER.circumstances("tea") == frozenset()


def test_spec_6_one_of_several_is_not_the_other() -> None:
    assert READER.same_one("my son is 10", "my son is 11")
    assert not READER.same_one("my older son is 10", "my son is 5")


def test_spec_6_what_was_once_is_another_period() -> None:
    assert READER.same_period("我住在苏州", "我住在杭州")
    assert READER.same_period("I used to smoke", "我以前抽烟")
    assert not READER.same_period("I used to smoke", "I smoke")


def test_spec_6_two_settings_stand_apart() -> None:
    assert READER.apart("aisle on trains", "window on planes")
    assert not READER.apart("aisle on trains", "window")
    assert not READER.apart("aisle on trains", "window on trains")
