"""The relevance-growth benchmark: its data holds together, its figures are what they say; no model is loaded."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from bench.relevance_growth.score import Answer, fall, paired, summary
from bench.relevance_growth.suite import LIMITS, SIZES, report, worst
from bench.relevance_growth.topics import beside, topics

TOPICS = topics()


def an_answer(question: str, size: int, hits: str, language: str = "en") -> Answer:
    """``hits``: g is a memory of the topic, b one of another, t the one that the question is about."""
    names = {"g": "topic.1", "t": "topic.0", "b": "other.1"}
    return Answer(
        question=question,
        language=language,
        size=size,
        hits=tuple((names[hit],) for hit in hits),
        relevant=frozenset({"topic.0", "topic.1"}),
        about=frozenset({"topic.0"}),
        timings_ms={"rank": 1.0, "whole": 2.0},
        text=question,
        shown=tuple((hit, 0.5, {"relevance": 0.5}) for hit in hits),
    )


def test_the_data_is_large_enough_and_half_chinese_half_english() -> None:
    for language in ("zh", "en"):
        own = [topic for topic in TOPICS if topic.language == language]
        assert len(own) >= 25
        assert all(len(topic.statements) >= 12 and len(topic.questions) >= 10 for topic in own)
        for group in {topic.group for topic in own}:
            told = beside(TOPICS, group, language)
            assert len({text for _, text in told}) == len(told) >= 900
    assert sum(len(topic.questions) for topic in TOPICS) >= 500


def test_nothing_of_the_own_group_is_told_beside() -> None:
    for topic in TOPICS:
        own = {name for name, _ in (*topic.statements, *topic.others)}
        assert own.isdisjoint(name for name, _ in beside(TOPICS, topic.group, topic.language))


def test_the_same_is_told_beside_each_time_and_it_is_mixed() -> None:
    once, again = beside(TOPICS, "eat", "en"), beside(TOPICS, "eat", "en")
    assert once == again
    assert len(Counter(name.partition(".")[0] for name, _ in once[:50])) > 10


def test_a_question_about_a_statement_that_is_not_there_is_refused(tmp_path: Path) -> None:
    row = {"topic": "x", "group": "g", "lang": "en", "statements": ["a"], "others": [], "questions": []}
    path = tmp_path / "topics.jsonl"
    path.write_text(json.dumps({**row, "questions": [{"ask": "?", "about": [1]}]}), encoding="utf-8")
    with pytest.raises(ValueError, match="not there"):
        topics(path)


def test_an_answer_counts_what_is_relevant_among_its_first_ten() -> None:
    answer = an_answer("q", 10, "gb" + "b" * 8 + "g")
    assert (answer.good, answer.share, answer.covered) == (1, 0.1, 0.5)
    assert (answer.found, an_answer("q", 10, "bt").found) == (0.0, 1.0)
    assert an_answer("q", 10, "").share is None


def test_what_brings_nothing_counts_apart() -> None:
    answers = [an_answer("q", 10, "gb"), an_answer("r", 10, "")]
    seen = summary(answers, 10)
    assert (seen.questions, seen.empty, seen.relevant, seen.first, seen.found) == (2, 1, 0.5, 1.0, 0.0)
    assert math.isnan(summary(answers, 10, "zh").relevant)


def test_the_fall_is_the_worse_of_all_and_paired() -> None:
    """A question that brings something only when much is remembered is no pair, but counts in the fall."""
    answers = [
        an_answer("q", 10, "gg"), an_answer("q", 800, "gg"),
        an_answer("r", 10, ""), an_answer("r", 800, "bb"),
    ]  # fmt: skip
    assert paired(answers, (10, 800)) == {10: 1.0, 800: 1.0}
    assert fall(answers, (10, 800)) == 50.0
    assert math.isnan(fall(answers, (10, 200, 800)))


def test_the_report_has_a_figure_for_every_limit() -> None:
    made = report([an_answer("q", size, "gb", "zh") for size in SIZES], [])
    assert made.figures["points_lost"] == 0
    assert {limit.figure for limit in LIMITS} <= set(made.figures)
    assert made.missed(LIMITS) == []


def test_the_poorest_answers_are_kept_with_their_scores() -> None:
    found = worst([an_answer("q", 800, "gg"), an_answer("r", 800, "gb"), an_answer("s", 800, "")])
    assert [one["question"] for one in found] == ["r", "q"]
    assert [hit["relevant"] for hit in found[0]["hits"]] == [True, False]
