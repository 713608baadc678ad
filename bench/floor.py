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

from actors.host import MAX_CONCURRENCY, NAMESPACE
from actors.placement import Seat
from actors.users import RayUsers
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Ask
from hermes_memory.config import Settings, document_of, settings_of
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.wiring import build_embedder, build_ledger, build_policy, build_profile
from serve_app.api import create_app
from serve_app.services import Services

HOST = "bench-floor"


class FloorHost:
    """An actor that answers at once. ``answers`` by user id."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Any]] = {}

    async def learn(self, user_id: str, answer: dict[str, Any]) -> None:
        """Remember what to answer for a user."""
        self._answers[user_id] = answer

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """The recorded answer; the query has travelled as it does to a real host."""
        del query
        return self._answers[key.user_id]

    async def stop(self) -> None:
        """Nothing to put to sleep."""


class OneSeat:
    """Places every user on the floor's actor."""

    def seat_of(self, key: UserKey) -> Seat:
        """Always the same."""
        del key
        return Seat(HOST)

    def standing(self) -> list[Seat]:
        """The one."""
        return [Seat(HOST)]


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
    """The product's HTTP app over the floor's actor; ``embeds`` says whether queries are embedded for real."""

    def __init__(self, document: dict[str, Any], data: str, embeds: bool) -> None:
        self._document, self._data, self._embeds = document, data, embeds
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
            users=RayUsers(OneSeat(), self._document, self._data, actors.call_timeout_s, actors.deadline_s),
            ledger=build_ledger(settings, Path(self._data)),  # never opened: no recall asks it
            embedder=embedder,
            policy=dataclasses.replace(build_policy(settings), words=_no_words),
            settings=settings,
            metrics=PrometheusMetrics(),
            probes={},
        )


def start_floor(settings: Settings, data: Path, prefixes: Mapping[str, bool]) -> Any:
    """Start the floor's actor, and an app for each prefix (→ whether it embeds), beside a running server.

    Returns the actor.
    """
    remote: Any = ray.remote(FloorHost)
    host = remote.options(
        name=HOST, namespace=NAMESPACE, lifetime="detached", num_cpus=0, max_concurrency=MAX_CONCURRENCY
    ).remote()
    ingress: Any = serve.deployment(
        name="FloorIngress",
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress()(FloorIngress))
    for prefix, embeds in prefixes.items():
        bound = ingress.bind(document_of(settings), str(data.resolve()), embeds)
        serve.run(bound, name=prefix.strip("/"), route_prefix=prefix)
    return host


def teach(host: Any, user_id: str, answer: dict[str, Any]) -> None:
    """Let the floor answer a user with a recorded answer, less what only the ingress adds to it."""
    recorded = copy.deepcopy(answer)
    recorded["timings_ms"] = {name: recorded["timings_ms"][name] for name in ("rank", "assemble")}
    ray.get(host.learn.remote(user_id, recorded), timeout=30)


def _no_words(text: str) -> tuple[str, ...]:
    del text
    return ()
