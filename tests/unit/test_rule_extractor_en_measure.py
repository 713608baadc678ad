"""The measure of extraction itself: what counts as covered, and what counts as grounded (SPEC §3.3, §10)."""

from dataclasses import replace

import pytest

from bench.extraction_quality import Kept, score
from bench.grounding import ungrounded
from bench.persona_chats import Utterance, content_words, covered
from tests.unit.rule_turns import candidates, turn


@pytest.mark.parametrize(
    ("fact", "stored", "verdict"),
    [
        ("I have two dogs.", ["my 2 dogs"], True),
        ("I walked my dog.", ["walking the dog daily"], True),
        ("My sister is a vegan chef.", ["my sister"], False),
        ("I like wine and coffee.", ["I like wine"], True),
        ("I like wine and coffee.", [], False),
        ("I do.", ["whatever"], None),
    ],
)
def test_a_fact_is_covered_by_half_of_its_content_words(
    fact: str, stored: list[str], verdict: bool | None
) -> None:
    assert covered(fact, stored) is verdict


def test_short_forms_and_numbers_are_written_out() -> None:
    assert content_words("I've two cats") == content_words("I have 2 cats")


def test_a_memory_is_grounded_only_in_the_words_of_its_span() -> None:
    said = turn("I live in Ghent and I have a tortoise.")
    (city, _) = candidates(said.content)
    assert not ungrounded(city, said)
    assert ungrounded(replace(city, object="Bruges"), said)
    assert ungrounded(replace(city, content="I have lived in Ghent since 1999"), said)
    assert ungrounded(replace(city, span=replace(city.span, message_id="other")), said)
    assert ungrounded(replace(city, span=replace(city.span, end=999)), said)


def test_the_score_counts_what_was_kept_against_the_labels() -> None:
    part = [
        Utterance(number, turn("x"), None, facts)
        for number, facts in enumerate([("I own a boat.",), ("I paint.",), (), ()])
    ]
    kept = [Kept((text,) if text else (), True, False, 0.1) for text in ("a boat", "", "well", "")]
    found = score("rules", part, kept)
    assert (found.precision, found.recall, found.specificity, found.macro_f1) == (0.5, 0.5, 0.5, 0.5)
    assert found.coverage == 0.5
