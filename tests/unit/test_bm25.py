from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.bm25 import BACKGROUND_TEXTS, WordIndex

WORDS = st.lists(st.sampled_from("abcdef"), max_size=8)
STEPS = st.lists(st.tuples(st.sampled_from("uvwxyz"), st.none() | WORDS), max_size=25)


def naive(documents: dict[str, list[str]], query: list[str], k1: float, b: float) -> dict[str, float]:
    count = len(documents)
    mean = (sum(map(len, documents.values())) / count if count else 0) or 1
    scores = {}
    for name, words in documents.items():
        score = 0.0
        for word in dict.fromkeys(query):
            holding = sum(word in other for other in documents.values())
            often = words.count(word)
            if not often:
                continue
            idf = log(1 + (count + BACKGROUND_TEXTS - holding + 0.5) / (holding + 0.5))
            score += idf * often * (k1 + 1) / (often + k1 * (1 - b + b * len(words) / mean))
        if score > 0:
            scores[name] = score
    return scores


def built(steps: list[tuple[str, list[str] | None]], index: WordIndex) -> dict[str, list[str]]:
    documents: dict[str, list[str]] = {}
    for name, words in steps:
        if words is None:
            index.remove(name)
            documents.pop(name, None)
        else:
            index.put(name, words)
            documents[name] = words
    return documents


@given(STEPS, WORDS, st.floats(0.5, 2.0), st.floats(0.0, 1.0))
def test_equals_the_formula(
    steps: list[tuple[str, list[str] | None]], query: list[str], k1: float, b: float
) -> None:
    index = WordIndex(k1=k1, b=b)
    documents = built(steps, index)
    found = index.scores(query)
    assert len(index) == len(documents)
    got = dict(zip(found.ids, found.bm25.tolist(), strict=True))
    assert got == pytest.approx(naive(documents, query, k1, b), rel=1e-4)


@given(STEPS, WORDS)
def test_coverage_is_bounded_and_agrees(steps: list[tuple[str, list[str] | None]], query: list[str]) -> None:
    index = WordIndex()
    documents = built(steps, index)
    found = index.scores(query)
    for name, coverage in zip(found.ids, found.coverage.tolist(), strict=True):
        assert 0 < coverage <= 1
        assert [coverage] == pytest.approx(index.coverages(query, [name]), abs=1e-5)
        if set(query) <= set(documents[name]):
            assert coverage == pytest.approx(1)
    others = [name for name in (*documents, "never there") if name not in found.ids]
    assert index.coverages(query, others) == [0.0] * len(others)


def test_a_bad_best_hit_stays_low() -> None:
    index = WordIndex()
    for number in range(50):
        index.put(f"m{number}", ["喜欢", f"w{number}"])
    index.put("tea", ["喜欢", "乌龙茶"])
    weak = index.scores(["喜欢", "量子", "纠缠"])
    assert weak.coverage.max() < 0.15
    strong = index.scores(["乌龙茶", "下午"])
    assert strong.coverage.max() >= 0.5


def test_coverage_does_not_depend_on_other_hits() -> None:
    alone, crowd = WordIndex(), WordIndex()
    alone.put("a", ["tea", "milk"])
    crowd.put("a", ["tea", "milk"])
    crowd.put("b", ["sugar", "lemon", "water"])
    query = ["tea", "lemon"]
    before = alone.coverages(query, ["a"])
    assert crowd.coverages(query, ["a"]) == pytest.approx(before, abs=0.02)


def test_replaced_and_removed_documents_leave_no_words() -> None:
    index = WordIndex()
    index.put("a", ["tea"])
    index.put("a", ["coffee"])
    assert index.scores(["tea"]).ids == []
    index.remove("a")
    assert index.scores(["coffee"]).ids == []
    assert "a" not in index


def test_top_filters_before_it_limits() -> None:
    index = WordIndex()
    index.put("a", ["tea", "tea"])
    index.put("b", ["tea", "milk"])
    assert [name for name, _ in index.scores(["tea"]).top(1, {"b"})] == ["b"]


def test_words_of_everyday_use_weigh_less() -> None:
    index = WordIndex()
    index.put("tea", ["make", "tea"])
    index.put("boat", ["make", "boat"])
    plain, found = index.scores(["make", "tea"]), index.scores(["make", "tea"], {"make"})
    assert (
        dict(zip(found.ids, found.bm25, strict=True))["boat"]
        < dict(zip(plain.ids, plain.bm25, strict=True))["boat"]
    )
    assert dict(zip(found.ids, found.coverage, strict=True))["boat"] < 0.5 < found.coverage.max()
    assert index.scores(["make"], {"make"}).coverage.tolist() == [1.0, 1.0]  # all that is asked for


def test_a_word_of_the_lesser_field_is_found_and_counts_less() -> None:
    index = WordIndex()
    index.put("said", ["tea"])
    index.put("behind", ["drink"], beside=["tea", "tea"])
    found = dict(zip((scores := index.scores(["tea"])).ids, scores.bm25.tolist(), strict=True))
    assert 0 < found["behind"] < found["said"]
    assert scores.coverage.tolist() == [1.0, 1.0]
    index.remove("behind")
    assert index.scores(["drink", "tea"]).ids == ["said"]
