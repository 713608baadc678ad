"""What the answers come to: shares of relevant memories, and how far they fall from the smallest size to the largest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

TEN = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """One question at one size. ``hits`` tell, best first, of each ranked memory which messages it rests on."""

    question: str
    language: str
    size: int
    hits: tuple[tuple[str, ...], ...]
    relevant: frozenset[str]  # the messages of the topic that extraction kept
    about: frozenset[str]  # of those, the ones that the question is about
    timings_ms: dict[str, float] = field(default_factory=dict)
    text: str = ""
    shown: tuple[tuple[str, float, dict[str, float]], ...] = ()  # content, score and its parts of each hit

    @property
    def good(self) -> int:
        """How many of the first ten are of the topic."""
        return sum(not self.relevant.isdisjoint(hit) for hit in self.hits[:TEN])

    @property
    def share(self) -> float | None:
        """The share of relevant among the first ten; None where nothing came."""
        return self.good / len(self.hits[:TEN]) if self.hits else None

    @property
    def found(self) -> float | None:
        """The share of what the question is about that came; None where extraction kept none of it."""
        brought = {message for hit in self.hits[:TEN] for message in hit}
        return len(self.about & brought) / len(self.about) if self.about else None

    @property
    def covered(self) -> float | None:
        """How much of the topic came, of what could have; None where extraction kept none of it."""
        return self.good / min(TEN, len(self.relevant)) if self.relevant else None


@dataclass(frozen=True, slots=True)
class Summary:
    """The answers of one size and language."""

    size: int
    language: str
    questions: int
    empty: int  # nothing came
    relevant: float
    first: float  # the share of answers whose first hit is relevant
    found: float
    covered: float
    hits: float  # how many came


def summary(answers: Sequence[Answer], size: int, language: str = "") -> Summary:
    """The figures of one size, of one language or all."""
    chosen = [a for a in answers if a.size == size and language in {"", a.language}]
    firsts = [float(not a.relevant.isdisjoint(a.hits[0])) for a in chosen if a.hits]
    return Summary(
        size=size,
        language=language or "all",
        questions=len(chosen),
        empty=sum(not a.hits for a in chosen),
        relevant=_mean(a.share for a in chosen),
        first=_mean(firsts),
        found=_mean(a.found for a in chosen),
        covered=_mean(a.covered for a in chosen),
        hits=_mean(len(a.hits) for a in chosen),
    )


def paired(answers: Sequence[Answer], sizes: Sequence[int]) -> dict[int, float]:
    """The share of relevant at each size over the questions that bring something at every size."""
    by_size = {size: {a.question: a.share for a in answers if a.size == size} for size in sizes}
    everywhere = set.intersection(*({q for q, s in own.items() if s is not None} for own in by_size.values()))
    return {size: _mean(own[question] for question in everywhere) for size, own in by_size.items()}


def fall(answers: Sequence[Answer], sizes: Sequence[int]) -> float:
    """Points lost from the first size to the last: the worse of all answers and of the paired ones.

    Of the paired ones alone a question would drop out that brings something only when much else is remembered, and
    then nothing that is relevant.
    """
    first, last = sizes[0], sizes[-1]
    own = summary(answers, first).relevant - summary(answers, last).relevant
    pairs = paired(answers, sizes)
    falls = (own, pairs[first] - pairs[last])
    return math.nan if any(math.isnan(f) for f in falls) else 100 * max(falls)


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else math.nan
