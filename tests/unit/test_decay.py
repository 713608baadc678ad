"""The decay curves (SPEC §4.3)."""

from __future__ import annotations

import math

import pytest

from hermes_memory.core.decay import curve, days_between, decay, retention
from hermes_memory.core.model import Category, Lock
from hermes_memory.core.rules import Curve
from tests.small_world import DAY, NOW, a_memory, default_rules, rules

LIFE = default_rules().life


@pytest.mark.parametrize(
    ("name", "days", "weight"),
    [
        (Curve.PLATEAU_STEP, 0, 1.0),
        (Curve.PLATEAU_STEP, 30, 1.0),
        (Curve.PLATEAU_STEP, 36.9, 1.0),
        (Curve.PLATEAU_STEP, 37, 0.9),
        (Curve.PLATEAU_STEP, 43.9, 0.9),
        (Curve.PLATEAU_STEP, 44, 0.81),
        (Curve.PLATEAU_STEP, 100, 0.9**10),
        (Curve.EXPONENTIAL, 0, 1.0),
        (Curve.EXPONENTIAL, 35, math.exp(-0.7)),  # about a half
        (Curve.LAST_ACCESS, 1, 0.95),
        (Curve.LAST_ACCESS, 14, 0.95**14),  # about a half
        (Curve.HALF_LIFE, 30, 0.5),
        (Curve.HALF_LIFE, 60, 0.25),
        (Curve.NONE, 10_000, 1.0),
    ],
)
def test_spec_4_3_each_curve_has_the_numbers_of_the_page(name: Curve, days: float, weight: float) -> None:
    assert curve(name, days, LIFE) == pytest.approx(weight)


@pytest.mark.parametrize(("name", "days"), [(Curve.EXPONENTIAL, 35), (Curve.LAST_ACCESS, 14)])
def test_spec_4_3_the_named_days_leave_a_half(name: Curve, days: float) -> None:
    assert curve(name, days, LIFE) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("category", "name"),
    [
        (Category.FACT, Curve.NONE),
        (Category.PREFERENCE, Curve.PLATEAU_STEP),
        (Category.STATE, Curve.LAST_ACCESS),
        (Category.EVENT, Curve.HALF_LIFE),
    ],
)
def test_spec_4_3_each_category_has_its_default_curve(category: Category, name: Curve) -> None:
    assert LIFE.curves[category] is name
    memory = a_memory(category=category, stability=0.5)
    assert decay(memory, NOW + 50 * DAY, LIFE) == pytest.approx(curve(name, 50, LIFE))


@pytest.mark.parametrize(
    ("stability", "factor"), [(1.0, 0.0), (0.75, 0.5), (0.6, 0.8), (0.5, 1.0), (0.0, 2.0)]
)
def test_spec_4_3_stability_stretches_the_days(stability: float, factor: float) -> None:
    memory = a_memory(category=Category.EVENT, stability=stability)
    assert decay(memory, NOW + 30 * DAY, LIFE) == pytest.approx(0.5**factor)


def test_spec_4_3_stability_one_never_decays_however_old() -> None:
    memory = a_memory(category=Category.PREFERENCE, stability=1.0)
    assert decay(memory, NOW + 1000 * DAY, LIFE) == 1.0


@pytest.mark.parametrize("category", Category)
def test_spec_4_3_what_is_frozen_never_decays(category: Category) -> None:
    memory = a_memory(category=category, lock=Lock.FROZEN, stability=0.0)
    assert decay(memory, NOW + 1000 * DAY, LIFE) == 1.0


def test_spec_4_3_a_preference_older_than_90_days_since_creation_counts_half() -> None:
    memory = a_memory(category=Category.PREFERENCE, stability=0.5, updated_at=NOW + 80 * DAY)
    assert decay(memory, NOW + 90 * DAY, LIFE) == 1.0
    assert decay(memory, NOW + 91 * DAY, LIFE) == 0.5


def test_spec_4_3_other_curves_know_no_half_after_90_days() -> None:
    memory = a_memory(category=Category.EVENT, stability=0.5, updated_at=NOW + 100 * DAY)
    assert decay(memory, NOW + 100 * DAY, LIFE) == 1.0


def test_spec_4_3_days_count_from_the_last_update() -> None:
    memory = a_memory(category=Category.EVENT, stability=0.5, updated_at=NOW + 30 * DAY)
    assert decay(memory, NOW + 60 * DAY, LIFE) == pytest.approx(0.5)


@pytest.mark.parametrize(("updated", "accessed", "since"), [(0, None, 0), (0, 10, 10), (20, 10, 20)])
def test_spec_4_3_last_access_counts_from_the_later_of_access_and_update(
    updated: int, accessed: int | None, since: int
) -> None:
    memory = a_memory(
        category=Category.STATE,
        stability=0.5,
        updated_at=NOW + updated * DAY,
        last_access_at=None if accessed is None else NOW + accessed * DAY,
    )
    assert decay(memory, NOW + 34 * DAY, LIFE) == pytest.approx(0.95 ** (34 - since))


def test_spec_4_3_the_curve_of_a_category_is_configurable() -> None:
    life = rules(life={"curves": {**LIFE.curves, Category.FACT: Curve.EXPONENTIAL}}).life
    assert decay(a_memory(stability=0.5), NOW + 35 * DAY, life) == pytest.approx(math.exp(-0.7))


def test_spec_7_6_nothing_decays_before_it_was_said() -> None:
    assert days_between(NOW, NOW - 3 * DAY) == 0.0
    assert decay(a_memory(category=Category.EVENT), NOW - 30 * DAY, LIFE) == 1.0


def test_spec_4_2_retention_is_importance_times_confidence_times_decay() -> None:
    memory = a_memory(category=Category.EVENT, stability=0.5, importance=0.8, confidence=0.5)
    assert retention(memory, NOW + 30 * DAY, LIFE) == pytest.approx(0.8 * 0.5 * 0.5)
