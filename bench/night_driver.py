"""What the driver of a night holds in memory, from a thousand users to a hundred thousand.

Each size runs in a process of its own: the real ``Night`` over a ledger that makes its users up page by page, and actors
that answer at once with an answer as long as a real one's. What is measured is how far the peak of resident memory grew
from the begin of the night. Nothing in it may grow with the number of users.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.report import ROOT, Limit, Report, table
from bench.stack import Say
from hermes_memory.app.night import Night, Pacing
from hermes_memory.core.ids import UserKey

SIZES = (1_000, 10_000, 100_000)
QUICK = (1_000, 10_000)
LIMITS = (
    Limit("growth_mb", 32, "peak memory of the driver grew at the most users, MB"),
    Limit("growth_from_least_mb", 16, "of that, more than at a thousand users, MB"),
)
PACING = Pacing(
    page=100, in_flight=4, shards=16, share=1.0, deadline_s=60.0, backoff_s=0.5, backoff_most_s=30.0
)
CHANGES = 20  # of a user's night


class _Ledger:
    """Users that exist while they are asked for, and notes."""

    def __init__(self, users: int) -> None:
        self._users = users
        self._notes: dict[str, Any] = {}

    async def users(
        self, namespace: str | None, after: str, limit: int, shard: tuple[int, int]
    ) -> Sequence[UserKey]:
        """The next page of a shard: every so many-th number."""
        del namespace
        number, shards = shard
        first = number if not after else int(UserKey.parse(after).user_id[1:]) + shards
        numbers = range(first, self._users, shards)[:limit]
        return [UserKey("bench", f"u{one:07d}") for one in numbers]

    async def put_note(self, namespace: str, name: str, value: Any, *, expected: int) -> bool:
        """Kept if it is the next revision."""
        del namespace
        kept = self._notes.get(name)
        if expected != (kept.revision if kept else 0):
            return False
        self._notes[name] = SimpleNamespace(value=value, revision=expected + 1)
        return True

    async def note(self, namespace: str, name: str) -> Any:
        """The last one of the name."""
        del namespace
        return self._notes.get(name)


class _Actors:
    """Answer at once."""

    async def execute(self, key: UserKey, command: Any, operation_id: str) -> Any:
        """As many changes as a busy user's night makes."""
        del command
        changes = [
            {"id": f"mem_{key.user_id}_{one}_{operation_id}", "step": "decay", "reason": "forgotten"}
            for one in range(CHANGES)
        ]
        return {"changes": changes, "expired_requests": 0, "profile_slots": 1}

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """No night waits for a job."""
        del key, job_id, timeout_s
        return None

    async def ask(self, key: UserKey, query: Any) -> dict[str, Any]:
        """The counts of a user."""
        del key, query
        return {
            "tally": {"welcome": 1}, "memories": 50, "by_status": {"active": 50}, "version": 3, "paused": False,
            "cohort": None,
        }  # fmt: skip


async def _close(namespace: str, sums: Any, run: Any) -> dict[str, Any]:
    del namespace, sums, run
    return {}


def run(*, quick: bool, say: Say) -> Report:
    """One process for each size."""
    grown = {}
    for users in QUICK if quick else SIZES:
        say(f"a night over {users:,} users")
        grown[users] = _grown_mb(users)
    report = Report("night-driver")
    most, least = grown[max(grown)], grown[min(grown)]
    report.figures = {"growth_mb": most, "growth_from_least_mb": most - least}
    report.tables = [
        table("Peak memory of the driver, growth during the night", ("users", "MB"),
              [(f"{users:,}", mb) for users, mb in grown.items()])
    ]  # fmt: skip
    report.data = {"growth_mb": grown}
    return report


def _grown_mb(users: int) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.night_driver", str(users)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def _measure(users: int) -> float:
    ledger: Any = _Ledger(users)
    night = Night(ledger, _Actors(), PACING, _close, window_days=7, sleep=_at_once)
    before = _peak_kb()
    report = asyncio.run(night.run("2026-03-02", datetime(2026, 3, 2, 3, tzinfo=UTC)))
    assert report["users"]["done"] == users, report["users"]
    return (_peak_kb() - before) / 1000


def _peak_kb() -> int:
    """Of this program alone (Linux): ``ru_maxrss`` would still hold the peak of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


async def _at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


if __name__ == "__main__":
    print(_measure(int(sys.argv[1])))
