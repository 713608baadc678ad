"""The Serve application: an ingress that answers HTTP, and a distiller that extracts and embeds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from actors.distiller import DEPLOYMENT
from actors.placement import build_seating
from actors.users import RayUsers
from actors.watching import Watch
from hermes_memory.adapters.logs import configure
from hermes_memory.adapters.measured import measured_ledger
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.config import Settings, document_of, load_settings, settings_of
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.failures import told
from hermes_memory.errors import ExtractionFailed, HermesError
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from hermes_memory.wiring import build_distiller, build_embedder, build_ledger, build_policy, let_go
from serve_app.api import create_app
from serve_app.probes import SPARE, hosts_probe, store_probe
from serve_app.services import Services

WAKE_PAGE = 500
log = logging.getLogger(__name__)


class Distiller:
    """Extracts and embeds for the hosts. ``document`` is the configuration as plain data."""

    def __init__(self, document: dict[str, Any]) -> None:
        settings = settings_of(document)
        configure(settings.logging.format, settings.logging.level, _process("distiller"))
        self._embedder = build_embedder(settings)
        self._distiller = build_distiller(settings, self._embedder)

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors."""
        with _without_words():
            return await self._distiller.distil(request)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        with _without_words():
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
        settings, process = self._settings, _process("ingress")
        configure(settings.logging.format, settings.logging.level, process)
        embedder = build_embedder(settings)
        metrics = PrometheusMetrics(process=True)
        ledger = measured_ledger(build_ledger(settings, Path(self._data)), metrics)
        await ledger.open(embedder.info)
        await embedder.queries(["ready"])
        users = _users(settings, self._document, self._data)
        waking = asyncio.create_task(_wake_pending(ledger, users))
        watch = Watch(users)
        services = Services(
            users=users,
            ledger=ledger,
            embedder=embedder,
            policy=build_policy(settings),
            settings=settings,
            metrics=metrics,
            probes={
                "ledger": store_probe(ledger, settings.ledger.kind),
                "hosts": hosts_probe(watch.stats),
                "distiller": self._distiller_probe,
            },
            spare=SPARE,
            process=process,
            scrape=watch.metrics,
        )
        try:
            yield services
        finally:
            waking.cancel()
            await ledger.close()
            await let_go(embedder)

    async def _distiller_probe(self) -> dict[str, Any]:
        return dict(await self._distiller.ready.remote())


@contextmanager
def _without_words() -> Iterator[None]:
    """Serve logs what a replica raises, and what a stranger raises may quote a turn: here it is told our way."""
    try:
        yield
    except HermesError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it goes on as one of ours
        log.error("extraction or embedding failed: %s", told(error))
        raise ExtractionFailed(type(error).__name__) from None


def _process(what: str) -> str:
    return f"{what}-{serve.get_replica_context().replica_tag}"


def serve_logging(settings: Settings) -> dict[str, Any]:
    """What Serve itself logs: no access log, whose paths name users."""
    encoding = {"text": "TEXT", "json": "JSON"}[settings.logging.format]
    return {"encoding": encoding, "log_level": settings.logging.level, "enable_access_log": False}


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


def build(args: dict[str, str] | None = None) -> Application:
    """The application for ``serve run`` and for the launcher: ``{"config": path, "data": path}``, both optional."""
    given = args or {}
    settings = load_settings(Path(given["config"]) if given.get("config") else None)
    return bind(settings, given.get("data") or os.environ.get("HERMES_DATA_DIR", "./data"))


def bind(settings: Settings, data: str) -> Application:
    """The application with its settings."""
    document = document_of(settings)
    distiller = serve.deployment(
        name=DEPLOYMENT,
        logging_config=serve_logging(settings),
        num_replicas=settings.serve.distiller_replicas,
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(Distiller).bind(document)
    ingress = serve.deployment(
        name="Ingress",
        logging_config=serve_logging(settings),
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress()(Ingress))
    return ingress.bind(document, str(Path(data).resolve()), distiller)
