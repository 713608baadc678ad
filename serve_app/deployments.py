"""The Serve application: an ingress that answers HTTP, and a distiller that extracts and embeds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from actors.distiller import DEPLOYMENT
from actors.placement import build_seating
from actors.users import RayUsers
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.config import Settings, document_of, load_settings, settings_of
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from hermes_memory.wiring import build_distiller, build_embedder, build_ledger, build_policy, let_go
from serve_app.api import create_app
from serve_app.options import of_distiller, of_ingress
from serve_app.services import Services

WAKE_PAGE = 500


class Distiller:
    """Extracts and embeds for the hosts. ``document`` is the configuration as plain data."""

    def __init__(self, document: dict[str, Any]) -> None:
        settings = settings_of(document)
        self._embedder = build_embedder(settings)
        self._distiller = build_distiller(settings, self._embedder)

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors."""
        return await self._distiller.distil(request)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        return await self._distiller.embed(texts)

    async def ready(self) -> dict[str, Any]:
        """What it works with."""
        return {"embedder": str(self._embedder.info)}

    async def check_health(self) -> None:
        """Alive if the model answers."""
        await self._embedder.queries(["ready"])


class Ingress:
    """Answers HTTP; embeds queries itself, on the CPU it runs on (ARCHITECTURE §5)."""

    def __init__(self, document: dict[str, Any], data: str, distiller: Any) -> None:
        self._document, self._data = document, data
        self._distiller = (
            distiller  # called by the hosts; an argument, so that Serve deploys the two together
        )
        self._settings = settings_of(document)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The app that Serve runs in this replica."""
        return create_app(self._services, self._settings.api)

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[Services]:
        settings = self._settings
        embedder = build_embedder(settings)
        ledger = build_ledger(settings, Path(self._data))
        await ledger.open(embedder.info)
        await embedder.queries(["ready"])
        users = _users(settings, self._document, self._data)
        waking = asyncio.create_task(_wake_pending(ledger, users))
        services = Services(
            users=users,
            ledger=ledger,
            embedder=embedder,
            policy=build_policy(settings),
            settings=settings,
            metrics=PrometheusMetrics(),
            probes={
                "ledger": _ledger_probe(ledger),
                "hosts": _hosts_probe(users),
                "distiller": self._distiller_probe,
            },
            scrape=users.metrics,
        )
        try:
            yield services
        finally:
            waking.cancel()
            await ledger.close()
            await let_go(embedder)

    async def _distiller_probe(self) -> dict[str, Any]:
        return dict(await self._distiller.ready.remote())


def _users(settings: Settings, document: dict[str, Any], data: str) -> RayUsers:
    actors = settings.actors
    return RayUsers(
        build_seating(actors.placement, actors.hosts),
        document,
        data,
        actors.call_timeout_s,
        actors.deadline_s,
    )


async def _wake_pending(ledger: Any, users: RayUsers) -> None:
    """Find unread turns of users whose actor does not stand by itself."""
    after = ""
    while page := await ledger.pending_users(after, WAKE_PAGE):
        for key in page:
            await users.wake(key)
        after = str(page[-1])


def _ledger_probe(ledger: Any) -> Any:
    async def probe() -> dict[str, Any]:
        await ledger.ping()
        return {}

    return probe


def _hosts_probe(users: RayUsers) -> Any:
    async def probe() -> dict[str, Any]:
        return {"hosts": await users.stats()}

    return probe


def build(args: dict[str, str] | None = None) -> Application:
    """The application for ``serve run``: ``{"config": path or shipped name, "data": path}``, both optional.

    Without them the variables HERMES_CONFIG and HERMES_DATA_DIR name the two.
    """
    given = args or {}
    config = given.get("config") or os.environ.get("HERMES_CONFIG")
    settings = load_settings(Path(config) if config else None)
    return bind(settings, given.get("data") or os.environ.get("HERMES_DATA_DIR", "./data"))


def bind(settings: Settings, data: str) -> Application:
    """The application with its settings."""
    document = document_of(settings)
    distiller = serve.deployment(
        name=DEPLOYMENT,
        num_replicas=settings.serve.distiller_replicas,
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(Distiller)
    ingress = serve.deployment(
        name="Ingress",
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress()(Ingress))
    behind = distiller.options(**of_distiller(settings.serve)).bind(document)
    return ingress.options(**of_ingress(settings.serve)).bind(document, str(Path(data).resolve()), behind)
