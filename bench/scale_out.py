"""One, two and four hosts for a hundred thousand users of whom some talk often and most hardly ever.

All hosts share this machine, so a speed-up cannot be seen here. What can: whether the work for one operation stays the
same when the hosts are more, which is what lets machines be added; and the figures that the capacity model in
docs/explanation/capacity.md is made of.

The ledger is a real Redis that reaches the disk before it answers. Calls go to the hosts' actors directly, from one
process with sixteen callers: four in five are recalls, the others messages. Who speaks follows Zipf's law.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import queries
from bench.traffic import Spread
from bench.users import Crowd, load
from hermes_memory.app.commands import Incoming, Ingest, Recall
from hermes_memory.app.recall import read
from hermes_memory.config import Settings, document_of, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.ports.ledger import HostPool
from hermes_memory.wiring import build_embedder, build_ledger, build_policy, embedder_info
from serve_app.services import DEFAULT_NAMESPACE

LIMITS = (
    Limit("four_to_one", at_most=1.5, what="processor time of an operation with four hosts over one"),
    Limit("resident_kb", at_most=100.0, what="kB of host memory for a warm user with two memories"),
)
POOLS = (1, 2, 4)
USERS, QUICK_USERS = 100_000, 5_000
FEW, FULL, FULL_USERS = 2, 1_250, 20
CALLS, QUICK_CALLS = 6_000, 1_000
CALLERS = 16
ZIPF = 1.2
RECALLS = 0.8  # of all calls
COLD = 40
SETTLE_S = 2.0
OVERRIDES: dict[str, Any] = {
    "actors": {"memory_budget_mb": 4096, "idle_s": 3600.0},
    "embedder": {"kind": "hash", "calibration": "hash"},
}


@dataclass(frozen=True, slots=True)
class Pool:
    """What was measured with so many hosts; processor times in milliseconds of one operation."""

    hosts: int
    host_ms: float
    redis_ms: float
    recall: Spread
    write: Spread
    per_s: float
    awake: int
    resident_kb: float  # of host memory for each user who woke
    cold_few: Spread
    cold_full: Spread
    asleep_ms: float  # processor time of the hosts to put one user to sleep


def run(*, quick: bool, say: Say) -> Report:
    """Fill one Redis, then serve it with pools of different sizes, one after the other."""
    from tests.servers import RedisServer

    users = QUICK_USERS if quick else USERS
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pools = []
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as name:
        folder = Path(name)
        with RedisServer(folder / "redis") as redis:
            settings = load_settings(
                None, {**OVERRIDES, "ledger": {"kind": "redis", "url": redis.url}, "serve": {"port": 0}}
            )
            say(f"loading {users:,} users with {FEW} memories, {FULL_USERS} with {FULL:,}")
            load(settings, folder, [Crowd(users, FEW), Crowd(FULL_USERS, FULL)], together=64)
            stored = psutil.Process(redis.pid).memory_info().rss
            for hosts in POOLS:
                say(f"{hosts} hosts")
                chosen = replace(settings, actors=replace(settings.actors, hosts=hosts))
                pools.append(_pool(chosen, folder, users, QUICK_CALLS if quick else CALLS, redis.pid, say))
    return report(pools, users, stored)


def _pool(settings: Settings, data: Path, users: int, calls: int, redis: int, say: Say) -> Pool:
    from serve_app.launch import Server

    server = Server(settings, data, say)
    server.start()
    try:
        return asyncio.run(_measure(server.settings, data, users, calls, redis))
    finally:
        server.stop()


async def _measure(settings: Settings, data: Path, users: int, calls: int, redis: int) -> Pool:
    from actors.crew import RayCrew
    from actors.watching import Watch
    from serve_app.deployments import reach

    crew = RayCrew(
        document_of(settings), str(data), settings.actors.node_resource, settings.actors.call_timeout_s
    )
    reached = reach(settings, crew)
    reached.reseat(await _pool_of(settings, data))
    watch = Watch(reached)
    asked = await _recalls(settings)
    few, full = Crowd(users, FEW), Crowd(FULL_USERS, FULL)
    cold_full = Spread.of([await _wake(reached, full.name(n)) for n in range(FULL_USERS)])
    cold_few = Spread.of([await _wake(reached, few.name(users - 1 - n)) for n in range(COLD)])
    await asyncio.sleep(SETTLE_S)
    before = _told(await watch.stats())
    memory = _resident(before)
    spent, spent_redis = _processor(before), _processor_of(redis)
    times: dict[str, list[float]] = {"recall": [], "write": []}
    who = np.random.default_rng(settings.actors.hosts).zipf(ZIPF, calls) % users
    left = iter(enumerate(who))

    async def caller() -> None:
        for number, rank in left:
            key = UserKey(DEFAULT_NAMESPACE, few.name(int(rank)))
            kind = "recall" if number % 10 < RECALLS * 10 else "write"
            started = time.perf_counter()
            if kind == "recall":
                await reached.ask(key, asked[number % len(asked)])
            else:
                await reached.execute(key, _message(key, number), f"{settings.actors.hosts}-{number}")
            times[kind].append((time.perf_counter() - started) * 1000)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took_s = time.perf_counter() - started
    await asyncio.sleep(SETTLE_S)  # what was said is settled
    after = _told(await watch.stats())
    awake, woken = _sum(after, "awake"), _sum(after, "awake") - _sum(before, "awake")
    host_s, redis_s = _processor(after) - spent, _processor_of(redis) - spent_redis
    grown = _resident(after) - memory
    return Pool(
        hosts=settings.actors.hosts, host_ms=host_s / calls * 1000, redis_ms=redis_s / calls * 1000,
        recall=Spread.of(times["recall"]), write=Spread.of(times["write"]), per_s=calls / took_s,
        awake=awake, resident_kb=grown / max(1, woken) / 1000, cold_few=cold_few, cold_full=cold_full,
        asleep_ms=await _asleep(reached, after, awake),
    )  # fmt: skip


async def _pool_of(settings: Settings, data: Path) -> HostPool:
    ledger = build_ledger(settings, data)
    await ledger.open(embedder_info(settings))
    try:
        return await ledger.host_pool()
    finally:
        await ledger.close()


async def _recalls(settings: Settings) -> list[Recall]:
    texts = list(islice(queries(), 200))
    embedder, policy, now = build_embedder(settings), build_policy(settings), datetime.now(UTC)
    vectors = await embedder.queries(texts)
    return [
        Recall(query=text, vector=vector, words=policy.words(text), asked=read(text, now, None, policy))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _message(key: UserKey, number: int) -> Ingest:
    message = Incoming(
        role=Role.USER, content=f"Thanks, that was number {number}.", id=f"m-{number}",
        created_at=datetime.now(UTC),
    )  # fmt: skip
    return Ingest(session_id=f"s-{key.user_id}", messages=(message,), timezone="UTC", scene=None)


async def _wake(reached: Any, name: str) -> float:
    started = time.perf_counter()
    await reached.wake(UserKey(DEFAULT_NAMESPACE, name))
    return (time.perf_counter() - started) * 1000


async def _asleep(reached: Any, stats: Sequence[dict[str, Any]], awake: int) -> float:
    """Let every host put its users to sleep, as it does at its end; milliseconds of processor time for each."""
    import ray

    from actors.host import NAMESPACE

    spent = _processor(stats)
    stops: list[Any] = [ray.get_actor(one["host"], NAMESPACE).stop.remote() for one in stats]
    await asyncio.to_thread(ray.wait, stops, num_returns=len(stops), timeout=120)
    return (_processor(stats) - spent) / max(1, awake) * 1000


def _told(stats: Mapping[str, dict[str, Any] | BaseException]) -> list[dict[str, Any]]:
    """What every host said; one that did not answer ends the benchmark."""
    silent = [name for name, one in stats.items() if isinstance(one, BaseException)]
    if silent:
        raise RuntimeError(f"no answer of {silent}")
    return [one for one in stats.values() if not isinstance(one, BaseException)]


def _sum(stats: Sequence[dict[str, Any]], what: str) -> int:
    return sum(int(one[what]) for one in stats)


def _processor(stats: Sequence[dict[str, Any]]) -> float:
    return sum(_processor_of(one["pid"]) for one in stats)


def _processor_of(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def _resident(stats: Sequence[dict[str, Any]]) -> int:
    return sum(psutil.Process(one["pid"]).memory_info().rss for one in stats)


def report(pools: Sequence[Pool], users: int, stored: int) -> Report:
    """A row for each pool, and what Redis holds."""
    made = Report("scale-out")
    first, last = pools[0], pools[-1]
    made.figures = {
        "four_to_one": last.host_ms / first.host_ms,
        "resident_kb": max(pool.resident_kb for pool in pools),
        "redis_kb_a_user": stored / users / 1000,
    }
    rows = [
        [
            str(pool.hosts), pool.host_ms, pool.redis_ms, pool.recall.p50, pool.recall.p99, pool.write.p50,
            pool.write.p99, pool.per_s, pool.resident_kb, pool.cold_few.p50, pool.cold_full.p50, pool.asleep_ms,
        ]
        for pool in pools
    ]  # fmt: skip
    columns = (
        "hosts", "host ms/op", "redis ms/op", "recall p50", "p99", "write p50", "p99", "ops/s", "kB/user",
        f"wake {FEW}", f"wake {FULL:,}", "sleep ms",
    )  # fmt: skip
    made.tables = [table(f"{users:,} users, {CALLERS} callers; milliseconds", columns, rows)]
    made.data = {"users": users, "redis_bytes": stored, "pools": [asdict(pool) for pool in pools]}
    return made
