"""SPEC §4.1.3: masking replaces what was found and changes nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.privacy import mask
from hermes_memory.ports.detector import Found


def test_nothing_found_changes_nothing() -> None:
    assert mask("我住在苏州", []) == "我住在苏州"


def test_findings_may_come_in_any_order_and_overlap() -> None:
    text = "abcdefghij"
    assert mask(text, [Found(5, 7, "id"), Found(1, 3, "card")]) == "a[card]de[id]hij"
    assert mask(text, [Found(1, 5, "card"), Found(3, 7, "id")]) == "a[card]hij"


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5))
def test_what_lies_outside_the_findings_is_kept(text: str, pairs: list[tuple[int, int]]) -> None:
    found = [
        Found(min(a, b, len(text)), min(max(a, b), len(text)), "id")
        for a, b in pairs
        if min(a, b, len(text)) < len(text)
    ]
    found = [item for item in found if item.start < item.end]
    inside = {index for item in found for index in range(item.start, item.end)}
    kept = "".join(char for index, char in enumerate(text) if index not in inside)
    assert mask(text, found).replace("[id]", "") == kept.replace("[id]", "")
