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
from hermes_memory.ports.ledger import HostPool, Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.active import ActiveUser, Surroundings
from hermes_memory.runtime.cohorts import Cohorts
from hermes_memory.runtime.counting import counted
from hermes_memory.runtime.extraction import BatchRules, Extraction
from hermes_memory.runtime.feeding import Feeder, FeedRules
from hermes_memory.runtime.in_flight import InFlight
from hermes_memory.runtime.lag import Lag
from hermes_memory.runtime.long_term import LongTerm
from hermes_memory.runtime.packs import Packs
from hermes_memory.runtime.seating import Moved, Share
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.runtime.zones import Zones

log = logging.getLogger(__name__)

PAGE = 500
RENEWALS = 3  # in the time of one lease
TOGETHER = 64  # users who are put to sleep at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """How a host lives. Times in seconds of the host's clock; ``max_in_flight`` bounds the calls under way."""

    idle_s: float
    memory_budget_bytes: int
    lease_s: float
    housekeeping_s: float
    max_waiting: int
    max_in_flight: int
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
        share: Which users this host carries, for each size of the pool in the ledger; the others are refused with
            Moved. None: all, and no pool is looked at.
        second_look: The reranker of recalls, if there is one; it ends with the host.
        long_term: The index that recalls ask for what is archived; without one it is kept in memory.
        feed: How that index is fed from the outbox; None: another process does it.
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
        share: Share | None = None,
        second_look: SecondLook | None = None,
        long_term: LongTerm | None = None,
        feed: FeedRules | None = None,
    ) -> None:
        self._second_look, self._long_term = second_look, long_term
        self.name, self._ledger, self._distiller, self._embedder = name, ledger, distiller, embedder
        self._policy, self._rules, self._clock, self._metrics = policy, rules, clock, metrics
        self._share, self.pool = share, HostPool()
        self._owns = _everybody if share is None else share(self.pool)
        self._moving: asyncio.Task[None] | None = None
        self._calls, self._waits = InFlight(rules.max_in_flight), InFlight(rules.max_in_flight)
        self._packs, self._zones = Packs(ledger, policy, embedder.dimension), Zones()
        self._cohorts = Cohorts(ledger, enabled=policy.rules.cohorts.enabled)
        self._awake: dict[UserKey, _Awake] = {}
        self._waking: dict[UserKey, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._renewing = asyncio.Lock()
        self._recovered = False
        self._search_until: datetime | None = None
        self._searched_at = clock.now()
        self._epoch = 0
        self._lease_until: datetime | None = None
        self._feeder: Feeder | None = None
        self._lag: Lag | None = None
        if long_term is not None and feed is not None:
            self._feeder = Feeder(
                ledger, long_term.index, policy.words, feed, clock, metrics,
                owns=self._is_owned, awake=self._awake.__contains__,
            )  # fmt: skip
            self._lag = Lag(ledger, metrics, self._is_owned)

    async def start(self) -> None:
        """Open the ledger, take an epoch, find the turns that a crash left unread. May be tried again."""
        try:
            await self._ledger.open(self._embedder)
            await self.reseat()
            await self._claim()
            self._loops = [
                asyncio.create_task(self._every(self._rules.lease_s / RENEWALS, self.renew)),
                asyncio.create_task(self._every(self._rules.housekeeping_s, self._keep_house)),
            ]
            if self._feeder is not None:
                self._loops.append(asyncio.create_task(self._feeder.run()))
            await self._recover()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Put everyone to sleep, give the lease back and let go of the ledger. May be started again."""
        leased, self._lease_until = self._lease_until is not None, None
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, *([self._moving] if self._moving else []), return_exceptions=True)
        try:
            await self._drop_all()
            if leased:
                await self._undisturbed(self._ledger.renew_lease(self._epoch, 0.0, self._clock.now()))
        finally:
            await self._ledger.close()
            if self._long_term is not None:
                await self._long_term.index.close()
            if self._second_look is not None:
                await self._second_look.reranker.aclose()

    # what callers ask for

    async def execute(self, key: UserKey, command: Command, operation_id: str, again: bool = False) -> Any:
        """Run a command in the user's mailbox; see ``ActiveUser.execute``.

        Raises Overloaded when too many calls are under way here, and Moved when the user is another host's.
        """
        with counted(self._metrics, command), self._calls.write():
            async with self._held(key) as user:
                return await user.execute(command, operation_id, again=again)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Answer a query from the user's last commit. Raises as ``execute``; reads are refused later."""
        with self._calls.read():
            async with self._held(key) as user:
                return await user.ask(query)

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """The record of a job once it has ended; None when the time is over first, or too many wait already."""
        if self._waits.full:  # what was said is safe: to refuse the call would have it said again
            return None
        until = self._clock.now() + timedelta(seconds=timeout_s)
        with self._waits.write():
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
                await self._look()
                await self._claim()

    def stats(self) -> dict[str, Any]:
        """Counts for operators."""
        return {
            "host": self.name, "epoch": self._epoch, "awake": len(self._awake), "cost_bytes": self._cost_bytes(),
            "in_flight": len(self._calls), "waits": len(self._waits), "pool": self.pool.hosts,
        }  # fmt: skip

    # the pool

    async def reseat(self) -> HostPool:
        """Look how large the pool is, and let go of those who are another host's now; the pool.

        Commands that run are finished, what waits is led on by Moved, unread turns of those who came are found.
        """
        await self._look()
        if self._moving is not None:
            await asyncio.shield(self._moving)
        return self.pool

    async def _look(self) -> None:
        """Take over a newer size of the pool at once; who has to move moves beside the caller."""
        if self._share is None:
            return
        found = await self._ledger.host_pool()
        if found.revision <= self.pool.revision:
            return
        self.pool, self._owns = found, self._share(found)
        before = self._moving
        self._moving = asyncio.create_task(self._undisturbed(self._move(before)))

    async def _move(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        # Until all hosts have seen the pool a turn can still reach the one that a user leaves.
        self._search_until = self._clock.now() + timedelta(seconds=self._rules.lease_s)
        self._recovered = False
        going = [key for key in {*self._awake, *self._waking} if not self._owns(key)]
        await asyncio.gather(*(w for key in going if (w := self._waking.get(key))), return_exceptions=True)
        await self._drop_those([awake for key in going if (awake := self._awake.get(key))])
        if self._lease_until is not None:
            await self._recover()

    async def _is_mine(self, key: UserKey) -> None:
        """Raises Moved for a user of another host, after a look whether that is still so."""
        if not self._owns(key):
            await self._look()
            if not self._owns(key):
                raise Moved(self.pool.hosts, self.pool.revision)

    def _is_owned(self, key: UserKey) -> bool:
        return self._owns(key)  # which is another one after the pool was resized

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
            await self._is_mine(key)
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
        await self._cohorts.fetch(key.namespace)
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
            cohorts=self._cohorts,
            zones=self._zones,
            dimension=self._embedder.dimension,
            epoch=self._epoch,
            max_waiting=self._rules.max_waiting,
            second_look=self._second_look,
            long_term=self._long_term,
            nudge=_nothing if self._feeder is None else self._feeder.nudge,
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
        await self._drop_those(list(self._awake.values()))

    async def _drop_those(self, going: list[_Awake]) -> None:
        """Put them to sleep, many at a time; one whose command hangs keeps nobody else awake."""
        room = asyncio.Semaphore(TOGETHER)

        async def drop(awake: _Awake) -> None:
            async with room:
                await self._drop(awake)

        await asyncio.gather(*(drop(awake) for awake in going))

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
        await self._undisturbed(self._look())
        if self._has_to_search:
            await self._recover()
        for awake in list(self._awake.values()):
            await self._undisturbed(awake.user.tidy())
        await self._passivate()
        await self._packs.refresh()
        await self._cohorts.refresh()
        if self._lag is not None:
            await self._undisturbed(self._lag.look(self._clock.now()))
        life = self._policy.rules.life
        await self._ledger.sweep(self._clock.now(), life.turns_hours, life.operations_hours)

    @property
    def _has_to_search(self) -> bool:
        """Whether somebody may sleep who has unread turns: after a change, and now and then for what was parked."""
        now, again_s = self._clock.now(), self._rules.batch.parked_retry_s
        if not self._recovered or (self._search_until and now < self._search_until):
            return True
        return now - self._searched_at >= timedelta(seconds=again_s)

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
                if self._feeder is not None:
                    self._feeder.rest(awake.user.key)

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
        parked = sum(awake.extraction.parked for awake in self._awake.values())
        self._metrics.gauge("hermes_extraction_parked_turns", parked)

    async def _recover(self) -> None:
        """Wake the users of this host who have unread turns (ARCHITECTURE §5)."""
        after = ""
        while page := await self._ledger.pending_users(after, PAGE):
            for key in page:
                if self._owns(key):
                    await self._rouse(key)
            after = str(page[-1])
        self._recovered, self._searched_at = True, self._clock.now()

    async def _rouse(self, key: UserKey) -> None:
        """Wake one of many; a user who cannot be read keeps nobody else asleep."""
        try:
            await self._get(key)
        except (LeaseLost, LedgerUnavailable):
            raise
        except Moved:
            log.info("a user with unread turns moved on meanwhile")
        except Exception as error:  # noqa: BLE001
            log.error(
                "a user with unread turns could not be woken: %s", told(error), extra={"user": key.hashed}
            )


def _everybody(_: UserKey) -> bool:
    return True


def _nothing(_: UserKey) -> None:
    """Nobody feeds an index."""
