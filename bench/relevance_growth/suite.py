"""Relevance as memory grows: the same questions with 10, 200 and 800 memories of other topics beside those asked for.

Through the product's library with its default configuration; of an answer the first ten ranked memories count. What
extraction kept nothing of is reported apart and is no target.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from bench.relevance_growth.play import Growing
from bench.relevance_growth.score import Answer, fall, paired, summary
from bench.relevance_growth.topics import topics
from bench.report import Limit, Report, table
from bench.stack import Say
from bench.traffic import Spread
from hermes_memory.memory import Memory

LIMITS = (Limit("points_lost", at_most=2.0, what="points of relevance lost from 10 memories beside to 800"),)
SIZES = (10, 200, 800)
QUICK = ("eat", "body")  # groups of topics
LANGUAGES = ("zh", "en")
SHOWN = 100  # answers kept in the file with their scores


def run(*, quick: bool, say: Say) -> Report:
    """Ask everything at every size; one user for each group of topics and language."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker of the server
    found = topics()
    groups = list(dict.fromkeys(topic.group for topic in found if not quick or topic.group in QUICK))
    answers: list[Answer] = []
    users: list[Growing] = []
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder, Memory.open(folder) as memory:
        for language in LANGUAGES:
            for group in groups:
                say(f"{language}: {group}")
                users.append(Growing(memory, found, group, language))
                answers += users[-1].ask(SIZES)
    return report(answers, users)


def report(answers: Sequence[Answer], users: Sequence[Growing]) -> Report:
    """Figures and tables of all answers."""
    made = Report("relevance-growth")
    pairs = paired(answers, SIZES)
    made.figures = {
        "points_lost": fall(answers, SIZES),
        "questions": len({answer.question for answer in answers}),
        **{f"points_lost_{one}": fall(_of(answers, one), SIZES) for one in LANGUAGES},
        **{f"relevant_{size}": summary(answers, size).relevant for size in SIZES},
        **{f"relevant_paired_{size}": share for size, share in pairs.items()},
        **{f"found_{size}": summary(answers, size).found for size in SIZES},
    }
    told = sum((user.told for user in users), Counter[str]())
    lost = sum((user.lost for user in users), Counter[str]())
    made.tables = [_quality(answers), _latency(answers), _extraction(told, lost)]
    made.data = {
        "sizes": [asdict(summary(answers, size, one)) for size in SIZES for one in ("", *LANGUAGES)],
        "latency_ms": {
            str(size): {k: asdict(v) for k, v in spreads(answers, size).items()} for size in SIZES
        },
        "held": [user.held for user in users],
        "told": dict(told),
        "lost": dict(lost),
        "worst": worst([answer for answer in answers if answer.size == SIZES[-1]]),
    }
    return made


def spreads(answers: Sequence[Answer], size: int) -> dict[str, Spread]:
    """Each stage that the answers of a size tell of; ``whole`` is the call, but for the query's embedding."""
    timings = [answer.timings_ms for answer in answers if answer.size == size]
    stages = dict.fromkeys(stage for own in timings for stage in own)
    return {stage: Spread.of([own.get(stage, 0.0) for own in timings]) for stage in stages}


def worst(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The answers with the smallest share of relevant: each hit, whether it is relevant, its score and the parts."""
    poorest = sorted((answer for answer in answers if answer.hits), key=lambda answer: answer.share or 0.0)
    return [
        {
            "question": answer.text,
            "hits": [
                {
                    "relevant": not answer.relevant.isdisjoint(hit),
                    "content": content,
                    "score": score,
                    "parts": parts,
                }
                for hit, (content, score, parts) in zip(answer.hits, answer.shown, strict=True)
            ],
        }
        for answer in poorest[:SHOWN]
    ]


def _of(answers: Sequence[Answer], language: str) -> list[Answer]:
    return [answer for answer in answers if answer.language == language]


def _quality(answers: Sequence[Answer]) -> Table:
    rows = [
        (
            f"{s.language}, {s.size}", s.questions, s.empty, f"{s.relevant:.1%}", f"{pairs[size]:.1%}",
            f"{s.first:.1%}", f"{s.found:.1%}", f"{s.covered:.1%}", s.hits,
        )
        for language in ("", *LANGUAGES)
        for pairs in [paired(_of(answers, language) if language else answers, SIZES)]
        for size in SIZES
        for s in [summary(answers, size, language)]
    ]  # fmt: skip
    columns = (
        "language, memories beside", "questions", "brought nothing", "relevant of first ten", "paired",
        "first is relevant", "what it is about found", "topic covered", "hits",
    )  # fmt: skip
    return table("Relevance as memory grows", columns, rows)


def _latency(answers: Sequence[Answer]) -> Table:
    rows = [
        (f"{size}: {stage}", spread.p50, spread.p95, spread.p99)
        for size in SIZES
        for stage, spread in spreads(answers, size).items()
    ]
    return table("Latency, ms", ("memories beside: stage", "p50", "p95", "p99"), rows)


def _extraction(told: Counter[str], lost: Counter[str]) -> Table:
    rows = [(what, number, lost[what], f"{lost[what] / number:.1%}") for what, number in told.items()]
    return table("What extraction kept nothing of", ("messages", "told", "lost", "share"), rows)
