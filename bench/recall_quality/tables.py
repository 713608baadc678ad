"""The figures of every system side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.recall_quality.data import ADVERSARIAL, KINDS
from bench.recall_quality.scores import Answer, Score, score, speed
from bench.report import table

Found = Mapping[str, Sequence[Answer]]  # system → its answers

_QUALITY = ("system", "questions", "R@5", "R@10", "R@20", "MRR", "turns in 10", "ms p50", "p95", "CPU ms p50")
_HITS = (
    "system",
    "questions",
    "hit@1",
    "hit@5",
    "R@5",
    "R@10",
    "MRR",
    "turns in 10",
    "ms p50",
    "p95",
    "CPU ms p50",
)


def answerable(answers: Sequence[Answer]) -> list[Answer]:
    """Without the adversarial questions: what they name as evidence is a trap."""
    return [answer for answer in answers if answer.question.kind != ADVERSARIAL]


def about(found: Found, names: Collection[str], *, inside: bool) -> dict[str, list[Answer]]:
    """The answers about people who are, or are not, among ``names``."""
    return {
        system: [answer for answer in answers if (answer.question.of in names) is inside]
        for system, answers in found.items()
    }


def quality(title: str, found: Found, *, adversarial: bool = False) -> Table:
    """Recall of each system over the questions, and how long a query takes."""
    chosen = {name: answers if adversarial else answerable(answers) for name, answers in found.items()}
    return table(title, _QUALITY, [_quality_row(name, answers) for name, answers in chosen.items()])


def hits(title: str, found: Found) -> Table:
    """The same for short histories, where the first place counts."""
    return table(title, _HITS, [_hits_row(name, answers) for name, answers in found.items()])


def by_kind(title: str, found: Found) -> Table:
    """R@10 of each system for each kind of question."""
    kinds = [kind for kind in KINDS.values() if any(_of(answers, kind) for answers in found.values())]
    rows = [
        (name, *(_share(score(_of(answers, kind)).r10) for kind in kinds)) for name, answers in found.items()
    ]
    return table(title, ("system", *kinds), rows)


def as_data(found: Found) -> dict[str, Any]:
    """Everything for the file."""
    return {name: _data(answers) for name, answers in found.items()}


def _data(answers: Sequence[Answer]) -> dict[str, Any]:
    kinds = dict.fromkeys(answer.question.kind for answer in answers)
    return {
        "all": asdict(score(answers)),
        "answerable": asdict(score(answerable(answers))),
        "kinds": {kind: asdict(score(_of(answers, kind))) for kind in kinds},
        "ms": asdict(speed(answers)),
    }


def _of(answers: Sequence[Answer], kind: str) -> list[Answer]:
    return [answer for answer in answers if answer.question.kind == kind]


def _quality_row(name: str, answers: Sequence[Answer]) -> tuple[object, ...]:
    of = score(answers)
    return (name, of.questions, *_shares(of, "r5", "r10", "r20", "mrr"), of.turns_10, *_times(answers))


def _hits_row(name: str, answers: Sequence[Answer]) -> tuple[object, ...]:
    of = score(answers)
    shares = _shares(of, "hit1", "hit5", "r5", "r10", "mrr")
    return (name, of.questions, *shares, of.turns_10, *_times(answers))


def _shares(of: Score, *names: str) -> tuple[str, ...]:
    return tuple(_share(getattr(of, name)) for name in names)


def _share(value: float) -> str:
    return f"{value:.3f}"


def _times(answers: Sequence[Answer]) -> tuple[float, float, float]:
    taken = speed(answers)
    return taken.p50, taken.p95, taken.cpu_p50
