"""The Ray actor that carries user actors: a thin shell around ``hermes_memory.runtime.host.UserHost``.

All methods are async and share the actor's one event loop. Ray would give each concurrency group a loop of its
own, and user actors are not made for two loops; instead the number of concurrent calls is high, each mailbox is
bounded, and reads and waits never hold a mailbox.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.actor import ActorHandle

from actors.distiller import ServeDistiller
from actors.placement import Seat, build_seating, owns
from hermes_memory.adapters.logs import configure
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Ask, Command
from hermes_memory.config import settings_of
from hermes_memory.core.ids import UserKey
from hermes_memory.wiring import build_host, embedder_info

NAMESPACE = "hermes"
MAX_CONCURRENCY = 4096


class UserActorHost:
    """One process of user actors. ``document`` is the configuration as plain data."""

    def __init__(self, seat: Seat, document: dict[str, Any], data: str) -> None:
        settings = settings_of(document)
        configure(settings.logging.format, settings.logging.level, seat.name)
        seating = build_seating(settings.actors.placement, settings.actors.hosts)
        self._metrics = PrometheusMetrics(process=True)
        self._host = build_host(
            seat.name,
            settings,
            Path(data),
            ServeDistiller(settings.actors.deadline_s),
            embedder_info(settings),
            metrics=self._metrics,
            owns=partial(owns, seating, seat.name),
        )
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the ledger and take up what was left; every call waits for it, a failed start is tried again."""
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.create_task(self._host.start())
        await asyncio.shield(self._starting)

    async def execute(self, key: UserKey, command: Command, operation_id: str, again: bool) -> Any:
        """Run a command in the user's mailbox."""
        await self.start()
        return await self._host.execute(key, command, operation_id, again)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Answer from the user's last commit."""
        await self.start()
        return await self._host.ask(key, query)

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end."""
        await self.start()
        return await self._host.wait(key, job_id, timeout_s)

    async def wake(self, key: UserKey) -> None:
        """Wake a user who has unread turns."""
        await self.start()
        await self._host.wake(key)

    async def stats(self) -> dict[str, Any]:
        """Counts for operators, with the process id."""
        await self.start()
        return {"pid": os.getpid(), **self._host.stats()}

    async def metrics(self) -> bytes:
        """What this host has counted, in Prometheus' text format. Answers also while the host cannot start."""
        self._host.measure()
        return await asyncio.to_thread(self._metrics.render)

    async def stop(self) -> None:
        """Put everyone to sleep before the actor ends."""
        await self._host.stop()


def start_host(seat: Seat, document: dict[str, Any], data: str) -> ActorHandle[Any]:
    """The named, detached actor, made if it is not there; Ray restarts it for ever and never repeats a call."""
    remote: Any = ray.remote(UserActorHost)
    actor: ActorHandle[Any] = remote.options(
        name=seat.name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=0,
        max_concurrency=MAX_CONCURRENCY,
    ).remote(seat, document, data)
    return actor
