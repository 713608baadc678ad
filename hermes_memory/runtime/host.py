"""A host carries many user actors: wakes them on first use, puts them to sleep, keeps its lease (ARCHITECTURE §2)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermes_memory.app.commands import Ask, Command
from hermes_memory.app.desk import Policy
from hermes_memory.core.failures import told
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, HermesError, LeaseLost, LedgerUnavailable
from hermes_memory.ports.clock import Clock
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.active import ActiveUser, Surroundings
from hermes_memory.runtime.counting import counted
from hermes_memory.runtime.extraction import BatchRules, Extraction
from hermes_memory.runtime.packs import Packs
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.runtime.zones import Zones

log = logging.getLogger(__name__)

PAGE = 500
RENEWALS = 3  # in the time of one lease


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
    callers: int = 0

    @property
    def quiet(self) -> bool:
        return not self.callers and self.user.quiet and self.extraction.idle


class UserHost:
    """Carries user actors.

    Args:
        name: Unique among the living; a new host of the same name takes over from the old one.
        owns: Which users this host finds again after a crash; others still come by being asked for.
        second_look: The reranker of recalls, if there is one; it ends with the host.
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
        second_look: SecondLook | None = None,
    ) -> None:
        self._second_look = second_look
        self.name, self._ledger, self._distiller, self._embedder = name, ledger, distiller, embedder
        self._policy, self._rules, self._clock, self._metrics, self._owns = (
            policy,
            rules,
            clock,
            metrics,
            owns,
        )
        self._packs, self._zones = Packs(ledger, policy, embedder.dimension), Zones()
        self._awake: dict[UserKey, _Awake] = {}
        self._waking: dict[UserKey, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._renewing = asyncio.Lock()
        self._recovered = False
        self._epoch = 0
        self._lease_until: datetime | None = None

    async def start(self) -> None:
        """Open the ledger, take an epoch, find the turns that a crash left unread. May be tried again."""
        try:
            await self._ledger.open(self._embedder)
            await self._claim()
            self._loops = [
                asyncio.create_task(self._every(self._rules.lease_s / RENEWALS, self.renew)),
                asyncio.create_task(self._every(self._rules.housekeeping_s, self._keep_house)),
            ]
            await self._recover()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Put everyone to sleep and let go of the ledger."""
        self._lease_until = None
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        try:
            await self._drop_all()
        finally:
            await self._ledger.close()
            if self._second_look is not None:
                await self._second_look.reranker.aclose()

    # what callers ask for

    async def execute(self, key: UserKey, command: Command, operation_id: str, again: bool = False) -> Any:
        """Run a command in the user's mailbox; see ``ActiveUser.execute``."""
        with counted(self._metrics, command):
            async with self._held(key) as user:
                return await user.execute(command, operation_id, again=again)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Answer a query from the user's last commit."""
        async with self._held(key) as user:
            return await user.ask(query)

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """The record of a job once it has ended; None when the time is over first."""
        until = self._clock.now() + timedelta(seconds=timeout_s)
        while True:
            async with self._held(key) as user:
                record = await user.wait(job_id, (until - self._clock.now()).total_seconds())
            if record is not None or self._clock.now() >= until:
                return record

    async def wake(self, key: UserKey) -> None:
        """Wake a user, who then goes on with what waits."""
        await self._get(key)

    async def renew(self) -> None:
        """Extend the lease; one that ran out is lost with every actor under it, and a new epoch is taken."""
        async with self._renewing:
            now = self._clock.now()
            try:
                await self._ledger.renew_lease(self._epoch, self._rules.lease_s, now)
                self._lease_until = now + timedelta(seconds=self._rules.lease_s)
            except LeaseLost:
                log.warning("host %s lost its lease; it starts over", self.name)
                self._lease_until = None
                self._recovered = False
                await self._drop_all()
                await self._claim()

    def stats(self) -> dict[str, Any]:
        """Counts for operators."""
        awake = len(self._awake)
        return {"host": self.name, "epoch": self._epoch, "awake": awake, "cost_bytes": self._cost_bytes()}

    # waking and sleeping

    @asynccontextmanager
    async def _held(self, key: UserKey) -> AsyncIterator[ActiveUser]:
        """The user, awake and kept awake; one that turns out to be another host's is let go."""
        awake = await self._get(key)
        awake.callers += 1
        try:
            yield awake.user
        except Fenced:
            await self._drop(awake)
            raise
        finally:
            awake.callers -= 1

    async def _get(self, key: UserKey) -> _Awake:
        while True:
            if self._lease_until is None or self._clock.now() >= self._lease_until:
                raise LeaseLost
            awake = self._awake.get(key)
            if awake is not None and not awake.user.closed:
                return awake
            if awake is not None:
                await self._drop(awake)
            task = self._waking.get(key)
            if task is None:
                task = self._waking[key] = asyncio.create_task(self._wake(key))
                task.add_done_callback(lambda _: self._waking.pop(key, None))
            await asyncio.shield(task)

    async def _wake(self, key: UserKey) -> None:
        started = time.perf_counter()
        await self._packs.fetch(key.namespace)
        user = await ActiveUser.wake(key, self._surroundings())
        await self._undisturbed(user.tidy())  # the sessions that went silent while the user was asleep
        awake = self._awake[key] = _Awake(user, Extraction(user, self._rules.batch))
        awake.extraction.start()
        self._metrics.count("hermes_activations_total")
        self._metrics.observe("hermes_activation_seconds", time.perf_counter() - started)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            ledger=self._ledger,
            distiller=self._distiller,
            policy=self._policy,
            clock=self._clock,
            metrics=self._metrics,
            packs=self._packs,
            zones=self._zones,
            dimension=self._embedder.dimension,
            epoch=self._epoch,
            max_waiting=self._rules.max_waiting,
            second_look=self._second_look,
        )

    async def _drop(self, awake: _Awake) -> None:
        key = awake.user.key
        if self._awake.get(key) is awake:
            del self._awake[key]
            await awake.extraction.stop()
            await self._undisturbed(awake.user.sleep())

    async def _drop_all(self) -> None:
        """Put everyone to sleep, also who is just waking."""
        await asyncio.gather(*self._waking.values(), return_exceptions=True)
        for awake in list(self._awake.values()):
            await self._drop(awake)

    async def _undisturbed(self, work: Awaitable[None]) -> None:
        """One user's trouble is logged and keeps nobody else waiting."""
        try:
            await work
        except HermesError as error:
            log.warning("a user of %s is in trouble: %s", self.name, error.code)
        except Exception as error:  # noqa: BLE001
            log.error("a user of %s is in trouble: %s", self.name, told(error))

    # housekeeping

    async def _every(self, pause_s: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(pause_s)
            try:
                await work()
            except HermesError as error:
                log.warning("housekeeping of %s failed: %s", self.name, error.code)
            except Exception as error:  # noqa: BLE001
                log.error("housekeeping of %s failed: %s", self.name, told(error))

    async def _keep_house(self) -> None:
        if not self._recovered:
            await self._recover()
        for awake in list(self._awake.values()):
            await self._undisturbed(awake.user.tidy())
        await self._passivate()
        await self._packs.refresh()
        life = self._policy.rules.life
        await self._ledger.sweep(self._clock.now(), life.turns_hours, life.operations_hours)

    async def _claim(self) -> None:
        now = self._clock.now()
        self._epoch = await self._ledger.claim_epoch(self.name, self._rules.lease_s, now)
        self._lease_until = now + timedelta(seconds=self._rules.lease_s)

    async def _passivate(self) -> None:
        """Put the long idle to sleep, and the longest idle of all while over the memory budget."""
        now, idle = self._clock.now(), timedelta(seconds=self._rules.idle_s)
        cost = self._cost_bytes()
        for awake in sorted(self._awake.values(), key=lambda a: a.user.used_at):
            over = cost > self._rules.memory_budget_bytes
            if awake.user.closed or (awake.quiet and (over or now - awake.user.used_at >= idle)):
                cost -= awake.user.state.cost_bytes()
                await self._drop(awake)
                self._metrics.count("hermes_passivations_total")

    def _cost_bytes(self) -> int:
        return sum(awake.user.state.cost_bytes() for awake in self._awake.values())

    def measure(self) -> None:
        """Set the levels of now, before somebody reads the metrics."""
        users = [awake.user for awake in self._awake.values()]
        self._metrics.gauge("hermes_host_epoch", self._epoch)
        self._metrics.gauge("hermes_users_awake", len(users))
        self._metrics.gauge("hermes_users_waking", len(self._waking))
        self._metrics.gauge("hermes_users_bytes", self._cost_bytes())
        self._metrics.gauge("hermes_commands_waiting", sum(user.waiting for user in users))
        self._metrics.gauge("hermes_commands_in_flight", sum(user.busy for user in users))

    async def _recover(self) -> None:
        """Wake the users of this host who have unread turns (ARCHITECTURE §5)."""
        after = ""
        while page := await self._ledger.pending_users(after, PAGE):
            for key in page:
                if self._owns(key):
                    await self._rouse(key)
            after = str(page[-1])
        self._recovered = True

    async def _rouse(self, key: UserKey) -> None:
        """Wake one of many; a user who cannot be read keeps nobody else asleep."""
        try:
            await self._get(key)
        except (LeaseLost, LedgerUnavailable):
            raise
        except Exception as error:  # noqa: BLE001
            log.error(
                "a user with unread turns could not be woken: %s", told(error), extra={"user": key.hashed}
            )
