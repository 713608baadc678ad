"""Cosines made comparable: 0.76 and 0.85 mean the same with every embedder (SPEC §7.3).

A ``Ramp`` maps a similarity to [0, 1]; a ``Calibration`` holds one for query against passage and one for
passage against passage. Some models crowd all texts into a narrow cone, by language and by kind of text; a
``Centring`` takes that common part out of the *query*, so that one scale holds for all queries. Stored
vectors stay the model's own: a better centring needs no new embedding.

    aimed = calibration.aim(query_vector)              # once per query, before any index is asked
    hits = await index.near(key, aimed, limit)
    relevance = calibration.relevance(aimed, cosines)  # of those hits, in [0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.concern import Concern
from hermes_memory.errors import InvalidConfig

Floats = NDArray[np.float32]

THRESHOLD = 0.76  # where a ramp puts the recall threshold (SPEC §7.3)


@dataclass(frozen=True, slots=True)
class Ramp:
    """A monotone, piecewise-linear map from cosine to [0, 1], constant beyond its first and last knot."""

    knots: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        cosines, values = [knot[0] for knot in self.knots], [knot[1] for knot in self.knots]
        if len(self.knots) < 2:
            raise InvalidConfig("calibration.knots", "must be two at least")
        if not all(-1 <= cosine <= 1 for cosine in cosines) or not _rises(cosines, strictly=True):
            raise InvalidConfig("calibration.knots", "must have rising cosines between -1 and 1")
        if not all(0 <= value <= 1 for value in values) or not _rises(values, strictly=False):
            raise InvalidConfig("calibration.knots", "must have values between 0 and 1 that never fall")

    def apply(self, cosines: Floats) -> Floats:
        """The calibrated values, in the shape given."""
        xs, ys = zip(*self.knots, strict=True)
        return np.asarray(np.interp(cosines, xs, ys), np.float32)

    def reaches(self, value: float) -> float:
        """The highest cosine that is worth no more than ``value``."""
        above = [number for number, (_, worth) in enumerate(self.knots) if worth > value]
        if not above or not above[0]:
            return self.knots[0 if above else -1][0]
        (low, less), (high, more) = self.knots[above[0] - 1 : above[0] + 1]
        return low + (high - low) * (value - less) / (more - less)

    def of(self, cosine: float) -> float:
        """The calibrated value of one cosine."""
        xs, ys = zip(*self.knots, strict=True)
        return float(np.interp(cosine, xs, ys))


@dataclass(frozen=True, slots=True, eq=False)
class Centring:
    """What the texts of a model have in common, and how much of it is taken out of a query.

    The means have shape (dimension,); ``directions`` are orthonormal rows (n, dimension) that tell languages
    apart. The shares are between 0 and 1: taking everything out costs order among one user's memories.
    """

    query_mean: Floats
    passage_mean: Floats
    directions: Floats
    mean_share: float
    direction_share: float

    def __post_init__(self) -> None:
        size = self.query_mean.shape
        if len(size) != 1 or self.passage_mean.shape != size or self.directions.shape[1:] != size:
            raise InvalidConfig("centring", "must hold vectors of one dimension")
        if not np.allclose(self.directions @ self.directions.T, np.eye(len(self.directions)), atol=1e-4):
            raise InvalidConfig("centring.directions", "must be orthonormal")
        if not (0 <= self.mean_share <= 1 and 0 <= self.direction_share <= 1):
            raise InvalidConfig("centring", "must have shares between 0 and 1")

    def aim(self, query: Floats) -> Floats:
        """The centred unit vector of a query, shape (dimension,)."""
        moved = query - self.mean_share * self.query_mean
        moved = moved - self.direction_share * (self.directions @ moved) @ self.directions
        return np.asarray(moved / max(float(np.linalg.norm(moved)), 1e-9), np.float32)

    def level(self, aimed: Floats) -> float:
        """The cosine that ``aimed`` has with passages in general: what a hit must exceed."""
        return float(aimed @ self.passage_mean)


@dataclass(frozen=True, slots=True)
class Calibration:
    """``query`` is for query against passage (recall), ``pair`` for passage against passage (duplicates)."""

    query: Ramp
    pair: Ramp
    centring: Centring | None = None
    concern: Concern | None = None
    _nothing: float = field(init=False, repr=False)  # the highest similarity that is worth nothing
    _unit: float = field(init=False, repr=False)  # from there to the recall threshold

    def __post_init__(self) -> None:
        nothing = self.query.reaches(0.0)
        object.__setattr__(self, "_nothing", nothing)
        object.__setattr__(self, "_unit", self.query.reaches(THRESHOLD) - nothing)

    def concerns(self, query: Floats) -> float | None:
        """How likely a query concerns its user, in [0, 1]; None where that was not learnt."""
        return None if self.concern is None else self.concern.likely(query)

    def aim(self, query: Floats) -> Floats:
        """The unit vector to search with in place of ``query``, shape (dimension,)."""
        return query if self.centring is None else self.centring.aim(query)

    def units(self, aimed: Floats, cosines: Floats) -> Floats:
        """The same in units that mean alike with every embedder and have no bounds; shape as given.

        0 is what any two texts share, where relevance begins; 1 reaches the recall threshold.
        """
        level = 0.0 if self.centring is None else self.centring.level(aimed)
        above = np.asarray(cosines, np.float32) - np.float32(level + self._nothing)
        return np.asarray(above / np.float32(self._unit), np.float32)

    def at(self, units: Floats) -> Floats:
        """The relevance in [0, 1] of so many units; shape as given."""
        return self.query.apply(np.asarray(units * self._unit + self._nothing, np.float32))

    def relevance(self, aimed: Floats, cosines: Floats) -> Floats:
        """How relevant passages are, in [0, 1], from their cosines with ``aimed``; shape as given."""
        level = 0.0 if self.centring is None else self.centring.level(aimed)
        return self.query.apply(np.asarray(cosines, np.float32) - np.float32(level))

    def likeness(self, cosines: Floats) -> Floats:
        """How far passages say the same, in [0, 1], from their stored vectors' cosines; shape as given."""
        return self.pair.apply(np.asarray(cosines, np.float32))


@dataclass(frozen=True, slots=True)
class EmbedderProfile:
    """What is known about a model as data. ``model`` and ``dimension`` are those of its ``EmbedderInfo``."""

    model: str
    dimension: int
    calibration: Calibration

    def __post_init__(self) -> None:
        centring = self.calibration.centring
        if centring is not None and len(centring.query_mean) != self.dimension:
            raise InvalidConfig("centring", f"must have {self.dimension} dimensions")
        concern = self.calibration.concern
        if concern is not None and len(concern.direction) != self.dimension:
            raise InvalidConfig("concern", f"must have {self.dimension} dimensions")


def _rises(values: Sequence[float], *, strictly: bool) -> bool:
    return all(low < high if strictly else low <= high for low, high in pairwise(values))
