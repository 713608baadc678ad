"""What a campaign came to, as a table for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.chaos.checks import Account
from tests.chaos.journal import Journal

SHOWN = 20  # examples of broken promises


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault, and how long it took until every user was served again."""

    kind: str
    on_process: bool
    recovery_s: float


def summary(
    injected: Sequence[Injected], account: Account, journal: Journal, seconds: float, seed: int
) -> dict[str, Any]:
    """The campaign in numbers."""
    kinds = sorted({fault.kind for fault in injected})
    times = {kind: [fault.recovery_s for fault in injected if fault.kind == kind] for kind in kinds}
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "faults": len(injected),
        "on_processes": sum(fault.on_process for fault in injected),
        "kinds": {
            kind: {
                "times": len(took),
                "recovery_p50_s": round(median(took), 2),
                "recovery_max_s": round(max(took), 2),
            }
            for kind, took in times.items()
        },
        "promises": {promise: account.broken[promise] for promise in Account.PROMISES},
        "acknowledged_messages": len(journal.said),
        "checked": {
            "messages": account.messages, "memories": account.memories, "documents": account.documents,
        },
        "answers": dict(sorted(journal.answers.items())),
        "unanswered_operations": journal.unanswered,
        "slowest_operation_s": round(journal.slowest_s, 1),
        "examples": account.examples[:SHOWN],
    }  # fmt: skip


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    faults = Table(title=f"{result['faults']} faults in {result['seconds']:.0f} s, seed {result['seed']}")
    for column in ("fault", "times", "recovered p50 s", "max s"):
        faults.add_column(column, justify="left" if column == "fault" else "right")
    for kind, row in result["kinds"].items():
        faults.add_row(
            kind, str(row["times"]), f"{row['recovery_p50_s']:.2f}", f"{row['recovery_max_s']:.2f}"
        )
    console.print(faults)
    promises = Table(title=f"{result['acknowledged_messages']} messages acknowledged")
    promises.add_column("promise")
    promises.add_column("broken", justify="right")
    for promise, times in result["promises"].items():
        promises.add_row(promise, str(times))
    console.print(promises)
    for name in ("on_processes", "checked", "answers", "unanswered_operations", "slowest_operation_s"):
        console.print(f"{name.replace('_', ' ')}: {result[name]}")
    for example in result["examples"]:
        console.print(f"  {example}")


def save(result: dict[str, Any], path: Path) -> None:
    """Write it as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
