from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes_memory.adapters.segmenter import Segmenter, read_stop_words

STOP_WORDS = Path(__file__).parents[2] / "configs" / "words"


@pytest.fixture(scope="module")
def segmenter() -> Segmenter:
    return Segmenter(read_stop_words(STOP_WORDS))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我喜欢喝乌龙茶", {"喜欢", "喝", "乌龙茶"}),
        ("下午泡壶什么茶好", {"下午", "泡", "壶", "茶"}),
        ("I prefer aisle seats on planes", {"prefer", "aisl", "seat", "plane"}),
        ("Biscuit's birthday is 2024/5/1", {"biscuit", "birthday", "2024-05-01"}),
        ("我的邮箱是 A.B@example.com", {"邮箱", "a.b@example.com"}),
        ("每周三跑 3.5 公里，用 iPhone15 听歌", {"3.5", "公里", "iphone15"}),
    ],
)
def test_samples(segmenter: Segmenter, text: str, words: set[str]) -> None:
    assert words <= set(segmenter.words(text))


@pytest.mark.parametrize("text", ["我的", "帮我", "what is this?", "the", "，。！", "", "   ", "you're"])
def test_nothing_is_left(segmenter: Segmenter, text: str) -> None:
    assert segmenter.words(text) == ()


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("我對花生過敏", "我对花生过敏"),
        ("我住在蘇州，頭髮很長", "我住在苏州，头发很长"),
        ("喜歡靠走道", "喜欢靠走道"),
    ],
)
def test_traditional_equals_simplified(segmenter: Segmenter, traditional: str, simplified: str) -> None:
    assert segmenter.words(traditional) == segmenter.words(simplified) != ()


def test_forms_of_an_english_word_meet(segmenter: Segmenter) -> None:
    assert segmenter.words("Flights") == segmenter.words("flight")
    assert segmenter.words("BOOKING") == segmenter.words("booked")


def test_a_name_is_cut_alike_wherever_it_stands(segmenter: Segmenter) -> None:
    name = set(segmenter.words("邓紫棋"))
    assert name <= set(segmenter.words("我昨天听了邓紫棋的歌")) & set(segmenter.words("邓紫棋多大了"))


def test_the_same_from_many_threads(segmenter: Segmenter) -> None:
    texts = [f"我喜欢第{number}号乌龙茶 and walking" for number in range(200)]
    alone = [segmenter.words(text) for text in texts]
    fresh = Segmenter(read_stop_words(STOP_WORDS))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fresh.words, texts)) == alone


def test_odd_input_is_survived(segmenter: Segmenter) -> None:
    segmenter.words("\x00\ud800" + "茶" * 50_000)
