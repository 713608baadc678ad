from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.words import Kind, normal, pieces, without


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Ｈｅｌｌｏ", "hello"),
        ("花了1,250元", "花了1250元"),
        ("1,2,3", "1,2,3"),
        ("我女儿六岁", "我女儿6岁"),
        ("十二月二十五日", "12月25日"),
        ("三百零五号", "305号"),
        ("it’s", "it's"),
        ("三星手机", "三星手机"),
        ("一百二十三十", "一百二十三十"),
        ("二零二四年", "2024年"),
        ("1,250,000", "1250000"),
        ("买了,1,250个", "买了,1250个"),
        ("111,222,3333", "111,222,3333"),
        ("1,234,,5,678", "1,234,,5678"),
        ("1,234,5", "1,234,5"),
    ],
)
def test_normal(text: str, wanted: str) -> None:
    assert normal(text) == wanted


@pytest.mark.parametrize(
    "text", ["2024-05-01", "2024/5/1", "2024.5.1", "2024年5月1日", "二〇二四年五月一日", "２０２４年５月１日"]
)
def test_one_date_is_one_word(text: str) -> None:
    assert list(pieces(normal(text))) == [(Kind.WHOLE, "2024-05-01")]


@pytest.mark.parametrize(
    "text", ["a.b+c@mail.example.com", "9:30", "3.5", "15%", "2024-05-01", "https://example.com/a?b=1"]
)
def test_kept_whole(text: str) -> None:
    assert list(pieces(normal(f"see {text}, ok")))[1] == (Kind.WHOLE, text)


def test_an_impossible_date_is_left_alone() -> None:
    assert "2024-13-45" in normal("2024-13-45")


def test_mixed_text_is_told_apart() -> None:
    assert list(pieces(normal("我用iPhone15，don't 拍照"))) == [
        (Kind.HAN, "我用"),
        (Kind.WORD, "iphone15"),
        (Kind.WORD, "don't"),
        (Kind.HAN, "拍照"),
    ]


@pytest.mark.parametrize(
    "unit", ["一", "一百", "111,", "1,", "2023-", "2023年", "a.", "1%", "a@", "a@a.", "http://"]
)
def test_an_enormous_text_takes_its_length_and_not_the_square_of_it(unit: str) -> None:
    start = time.process_time()
    found = list(pieces(normal((unit * 32_000)[:32_000])))
    assert found
    assert time.process_time() - start < 1  # the first took six seconds, the third more than one


@given(st.text())
def test_any_text_has_words_without_space(text: str) -> None:
    for _, piece in pieces(normal(text)):
        assert piece == piece.strip()


def test_without() -> None:
    assert without(["a", "", "b", "a"], {"b"}) == ("a", "a")
