"""What a night costs for one user: waking, the first ``Maintain`` of a day, and a second one that finds nothing to do.

One host in this process over SQLite; users of ``bench.users`` whose memories are spread over months. The floor in the
same run is the user being woken and read from the ledger, which every night pays anyway. The slowest loop stall is the
longest that anybody else on the host had to wait meanwhile. Where an answer names the steps of the night, each is timed
by itself, over users that have not been maintained.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.users import Crowd, load
from hermes_memory.app.commands import Maintain
from hermes_memory.app.users import operation_id_of
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.runtime.host import UserHost
from hermes_memory.wiring import build_distiller, build_host, embedder_info
from serve_app.services import DEFAULT_NAMESPACE

CROWDS = (Crowd(60, 50), Crowd(40, 300), Crowd(16, 1250))
QUICK = (Crowd(10, 50), Crowd(8, 300), Crowd(4, 1250))
LIMITS = (
    Limit("first_ms_full", 2000, "processor ms of a first night at 1,250 memories, waking included"),
    Limit("second_to_floor", 2.0, "a second night on the day over waking the user, the worst size"),
    Limit("stall_ms", 250, "slowest stall of a host's loop meanwhile, ms"),
    Limit("second_changes", 1, "changes that a second night on one day makes"),
)
TICK_S = 0.001


@dataclass(frozen=True, slots=True)
class Cost:
    """One size of user: milliseconds of the processor and of the clock, per user."""

    memories: int
    users: int
    wake_ms: float
    first_ms: float
    second_ms: float
    first_wall_ms: float
    stall_ms: float
    changes: float
    second_changes: int
    steps_ms: dict[str, float]

    @property
    def per_minute(self) -> float:
        """Users a minute, one after the other, waking and a first night."""
        return 60_000 / self.first_wall_ms


class NoModel:
    """An embedder that nobody may ask: nights embed nothing new here."""

    def __init__(self, info: EmbedderInfo) -> None:
        self.info = info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Zeros."""
        return np.zeros((len(texts), self.info.dimension), np.float32)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """The same."""
        return await self.queries(texts)


def run(*, quick: bool, say: Say) -> Report:
    """Every size on a ledger of its own."""
    costs = []
    for crowd in QUICK if quick else CROWDS:
        say(f"loading {crowd}, then a night for each")
        costs.append(_measured(crowd))
    report = Report("night")
    report.figures = {
        "first_ms_full": costs[-1].first_ms,
        "second_to_floor": max(cost.second_ms / cost.wake_ms for cost in costs),
        "stall_ms": max(cost.stall_ms for cost in costs),
        "second_changes": sum(cost.second_changes for cost in costs),
    }
    columns = (
        "memories a user",
        "users",
        "wake",
        "first",
        "second",
        "stall",
        "changes a user",
        "users a minute",
    )
    rows = [
        (str(c.memories), c.users, c.wake_ms, c.first_ms, c.second_ms, c.stall_ms, c.changes, c.per_minute)
        for c in costs
    ]
    report.tables = [table("A night in one process: processor ms per user", columns, rows)]
    if costs[-1].steps_ms:
        steps = [(name, *(cost.steps_ms[name] for cost in costs)) for name in costs[-1].steps_ms]
        sizes = ("step", *(f"{cost.memories} memories" for cost in costs))
        report.tables.append(table("Each step by itself, ms of the clock", sizes, steps))
    report.data = {"costs": [asdict(cost) for cost in costs]}
    return report


def _measured(crowd: Crowd) -> Cost:
    settings = load_settings(None, {"ledger": {"synchronous": "NORMAL"}})
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        load(settings, Path(folder), [crowd])
        return asyncio.run(_nights(settings, Path(folder), crowd))


async def _nights(settings: Settings, data: Path, crowd: Crowd) -> Cost:
    info = embedder_info(settings)
    host = build_host("bench", settings, data, build_distiller(settings, NoModel(info)), info)
    await host.start()
    try:
        return await _timed_nights(host, crowd)
    finally:
        await host.stop()


async def _timed_nights(host: UserHost, crowd: Crowd) -> Cost:
    now = datetime.now(UTC)
    keys = [UserKey(DEFAULT_NAMESPACE, crowd.name(number)) for number in range(crowd.users)]
    apart, whole = keys[: crowd.users // 4], keys[crowd.users // 4 :]
    woken, first, second, walls = [], [], [], []
    changes, again = 0, 0
    names: Sequence[str] = ()
    await _timed(host.wake(apart[0]))  # what is loaded once
    async with _Stalls() as stalls:
        for key in whole:
            began = time.perf_counter()
            woken.append((await _timed(host.wake(key)))[0])
            spent, answer = await _timed(_night(host, key, now))
            first.append(woken[-1] + spent)
            walls.append((time.perf_counter() - began) * 1000)
            spent, repeated = await _timed(_night(host, key, now))
            second.append(spent)
            changes, again = changes + len(answer["changes"]), again + len(repeated["changes"])
            names = tuple(answer.get("steps", ()))
    return Cost(
        memories=crowd.memories, users=len(whole), wake_ms=mean(woken), first_ms=mean(first),
        second_ms=mean(second), first_wall_ms=mean(walls), stall_ms=stalls.worst_ms,
        changes=changes / len(whole), second_changes=again, steps_ms=await _singly(host, apart, now, names),
    )  # fmt: skip


async def _singly(
    host: UserHost, keys: Sequence[UserKey], now: datetime, names: Sequence[str]
) -> dict[str, float]:
    spent: defaultdict[str, list[float]] = defaultdict(list)
    for key in keys:
        await host.wake(key)
        for name in names:
            began = time.perf_counter()
            await _night(host, key, now, name)
            spent[name].append((time.perf_counter() - began) * 1000)
    return {name: mean(values) for name, values in spent.items()}


async def _night(host: UserHost, key: UserKey, now: datetime, step: str | None = None) -> dict[str, Any]:
    command = Maintain(now=now, step=step)
    answer: dict[str, Any] = await host.execute(key, command, operation_id_of(command))
    return answer


async def _timed(work: Awaitable[Any]) -> tuple[float, Any]:
    """Processor milliseconds of this process, all threads, and the result."""
    began = time.process_time()
    result = await work
    return (time.process_time() - began) * 1000, result


class _Stalls:
    """The longest that a task which wants the loop every millisecond had to wait for it."""

    def __init__(self) -> None:
        self.worst_ms = 0.0

    async def __aenter__(self) -> _Stalls:
        self._ticking = asyncio.ensure_future(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._ticking

    async def _tick(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.worst_ms = max(self.worst_ms, (time.perf_counter() - began - TICK_S) * 1000)
