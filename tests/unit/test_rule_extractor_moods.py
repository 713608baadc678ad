"""SPEC §4.1.7, §8: what passes, and what is no value, stands behind no slot of the user model."""

import pytest

from hermes_memory.core.model import Category, Polarity, Scope
from tests.unit.rule_turns import candidates, one


@pytest.mark.parametrize(
    "content",
    [
        "I'm great",
        "I am happy for you",
        "I'm exhausted",
        "I feel calm",
        "I feel very sad about the news",
        "我好累",
        "好开心",
    ],
)
def test_spec_4_1_7_a_mood_of_the_moment_stays_in_its_session(content: str) -> None:
    found = one(content, "mood")
    assert (found.category, found.scope) == (Category.STATE, Scope.SESSION)


def test_spec_4_1_7_a_mood_that_is_said_to_go_on_reaches_further() -> None:
    assert one("I have been feeling anxious", "mood").scope is Scope.USER


@pytest.mark.parametrize("content", ["I don't have a job yet", "I like comedies but do not have a favorite"])
def test_what_is_no_thing_is_no_possession(content: str) -> None:
    assert "possession" not in {found.dimension for found in candidates(content)}


def test_owning_none_denies_the_thing() -> None:
    found = one("I own no animals", "possession")
    assert (found.polarity, found.object) == (Polarity.NEGATIVE, "animals")


@pytest.mark.parametrize("content", ["I am a lousy cook", "I am a decent cook", "I'm an awful driver"])
def test_a_word_on_how_well_somebody_does_it_is_no_occupation(content: str) -> None:
    assert "occupation" not in {found.dimension for found in candidates(content)}


@pytest.mark.parametrize(
    "content", ["Love those guys", "I like those two genres the best", "I enjoy these things"]
)
def test_words_that_only_point_are_no_interest(content: str) -> None:
    assert "interest" not in {found.dimension for found in candidates(content)}
