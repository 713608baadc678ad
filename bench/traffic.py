"""Recalls over HTTP from many callers at once, each waiting for its answer; and what came back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

TIMEOUT_S = 60.0
STAGES = ("embed", "actor", "rank", "assemble", "all")


@dataclass(frozen=True, slots=True)
class Call:
    """One recall: at which address, and what is asked."""

    url: str
    query: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer: milliseconds the caller waited, and what the answer itself says of them."""

    ms: float
    timings_ms: dict[str, float]
    memories: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles in milliseconds, and answers per second over all callers."""

    p50: float
    p95: float
    p99: float
    per_s: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float], seconds: float = 0.0) -> Spread:
        """The spread of ``values``, which took ``seconds`` altogether."""
        p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
        return cls(p50, p95, p99, len(values) / seconds if seconds else 0.0)


def http(callers: int) -> httpx.AsyncClient:
    """A client that keeps one connection for each caller."""
    limits = httpx.Limits(max_connections=callers, max_keepalive_connections=callers)
    return httpx.AsyncClient(limits=limits, timeout=TIMEOUT_S, trust_env=False)


async def ask(client: httpx.AsyncClient, call: Call) -> Sample:
    """One recall, timed from the call to the whole body."""
    started = time.perf_counter()
    response = await client.post(call.url, json={"query": call.query})
    ms = (time.perf_counter() - started) * 1000
    if response.status_code != httpx.codes.OK:
        raise RuntimeError(f"{response.status_code} for a recall: {response.text[:300]}")
    answer: dict[str, Any] = response.json()
    return Sample(ms, answer["timings_ms"], len(answer["memories"]), len(response.content))


async def flood(calls: Iterator[Call], callers: int, count: int) -> tuple[list[Sample], float]:
    """``count`` recalls by ``callers`` who each ask again at once; all samples, and the seconds they took."""
    samples: list[Sample] = []
    left = iter(range(count))

    async def caller(client: httpx.AsyncClient) -> None:
        for _ in left:
            samples.append(await ask(client, next(calls)))  # noqa: PERF401  # the callers fill one list

    async with http(callers) as client:
        started = time.perf_counter()
        await asyncio.gather(*(caller(client) for _ in range(callers)))
        return samples, time.perf_counter() - started


async def in_turn(places: Mapping[str, Iterator[Call]], rounds: int) -> dict[str, list[Sample]]:
    """One caller who asks everywhere by turns, every other time backwards, so that all meet the same machine.

    Samples by place; those of one turn stand at the same position.
    """
    samples: dict[str, list[Sample]] = {place: [] for place in places}
    async with http(1) as client:
        for number in range(rounds):
            for place in list(places) if number % 2 else reversed(list(places)):
                samples[place].append(await ask(client, next(places[place])))
    return samples


async def wake(url_of: Callable[[int], str], users: int, callers: int) -> list[float]:
    """Read every user's profile once, which wakes them; the milliseconds each took."""
    waited: list[float] = []
    left = iter(range(users))

    async def caller(client: httpx.AsyncClient) -> None:
        for number in left:
            started = time.perf_counter()
            (await client.get(f"{url_of(number)}/profile")).raise_for_status()
            waited.append((time.perf_counter() - started) * 1000)

    async with http(callers) as client:
        await asyncio.gather(*(caller(client) for _ in range(callers)))
    return waited
