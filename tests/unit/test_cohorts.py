"""Cohorts tell what a whole group shares, and nothing of one member (S2 §7.2, SPEC §12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.config import load_settings
from hermes_memory.core.cohorts import in_common, part
from hermes_memory.core.model import Category, Layer, Polarity, Scope
from hermes_memory.core.night_sums import Numbers, plus
from hermes_memory.wiring import build_policy
from tests.small_world import a_memory

RULES = replace(load_settings().rules.cohorts, enabled=True)
POLICY = build_policy(load_settings())
LIKES: dict[str, Any] = {
    "category": Category.PREFERENCE,
    "layer": Layer.PREFERENCE,
    "dimension": "drink_preference",
}
people = st.lists(st.sets(st.sampled_from(["a", "b", "c"])), max_size=60)


def summed(held: list[set[str]]) -> Numbers:
    sums: Numbers = {}
    for values in held:
        plus(sums, {"members": 1, "values": {"preference/music": dict.fromkeys(values, 1)}})
    return sums


def told(held: list[set[str]], **rules: Any) -> dict[str, float]:
    found = in_common(summed(held), replace(RULES, **rules))["slots"]
    return {one["value"]: one["share"] for one in found.get("preference", {}).get("music", ())}


@pytest.mark.parametrize(("count", "values"), [(0, {}), (19, {}), (20, {"a": 1.0}), (40, {"a": 1.0})])
def test_nothing_is_told_of_a_small_group(count: int, values: dict[str, float]) -> None:
    assert told([{"a"}] * count) == values


def test_shares_are_coarse_and_a_rare_value_is_not_told() -> None:
    assert told([{"a"}] * 39 + [{"b"}] * 19 + [set()]) == {"a": 0.6}
    assert told([{"a"}] * 25 + [set()] * 75) == {}  # a group holds it, and hardly anybody
    assert in_common(summed([{"a"}] * 59), RULES)["members"] == 40


@given(people)
def test_no_value_of_fewer_than_a_group_is_told_whoever_leaves(held: list[set[str]]) -> None:
    for left_out in range(-1, len(held)):
        rest = [one for at, one in enumerate(held) if at != left_out]
        for value, share in told(rest, min_group=5, least_share=0.0).items():
            holders = sum(value in one for one in rest)
            assert holders >= 5
            assert share <= holders / len(rest)


@given(people)
def test_the_order_of_the_members_does_not_matter(held: list[set[str]]) -> None:
    assert in_common(summed(held), RULES) == in_common(summed(held[::-1]), RULES)


def test_only_values_of_the_catalogue_leave_a_user() -> None:
    memories = [
        a_memory(id="1", **LIKES, object="美式咖啡"),
        a_memory(id="2", **LIKES, object="Green tea"),
        a_memory(id="3", **LIKES, object="my aunt's cider"),
    ]
    assert part(memories, POLICY.dimensions, POLICY.cohort_values) == {
        "members": 1,
        "values": {"preference/drink_preference": {"coffee": 1, "tea": 1}},
    }


@pytest.mark.parametrize(
    "over",
    [
        {"subject": "妈妈"}, {"scope": Scope.SESSION}, {"polarity": Polarity.NEGATIVE}, {"safety": True},
        {"layer": Layer.IDENTITY}, {"rival_of": "x"}, {"dimension": "allergy"},
    ],
)  # fmt: skip
def test_what_no_cohort_counts(over: dict[str, Any]) -> None:
    memory = a_memory(**{**LIKES, "object": "coffee", **over})
    catalogue = {**POLICY.cohort_values, "allergy": {"coffee": "coffee"}}
    assert part([memory], POLICY.dimensions, catalogue)["values"] == {}


def test_the_catalogue_names_harmless_dimensions_alone() -> None:
    for key in POLICY.cohort_values:
        entry = POLICY.dimensions.get(key)
        assert entry is not None
        assert entry.layer in {Layer.PREFERENCE, Layer.STYLE}
        assert not (POLICY.dimensions.safety(key) or POLICY.dimensions.sensitive(key))
        assert not POLICY.dimensions.freeze_class(key)
