"""The figures by which the product measures itself (SPEC §10): shares of summed counts, never of words.

Counts are kept per user and day (``core.tally``) and added up by the night, user by user (``core.night_sums``). A figure of
too few cases says nothing and alarms nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from typing import Any

from hermes_memory.core.rules import SHARES, QualityRules
from hermes_memory.core.tally import Count, Counts

SLOTS = "slots"  # of the user models as they are now, with those that behaviour speaks against
SLOTS_ADRIFT = "slots_adrift"
_Z = 1.96  # 95 %


@dataclass(frozen=True, slots=True)
class Figure:
    """A share of ``cases``; None where they are too few. ``low`` and ``high`` hold it with 95 % (Wilson)."""

    name: str
    part: int
    cases: int
    value: float | None
    low: float
    high: float
    least: float | None = None
    most: float | None = None

    @property
    def limit(self) -> float | None:
        """The limit that it breaks or, where it breaks none, the one it has."""
        if self.least is not None and self.value is not None and self.value < self.least:
            return self.least
        return self.most if self.most is not None else self.least

    @property
    def alarming(self) -> bool:
        """Whether it breaks its limit; to reach it is enough."""
        if self.value is None:
            return False
        below = self.least is not None and self.value < self.least
        return below or (self.most is not None and self.value > self.most)


# Each figure: what is counted, of which cases.
_FIGURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "recall_hit_rate": ((Count.WELCOME,), (Count.WELCOME, Count.UNWELCOME)),
    "extraction_yield": ((Count.TURNS_REMEMBERED,), (Count.TURNS_INFORMATIVE,)),
    "ungrounded_rate": ((Count.UNGROUNDED,), (Count.PROPOSED,)),
    "conflict_rate": ((Count.RECALLS_DISPUTED,), (Count.RECALLS,)),
    "eviction_hit_rate": ((Count.EVICTED,), (Count.EVICTED,)),
    "repeat_rate": ((Count.REPEATED,), (Count.KEPT,)),
    "profile_accuracy": ((Count.BORNE_OUT,), (Count.BORNE_OUT, Count.OPPOSED)),
    "profile_drift": ((SLOTS_ADRIFT,), (SLOTS,)),
}
FIGURES = SHARES


def figures(counts: Counts, rules: QualityRules) -> list[Figure]:
    """Every figure, in the order of ``FIGURES``."""

    def total(names: Iterable[str]) -> int:
        return sum(counts.get(name, 0) for name in names)

    shares = {name: (total(part), total(cases)) for name, (part, cases) in _FIGURES.items()}
    evicted = counts.get(Count.EVICTED, 0)
    # What comes back may have gone before the window began.
    shares["eviction_hit_rate"] = (max(0, evicted - counts.get(Count.MISSED, 0)), evicted)
    return [_figure(name, *shares[name], rules) for name in FIGURES]


def window_start(now: datetime, window_days: int) -> str:
    """The first day that counts: the window ends with today, which is not over (ISO, UTC)."""
    return (now.astimezone(UTC).date() - timedelta(days=window_days - 1)).isoformat()


def counts_of(sums: Mapping[str, Any]) -> dict[str, int]:
    """What ``figures`` takes, from the sum of users' answers to ``Aggregate`` (``core.night_sums``)."""
    slots = sum(sums.get("slots", {}).values())
    return {**sums.get("tally", {}), SLOTS: slots, SLOTS_ADRIFT: sums.get(SLOTS_ADRIFT, 0)}


def _figure(name: str, part: int, cases: int, rules: QualityRules) -> Figure:
    part = min(part, cases)  # a host that was killed lost the counts of its last minute
    low, high = wilson(part, cases)
    value = part / cases if cases >= max(1, rules.least_cases) else None
    return Figure(name, part, cases, value, low, high, rules.least.get(name), rules.most.get(name))


def wilson(part: int, cases: int) -> tuple[float, float]:
    """The interval that holds a share with 95 %; all of [0, 1] without a case."""
    if not cases:
        return 0.0, 1.0
    share, spread = part / cases, _Z * _Z / cases
    middle = share + spread / 2
    half = _Z * sqrt(share * (1 - share) / cases + spread / (4 * cases))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
