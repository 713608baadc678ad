"""Properties of a fitted ramp (SPEC §7.3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.calibration import Floats
from hermes_memory.core.fitting import auc, ramp_through
from hermes_memory.wiring import build_fit

_, RULES = build_fit()
COSINES = st.lists(st.floats(-1, 1, width=32), min_size=20, max_size=200).map(
    lambda values: np.array(values, np.float32)
)


@given(
    related=COSINES, unrelated=COSINES, start=st.floats(-1, 1), low=st.floats(-1, 1), high=st.floats(-1, 1)
)
def test_a_fitted_ramp_is_monotone_from_0_to_1(
    related: Floats, unrelated: Floats, start: float, low: float, high: float
) -> None:
    for marks in (RULES.query, RULES.pair):
        ramp = ramp_through(
            marks, related, unrelated, round(start, 2), RULES.step
        )  # Ramp itself refuses others
        low, high = sorted((low, high))
        assert 0 <= ramp.of(low) <= ramp.of(high) <= 1
        assert ramp.of(1.0) == 1.0
        assert ramp.knots[0][1] == 0


@given(seed=st.integers(0, 1000), crowd=st.floats(0.3, 1.0), shift=st.floats(-0.5, 0.04))
def test_spec_7_3_the_threshold_means_the_same_share_however_a_model_crowds_its_texts(
    seed: int, crowd: float, shift: float
) -> None:
    """The same order of pairs on another scale gives the same calibrated values where it matters."""
    random = np.random.default_rng(seed)
    unrelated, related = random.uniform(-0.5, 0.5, 3000), random.uniform(0.0, 0.9, 300)
    share = []
    for scale, place in ((1.0, 0.0), (crowd, shift)):
        sides = [np.asarray(side * scale + place, np.float32) for side in (related, unrelated)]
        ramp = ramp_through(RULES.query, sides[0], sides[1], -1.0, RULES.step)
        share.append([float(np.mean(ramp.apply(side) >= RULES.recall_at)) for side in sides])
    assert share[0][1] == pytest.approx(0.01, abs=0.004)
    assert share[1] == pytest.approx(share[0], abs=0.02)  # knots have three digits


@given(related=COSINES, unrelated=COSINES)
def test_auc_is_the_chance_of_standing_above(related: Floats, unrelated: Floats) -> None:
    above = np.mean([(one > unrelated).mean() + (one == unrelated).mean() / 2 for one in related])
    assert auc(related, unrelated) == pytest.approx(above, abs=1e-6)
    assert auc(unrelated, related) == pytest.approx(1 - above, abs=1e-6)
