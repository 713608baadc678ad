"""Whether a prompt contradicts itself (S1 §4.4)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.core.consistency import both_sides
from hermes_memory.core.model import Category, Memory, Polarity
from hermes_memory.testing.builders import a_memory
from tests.small_world import DIMENSIONS


def a(number: int, **over: Any) -> Memory:
    return a_memory(id=f"mem-{number}", **({"dimension": "city"} | over))


OSLO, BERGEN = (
    a(1, object="Oslo", content="I live in Oslo"),
    a(2, object="Bergen", content="I live in Bergen"),
)
CAT, DOG = (a(n, dimension="pet", object=o, content=f"I have a {o}") for n, o in ((3, "cat"), (4, "dog")))
NO_CAT = a(5, dimension="pet", object="cat", content="I have no cat", polarity=Polarity.NEGATIVE)


@pytest.mark.parametrize(
    ("shown", "contradicts"),
    [
        ([], False),
        ([OSLO], False),
        ([OSLO, BERGEN], True),  # one value only
        ([CAT, DOG], False),  # they live side by side
        ([CAT, NO_CAT, OSLO], True),
        ([DOG, NO_CAT], False),
        ([OSLO, a(6, object="Bergen", content="Ana lives in Bergen", subject="Ana")], False),
        ([OSLO, BERGEN.with_(category=Category.EVENT)], False),
        ([CAT, DOG.with_(rival_of="mem-3")], True),  # the gates said so
        ([OSLO, DOG.with_(rival_of="mem-3")], False),  # what it disputes is not there
    ],
)
def test_both_sides(shown: list[Memory], contradicts: bool) -> None:
    assert both_sides(shown, DIMENSIONS) is contradicts
