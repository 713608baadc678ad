"""Whether a query concerns its user, learnt from labelled ones (SPEC §7.2, intent)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hermes_memory.core.asking import Asked
from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.concern import Concern, learn, unseen
from hermes_memory.core.ranking import matched
from hermes_memory.errors import InvalidConfig
from tests.small_world import CALIBRATION, a_memory
from tests.unit.test_ranking import YARDSTICK, a_query, a_shelf

RNG = np.random.default_rng(3)


def two_kinds(count: int = 60, dimension: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors on both sides of a plane, not quite apart, and on which side each is."""
    labels = np.arange(count) % 2 == 0
    rows = RNG.normal(size=(count, dimension)) * 0.4
    rows[:, 0] += np.where(labels, 0.8, -0.8)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32), labels


def test_it_tells_the_kinds_apart_also_in_queries_it_was_not_learnt_from() -> None:
    rows, labels = two_kinds()
    likely = unseen(rows, labels, 0.1, folds=5, seed=1)
    assert ((likely > 0) & (likely < 1)).all()
    assert np.mean((likely > 0.5) == labels) > 0.85
    plane = learn(rows, labels, 0.1)
    assert plane.all(rows) == pytest.approx([plane.likely(row) for row in rows], abs=1e-5)


def test_the_ridge_holds_it_back_and_labels_alone_give_their_share() -> None:
    rows, labels = two_kinds()
    loose, held = learn(rows, labels, 0.01), learn(rows, labels, 1e6)
    assert np.linalg.norm(held.direction) < 1e-3 < np.linalg.norm(loose.direction)
    assert held.all(rows) == pytest.approx(np.full(len(rows), labels.mean()), abs=0.01)


@pytest.mark.parametrize("direction", [np.ones((2, 2), np.float32), np.array([np.nan, 1.0], np.float32)])
def test_what_is_no_direction_is_refused(direction: np.ndarray) -> None:
    with pytest.raises(InvalidConfig, match="direction"):
        Concern(direction, 0.0)


def test_a_profile_refuses_one_of_another_dimension() -> None:
    learnt = replace(CALIBRATION, concern=Concern(np.ones(3, np.float32), 0.0))
    with pytest.raises(InvalidConfig, match="4 dimensions"):
        EmbedderProfile("m", 4, learnt)


def test_spec_7_2_a_query_that_concerns_the_user_needs_less_of_a_memory_and_another_more() -> None:
    """What the words say of the user decides only where nothing was learnt."""

    def relevance(bias: float | None, asked: Asked) -> float:
        concern = None if bias is None else Concern(np.zeros(2, np.float32), bias)
        yardstick = replace(YARDSTICK, calibration=replace(CALIBRATION, concern=concern))
        found = matched(a_shelf((a_memory(), 0.8)), a_query(asked=asked), yardstick)
        return found["mem-1"].relevance if found else 0.0

    plain, personal = Asked(), Asked(personal=True)
    assert relevance(30.0, plain) == relevance(30.0, personal) > relevance(None, plain) > 0
    assert relevance(None, personal) == relevance(30.0, plain)
    assert relevance(-30.0, personal) == 0.0
