"""The embedder on GPU nodes: a Serve app of its own, so that the main one comes up, and goes on, without it.

Deployed where ``[embedder] num_gpus`` is above 0; then the ingress and the distillers ask it and load no model.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ray import serve
from ray.serve import Application

from actors.embedder import APP, DEPLOYMENT, ServedEmbedder
from hermes_memory.adapters.embedders.reading import WHAT
from hermes_memory.adapters.logs import configure
from hermes_memory.config import Settings, document_of, load_settings, settings_of
from hermes_memory.core.failures import told
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed, StartupFailed
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.wiring import build_embedder, build_shared_embedder, embedder_info
from serve_app.options import logging_config, of_embedder
from serve_app.services import Probe
from serve_app.telling import without_words

log = logging.getLogger(__name__)


@runtime_checkable
class Ending(Protocol):
    """An embedder that lets go of what it holds without an event loop."""

    def close(self) -> None:
        """May be called twice."""
        ...


class EmbedderReplica:
    """Embeds for everybody. ``document`` is the configuration as plain data."""

    def __init__(self, document: dict[str, Any]) -> None:
        settings = settings_of(document)
        configure(settings.logging.format, settings.logging.level, f"embedder-{_replica()}")
        self._embedder = build_shared_embedder(settings)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of search queries, shape (len(texts), dimension)."""
        with without_words(log, "embedding", _failed):
            return await self._embedder.queries(texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found, shape (len(texts), dimension)."""
        with without_words(log, "embedding", _failed):
            return await self._embedder.passages(texts)

    async def ready(self) -> dict[str, Any]:
        """What it works with."""
        return {"embedder": str(self._embedder.info)}

    async def check_health(self) -> None:
        """Alive if the model answers. Serve asks before anybody else, so that it is loaded then."""
        with without_words(log, "embedding", _failed):
            await self._embedder.passages(["ready"])  # a query's vector would be remembered

    def __del__(self) -> None:
        """Serve calls it when the replica has drained: an engine may have processes of its own."""
        embedder = getattr(self, "_embedder", None)  # none if it could not be built
        if isinstance(embedder, Ending):
            embedder.close()


def _replica() -> str:
    return str(serve.get_replica_context().replica_tag)


def _failed(kind: str) -> HermesError:
    return ModelFailed(WHAT, kind)


def embedder_of(settings: Settings) -> Embedder:
    """The embedder as the configuration wants it: in this process, not yet loaded, or served."""
    chosen = settings.embedder
    if not chosen.served:
        return build_embedder(settings)
    return ServedEmbedder(
        embedder_info(settings), timeout_s=chosen.timeout_s, attempts=chosen.attempts, batch=chosen.batch,
        max_chars=chosen.max_chars,
    )  # fmt: skip


async def warm(embedder: Embedder) -> None:
    """Have a model of this process loaded; one that is served is not waited for, for much goes on without it."""
    if not isinstance(embedder, ServedEmbedder):
        await embedder.queries(["ready"])


async def is_there(embedder: Embedder) -> None:
    """Raises ModelFailed if a served one is away: before anybody is paid to read what could not be embedded."""
    if isinstance(embedder, ServedEmbedder):
        await embedder.ready()


def probes_of(embedder: Embedder) -> dict[str, Probe]:
    """How to ask whether the served embedder is there; of one in this process nothing."""
    return {"embedder": embedder.ready} if isinstance(embedder, ServedEmbedder) else {}


def build(args: dict[str, str] | None = None) -> Application:
    """The application for ``serve run`` and Serve's file: ``{"config": path or shipped name}``, or HERMES_CONFIG."""
    config = (args or {}).get("config") or os.environ.get("HERMES_CONFIG")
    return bind(load_settings(Path(config) if config else None))


def bind(settings: Settings) -> Application:
    """The application with its settings.

    Raises:
        InvalidConfig: it is not configured to be served.
    """
    if not settings.embedder.served:
        raise InvalidConfig(
            "embedder.num_gpus", "is 0: each process embeds for itself, there is nothing to serve"
        )
    deployment = serve.deployment(name=DEPLOYMENT)(EmbedderReplica)
    return deployment.options(**of_embedder(settings)).bind(document_of(settings))


def deploy(settings: Settings, *, wait: bool) -> None:
    """Deploy it on the Serve that runs. ``wait``: until it answers; else it comes when there is a GPU for it.

    Raises:
        StartupFailed: its model cannot be loaded, or does not answer; the log says why.
    """
    target = serve.RunTarget(
        target=bind(settings), name=APP, route_prefix=None, logging_config=logging_config(settings)
    )
    try:
        serve.run_many(
            [target], wait_for_ingress_deployment_creation=wait, wait_for_applications_running=wait
        )
    except RuntimeError as error:  # as Serve tells that its replicas do not start, and why
        log.error("the embedder does not start: %s", _ours(str(error)) or told(error))
        raise StartupFailed("the embedder") from None


def _ours(trace: str) -> str:
    """The last of the domain's errors in a replica's trace, which say no content; empty if there is none."""
    found: list[str] = re.findall(r"^hermes_memory\.errors\.(\w+: .+)$", trace, re.MULTILINE)
    return found[-1] if found else ""


def missing_gpus(settings: Settings, nodes: Sequence[Mapping[str, Any]]) -> str:
    """What a replica lacks on a cluster of those nodes, as Ray lists them, in words; empty if nothing."""
    wanted = settings.embedder.num_gpus
    there = max((node["Resources"].get("GPU", 0.0) for node in nodes if node["Alive"]), default=0.0)
    if there >= wanted:
        return ""
    return (
        f"the embedder waits: embedder.num_gpus is {wanted:g}, and the node with most GPUs has {there:g}; recall "
        "answers 503 until there is one with more (GET /readyz says how it stands)"
    )
