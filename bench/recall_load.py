"""Recall beside ever more users on one ledger: what it takes inside the actor, beyond the query's embedding.

One ledger for each number of users, all filled through the Ledger port with made-up memories and synthetic vectors.
Twenty of the users (all, where there are fewer) hold 1,250 memories, the others two. One caller, in this process, asks
the warm twenty of each ledger by turns, so that what else the machine does touches all sizes alike; the queries are
embedded beforehand. A cold user's activation is timed before.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median

from rich.table import Table

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import queries
from bench.traffic import Spread
from bench.users import Crowd, load
from hermes_memory.app.commands import Recall
from hermes_memory.app.recall import read
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.runtime.host import UserHost
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_policy
from serve_app.services import DEFAULT_NAMESPACE

LIMITS = (
    Limit("p50_ms", at_most=2.0, what="p50 of a recall inside the actor, ms, at the most users"),
    Limit("p99_ms", at_most=8.0, what="p99 of a recall inside the actor, ms, at the most users"),
    Limit("most_to_fewest", at_most=1.2, what="p50 at the most users over p50 at the fewest"),
)
SIZES, QUICK = (10, 1_000, 100_000), (10, 2_000)
PROBES, FULL, FEW = 20, 1_250, 2  # users that are asked, their memories, and those of the others
COLD = 20  # of the others, woken one by one
ROUNDS, QUICK_ROUNDS = 1_000, 300  # recalls of each ledger
WARM_UP = 50
# Nobody falls asleep meanwhile; a commit for each user need not survive a power cut.
OVERRIDES = {"actors": {"memory_budget_mb": 4096, "idle_s": 3600.0}, "ledger": {"synchronous": "NORMAL"}}


@dataclass(slots=True)
class Seen:
    """What was measured with one number of users, in milliseconds.

    ``whole`` is the call to the host, ``processor`` what of it this thread was running: on a busy machine the rest is
    other programs' time.
    """

    users: int
    load_s: float
    ledger_mb: float
    cold_few: Spread | None  # None where there are no others
    cold_full: Spread
    times: dict[str, list[float]] = field(default_factory=dict)

    def spread(self, stage: str = "whole") -> Spread:
        """Of all recalls."""
        return Spread.of(self.times[stage])


@dataclass(frozen=True, slots=True)
class _Filled:
    users: int
    data: Path
    load_s: float

    @property
    def probes(self) -> list[UserKey]:
        crowd = Crowd(min(self.users, PROBES), FULL)
        return [UserKey(DEFAULT_NAMESPACE, crowd.name(n)) for n in range(crowd.users)]

    @property
    def others(self) -> list[UserKey]:
        crowd = Crowd(self.users - len(self.probes), FEW)
        return [UserKey(DEFAULT_NAMESPACE, crowd.name(n)) for n in range(min(COLD, crowd.users))]


def run(*, quick: bool, say: Say) -> Report:
    """Fill, wake, ask."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker of the server
    settings = load_settings(None, OVERRIDES)
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        filled = [
            _fill(settings, Path(folder) / str(users), users, say) for users in (QUICK if quick else SIZES)
        ]
        return report(asyncio.run(_measure(settings, filled, QUICK_ROUNDS if quick else ROUNDS, say)))


def _fill(settings: Settings, data: Path, users: int, say: Say) -> _Filled:
    say(f"loading {users:,} users")
    started = time.perf_counter()
    probes = min(users, PROBES)
    load(settings, data, [Crowd(probes, FULL), Crowd(users - probes, FEW)])
    return _Filled(users, data, time.perf_counter() - started)


async def _measure(settings: Settings, filled: Sequence[_Filled], rounds: int, say: Say) -> list[Seen]:
    asked = await _recalls(settings, rounds + WARM_UP, say)
    async with AsyncExitStack() as stack:
        hosts = []
        for one in filled:
            hosts.append(await _host(settings, one))
            stack.push_async_callback(hosts[-1].stop)
        say("waking")
        seen = [await _wake(host, one) for host, one in zip(hosts, filled, strict=True)]
        say("asking")
        for number, query in enumerate(asked):
            for host, one, own in zip(hosts, filled, seen, strict=True):
                answered = await _ask(host, one.probes[number % len(one.probes)], query)
                if number >= WARM_UP:
                    for stage, ms in answered:
                        own.times.setdefault(stage, []).append(ms)
    return seen


async def _recalls(settings: Settings, count: int, say: Say) -> list[Recall]:
    """Different queries, embedded and segmented as the ingress does."""
    say(f"embedding {count:,} queries")
    texts = list(islice(queries(), count))
    embedder, policy = build_embedder(settings), build_policy(settings)
    vectors, now = await embedder.queries(texts), datetime.now(UTC)
    return [
        Recall(query=text, vector=vector, words=policy.words(text), asked=read(text, now, None, policy))
        for text, vector in zip(texts, vectors, strict=True)
    ]


async def _host(settings: Settings, one: _Filled) -> UserHost:
    embedder = build_embedder(settings)
    host = build_host("bench", settings, one.data, build_distiller(settings, embedder), embedder.info)
    await host.start()
    return host


async def _wake(host: UserHost, one: _Filled) -> Seen:
    few = [await _timed(host, key) for key in one.others]
    full = [await _timed(host, key) for key in one.probes]
    size = sum(path.stat().st_size for path in one.data.iterdir()) / 1e6
    return Seen(one.users, one.load_s, size, Spread.of(few) if few else None, Spread.of(full))


async def _timed(host: UserHost, key: UserKey) -> float:
    started = time.perf_counter()
    await host.wake(key)
    return (time.perf_counter() - started) * 1000


async def _ask(host: UserHost, key: UserKey, query: Recall) -> Iterator[tuple[str, float]]:
    started, running = time.perf_counter(), time.thread_time()
    answer = await host.ask(key, query)
    whole, processor = (time.perf_counter() - started) * 1000, (time.thread_time() - running) * 1000
    return iter(
        [
            ("whole", whole),
            ("processor", processor),
            *answer["timings_ms"].items(),
            ("memories", len(answer["memories"])),
        ]
    )


def report(seen: Sequence[Seen]) -> Report:
    """Figures of the most users, and beside the fewest."""
    made = Report("recall-load")
    first, last = seen[0].spread(), seen[-1].spread()
    made.figures = {
        "p50_ms": last.p50,
        "p99_ms": last.p99,
        "most_to_fewest": last.p50 / first.p50,
        "processor_p50_ms": seen[-1].spread("processor").p50,
        "processor_p99_ms": seen[-1].spread("processor").p99,
        "worst_p99_ms": max(one.spread().p99 for one in seen),
        "cold_full_ms": seen[-1].cold_full.p50,
    }
    made.tables = [_recall_table(seen), _cold_table(seen)]
    made.data = {
        "sizes": [
            {
                "users": one.users, "ledger_mb": one.ledger_mb, "load_s": one.load_s,
                "cold_few": asdict(one.cold_few) if one.cold_few else None, "cold_full": asdict(one.cold_full),
                "stages": {stage: asdict(one.spread(stage)) for stage in one.times if stage != "memories"},
                "memories": median(one.times["memories"]),
            }
            for one in seen
        ]
    }  # fmt: skip
    return made


def _recall_table(seen: Sequence[Seen]) -> Table:
    rows = [
        (f"{one.users:,}: {stage}", spread.p50, spread.p95, spread.p99, median(one.times["memories"]))
        for one in seen
        for stage in one.times
        if stage != "memories"
        for spread in [one.spread(stage)]
    ]
    title = f"A recall inside the actor, {FULL:,} memories, one caller, ms; beyond the query's embedding"
    return table(title, ("users: stage", "p50", "p95", "p99", "memories"), rows)


def _cold_table(seen: Sequence[Seen]) -> Table:
    rows = [
        (
            f"{one.users:,}", *((one.cold_few.p50, one.cold_few.p99) if one.cold_few else ("", "")),
            one.cold_full.p50, one.cold_full.p99, one.ledger_mb, one.load_s,
        )
        for one in seen
    ]  # fmt: skip
    columns = ("users", f"{FEW} memories p50", "p99", f"{FULL:,} memories p50", "p99", "ledger MB", "load s")
    return table("Waking a cold user, ms", columns, rows)
