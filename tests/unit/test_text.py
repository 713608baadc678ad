"""What two texts have in common (SPEC §3.1, §6, §7.4)."""

from __future__ import annotations

import pytest

from hermes_memory.core.text import (
    content_hash,
    language,
    main_language,
    normal,
    numbers,
    one_line,
    overlap,
    pieces,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [("我住在苏州", "zh"), ("I live in Oslo", "en"), ("我用 Ray Serve", "zh"), ("I like 面 a lot", "en"), ("", "en"), ("123", "en")],
)  # fmt: skip
def test_spec_7_4_the_language_of_a_text(text: str, found: str) -> None:
    assert language(text) == found


@pytest.mark.parametrize(
    ("texts", "found"), [([], "en"), (["我"], "zh"), (["我", "I"], "en"), (["我", "你", "I"], "zh")]
)
def test_spec_7_4_the_language_of_most(texts: list[str], found: str) -> None:
    assert main_language(texts) == found


def test_spec_3_1_equal_statements_have_equal_hashes() -> None:
    assert content_hash("user", "+", "I live in Oslo.") == content_hash("User", "+", "i LIVE　in Ｏslo")
    assert len({content_hash("user", sign, "x") for sign in "+-"}) == 2
    assert content_hash("a", "+", "bc") != content_hash("ab", "+", "c")


def test_normal_forms_numbers_and_pieces() -> None:
    assert normal("Ｎew-York， 2 号!") == "newyork2号"
    assert numbers("３只猫 and 12.5 kg") == ["3", "12", "5"]
    assert pieces("喜欢猫 and Dogs") == {"喜欢", "欢猫", "and", "dogs"}
    assert pieces("猫") == {"猫"}
    assert one_line(" a\n\tb\u2028c\x00d ") == "a b c d"


@pytest.mark.parametrize(
    ("left", "right", "share"),
    [("black coffee", "coffee", 1.0), ("black tea", "green tea", 0.5), ("", "tea", 0.0), ("tea", "", 0.0), ("猫", "狗", 0.0)],
)  # fmt: skip
def test_overlap_is_the_share_of_the_smaller_text(left: str, right: str, share: float) -> None:
    assert overlap(left, right) == share
