"""The Serve application: an ingress that answers HTTP, and a distiller that extracts and embeds."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from actors.crew import RayCrew
from actors.distiller import DEPLOYMENT
from actors.edition import UNKNOWN, Edition, edition_of
from actors.model import ServedModel
from actors.placement import build_seating
from actors.supervisor import Supervisor, WatchRules
from actors.users import CallRules, Look, SeatedUsers
from actors.watching import Watch
from hermes_memory.adapters.logs import configure
from hermes_memory.adapters.measured import measured_ledger
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.config import Placement, Settings, document_of, load_settings, settings_of
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.errors import ExtractionFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from hermes_memory.ports.ledger import HostPool, Ledger
from hermes_memory.wiring import (
    build_distiller,
    build_index,
    build_ledger,
    build_policy,
    let_go,
    model_name,
)
from serve_app.api import create_app
from serve_app.embedder_deployment import embedder_of, is_there, probes_of, warm
from serve_app.options import DRAIN_LOOK_S, of_distiller, of_ingress
from serve_app.probes import SPARE, extractor_probe, hosts_probe, index_probe, store_probe
from serve_app.services import Probe, Services
from serve_app.telling import without_words

log = logging.getLogger(__name__)

WAKE_PAGE = 500
MODEL_GRACE_S = 5.0


class Distiller:
    """Extracts and embeds, or has it done, for the hosts. ``document`` is the configuration as plain data."""

    def __init__(self, document: dict[str, Any]) -> None:
        settings = settings_of(document)
        configure(settings.logging.format, settings.logging.level, _process("distiller"))
        self._embedder = embedder_of(settings)
        self._distiller = build_distiller(settings, self._embedder, served_model(settings))

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors."""
        with without_words(log, "extraction or embedding", ExtractionFailed):
            await is_there(self._embedder)
            return await self._distiller.distil(request)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        with without_words(log, "extraction or embedding", ExtractionFailed):
            return await self._distiller.embed(texts)

    async def ready(self) -> dict[str, Any]:
        """What it works with."""
        return {"embedder": str(self._embedder.info)}

    async def check_health(self) -> None:
        """Alive if the model in this process answers; one that is served is looked after where it is."""
        await warm(self._embedder)


class Ingress:
    """Answers HTTP; embeds queries itself, on the CPU it runs on, or has it done on a GPU node (ARCHITECTURE §5)."""

    def __init__(
        self, document: dict[str, Any], data: str, distiller: Any, edition: Edition = UNKNOWN
    ) -> None:
        self._document, self._data, self._edition = document, data, edition
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
        embedder = embedder_of(settings)
        metrics = PrometheusMetrics(process=True)
        ledger = measured_ledger(build_ledger(settings, Path(self._data)), metrics)
        await ledger.open(embedder.info)
        await warm(embedder)
        crew = RayCrew(
            self._document,
            self._data,
            settings.actors.node_resource,
            settings.actors.call_timeout_s,
            self._edition,
        )
        users, pooled = reach(settings, crew, ledger.host_pool), settings.actors.placement is Placement.POOLED
        supervisor = Supervisor(users, crew, ledger, _watch_rules(settings), edition=self._edition)
        if settings.ledger.kind == "sqlite" and await crew.nodes() > 1:
            log.warning(
                "the ledger is a file, and the cluster has several nodes: all of them must see that file"
            )
        if pooled:
            await supervisor.settle(settings.actors.hosts)
        beside = [asyncio.create_task(supervisor.run())]
        if not pooled:
            beside.append(asyncio.create_task(_wake_pending(ledger, users)))
        watch = Watch(users)
        probes: dict[str, Probe] = {
            "ledger": store_probe(ledger, settings.ledger.kind),
            "hosts": hosts_probe(watch.stats),
            "distiller": self._distiller_probe,
            **probes_of(embedder),
        }
        if (model := served_model(settings)) is not None:
            probes["extractor"] = extractor_probe(model.name, model.standing)
        index = build_index(settings, ledger) if settings.index.kind == "weaviate" else None
        if index is not None:
            probes["index"] = index_probe(index, settings.index.kind)
        services = Services(
            users=users,
            ledger=ledger,
            embedder=embedder,
            policy=build_policy(settings),
            settings=settings,
            metrics=metrics,
            probes=probes,
            spare=SPARE,
            process=process,
            scrape=watch.metrics,
            hosts=supervisor if pooled else None,
        )
        try:
            yield services
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            if index is not None:
                await index.close()
            await ledger.close()
            await let_go(embedder)

    async def _distiller_probe(self) -> dict[str, Any]:
        return dict(await self._distiller.ready.remote())


def served_model(settings: Settings) -> ServedModel | None:
    """The way to the cluster's own language model; None where the configuration has another extractor."""
    chosen = settings.extractor
    if chosen.kind != "vllm":
        return None
    # The replica's own limit ends first: it says more, and takes the question back from the engine.
    limit_s = chosen.timeout_s + MODEL_GRACE_S
    return ServedModel(model_name(settings), num_gpus=chosen.num_gpus, timeout_s=limit_s)


def _process(what: str) -> str:
    return f"{what}-{serve.get_replica_context().replica_tag}"


def reach(settings: Settings, crew: RayCrew, look: Look | None = None) -> SeatedUsers:
    """The way to the users; how large the pool is the first host that is asked tells, and then ``look``."""
    actors = settings.actors
    rules = CallRules(
        call_timeout_s=actors.call_timeout_s, deadline_s=actors.deadline_s,
        max_in_flight=settings.serve.max_in_flight,
    )  # fmt: skip
    return SeatedUsers(build_seating(actors.placement, HostPool()), crew.connect, rules, look)


def _watch_rules(settings: Settings) -> WatchRules:
    actors = settings.actors
    return WatchRules(
        ping_s=actors.ping_s, stuck_s=actors.stuck_s, start_s=actors.start_s,
        retire_s=actors.call_timeout_s, max_hosts=actors.max_hosts,
    )  # fmt: skip


async def _wake_pending(ledger: Ledger, users: SeatedUsers) -> None:
    """Find unread turns of users who have an actor of their own, which does not stand by itself."""
    after = ""
    while page := await ledger.pending_users(after, WAKE_PAGE):
        for key in page:
            await users.wake(key)
        after = str(page[-1])


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
    document, data = document_of(settings), str(Path(data).resolve())
    edition = edition_of(document, data, time.time_ns())
    distiller = serve.deployment(
        name=DEPLOYMENT,
        num_replicas=settings.serve.distiller_replicas,
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        graceful_shutdown_wait_loop_s=DRAIN_LOOK_S,
        graceful_shutdown_timeout_s=settings.serve.drain_s,
        ray_actor_options={"num_cpus": 0},
    )(Distiller)
    ingress = serve.deployment(
        name="Ingress",
        num_replicas=settings.serve.ingress_replicas,
        max_queued_requests=settings.serve.max_ongoing_requests,  # one more is 503: what waits is bounded too
        graceful_shutdown_wait_loop_s=DRAIN_LOOK_S,
        graceful_shutdown_timeout_s=settings.serve.drain_s,
        max_ongoing_requests=settings.serve.max_ongoing_requests,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress()(Ingress))
    behind = distiller.options(**of_distiller(settings.serve)).bind(document)
    return ingress.options(**of_ingress(settings.serve)).bind(document, data, behind, edition)
