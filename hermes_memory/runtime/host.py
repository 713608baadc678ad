"""A host carries many user actors: wakes them on first use, puts them to sleep, keeps its lease (ARCHITECTURE §2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermes_memory.app.commands import Ask, Command
from hermes_memory.app.desk import Policy
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, HermesError, LeaseLost
from hermes_memory.ports.clock import Clock
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.active import ActiveUser, Surroundings
from hermes_memory.runtime.extraction import BatchRules, Extraction

log = logging.getLogger(__name__)

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """How a host lives. Times in seconds of the host's clock."""

    idle_s: float
    memory_budget_bytes: int
    lease_s: float
    housekeeping_s: float
    max_waiting: int
    batch: BatchRules


@dataclass(slots=True)
class _Awake:
    user: ActiveUser
    extraction: Extraction

    @property
    def quiet(self) -> bool:
        return self.user.quiet and self.extraction.idle


class UserHost:
    """Carries user actors.

    Args:
        name: Unique among the living; a new host of the same name takes over from the old one.
        owns: Which users this host finds again after a crash; others still come by being asked for.
    """

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        distiller: Distiller,
        embedder: EmbedderInfo,
        policy: Policy,
        rules: HostRules,
        clock: Clock,
        metrics: Metrics,
        owns: Callable[[UserKey], bool] = lambda _: True,
    ) -> None:
        self.name, self._ledger, self._distiller, self._embedder = name, ledger, distiller, embedder
        self._policy, self._rules, self._clock, self._metrics, self._owns = (
            policy,
            rules,
            clock,
            metrics,
            owns,
        )
        self._awake: dict[UserKey, _Awake] = {}
        self._waking: dict[UserKey, asyncio.Task[_Awake]] = {}
        self._loop_task: asyncio.Task[None] | None = None
        self._epoch = 0
        self._lease_until: datetime | None = None

    async def start(self) -> None:
        """Open the ledger, take an epoch, find the turns that a crash left unread."""
        await self._ledger.open(self._embedder)
        await self._claim()
        self._loop_task = asyncio.create_task(self._keep_house())
        await self._recover()

    async def stop(self) -> None:
        """Put everyone to sleep and let go of the ledger."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop_task
        await self._drop_all()
        await self._ledger.close()

    # what callers ask for

    async def execute(self, key: UserKey, command: Command, operation_id: str, again: bool = False) -> Any:
        """Run a command in the user's mailbox; see ``ActiveUser.execute``."""
        awake = await self._get(key)
        try:
            return await awake.user.execute(command, operation_id, again=again)
        except Fenced:
            await self._drop(key)
            raise

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Answer a query from the user's last commit."""
        return await (await self._get(key)).user.ask(query)

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """The record of a job once it has ended; None when the time is over first."""
        return await (await self._get(key)).user.wait(job_id, timeout_s)

    async def wake(self, key: UserKey) -> None:
        """Wake a user, who then goes on with what waits."""
        await self._get(key)

    def stats(self) -> dict[str, Any]:
        """Counts for operators."""
        cost = sum(awake.user.state.cost_bytes() for awake in self._awake.values())
        return {"host": self.name, "epoch": self._epoch, "awake": len(self._awake), "cost_bytes": cost}

    # waking and sleeping

    async def _get(self, key: UserKey) -> _Awake:
        if self._lease_until is None or self._clock.now() >= self._lease_until:
            raise LeaseLost
        awake = self._awake.get(key)
        if awake is not None:
            return awake
        task = self._waking.get(key)
        if task is None:
            task = self._waking[key] = asyncio.create_task(self._wake(key))
            task.add_done_callback(lambda _: self._waking.pop(key, None))
        return await asyncio.shield(task)

    async def _wake(self, key: UserKey) -> _Awake:
        user = await ActiveUser.wake(key, self._surroundings())
        awake = _Awake(user, Extraction(user, self._rules.batch))
        self._awake[key] = awake
        awake.extraction.start()
        self._metrics.count("hermes_activations_total")
        return awake

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            ledger=self._ledger,
            distiller=self._distiller,
            policy=self._policy,
            clock=self._clock,
            metrics=self._metrics,
            dimension=self._embedder.dimension,
            epoch=self._epoch,
            max_waiting=self._rules.max_waiting,
        )

    async def _drop(self, key: UserKey) -> None:
        awake = self._awake.pop(key, None)
        if awake is not None:
            await awake.extraction.stop()
            await awake.user.sleep()

    async def _drop_all(self) -> None:
        for key in list(self._awake):
            try:
                await self._drop(key)
            except HermesError as error:
                log.warning("a user could not be put to sleep in order: %s", error.code)

    # housekeeping

    async def _keep_house(self) -> None:
        while True:
            await self._clock.sleep(self._rules.housekeeping_s)
            try:
                await self._renew()
                await self._end_idle_sessions()
                await self._passivate()
                life = self._policy.rules.life
                await self._ledger.sweep(self._clock.now(), life.turns_hours, life.operations_hours)
            except HermesError as error:
                log.warning("housekeeping of %s failed: %s", self.name, error.code)

    async def _claim(self) -> None:
        now = self._clock.now()
        self._epoch = await self._ledger.claim_epoch(self.name, self._rules.lease_s, now)
        self._lease_until = now + timedelta(seconds=self._rules.lease_s)

    async def _renew(self) -> None:
        """Extend the lease; one that ran out is lost with every actor under it, and a new epoch is taken."""
        now = self._clock.now()
        try:
            await self._ledger.renew_lease(self._epoch, self._rules.lease_s, now)
            self._lease_until = now + timedelta(seconds=self._rules.lease_s)
        except LeaseLost:
            log.warning("host %s lost its lease; it starts over", self.name)
            self._lease_until = None
            await self._drop_all()
            await self._claim()
            await self._recover()

    async def _end_idle_sessions(self) -> None:
        for awake in list(self._awake.values()):
            await awake.user.end_idle_sessions()

    async def _passivate(self) -> None:
        """Put the long idle to sleep, and the longest idle of all while over the memory budget."""
        now, idle = self._clock.now(), timedelta(seconds=self._rules.idle_s)
        resting = sorted((a for a in self._awake.values() if a.quiet), key=lambda a: a.user.used_at)
        cost = sum(awake.user.state.cost_bytes() for awake in self._awake.values())
        for awake in resting:
            over = cost > self._rules.memory_budget_bytes
            if not over and now - awake.user.used_at < idle:
                break
            cost -= awake.user.state.cost_bytes()
            await self._drop(awake.user.key)
            self._metrics.count("hermes_passivations_total")

    async def _recover(self) -> None:
        """Wake the users of this host who have unread turns (ARCHITECTURE §5)."""
        after = ""
        while page := await self._ledger.pending_users(after, PAGE):
            for key in page:
                if self._owns(key):
                    await self._get(key)
            after = str(page[-1])
