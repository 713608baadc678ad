"""What a ranking is worth: the share of the gold turns among what it puts first."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.recall_quality.data import Question

T = TypeVar("T")

DEPTH = 50  # how far down anybody looks; the most that recall gives


@dataclass(frozen=True, slots=True)
class Taken:
    """What a query took beyond its embedding: milliseconds on the wall and of the processor, all threads together."""

    ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A question and what was found: for each place of the ranking, the turns it rests on."""

    question: Question
    places: Sequence[frozenset[str]]
    taken: Taken

    def recall(self, k: int) -> float:
        """The share of the gold turns in the first ``k`` places."""
        found = frozenset[str]().union(*self.places[:k])
        return len(found & self.question.gold) / len(self.question.gold)

    def hit(self, k: int) -> float:
        """1 if any gold turn is in the first ``k`` places, else 0."""
        return float(any(place & self.question.gold for place in self.places[:k]))

    @property
    def reciprocal_rank(self) -> float:
        """1 / the first place with a gold turn; 0 without one."""
        first = next((n for n, place in enumerate(self.places, 1) if place & self.question.gold), None)
        return 1 / first if first else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Averages over questions. ``turns_10``: how many turns the first ten places name; 10 where a place is a turn."""

    questions: int
    r5: float
    r10: float
    r20: float
    mrr: float
    hit1: float
    hit5: float
    turns_10: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds of a query beyond its embedding; on a busy machine only those of the processor mean something."""

    p50: float
    p95: float
    cpu_p50: float
    cpu_p95: float


def score(answers: Sequence[Answer]) -> Score:
    """The averages over ``answers``; all 0 for none."""
    return Score(
        len(answers),
        _mean(a.recall(5) for a in answers),
        _mean(a.recall(10) for a in answers),
        _mean(a.recall(20) for a in answers),
        _mean(a.reciprocal_rank for a in answers),
        _mean(a.hit(1) for a in answers),
        _mean(a.hit(5) for a in answers),
        _mean(len(frozenset[str]().union(*a.places[:10])) for a in answers),
    )


def speed(answers: Sequence[Answer]) -> Speed:
    """Percentiles over ``answers``."""
    wall, cpu = [answer.taken.ms for answer in answers], [answer.taken.cpu_ms for answer in answers]
    return Speed(*_percentiles(wall), *_percentiles(cpu))


def timed(search: Callable[[], T]) -> tuple[T, Taken]:
    """The result of ``search`` and what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = search()
    return found, Taken((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    if len(times) < 2:
        return times[0] if times else 0.0, times[0] if times else 0.0
    return statistics.median(times), statistics.quantiles(times, n=20, method="inclusive")[18]


def _mean(values: Iterable[float]) -> float:
    counted = list(values)
    return statistics.fmean(counted) if counted else 0.0
