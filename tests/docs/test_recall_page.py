"""The page on recall shows what the library answers now."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.relevance_growth import plot
from bench.worked_recalls import MARK, PAGE, same, with_recalls, worked
from hermes_memory.memory import Memory


@pytest.mark.model
@pytest.mark.timeout(120)
def test_spec_7_5_the_worked_recalls_are_those_of_the_library(tmp_path: Path) -> None:
    """Repair: python -m bench.worked_recalls --write."""
    page = PAGE.read_text(encoding="utf-8")
    with Memory.open(tmp_path) as memory:
        assert same(with_recalls(page, worked(memory)), page)


def test_the_page_has_a_place_for_all_that_is_written_into_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert MARK.search(page)
    assert plot.MARK.search(page)
    assert f"({plot.PLOT.name})" in page


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("a 0.85 b 1.00", "a 0.86 b 1.00", True),
        ("a 0.85", "a 0.88", False),
        ("a 0.85", "b 0.85", False),
        ("a 0.85", "a 0.85 0.10", False),
    ],
)
def test_texts_are_the_same_but_for_the_last_decimal(one: str, other: str, alike: bool) -> None:
    assert same(one, other) is alike
