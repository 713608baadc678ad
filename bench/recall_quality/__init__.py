"""How much of the evidence for a question recall finds: LoCoMo in two languages and MemDaily, beside plain search.

Each turn is sent to the product as a user's message, each session is ended, then every question is recalled as of the
last turn. A place of the ranking counts for the messages that its memory rests on. R@k is the share of a question's
gold turns in the first k places, averaged over questions. Twice: with ``lifted.toml`` nothing is held back for want of
room, for age or for being far off, and ``gated.toml`` leaves the gates as they come. Parameters are chosen on the
conversations ``data.DEV`` only; of the others nobody sees more than these figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from bench.recall_quality import floors, tables
from bench.recall_quality.data import (
    DEV,
    LOCOMO,
    LOCOMO_ZH,
    MEMDAILY,
    Corpus,
    Person,
    read_locomo,
    read_memdaily,
)
from bench.recall_quality.product import GATED, LIFTED, Outcome, Trial
from bench.recall_quality.scores import Answer, score
from bench.recall_quality.vectors import RememberingEmbedder
from bench.report import Limit, Report
from bench.stack import Say
from hermes_memory.config import load_settings
from hermes_memory.ports.embedder import Embedder
from hermes_memory.wiring import build_embedder, build_policy

LIMITS = (
    Limit("test_r10", what="R@10, LoCoMo, the seven test conversations, categories 1–4", at_least=0.75),
    Limit("test_r5", what="R@5, the same", at_least=0.66),
    Limit("zh_r10", what="R@10, LoCoMo in Chinese, categories 1–4", at_least=0.71),
    Limit("memdaily_hit5", what="hit@5, MemDaily", at_least=0.97),
    Limit("memdaily_r10", what="R@10, MemDaily", at_least=0.82),
)
QUICK = 6  # every so many users of MemDaily
PRODUCT, DEFAULTS = "hermes, caps lifted", "hermes, gates as they come"
ROOMY = {"actors": {"idle_s": 86_400.0, "memory_budget_mb": 4096}}  # nobody falls asleep meanwhile


def run(*, quick: bool, say: Say, overrides: Mapping[str, Any] | None = None) -> Report:
    """Take everything in, ask everything. ``overrides`` are configuration keys by section, over both configurations."""
    bench = _Bench(say, overrides or {})
    report = Report("recall-quality")
    bench.locomo("dev", read_locomo(LOCOMO), report, inside=True)
    if quick:
        report.left_out |= {limit.figure: "not with --quick" for limit in LIMITS}
    else:
        bench.locomo("test", read_locomo(LOCOMO), report, inside=False)
        bench.chinese(report)
    bench.memdaily(QUICK if quick else 1, report)
    report.data["overrides"] = dict(overrides or {})
    return report


class _Bench:
    """What all data sets are measured with."""

    def __init__(self, say: Say, overrides: Mapping[str, Any]) -> None:
        settings = load_settings()
        self._say = say
        self._overrides = {**ROOMY, **overrides}
        self._embedder: Embedder = RememberingEmbedder(build_embedder(settings))
        self._words = build_policy(settings).words

    def locomo(self, part: str, corpus: Corpus, report: Report, *, inside: bool) -> None:
        """The dev or the test split of LoCoMo."""
        found = self._all(f"LoCoMo {part}", corpus.of(DEV, inside=inside), report)
        title = f"LoCoMo, {part} split, categories 1–4"
        report.tables += [
            tables.quality(title, found),
            tables.by_kind(f"LoCoMo, {part} split, R@10 by kind", found),
        ]
        of = score(tables.answerable(found[PRODUCT]))
        report.figures |= {
            f"{part}_r5": of.r5,
            f"{part}_r10": of.r10,
            f"{part}_r20": of.r20,
            f"{part}_mrr": of.mrr,
        }
        self._say(
            f"labels of LoCoMo: {corpus.repaired} repaired, {corpus.dropped} dropped, "
            f"{corpus.unanswerable} questions without evidence left out"
        )

    def chinese(self, report: Report) -> None:
        """LoCoMo in Chinese."""
        if not LOCOMO_ZH.exists():
            self._skip(f"no {LOCOMO_ZH.name}", report, "zh_r10")
            return
        found = self._all("LoCoMo zh", read_locomo(LOCOMO_ZH).people, report)
        report.tables.append(tables.quality("LoCoMo in Chinese, categories 1–4", found))
        of = score(tables.answerable(found[PRODUCT]))
        report.figures |= {"zh_r5": of.r5, "zh_r10": of.r10}

    def memdaily(self, step: int, report: Report) -> None:
        """MemDaily, every ``step``-th user."""
        if not MEMDAILY.exists():
            self._skip(f"no {MEMDAILY.name}", report, "memdaily_hit5", "memdaily_r10")
            return
        found = self._all("MemDaily", read_memdaily(MEMDAILY, step).people, report)
        report.tables.append(
            tables.hits("MemDaily" if step == 1 else f"MemDaily, every {step}th user", found)
        )
        of = score(found[PRODUCT])
        report.figures |= {"memdaily_hit1": of.hit1, "memdaily_hit5": of.hit5, "memdaily_r10": of.r10}

    def _all(self, name: str, people: Sequence[Person], report: Report) -> dict[str, list[Answer]]:
        """Every system's answers about ``people``."""
        found: dict[str, list[Answer]] = {}
        for system, config in ((PRODUCT, LIFTED), (DEFAULTS, GATED)):
            trial = Trial(people, config, self._embedder, self._overrides)
            try:
                outcome = trial.ask()
            finally:
                trial.close()
            found[system] = outcome.answers
            self._say(f"{name}: {system}: {_intake(outcome)}")
        found |= asyncio.run(floors.answers(people, self._embedder, self._words))
        report.data[name] = tables.as_data(found)
        return found

    def _skip(self, why: str, report: Report, *figures: str) -> None:
        self._say(f"skipped: {why}")
        report.left_out |= dict.fromkeys(figures, why)


def _intake(outcome: Outcome) -> str:
    return (
        f"{outcome.turns} turns in {outcome.ingest_s:.0f} s, {outcome.memories} live memories, "
        f"{outcome.kept:.1%} of the gold turns kept"
    )
