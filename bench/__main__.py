"""``python -m bench [NAME|all] [--quick] [--out DIR]``: 1 when a limit is missed, else 0."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from bench import (
    archive_search,
    cluster_adapters,
    conflict_suite,
    counting_cost,
    extraction_calls,
    extraction_quality,
    extraction_zh,
    gate_cost,
    ingress,
    knowledge_recall,
    ledger_cost,
    night,
    profile_quality,
    recall_latency,
    recall_load,
    recall_quality,
    relatedness,
    scale_out,
    served_embedding,
    warm_memory,
)
from bench.recall_quality.data import LOCOMO
from bench.recall_quality.keys import overrides_of
from bench.relevance_growth import plot
from bench.relevance_growth import suite as relevance_growth
from bench.report import Limit, Report, environment
from bench.stack import Say

RESULTS = Path(__file__).parent / "results"


class Run(Protocol):
    """Measures; ``say`` is told what happens."""

    def __call__(self, *, quick: bool, say: Say) -> Report: ...


Draw = Callable[[Mapping[str, Any]], None]  # writes the documentation's part from a report's data


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What to run and what must hold."""

    run: Run
    limits: Sequence[Limit]
    needs: Path | None = None  # data that is not part of the product: without it there is nothing to measure
    draw: Draw | None = None  # --docs


BENCHMARKS: Mapping[str, Benchmark] = {
    "counting": Benchmark(counting_cost.run, counting_cost.LIMITS),
    "gates": Benchmark(gate_cost.run, gate_cost.LIMITS),
    "recall": Benchmark(recall_latency.run, recall_latency.LIMITS),
    "ingress": Benchmark(ingress.run, ingress.LIMITS),
    "memory": Benchmark(warm_memory.run, warm_memory.LIMITS),
    "conflicts": Benchmark(conflict_suite.run, conflict_suite.LIMITS),
    "relevance-growth": Benchmark(relevance_growth.run, relevance_growth.LIMITS, draw=plot.draw),
    "relatedness": Benchmark(relatedness.run, relatedness.LIMITS, relatedness.PERSONAS),
    "ledgers": Benchmark(ledger_cost.run, ledger_cost.LIMITS),
    "recall-load": Benchmark(recall_load.run, recall_load.LIMITS),
    "cluster-adapters": Benchmark(cluster_adapters.run, cluster_adapters.LIMITS),
    "served-embedding": Benchmark(served_embedding.run, served_embedding.LIMITS),
    "scale-out": Benchmark(scale_out.run, scale_out.LIMITS),
    "archive-search": Benchmark(archive_search.run, archive_search.LIMITS),
    "extraction-zh": Benchmark(extraction_zh.run, extraction_zh.LIMITS),
    "knowledge": Benchmark(knowledge_recall.run, knowledge_recall.LIMITS),
    "extraction": Benchmark(extraction_quality.run, extraction_quality.LIMITS, extraction_quality.PERSONA),
    "extraction-calls": Benchmark(extraction_calls.run, extraction_calls.LIMITS, LOCOMO),
    "night": Benchmark(night.run, night.LIMITS),
    "profile-quality": Benchmark(profile_quality.run, profile_quality.LIMITS, profile_quality.PERSONA),
    "recall-quality": Benchmark(recall_quality.run, recall_quality.LIMITS, LOCOMO),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, print, save, and hold the limits."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Benchmarks, each against its limits."
    )
    parser.add_argument("which", nargs="?", choices=[*BENCHMARKS, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="fewer users and requests; figures are rough")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="recall-quality only")
    parser.add_argument("--docs", action="store_true", help="write plots and tables into the documentation")
    chosen = parser.parse_args(arguments)
    if chosen.set and chosen.which != "recall-quality":
        parser.error("--set is for recall-quality")
    names = list(BENCHMARKS) if chosen.which == "all" else [chosen.which]
    console = Console(width=None if sys.stdout.isatty() else 160)
    known = dict(BENCHMARKS)
    if chosen.set:
        changed = partial(recall_quality.run, overrides=overrides_of(chosen.set))
        known["recall-quality"] = replace(known["recall-quality"], run=changed)
    kept = [_one(name, known[name], chosen, console) for name in names]
    return 0 if all(kept) else 1


def _one(name: str, benchmark: Benchmark, chosen: argparse.Namespace, console: Console) -> bool:
    surroundings = environment()
    if benchmark.needs is not None and not benchmark.needs.exists():
        console.print(
            f"[yellow]skipped[/yellow]  {name}: no {benchmark.needs.name}; DATA_DIR names the data folder"
        )
        return True
    report = benchmark.run(quick=chosen.quick, say=lambda text: console.print(f"[dim]{name}: {text}[/dim]"))
    for drawn in report.tables:
        console.print(drawn)
    missed = report.missed(benchmark.limits)
    for limit in benchmark.limits:
        if limit.figure in report.left_out:
            console.print(f"not measured  {limit.what}: {report.left_out[limit.figure]}")
            continue
        mark = "[red]missed[/red]" if limit in missed else "[green]holds[/green]"
        console.print(f"{mark}  {limit.what}: {report.figures.get(limit.figure, float('nan')):.4g} {limit}")
    console.print(f"saved {report.save(chosen.out, surroundings)}")
    if chosen.docs and benchmark.draw is not None:
        benchmark.draw(report.data)
    return not missed


if __name__ == "__main__":
    raise SystemExit(main())
