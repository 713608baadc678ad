"""SPEC §6: what a denial covers and what a circumstance is, by the words alone."""

from importlib.resources import files

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.core.conflicts import contradicts
from hermes_memory.core.model import Category, Layer, Memory, Polarity
from hermes_memory.testing.builders import a_memory

DIMENSIONS = load_dimensions(files("configs") / "dimensions.toml")


def said(dimension: str, thing: str, content: str, polarity: Polarity = Polarity.POSITIVE) -> Memory:
    entry = DIMENSIONS.get(dimension)
    assert entry is not None
    return a_memory(
        dimension=dimension,
        object=thing,
        content=content,
        polarity=polarity,
        category=entry.category,
        layer=entry.layer,
    )


@pytest.mark.parametrize(
    ("dimension", "thing", "denied", "covered"),
    [
        ("possession", "Pixel 7", "Pixel", True),
        ("sport", "夜跑五公里", "夜跑", True),
        ("possession", "Pixel case", "Pixel", False),
        ("possession", "Pixel", "Pixel 7", False),
    ],
)
def test_spec_6_a_denial_covers_what_has_a_number_behind_it(
    dimension: str, thing: str, denied: str, covered: bool
) -> None:
    claim, denial = said(dimension, thing, thing), said(dimension, denied, denied, Polarity.NEGATIVE)
    assert contradicts(claim, denial, DIMENSIONS) is covered
    assert contradicts(denial, claim, DIMENSIONS) is covered


def test_spec_6_what_used_to_be_so_is_denied_now() -> None:
    plays = said("instrument", "bass", "I play bass")
    over = said("instrument", "bass", "I used to play bass", Polarity.NEGATIVE)
    assert contradicts(plays, over, DIMENSIONS)
    assert contradicts(over, plays, DIMENSIONS)


def test_spec_6_an_earlier_period_contradicts_no_later_one() -> None:
    now, once = said("city", "Oslo", "I live in Oslo"), said("city", "Bergen", "I used to live in Bergen")
    assert not contradicts(now, once, DIMENSIONS)


def test_spec_6_a_season_that_is_the_value_itself_is_no_circumstance() -> None:
    one, other = (said("interest", thing, f"我最喜欢的季节是{thing}") for thing in ("夏天", "秋天"))
    assert contradicts(one, other, DIMENSIONS)
    assert (one.category, one.layer) == (Category.PREFERENCE, Layer.PREFERENCE)
