"""The language model on Serve: an application of its own, so that the main one comes up where there is no GPU yet."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.serve import Application

from actors.model import APP, DEPLOYMENT
from actors.standing import Standing
from hermes_memory.adapters.logs import configure
from hermes_memory.adapters.vllm_model import VllmModel
from hermes_memory.config import Settings, document_of, load_settings, settings_of
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Question
from hermes_memory.wiring import build_vllm_model, model_name, warm_up_questions
from serve_app.options import logging_config, of_model
from serve_app.telling import without_words

log = logging.getLogger(__name__)

# vLLM's own log is for who debugs an engine, and it reports its use to its makers unless it is told not to.
QUIET = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


class Model:
    """One engine. ``document`` is the configuration as plain data.

    A replica is ready when the engine is loaded and has read the static prompts; one whose engine has died is unhealthy,
    and Serve makes another.
    """

    _model: VllmModel | None = None

    async def __init__(self, document: dict[str, Any]) -> None:  # type: ignore[misc]  # Serve awaits it
        settings = await asyncio.to_thread(settings_of, document)
        replica, self._node = _place()
        configure(settings.logging.format, settings.logging.level, f"model-{replica}")
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        began = time.monotonic()
        model = build_vllm_model(settings, _stat_loggers())
        log.info("the engine of %s is being loaded", model.name)
        try:
            await model.start()
            loaded_s = time.monotonic() - began
            loaded = await model.warm_up(warm_up_questions(settings))
        except BaseException:
            model.close()  # it would keep its GPU, and the next replica find none free
            raise
        log.info(
            "%s is ready: loaded in %.0f s, warm after %.0f s; context %d, blocks of %d, static prompts of %s tokens",
            model.name, loaded_s, time.monotonic() - began, loaded.context, loaded.block, loaded.prefix,
        )  # fmt: skip
        self._model = model

    async def answer(self, question: Question) -> Completion:
        """One answer; what the engine raises says nothing of what it was asked."""
        with without_words(log, "the model", _failed):
            return await self._engine().answer(question)

    async def ready(self) -> dict[str, Any]:
        """What was loaded, and how much is asked of it now."""
        model = self._engine()
        loaded = model.loaded
        return {
            "model": model.name, "context": loaded.context, "block": loaded.block, "prefix": list(loaded.prefix),
            "running": model.batch.running, "waiting": model.batch.waiting, "widest": model.batch.widest,
            "pid": os.getpid(), "node": self._node,
        }  # fmt: skip

    async def check_health(self) -> None:
        """Serve asks this again and again."""
        await self._engine().check()

    def __del__(self) -> None:
        """Serve calls it when the replica has drained."""
        if self._model is not None:
            self._model.close()

    def _engine(self) -> VllmModel:
        if self._model is None:
            raise ModelFailed("the model", "the engine is not loaded")
        return self._model


def _place() -> tuple[str, str]:
    """The replica's name, and its node's."""
    return str(serve.get_replica_context().replica_tag), str(ray.get_runtime_context().get_node_id())


def _failed(kind: str) -> HermesError:
    return ModelFailed("the model", kind)


def _stat_loggers() -> Sequence[Any]:
    """The engine's figures (tokens, batches, cache, queue) go where Serve's own go: to Ray's metrics."""
    try:
        from vllm.v1.metrics.ray_wrappers import RayPrometheusStatLogger
    except ImportError:  # without vLLM the start says so
        return []
    return [RayPrometheusStatLogger]


def build(args: dict[str, str] | None = None) -> Application:
    """The application for Serve's file: ``{"config": path or shipped name}``, else HERMES_CONFIG names it.

    Raises:
        InvalidConfig: the configuration asks for no model on this cluster.
    """
    config = (args or {}).get("config") or os.environ.get("HERMES_CONFIG")
    settings = load_settings(Path(config) if config else None)
    if settings.extractor.kind != "vllm":
        raise InvalidConfig("extractor.kind", "must be vllm where the model is deployed")
    return bind(settings)


def bind(settings: Settings) -> Application:
    """The application with its settings."""
    options = of_model(settings.extractor, settings.serve.drain_s)
    return serve.deployment(name=DEPLOYMENT, **options)(Model).bind(document_of(settings))


def deploy(settings: Settings) -> None:
    """Deploy it on the Serve that runs, and do not wait: it comes when it is loaded, and there is a GPU for it."""
    target = serve.RunTarget(
        target=bind(settings), name=APP, route_prefix=None, logging_config=logging_config(settings)
    )
    serve.run_many([target], wait_for_ingress_deployment_creation=False, wait_for_applications_running=False)


def told_of_model(settings: Settings, standing: Standing) -> str:
    """What becomes of turns until the model is ready, in a line."""
    chosen = settings.extractor
    said = {
        Standing.READY: "is ready",
        Standing.WAITING: f"waits: no node of this cluster offers {_gpus(chosen.num_gpus)}",
    }.get(standing, "is being loaded, which takes minutes")
    line = f"the language model {model_name(settings)} {said}"
    if standing is Standing.READY:
        return line
    meanwhile = "are read by the rules" if chosen.fallback == "rules" else "wait"
    return f"{line}; turns {meanwhile} meanwhile (GET /readyz says how it stands)"


def _gpus(number: float) -> str:
    return "a GPU" if number <= 1 else f"{number:g} GPUs"
