"""Starts a local Ray and the app on one data directory, and stops both without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import secrets
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hermes_memory.adapters.data_lock import DataLock
from hermes_memory.config import Placement, Settings, document_of
from hermes_memory.errors import InvalidConfig, StartupFailed
from hermes_memory.ports.ledger import HostPool
from hermes_memory.wiring import build_ledger, check_data, embedder_info
from serve_app import processes
from serve_app.options import (
    check_exposure,
    default_switches,
    forced_switches,
    http_options,
    logging_config,
)

log = logging.getLogger(__name__)

REAP_PATIENCE_S = 5.0
ORPHAN_PATIENCE_S = 0.5  # what it had acknowledged is in the ledger: there is nothing to wait for
OBJECT_STORE_BYTES = 128 * 1024 * 1024  # answers are small: the least that Ray works well with
PRESTARTED = 6  # workers that Ray starts at once: controller, proxy, ingress, distiller, two hosts

Say = Callable[[str], None]


@dataclass(slots=True)
class Server:
    """One running server. ``say`` is told what happens, a line for each step.

    Args:
        settings: The configuration; its ``serve.port`` may be 0 for a free one.
        data: The data directory, locked while the server runs.
    """

    settings: Settings
    data: Path
    say: Say = lambda _: None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _lock: DataLock | None = None
    _started: bool = False

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.settings.serve.host}:{self.settings.serve.port}"

    def start(self) -> None:
        """Lock the data, reap what a killed run left, start Ray, the hosts and the app; returns when it answers.

        Raises:
            DataInUse: another server holds the data.
            InvalidConfig: the port is taken, the directory unusable, or more would be opened than is allowed.
            EmbedderMismatch: the data was embedded with another model.
        """
        check_exposure(self.settings.serve)
        data = self.data.resolve()
        self._lock = DataLock(data)
        self._lock.acquire({"what": "hermes serve", "run": self.run_id})
        try:
            self._reap_leftovers(data)  # first: an orphaned proxy may still hold the port
            check_data(self.settings, data)
            asyncio.run(_set_pool(self.settings, data))
            self._take_port()
            self._start_ray(data)
            self._start_app(data)
        except BaseException:
            self.stop()
            raise

    def _take_port(self) -> None:
        serve = self.settings.serve
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((serve.host, serve.port))
            except OSError as error:
                raise InvalidConfig(
                    "serve.port", f"{serve.host}:{serve.port} is not free: {error.strerror}"
                ) from None
            port = probe.getsockname()[1]
        self.settings = replace(self.settings, serve=replace(serve, port=port))

    def _reap_leftovers(self, data: Path) -> None:
        left = processes.of_data(data, besides=self.run_id)
        if left:
            self.say(f"ending {len(left)} processes that a killed server left behind")
            processes.reap(left, ORPHAN_PATIENCE_S)

    def _start_ray(self, data: Path) -> None:
        self.say("starting Ray")
        os.environ[processes.RUN_ID] = self.run_id
        os.environ[processes.DATA_DIR] = str(data)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves a server that shares its machine
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.update(forced_switches(self.settings.serve))
        for name, value in default_switches(self.settings.serve).items():
            os.environ.setdefault(name, value)
        if os.environ["RAY_AUTH_MODE"] == "token":
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # of this run, written nowhere

        self._started = True
        try:
            _init_ray()
        except Exception as first:  # noqa: BLE001  # Ray raises bare exceptions when its processes are late
            log.warning("Ray did not start (%s); once more", type(first).__name__)
            self.say("Ray did not start in time; once more")
            self._end_ray()
            try:
                _init_ray()
            except Exception:  # noqa: BLE001
                raise StartupFailed("Ray") from None

    def _start_app(self, data: Path) -> None:
        from ray import serve

        from actors.crew import start_host
        from actors.distiller import APP
        from actors.edition import edition_of
        from actors.placement import build_seating
        from serve_app.deployments import bind

        self.say("starting the user hosts and the app")
        actors, document = self.settings.actors, document_of(self.settings)
        edition = edition_of(document, str(data), time.time_ns())
        for seat in build_seating(actors.placement, HostPool(actors.hosts)).standing():
            start_host(seat, document, str(data), actors.node_resource, edition)
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        http, logs = http_options(self.settings.serve), logging_config(self.settings)
        serve.start(http_options=http, logging_config=logs)
        self._start_embedder()
        serve.run(bind(self.settings, str(data)), name=APP, route_prefix="/", logging_config=logs)
        self._start_model()

    def _start_model(self) -> None:
        """The language model is not waited for: it loads for minutes, and may have to wait for a node."""
        if self.settings.extractor.kind != "vllm":
            return
        from actors.model import standing
        from serve_app.model_deployment import deploy, told_of_model

        deploy(self.settings)
        self.say(told_of_model(self.settings, standing(self.settings.extractor.num_gpus)))

    def _start_embedder(self) -> None:
        if not self.settings.embedder.served:
            return
        import ray

        from serve_app.embedder_deployment import deploy, missing_gpus

        missing = missing_gpus(self.settings, ray.nodes())  # type: ignore[no-untyped-call]
        self.say(missing or "loading the embedder")
        deploy(self.settings, wait=not missing)

    def stop(self) -> None:
        """Put the users to sleep, stop Serve and Ray, and make sure that nothing is left. May be called twice."""
        if self._started:
            self._started = False
            self.say("stopping")
            self._end_ray()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _end_ray(self) -> None:
        # Ray prints what its own dying actors report; its listeners look for the way out in both.
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            self._stop_ray()
            left = processes.wait_until_gone(self.run_id, REAP_PATIENCE_S)
        processes.reap(left, REAP_PATIENCE_S)

    def _stop_ray(self) -> None:
        import ray
        from ray import serve
        from ray.exceptions import RayError

        from actors.crew import host_names
        from actors.host import NAMESPACE

        if not ray.is_initialized():
            return
        try:
            serve.shutdown()  # type: ignore[no-untyped-call]  # first: what it has begun needs the hosts
            stops: list[Any] = [ray.get_actor(name, NAMESPACE).stop.remote() for name in host_names()]
            if stops:
                ray.wait(stops, num_returns=len(stops), timeout=REAP_PATIENCE_S)
        except (RayError, ValueError, RuntimeError) as error:
            log.warning("an orderly stop was not possible: %s", type(error).__name__)
        finally:
            ray.shutdown()


def _init_ray() -> None:
    import ray

    ray.init(
        address="local",
        namespace="hermes",
        num_cpus=PRESTARTED,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )


async def _set_pool(settings: Settings, data: Path) -> None:
    """Write down how many hosts the server starts with: nobody carries a user yet."""
    if settings.actors.placement is not Placement.POOLED:
        return
    ledger = build_ledger(settings, data)
    try:
        await ledger.open(embedder_info(settings))
        await ledger.resize_host_pool(settings.actors.hosts)
    finally:
        await ledger.close()
