"""Dimensions: what conflict detection groups by (SPEC §2, §6)."""

from __future__ import annotations

import pytest

from hermes_memory.core.dimensions import SafetyClass
from hermes_memory.core.model import Polarity
from tests.small_world import DIMENSIONS


def test_a_known_key_has_its_properties() -> None:
    assert "city" in DIMENSIONS
    assert DIMENSIONS.single("city")
    assert not DIMENSIONS.single("pet")
    assert DIMENSIONS.safety("allergy") is SafetyClass.ALLERGY
    assert DIMENSIONS.freeze_class("form_of_address") == "naming"
    assert (DIMENSIONS.label("city", "zh"), DIMENSIONS.label("city", "fr")) == ("居住地", "")


def test_spec_2_an_unknown_key_reads_as_an_open_multi_valued_one() -> None:
    assert "shoe" not in DIMENSIONS
    assert DIMENSIONS.get("shoe") is None
    assert not DIMENSIONS.single("shoe")
    assert (DIMENSIONS.safety("shoe"), DIMENSIONS.freeze_class("shoe"), DIMENSIONS.label("shoe", "zh")) == (
        None,
        None,
        "",
    )


@pytest.mark.parametrize(
    ("left", "right", "related"),
    [
        ("city", "city", True), ("city", "hometown", True), ("hometown", "city", True), ("city", "pet", False),
        ("shoe", "shoe", True), ("shoe", "city", False), ("city", "shoe", False),
    ],
)  # fmt: skip
def test_spec_6_related_in_either_direction(left: str, right: str, related: bool) -> None:
    assert DIMENSIONS.related(left, right) is related


def test_every_side_has_an_opposite() -> None:
    assert [side.opposite.opposite for side in Polarity] == list(Polarity)
    assert Polarity.POSITIVE.opposite is Polarity.NEGATIVE
