"""What was seen, as tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from bench.eval_vllm.checking import Verdict
from bench.eval_vllm.watching import VALID, Seen
from bench.report import Report, table


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. ``ready_s``: until the deployment was ready; ``seconds``: until the last job had ended."""

    seen: Seen
    jobs: Sequence[Mapping[str, Any]]
    verdict: Verdict
    turns: int
    ready_s: float
    seconds: float


def report(run: Outcome) -> Report:
    """Tables to read, figures and data to keep."""
    made = Report("eval-vllm")
    seen, usage = run.seen, run.seen.usage
    valid = sum(times for (_, kind), times in seen.outputs.items() if kind == VALID)
    outputs = seen.outputs.total()
    made.figures = {
        "turns": float(run.turns),
        "calls": float(usage.calls),
        "calls_per_turn": usage.calls / run.turns,
        "valid": float(valid),
        "invalid": float(outputs - valid),
        "ungrounded": float(len(run.verdict.ungrounded)),
        "lost": float(len(run.verdict.lost)),
        "doubled": float(len(run.verdict.doubled)),
        "tokens_in": float(usage.tokens_in),
        "tokens_cached": float(usage.tokens_cached),
        "tokens_out": float(usage.tokens_out),
        "tokens_out_per_s": usage.tokens_out / run.seconds,
        "ready_s": run.ready_s,
        "seconds": run.seconds,
    }
    changes = Counter((change["op"], change["reason"]) for job in run.jobs for change in job["changes"])
    made.tables = [_outputs(seen), _candidates(run, changes), _work(run)]
    made.data = {
        "outputs": [[*of, times] for of, times in sorted(seen.outputs.items())],
        "failures": dict(seen.failures),
        "refused_by_the_extractor": dict(seen.refused),
        "changes": [[*of, times] for of, times in sorted(changes.items())],
        "usage": asdict(usage),
        "verdict": asdict(run.verdict),
    }
    return made


def _outputs(seen: Seen) -> Table:
    rows: list[tuple[object, ...]] = [
        (f"{form}: {kind}", times) for (form, kind), times in sorted(seen.outputs.items())
    ]
    rows += [(f"no answer: {why}", times) for why, times in sorted(seen.failures.items())]
    rows += [
        ("asked again because of one (repair)", seen.usage.repairs), ("batches read", seen.batches),
        ("of them by the rules in its place", seen.fell_back), ("tries that failed", seen.tries_failed),
    ]  # fmt: skip
    return table("The model's answers", ("", "times"), rows)


def _candidates(run: Outcome, changes: Counter[tuple[str, str]]) -> Table:
    seen = run.seen
    rows: list[tuple[object, ...]] = [
        ("statements in valid answers", seen.statements), ("candidates, the rules' among them", seen.candidates),
    ]  # fmt: skip
    rows += [(f"refused by the extractor: {reason}", times) for reason, times in seen.refused.most_common()]
    rows += [(f"{op}: {reason}", times) for (op, reason), times in changes.most_common()]
    rows += [
        ("memories in the store", run.verdict.memories), ("of them ungrounded", len(run.verdict.ungrounded)),
        ("turns lost", len(run.verdict.lost)), ("doubled", len(run.verdict.doubled)),
    ]  # fmt: skip
    return table("What became of them", ("", "times"), rows)


def _work(run: Outcome) -> Table:
    usage = run.seen.usage
    rows: list[tuple[object, ...]] = [
        ("turns", run.turns), ("calls", usage.calls), ("calls per turn", usage.calls / run.turns),
        ("tokens read", usage.tokens_in), ("of them cached", usage.tokens_cached), ("tokens written", usage.tokens_out),
        ("written per second", usage.tokens_out / run.seconds), ("seconds", run.seconds),
        ("seconds until the deployment was ready", run.ready_s),
    ]  # fmt: skip
    return table("What it took", ("", ""), rows)
