"""The plot of relevance against memory size: well-formed, labelled, and with every value in its place."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.relevance_growth import plot

SVG = "{http://www.w3.org/2000/svg}"


def data(relevant: tuple[float, ...] = (0.9, 0.8, 0.7), p99: float = 3.5) -> dict[str, Any]:
    sizes = (10, 200, 800)
    shared = {"found": 0.7, "empty": 1, "questions": 4}
    return {
        "sizes": [
            {"size": size, "language": language, "relevant": value, **shared}
            for size, value in zip(sizes, relevant, strict=True)
            for language in ("all", "zh")
        ],
        "latency_ms": {str(size): {"whole": {"p50": 1.0, "p99": p99}} for size in sizes},
    }


def test_the_plot_has_two_panels_with_two_lines_each() -> None:
    drawn = ET.fromstring(plot.svg(data()))  # noqa: S314  # our own
    lines = drawn.findall(f"{SVG}polyline")
    assert [len(str(line.get("points")).split()) for line in lines] == [3, 3, 3, 3]
    texts = [text.text for text in drawn.findall(f"{SVG}text")]
    assert texts.count("memories of other topics") == 2
    assert {"10", "200", "800", "relevant 70", "found 70", "p50 1.0", "p99 3.5"} <= set(texts)


def test_names_that_would_overlap_are_moved_apart() -> None:
    drawn = ET.fromstring(plot.svg(data((0.9, 0.8, 0.7))))  # noqa: S314  # our own
    places = {text.text: float(str(text.get("y"))) for text in drawn.findall(f"{SVG}text")}
    assert abs(places["relevant 70"] - places["found 70"]) >= 13


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0.9, 1.0), (1.0, 1.0), (3.5, 4.0), (41.0, 50.0), (0.03, 0.04)]
)
def test_the_axis_ends_at_a_round_number(value: float, ceiling: float) -> None:
    drawn = ET.fromstring(plot.svg(data(p99=max(value, 1.0))))  # noqa: S314  # our own
    assert drawn is not None
    assert plot._ceiling(value) == pytest.approx(ceiling)


def test_the_table_has_a_row_for_each_size_of_all_languages() -> None:
    assert plot.rows(data()).splitlines()[2:] == [
        "| 10 | 90.0% | 70.0% | 1 of 4 | 1.0 | 3.5 |",
        "| 200 | 80.0% | 70.0% | 1 of 4 | 1.0 | 3.5 |",
        "| 800 | 70.0% | 70.0% | 1 of 4 | 1.0 | 3.5 |",
    ]
