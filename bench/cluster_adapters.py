"""What the cluster's adapters cost: Redis and Weaviate against SQLite and the actor's own search, on the same load.

Both worlds are hosts in this process over a store on the same disk, filled with the same users; one caller does the
same thing in both by turns, so that what else the machine does touches both alike. Both ledgers reach the disk before
they answer: SQLite with ``synchronous = FULL``, Redis with ``appendfsync always``.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import queries
from bench.traffic import Spread
from bench.users import Crowd, load
from hermes_memory.app.commands import Incoming, Ingest, Recall
from hermes_memory.app.recall import read
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.candidate import Extraction, ExtractionRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from hermes_memory.runtime.host import UserHost
from hermes_memory.wiring import build_embedder, build_host, build_policy, embedder_info
from serve_app.services import DEFAULT_NAMESPACE

LIMITS = (
    Limit(
        "recall_ratio", at_most=1.3, what="p50 of a recall on the cluster's adapters over the embedded ones"
    ),
    Limit("write_ratio", at_most=2.0, what="p50 of a durable write on Redis over SQLite, both on the disk"),
)
PROBES, FULL = 20, 1_250
ROUNDS, QUICK_ROUNDS = 1_000, 200
WARM_UP = 20
TOGETHER = 32  # writers at once, each for a user of its own
EMBEDDED, CLUSTER = "embedded", "cluster"
# Nobody falls asleep meanwhile.
LASTING = {"actors": {"memory_budget_mb": 4096, "idle_s": 3600.0}}


class _Silent:
    """Finds nothing to remember: what is measured is the way of a turn to the disk."""

    def __init__(self, dimension: int) -> None:
        self._nothing = np.zeros((0, dimension), np.float32)

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Nothing."""
        return Distilled(Extraction("bench/silent"), self._nothing)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Never asked for."""
        raise AssertionError("nothing was found that could be embedded")


@dataclass(slots=True)
class Seen:
    """Milliseconds of each kind of work, by world."""

    times: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {EMBEDDED: {}, CLUSTER: {}})
    writes_per_s: dict[str, float] = field(default_factory=dict)
    activation_ms: dict[str, float] = field(default_factory=dict)

    def spread(self, world: str, kind: str) -> Spread:
        """Of one kind of work."""
        return Spread.of(self.times[world][kind])

    def ratio(self, kind: str) -> float:
        """The p50 of the cluster over that of the embedded world."""
        return self.spread(CLUSTER, kind).p50 / self.spread(EMBEDDED, kind).p50


def run(*, quick: bool, say: Say) -> Report:
    """Start the servers, fill both stores, and go by turns."""
    from tests.servers import RedisServer, WeaviateServer

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker of the server
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as name:
        folder = Path(name)
        redis, weaviate = RedisServer(folder / "redis"), WeaviateServer(folder / "weaviate")
        say("starting Redis and Weaviate")
        redis.start()
        weaviate.start()
        try:
            settings = {
                EMBEDDED: load_settings(None, LASTING),
                CLUSTER: load_settings(
                    None,
                    {
                        **LASTING,
                        "ledger": {"kind": "redis", "url": redis.url},
                        "index": {
                            "kind": "weaviate", "url": weaviate.url, "grpc_port": weaviate.grpc_port,
                        },
                    },
                ),
            }  # fmt: skip
            for world, chosen in settings.items():
                say(f"filling the {world} store: {PROBES} users with {FULL:,} memories")
                load(chosen, folder / world, [Crowd(PROBES, FULL)])
            seen = asyncio.run(_measure(settings, folder, QUICK_ROUNDS if quick else ROUNDS, say))
        finally:
            weaviate.stop()
            redis.stop()
    return report(seen)


async def _measure(settings: Mapping[str, Settings], folder: Path, rounds: int, say: Say) -> Seen:
    asked = await _recalls(settings[EMBEDDED], rounds + WARM_UP, say)
    keys = [UserKey(DEFAULT_NAMESPACE, Crowd(PROBES, FULL).name(n)) for n in range(PROBES)]
    seen = Seen()
    async with AsyncExitStack() as stack:
        hosts = {}
        for world, chosen in settings.items():
            hosts[world] = await _host(chosen, folder / world)
            stack.push_async_callback(hosts[world].stop)
            woken = [await _timed(lambda key=key, world=world: hosts[world].wake(key)) for key in keys]
            seen.activation_ms[world] = Spread.of(woken).p50
        say("recalls and writes by turns")
        for number, query in enumerate(asked):
            order = (EMBEDDED, CLUSTER) if number % 2 else (CLUSTER, EMBEDDED)
            key = keys[number % len(keys)]
            for world in order:
                host = hosts[world]
                work: dict[str, Callable[[], Awaitable[object]]] = {
                    "recall": lambda host=host, key=key, query=query: host.ask(key, query),
                    "write": lambda host=host, key=key, number=number: _write(host, key, number),
                }
                for kind, once in work.items():
                    took = await _timed(once)
                    if number >= WARM_UP:
                        seen.times[world].setdefault(kind, []).append(took)
        say(f"{TOGETHER} writers at once")
        for world in (EMBEDDED, CLUSTER, EMBEDDED, CLUSTER):
            rate = await _together(hosts[world], rounds)
            seen.writes_per_s[world] = max(rate, seen.writes_per_s.get(world, 0.0))
    return seen


async def _recalls(settings: Settings, count: int, say: Say) -> list[Recall]:
    say(f"embedding {count:,} queries")
    texts = list(islice(queries(), count))
    embedder, policy = build_embedder(settings), build_policy(settings)
    vectors, now = await embedder.queries(texts), datetime.now(UTC)
    return [
        Recall(query=text, vector=vector, words=policy.words(text), asked=read(text, now, None, policy))
        for text, vector in zip(texts, vectors, strict=True)
    ]


async def _host(settings: Settings, data: Path) -> UserHost:
    info = embedder_info(settings)
    host = build_host("bench", settings, data, _Silent(info.dimension), info)
    await host.start()
    return host


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def _write(host: UserHost, key: UserKey, number: int) -> None:
    message = Incoming(
        role=Role.USER, content=f"Note {number}.", id=f"m-{number}", created_at=datetime.now(UTC)
    )
    command = Ingest(
        session_id=f"s-{key.user_id}-{number // 20}", messages=(message,), timezone="UTC", scene=None
    )
    await host.execute(key, command, f"write-{number}")


async def _together(host: UserHost, rounds: int) -> float:
    """Durable writes per second of many callers."""
    begun = time.perf_counter_ns()
    left = iter(range(rounds))

    async def writer(number: int) -> None:
        key = UserKey(DEFAULT_NAMESPACE, f"writer-{number}")
        for one in left:
            await _write(host, key, begun + one)

    started = time.perf_counter()
    await asyncio.gather(*(writer(number) for number in range(TOGETHER)))
    return rounds / (time.perf_counter() - started)


def report(seen: Seen) -> Report:
    """Ratios, and what they are made of."""
    made = Report("cluster-adapters")
    made.figures = {
        "recall_ratio": seen.ratio("recall"),
        "write_ratio": seen.ratio("write"),
        **{
            f"{kind}_{world}_p50_ms": seen.spread(world, kind).p50
            for world in seen.times
            for kind in seen.times[world]
        },
    }
    rows = [
        [f"{kind}, {world}", *(getattr(seen.spread(world, kind), name) for name in ("p50", "p95", "p99"))]
        for kind in ("recall", "write")
        for world in (EMBEDDED, CLUSTER)
    ]
    rest = [[world, seen.writes_per_s[world], seen.activation_ms[world]] for world in (EMBEDDED, CLUSTER)]
    made.tables = [
        table(f"One caller, {FULL:,} memories, milliseconds", ("", "p50", "p95", "p99"), rows),
        table("Beside it", ("", f"writes/s, {TOGETHER} callers", "activation p50 ms"), rest),
    ]
    made.data = {
        "spreads": {
            world: {kind: asdict(seen.spread(world, kind)) for kind in kinds} for world, kinds in seen.times.items()
        },
        "writes_per_s": seen.writes_per_s, "activation_ms": seen.activation_ms,
    }  # fmt: skip
    return made
