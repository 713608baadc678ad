"""The figures by which the product measures itself (SPEC §10): sums of counts, never of words.

Counts are kept per user and day and added up by the night. Each figure is a share of cases; with too few of them it
says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from hermes_memory.core.board import Op
from hermes_memory.core.model import Signal
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import QualityRules

Counts = Mapping[str, int]
_Z = 1.96  # 95 %


class Count(StrEnum):
    """What is counted of a user on a day."""

    RECALLS = "recalls"
    RECALLS_DISPUTED = "recalls_disputed"  # with both sides of a contradiction in the block
    SHOWN = "shown"  # ranked hits of all recalls
    WELCOME = "welcome"  # memories that were liked or clicked
    UNWELCOME = "unwelcome"  # memories that were disliked or ignored
    PROPOSED = "proposed"  # statements that an extractor made
    KEPT = "kept"  # of these, what is remembered: new, or known already
    LOST = "lost"  # of these, what a gate refused though the user said something
    UNGROUNDED = "ungrounded"  # of these, what the user never said
    REPEATED = "repeated"  # kept ones that were known already
    EVICTED = "evicted"
    MISSED = "missed"  # evicted ones that a recall had to bring back
    OPPOSED = "opposed"  # memories that a later turn or signal spoke against
    BORNE_OUT = "borne_out"  # memories that one spoke for


_UNGROUNDED = {Reason.UNGROUNDED, Reason.NOT_A_USER_TURN, Reason.NOT_SUPPORTED, Reason.UNKNOWN_MEMORY}
_LOST = {Reason.SCHEMA, Reason.TOO_LONG, Reason.LOW_VALUE, Reason.TOO_MANY, Reason.OUTDATED, *_UNGROUNDED}
_KNOWN = {Reason.DUPLICATE, Reason.SAID_AGAIN}
_OPPOSED = {Op.RIVAL, Op.CONFLICT, Op.SUPERSEDED}


def of_change(op: str, reason: str, *, evicted: bool = False) -> Counter[str]:
    """What one line of the audit counts for; ``evicted``: it concerns what had gone for want of room."""
    counts: Counter[str] = Counter()
    if op == Op.ADDED:
        counts.update([Count.PROPOSED, Count.KEPT])
    elif op == Op.REINFORCED and reason in _KNOWN:
        counts.update([Count.PROPOSED, Count.KEPT, Count.REPEATED, Count.BORNE_OUT])
    elif op == Op.REINFORCED:
        counts.update([Count.BORNE_OUT])
    elif op == Op.REFUSED:
        counts.update([Count.PROPOSED])
        counts.update([Count.LOST] if reason in _LOST else [])
        counts.update([Count.UNGROUNDED] if reason in _UNGROUNDED else [])
    elif op == Op.EVICTED:
        counts.update([Count.EVICTED])
    elif op == Op.REACTIVATED and reason == Reason.RECALLED and evicted:
        counts.update([Count.MISSED])
    elif op in _OPPOSED:
        counts.update([Count.OPPOSED])
    return counts


def of_recall(shown: int, *, disputed: bool) -> Counter[str]:
    """What one recall counts for."""
    return Counter({Count.RECALLS: 1, Count.SHOWN: shown, Count.RECALLS_DISPUTED: int(disputed)})


def of_signal(signal: Signal, memories: int) -> Counter[str]:
    """What a signal about so many memories counts for."""
    if signal in {Signal.LIKE, Signal.CLICK}:
        return Counter({Count.WELCOME: memories, Count.BORNE_OUT: memories})
    unwelcome = Counter({str(Count.UNWELCOME): memories})
    return unwelcome + Counter({Count.OPPOSED: memories if signal is Signal.DISLIKE else 0})


def summed(tallies: Iterable[Counts]) -> Counter[str]:
    """All counts together."""
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    return total


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
    def alarming(self) -> bool:
        """Whether it breaks its limit; to reach it is enough."""
        if self.value is None:
            return False
        below = self.least is not None and self.value < self.least
        return below or (self.most is not None and self.value > self.most)


# Each figure: what is counted, of which cases.
_FIGURES: dict[str, tuple[tuple[Count, ...], tuple[Count, ...]]] = {
    "recall_hit_rate": ((Count.WELCOME,), (Count.WELCOME, Count.UNWELCOME)),
    "extraction_yield": ((Count.KEPT,), (Count.KEPT, Count.LOST)),
    "ungrounded_rate": ((Count.UNGROUNDED,), (Count.PROPOSED,)),
    "conflict_rate": ((Count.RECALLS_DISPUTED,), (Count.RECALLS,)),
    "repeat_rate": ((Count.REPEATED,), (Count.KEPT,)),
    "profile_drift": ((Count.OPPOSED,), (Count.OPPOSED, Count.BORNE_OUT)),
}
FIGURES = (*_FIGURES, "eviction_hit_rate")


def figures(counts: Counts, rules: QualityRules) -> list[Figure]:
    """Every figure, in the order of ``FIGURES``."""

    def total(names: Iterable[Count]) -> int:
        return sum(counts.get(name, 0) for name in names)

    shares = {name: (total(part), total(cases)) for name, (part, cases) in _FIGURES.items()}
    evicted = counts.get(Count.EVICTED, 0)
    # What comes back may have gone before the window began.
    shares["eviction_hit_rate"] = (max(0, evicted - counts.get(Count.MISSED, 0)), evicted)
    return [_figure(name, *shares[name], rules) for name in FIGURES]


def _figure(name: str, part: int, cases: int, rules: QualityRules) -> Figure:
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
