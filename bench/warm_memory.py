"""What a warm user costs in memory: the host processes before and after users wake, beside the hosts' own estimate.

``cost_bytes`` is what a host believes when it decides who must sleep; a wrong belief is a host that is killed for
memory or one that sleeps too early. So the ratio of the two has limits.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass

import psutil

from bench.report import Limit, Report, table
from bench.stack import Say, Stack, running
from bench.traffic import wake
from bench.users import Crowd

LIMITS = (
    Limit("resident_to_estimate", 2.0, "resident memory of a warm user over the hosts' estimate"),
    Limit("estimate_to_resident", 2.0, "the hosts' estimate over resident memory of a warm user"),
)
CROWDS = (Crowd(1000, 200), Crowd(100, 1250))
QUICK = (Crowd(100, 200), Crowd(20, 1250))
ROOMY = {"actors": {"memory_budget_mb": 4096, "idle_s": 3600.0}}  # nobody falls asleep meanwhile
SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """A warm user in kB."""

    crowd: str
    resident_kb: float
    unshared_kb: float
    estimate_kb: float

    @property
    def ratio(self) -> float:
        """Resident over estimated."""
        return self.resident_kb / self.estimate_kb


@dataclass(frozen=True, slots=True)
class _Sizes:
    resident: int
    unshared: int
    estimate: int
    awake: int


def run(*, quick: bool, say: Say) -> Report:
    """Wake every crowd on a server of its own, so that none grows into what another left."""
    costs = []
    for crowd in QUICK if quick else CROWDS:
        with running([crowd, Crowd(2, 10)], ROOMY, say) as stack:
            say(f"waking {crowd}")
            costs.append(_cost(stack, crowd))
    report = Report("memory")
    report.figures = {
        "resident_to_estimate": max(cost.ratio for cost in costs),
        "estimate_to_resident": max(1 / cost.ratio for cost in costs),
    }
    rows = [(c.crowd, c.resident_kb, c.unshared_kb, c.estimate_kb, c.ratio) for c in costs]
    columns = ("users × memories", "resident", "unshared", "estimate", "resident / estimate")
    report.tables = [table("A warm user, kB", columns, rows)]
    report.data = {"costs": [asdict(cost) for cost in costs]}
    return report


def _cost(stack: Stack, crowd: Crowd) -> Cost:
    asyncio.run(wake(lambda number: stack.user(Crowd(2, 10).name(number)), 2, 1))  # what is loaded once
    before = _sizes(stack)
    asyncio.run(wake(lambda number: stack.user(crowd.name(number)), crowd.users, 4))
    after = _sizes(stack)
    woken = after.awake - before.awake
    assert woken == crowd.users, f"{woken} of {crowd.users} users are awake"
    return Cost(
        str(crowd),
        (after.resident - before.resident) / woken / 1000,
        (after.unshared - before.unshared) / woken / 1000,
        (after.estimate - before.estimate) / woken / 1000,
    )


def _sizes(stack: Stack) -> _Sizes:
    time.sleep(SETTLE_S)
    hosts = stack.hosts()
    memory = [psutil.Process(host["pid"]).memory_full_info() for host in hosts]
    return _Sizes(
        sum(info.rss for info in memory),
        sum(info.uss for info in memory),
        sum(host["cost_bytes"] for host in hosts),
        sum(host["awake"] for host in hosts),
    )
