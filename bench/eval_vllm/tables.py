"""What was seen, as tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from bench.eval_vllm.checking import Verdict
from bench.eval_vllm.watching import Seen
from bench.report import Report, table


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run with one prompt. ``seconds``: until the last job had ended."""

    prompt: str
    seen: Seen
    jobs: Sequence[Mapping[str, Any]]
    verdict: Verdict
    turns: int
    seconds: float

    @property
    def changes(self) -> Counter[tuple[str, str]]:
        """What the jobs say became of the turns: operations and reasons."""
        return Counter((change["op"], change["reason"]) for job in self.jobs for change in job["changes"])


def report(runs: Sequence[Outcome], ready_s: float) -> Report:
    """Tables to read, figures and data to keep; ``ready_s``: until the deployment was ready."""
    made = Report("eval-vllm")
    made.figures = {
        "ready_s": ready_s,
        "ungrounded": float(sum(len(run.verdict.ungrounded) for run in runs)),
        "lost": float(sum(len(run.verdict.lost) for run in runs)),
        "doubled": float(sum(len(run.verdict.doubled) for run in runs)),
    }
    made.tables = [drawn for run in runs for drawn in (_outputs(run), _candidates(run), _work(run))]
    made.data = {run.prompt: _data(run) for run in runs}
    return made


def _data(run: Outcome) -> dict[str, Any]:
    seen, usage = run.seen, run.seen.usage
    return {
        "turns": run.turns,
        "calls_per_turn": usage.calls / run.turns,
        "tokens_out_per_s": usage.tokens_out / run.seconds,
        "seconds": run.seconds,
        "outputs": [[*of, times] for of, times in sorted(seen.outputs.items())],
        "failures": dict(seen.failures),
        "statements": seen.statements,
        "candidates": seen.candidates,
        "batches": seen.batches,
        "fell_back": seen.fell_back,
        "refused_by_the_extractor": dict(seen.refused),
        "changes": [[*of, times] for of, times in sorted(run.changes.items())],
        "usage": asdict(usage),
        "verdict": asdict(run.verdict),
    }


def _outputs(run: Outcome) -> Table:
    seen = run.seen
    rows: list[tuple[object, ...]] = [
        (f"{form}: {kind}", times) for (form, kind), times in sorted(seen.outputs.items())
    ]
    rows += [(f"no answer: {why}", times) for why, times in sorted(seen.failures.items())]
    rows += [
        ("asked again because of one (repair)", seen.usage.repairs), ("batches read", seen.batches),
        ("of them by the rules in its place", seen.fell_back), ("tries that failed", seen.tries_failed),
    ]  # fmt: skip
    return table(f"The model's answers, {run.prompt}", ("", "times"), rows)


def _candidates(run: Outcome) -> Table:
    seen = run.seen
    rows: list[tuple[object, ...]] = [
        ("statements in valid answers", seen.statements), ("candidates, the rules' among them", seen.candidates),
    ]  # fmt: skip
    rows += [(f"refused by the extractor: {reason}", times) for reason, times in seen.refused.most_common()]
    rows += [(f"{op}: {reason}", times) for (op, reason), times in run.changes.most_common()]
    rows += [
        ("memories in the store", run.verdict.memories), ("of them ungrounded", len(run.verdict.ungrounded)),
        ("turns lost", len(run.verdict.lost)), ("doubled", len(run.verdict.doubled)),
    ]  # fmt: skip
    return table(f"What became of them, {run.prompt}", ("", "times"), rows)


def _work(run: Outcome) -> Table:
    usage = run.seen.usage
    rows: list[tuple[object, ...]] = [
        ("turns", run.turns), ("calls", usage.calls), ("calls per turn", usage.calls / run.turns),
        ("tokens read", usage.tokens_in), ("of them cached", usage.tokens_cached), ("tokens written", usage.tokens_out),
        ("written per second", usage.tokens_out / run.seconds), ("seconds", run.seconds),
    ]  # fmt: skip
    return table(f"What it took, {run.prompt}", ("", ""), rows)
