"""The Ray actor that carries user actors: a thin shell around ``hermes_memory.runtime.host.UserHost``.

All methods are async and share the actor's one event loop. Ray would give each concurrency group a loop of its
own, and user actors are not made for two loops; instead the number of concurrent calls is high, each mailbox is
bounded, and reads and waits never hold a mailbox.
"""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from actors.distiller import ServeDistiller
from actors.edition import UNKNOWN, Edition
from actors.placement import Seat, build_seating, carried
from hermes_memory.adapters.logs import configure
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Ask, Command
from hermes_memory.config import settings_of
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.ledger import HostPool
from hermes_memory.wiring import build_host, distil_timeout_s, embedder_info

NAMESPACE = "hermes"  # of the names of hosts on Ray


class UserActorHost:
    """One process of user actors.

    Args:
        document: The configuration as plain data.
        distiller: Who extracts and embeds; the Serve deployment by default.
        edition: Of the deployment that makes this host.
    """

    def __init__(
        self,
        seat: Seat,
        document: dict[str, Any],
        data: str,
        distiller: Distiller | None = None,
        edition: Edition = UNKNOWN,
    ) -> None:
        settings = settings_of(document)
        configure(settings.logging.format, settings.logging.level, seat.name)
        self._edition = edition
        self._seat, self._seating = seat, build_seating(settings.actors.placement, HostPool())
        self._metrics = PrometheusMetrics(process=True)
        self._host = build_host(
            seat.name,
            settings,
            Path(data),
            distiller or ServeDistiller(distil_timeout_s(settings), settings.actors.deadline_s),
            embedder_info(settings),
            metrics=self._metrics,
            share=partial(carried, self._seating, seat.name),
        )
        self._born, self._may_wait_s = time.monotonic(), settings.actors.start_s
        self._was_needed = False
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._switching = asyncio.Lock()  # a start and a stop never overlap

    async def start(self) -> None:
        """Open the ledger and take up what was left; every call waits for it, a failed start is tried again."""
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        async with self._switching:
            await self._host.start()
            self._was_needed |= self._is_needed(self._host.pool)

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

    async def ping(self) -> Edition:
        """What this host was made with, from a loop that turns; the ledger may be away."""
        return self._edition

    async def stats(self) -> dict[str, Any]:
        """Counts for operators, with the process id."""
        await self.start()
        return {"pid": os.getpid(), **self._host.stats()}

    async def metrics(self) -> bytes:
        """What this host has counted, in Prometheus' text format. Answers also while the host cannot start."""
        self._host.measure()
        return await asyncio.to_thread(self._metrics.render)

    async def reseat(self) -> HostPool:
        """Look at the size of the pool, and let go of whom another host carries now."""
        await self.start()
        pool = await self._host.reseat()
        self._was_needed |= self._is_needed(pool)
        return pool

    async def retire(self) -> bool:
        """Stop, if the pool has no place for this host any more; whether it has none.

        One that is new may have been made for a larger pool that is about to be written down: it stays a while.
        """
        pool = await self.reseat()
        if self._is_needed(pool):
            return False
        if self._was_needed or time.monotonic() - self._born > self._may_wait_s:
            await self.stop()
            return True
        return False

    async def stop(self) -> None:
        """Put everyone to sleep before the actor ends; another call starts it again.

        It goes on to its end whoever stops waiting for it.
        """
        if self._stopping is None or self._stopping.done():
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        async with self._switching:
            self._starting = None
            await self._host.stop()

    def _is_needed(self, pool: HostPool) -> bool:
        return self._seat in self._seating.at(pool).standing()
