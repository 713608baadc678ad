"""The floor under a recall: the same proxy, ingress and named actor, with nothing to do in any of them.

The floor's ingress is the product's FastAPI app with an embedder that knows one vector and a segmenter that
finds no words; its actor answers every question with an answer recorded from the real one. A second floor embeds
for real and is the same otherwise: what a recall takes beyond it is neither stack nor embedding. Both run beside
the product's own app in one Serve, under prefixes of their own, so that all can be asked by turns.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray
from fastapi import FastAPI
from ray import serve

from actors.crew import MAX_CONCURRENCY, NAMESPACE, RayCrew
from actors.placement import Seat
from actors.users import CallRules, SeatedUsers
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Ask
from hermes_memory.config import Settings, document_of, settings_of
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.ports.ledger import HostPool
from hermes_memory.wiring import build_embedder, build_ledger, build_policy, build_profile
from serve_app.api import create_app
from serve_app.services import Services


class FloorHost:
    """An actor that answers everybody at once with what it has learnt."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}

    async def learn(self, answer: dict[str, Any]) -> None:
        """Remember what to answer."""
        self._answer = answer

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """The recorded answer; the query has travelled as it does to a real host."""
        del key, query
        return self._answer

    async def stop(self) -> None:
        """Nothing to put to sleep."""


class FloorSeats:
    """As many actors as the app has hosts, each asked as seldom: a busier one would answer from warmer caches."""

    def __init__(self, floor: str, hosts: int) -> None:
        self._floor, self._hosts, self.pool = floor, hosts, HostPool(hosts)

    def seat_of(self, key: UserKey) -> Seat:
        """The same one for the same user."""
        return self.standing()[int(key.hashed, 16) % self._hosts]

    def standing(self) -> list[Seat]:
        """All of this floor."""
        return [Seat(f"bench-{self._floor}-{number}") for number in range(self._hosts)]

    def at(self, pool: HostPool) -> FloorSeats:
        """As many as that."""
        return FloorSeats(self._floor, pool.hosts)


class OneVector:
    """An embedder that takes no time."""

    def __init__(self, info: EmbedderInfo) -> None:
        self.info = info
        self._row = np.zeros(info.dimension, np.float32)
        self._row[0] = 1

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """The vector, as often as there are texts."""
        return np.tile(self._row, (len(texts), 1))

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """The same."""
        return await self.queries(texts)


class FloorIngress:
    """The product's HTTP app over a floor's actors; ``embeds`` says whether queries are embedded for real."""

    def __init__(self, document: dict[str, Any], data: str, floor: str, embeds: bool) -> None:
        self._document, self._data, self._floor, self._embeds = document, data, floor, embeds
        self._settings = settings_of(document)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The app that Serve runs in this replica."""
        return create_app(self._services, self._settings.api)

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[Services]:
        settings, actors = self._settings, self._settings.actors
        profile = build_profile(settings)
        info = EmbedderInfo(profile.model, profile.dimension)
        embedder = build_embedder(settings) if self._embeds else OneVector(info)
        await embedder.queries(["ready"])
        yield Services(
            users=SeatedUsers(
                FloorSeats(self._floor, actors.hosts),
                RayCrew(self._document, self._data, "", actors.call_timeout_s).connect,
                CallRules(
                    call_timeout_s=actors.call_timeout_s,
                    deadline_s=actors.deadline_s,
                    probe_s=actors.ping_s,
                    max_in_flight=settings.serve.max_in_flight,
                ),
            ),
            ledger=build_ledger(settings, Path(self._data)),  # never opened: no recall asks it
            embedder=embedder,
            policy=dataclasses.replace(build_policy(settings), words=_no_words),
            settings=settings,
            metrics=PrometheusMetrics(),
            probes={},
        )


def start_floors(settings: Settings, data: Path, floors: Mapping[str, bool]) -> list[Any]:
    """Start an app with actors of its own for each floor (name → whether it embeds), under its name as prefix.

    Returns the actors.
    """
    remote: Any = ray.remote(FloorHost)
    ingress: Any = serve.deployment(
        name="FloorIngress",
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress()(FloorIngress))
    started = []
    for floor, embeds in floors.items():
        started += [
            remote.options(
                name=seat.name, namespace=NAMESPACE, lifetime="detached", num_cpus=0,
                max_concurrency=MAX_CONCURRENCY,
            ).remote()
            for seat in FloorSeats(floor, settings.actors.hosts).standing()
        ]  # fmt: skip
        bound = ingress.bind(document_of(settings), str(data.resolve()), floor, embeds)
        serve.run(bound, name=floor, route_prefix=f"/{floor}")
    return started


def teach(actors: list[Any], answer: dict[str, Any]) -> None:
    """Let the floors give a recorded answer, less what only the ingress adds to it."""
    recorded = copy.deepcopy(answer)
    recorded["timings_ms"] = {name: recorded["timings_ms"][name] for name in ("rank", "assemble")}
    ray.get([actor.learn.remote(recorded) for actor in actors], timeout=30)


def _no_words(text: str) -> tuple[str, ...]:
    del text
    return ()
