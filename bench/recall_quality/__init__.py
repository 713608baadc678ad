"""How much of the evidence for a question recall finds: LoCoMo in two languages and MemDaily, beside plain search.

Each turn is sent to the product as a user's message, each session is ended, then every question is recalled as of the
last turn. A place of the ranking counts for the messages that its memory rests on. R@k is the share of a question's
gold turns in the first k places, averaged over questions. Twice: with ``lifted.toml`` nothing is held back for want of
room, for age or for being far off, and ``gated.toml`` leaves the gates as they come. Parameters are chosen on the
conversations ``data.DEV`` only; of the others nobody sees more than these figures.
``python -m bench.recall_quality`` compares variants of the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.recall_quality import tables
from bench.recall_quality.data import DEV, LOCOMO, LOCOMO_ZH, MEMDAILY, Corpus, read_locomo, read_memdaily
from bench.recall_quality.scores import score
from bench.recall_quality.systems import PRODUCT, Systems
from bench.report import Limit, Report
from bench.stack import Say

LIMITS = (
    Limit("test_all_r10", what="R@10, LoCoMo, the seven test conversations, all questions", at_least=0.75),
    Limit("test_all_r5", what="R@5, the same", at_least=0.66),
    Limit("test_r10", what="R@10, LoCoMo, the seven test conversations, categories 1–4 apart", at_least=0.75),
    Limit("test_r5", what="R@5, the same", at_least=0.66),
    Limit("zh_r10", what="R@10, LoCoMo in Chinese, categories 1–4", at_least=0.71),
    Limit("memdaily_hit5", what="hit@5, MemDaily", at_least=0.97),
    Limit("memdaily_r10", what="R@10, MemDaily", at_least=0.82),
)
QUICK = 6  # every so many users of MemDaily


def run(*, quick: bool, say: Say, overrides: Mapping[str, Any] | None = None) -> Report:
    """Take everything in, ask everything; with ``quick`` the dev split and some of MemDaily.

    ``overrides`` are configuration keys by section, over both configurations of the product.
    """
    systems, report = Systems(say, overrides or {}), Report("recall-quality")
    report.data["overrides"] = dict(overrides or {})
    _locomo(read_locomo(LOCOMO, DEV if quick else None), systems, report, say)
    if quick:
        report.left_out |= {limit.figure: "not with --quick" for limit in LIMITS}
    elif LOCOMO_ZH.exists():
        _chinese(read_locomo(LOCOMO_ZH), systems, report)
    else:
        _skip(LOCOMO_ZH.name, report, say, "zh_r10")
    if MEMDAILY.exists():
        _memdaily(QUICK if quick else 1, systems, report)
    else:
        _skip(MEMDAILY.name, report, say, "memdaily_hit5", "memdaily_r10")
    return report


def _locomo(corpus: Corpus, systems: Systems, report: Report, say: Say) -> None:
    say(
        f"labels of LoCoMo: {corpus.repaired} repaired, {corpus.dropped} dropped, "
        f"{corpus.unanswerable} questions without evidence left out"
    )
    whole = len(corpus.people) > len(DEV)
    found = systems.answers("LoCoMo", corpus.people, peers=whole)
    for part, inside in (("dev", True), ("test", False)) if whole else (("dev", True),):
        of_part = tables.about(found, DEV, inside=inside)
        report.tables.append(tables.quality(f"LoCoMo, {part} split, categories 1–4", of_part))
        report.tables.append(tables.by_kind(f"LoCoMo, {part} split, R@10 by category", of_part))
        report.data[f"locomo {part}"] = tables.as_data(of_part)
        of, of_all = score(tables.answerable(of_part[PRODUCT])), score(of_part[PRODUCT])
        report.figures |= {
            f"{part}_all_r5": of_all.r5,
            f"{part}_all_r10": of_all.r10,
            f"{part}_r5": of.r5,
            f"{part}_r10": of.r10,
            f"{part}_r20": of.r20,
            f"{part}_mrr": of.mrr,
        }
    if whole:
        report.tables.append(tables.quality("LoCoMo, all questions of all ten", found, adversarial=True))
        report.data["locomo"] = tables.as_data(found)


def _chinese(corpus: Corpus, systems: Systems, report: Report) -> None:
    found = systems.answers("LoCoMo zh", corpus.people, peers=True)
    report.tables.append(tables.quality("LoCoMo in Chinese, categories 1–4", found))
    report.tables.append(tables.quality("LoCoMo in Chinese, all questions", found, adversarial=True))
    report.data["locomo zh"] = tables.as_data(found)
    of = score(tables.answerable(found[PRODUCT]))
    report.figures |= {"zh_r5": of.r5, "zh_r10": of.r10}


def _memdaily(step: int, systems: Systems, report: Report) -> None:
    found = systems.answers("MemDaily", read_memdaily(MEMDAILY, step).people)
    report.tables.append(tables.hits("MemDaily" if step == 1 else f"MemDaily, every {step}th user", found))
    report.data["memdaily"] = tables.as_data(found)
    of = score(found[PRODUCT])
    report.figures |= {"memdaily_hit1": of.hit1, "memdaily_hit5": of.hit5, "memdaily_r10": of.r10}


def _skip(name: str, report: Report, say: Say, *figures: str) -> None:
    say(f"skipped: no {name}; DATA_DIR names the data folder")
    report.left_out |= dict.fromkeys(figures, f"no {name}")
