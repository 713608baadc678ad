"""Whether a query is likely to concern its user at all, by where it lies in the model's space (SPEC §7.2, intent).

"Where should we eat tonight?" asks for what is remembered, "why is the sky blue?" does not, and in the space of a model
a plane lies between the two kinds. It is learnt with the calibration, from labelled queries, and measured on held-out ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hermes_memory.errors import InvalidConfig

Floats = NDArray[np.float32]

STEPS = 25  # of Newton's method: it has settled after ten


@dataclass(frozen=True, slots=True, eq=False)
class Concern:
    """``direction`` has shape (dimension,); with ``bias`` it gives the log odds that a query concerns the user."""

    direction: Floats
    bias: float

    def __post_init__(self) -> None:
        if self.direction.ndim != 1 or not np.isfinite(self.direction).all() or not np.isfinite(self.bias):
            raise InvalidConfig("concern", "must hold one direction of finite numbers")

    def likely(self, query: Floats) -> float:
        """The probability that the query of unit vector ``query``, shape (dimension,), concerns the user."""
        return float(_odds(float(query @ self.direction) + self.bias))

    def all(self, queries: Floats) -> Floats:
        """The same of many, shape (n, dimension) → (n,)."""
        return np.asarray(_odds(queries @ self.direction + self.bias), np.float32)


def learn(queries: Floats, concerning: NDArray[np.bool_], ridge: float) -> Concern:
    """Logistic regression on ``queries`` (n, dimension), ``ridge`` on everything but the bias."""
    middle = queries.mean(axis=0)
    rows = np.hstack([queries - middle, np.ones((len(queries), 1))]).astype(np.float64)
    held = np.diag(np.r_[np.full(rows.shape[1] - 1, ridge), 1e-9])
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        likely = _odds(rows @ weights)
        slope = rows.T @ (likely - concerning) + held @ weights
        bend = (rows * (likely * (1 - likely))[:, None]).T @ rows + held
        weights -= np.linalg.solve(bend, slope)
    direction = np.asarray(weights[:-1], np.float32)
    return Concern(direction, round(float(weights[-1] - middle @ direction), 6))


def unseen(queries: Floats, concerning: NDArray[np.bool_], ridge: float, folds: int, seed: int) -> Floats:
    """The probability of each query by a plane that was learnt without it."""
    found = np.zeros(len(queries), np.float32)
    for rows in _parts(len(queries), folds, seed):
        known = np.setdiff1d(np.arange(len(queries)), rows)
        found[rows] = learn(queries[known], concerning[known], ridge).all(queries[rows])
    return found


def _parts(count: int, folds: int, seed: int) -> Iterator[NDArray[np.intp]]:
    yield from np.array_split(np.random.default_rng(seed).permutation(count), folds)


def _odds(nats: NDArray[np.float64] | Floats | float) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(nats, -30, 30))))
