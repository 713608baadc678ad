"""Keeps the hosts as many as the ledger says, and alive (ADR 5).

It runs in every ingress replica: Serve looks after those. All of them go by the ledger and none by the others, so
what one began and did not end another one ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from actors.crew import Crew
from actors.edition import UNKNOWN, Edition
from actors.links import Link, Unreachable
from actors.placement import Seat
from actors.users import SeatedUsers
from hermes_memory.core.failures import told
from hermes_memory.errors import HermesError, InvalidInput, StartupFailed
from hermes_memory.ports.ledger import HostPool, Ledger

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRules:
    """Times in seconds.

    Args:
        ping_s: The pause between two looks, and how long one may take.
        stuck_s: A host that has not answered for so long is ended; Ray starts it again.
        start_s: The same for one that has not answered since it was started.
        retire_s: How long a host that has to go may take to put its users to sleep.
        max_hosts: The largest pool.
    """

    ping_s: float
    stuck_s: float
    start_s: float
    retire_s: float
    max_hosts: int


@dataclass(slots=True)
class _Watch:
    """Since when a host has been silent: since it was made, or since it was first asked in vain."""

    since: float
    answered: bool = False  # since it was made
    silent: bool = False


class Supervisor:
    """Makes the hosts that should be there, ends those that should not, and those that do not answer.

    Args:
        seconds: A clock that never goes back.
        edition: What hosts are made with now; one of an earlier deployment is replaced.
    """

    def __init__(
        self,
        users: SeatedUsers,
        crew: Crew,
        ledger: Ledger,
        rules: WatchRules,
        seconds: Callable[[], float] = time.monotonic,
        edition: Edition = UNKNOWN,
    ) -> None:
        self._edition = edition
        self._users, self._crew, self._ledger = users, crew, ledger
        self._rules, self._seconds = rules, seconds
        self._watches: dict[str, _Watch] = {}
        self._scaling = asyncio.Lock()

    @property
    def pool(self) -> HostPool:
        """The pool as it is seen here."""
        return self._users.pool

    async def settle(self, hosts: int) -> HostPool:
        """The pool of the ledger; of ``hosts`` hosts where nobody has said yet how many there are."""
        pool = await self._ledger.host_pool()
        if not pool.hosts:
            pool = await self._ledger.resize_host_pool(hosts)
        self._users.reseat(pool)
        return pool

    async def run(self) -> None:
        """Look after the hosts for ever."""
        while True:
            try:
                await self.round()
            except HermesError as error:
                log.warning("looking after the hosts failed: %s", error.code)
            except Exception as error:  # noqa: BLE001
                log.error("looking after the hosts failed: %s", told(error))
            await asyncio.sleep(self._rules.ping_s)

    async def round(self) -> None:
        """One look at everybody. Without the ledger the hosts are still kept alive, but none is sent away."""
        try:
            self._users.reseat(await self._ledger.host_pool())
        finally:
            seats = self._users.seats()
            answers = await asyncio.gather(*(self._look_after(seat) for seat in seats))
        await self._retire()
        await self._renew(dict(zip(seats, answers, strict=True)))

    async def scale(self, hosts: int) -> HostPool:
        """Let so many hosts carry the users; who has to move has moved when it returns, or is about to.

        Raises:
            InvalidInput: too many, or none.
            StartupFailed: a new host did not start; nothing was changed.
        """
        if not 1 <= hosts <= self._rules.max_hosts:
            raise InvalidInput("hosts", f"must be from 1 to {self._rules.max_hosts}")
        async with self._scaling:
            before = self._users.seats()
            await self._start(hosts)
            pool = await self._ledger.resize_host_pool(hosts)
            self._users.reseat(pool)
            log.info("the pool has %d hosts now (revision %d)", pool.hosts, pool.revision)
            seats = {*before, *self._users.seats()}
            told = await asyncio.gather(*(self._tell(seat) for seat in seats), return_exceptions=True)
            for error in told:
                if isinstance(error, BaseException):  # it looks for itself, or when it is back
                    log.warning("a host could not be told of the new size: %s", type(error).__name__)
            await self._retire()
        return pool

    async def _start(self, hosts: int) -> None:
        """Have the hosts of the new size ready before anybody moves."""
        new = [seat for seat in self._users.at(HostPool(hosts)) if seat not in self._users.seats()]
        await asyncio.gather(*(self._start_one(seat) for seat in new))

    async def _start_one(self, seat: Seat) -> None:
        until = self._seconds() + self._rules.start_s
        while True:
            left_s = max(0.0, until - self._seconds())
            try:
                await self._users.call(seat, "start", timeout_s=left_s)
            except Unreachable as lost:  # gone: the way to it was that to an earlier host of the name
                if lost.silent or not left_s:
                    raise StartupFailed(f"the host {seat.name}") from None
                await asyncio.sleep(self._rules.ping_s)
            else:
                return

    async def _tell(self, seat: Seat) -> None:
        await self._users.call(seat, "reseat", timeout_s=self._rules.retire_s)

    # one host

    async def _look_after(self, seat: Seat) -> Edition | None:
        ping = self._users.call(seat, "ping", timeout_s=self._rules.ping_s)
        return await self._listen(seat, ping, for_good=False)

    async def _listen(self, seat: Seat, ping: Awaitable[Edition], *, for_good: bool) -> Edition | None:
        """Wait for a sign of life, and end a host that has given none for too long.

        Of a host that has answered before only what it was asked since counts: who asks may have been busy itself.
        """
        begun = self._seconds()
        watch = self._watches.setdefault(seat.name, _Watch(begun))
        try:
            edition = await ping
        except Unreachable as lost:
            if not lost.silent:  # it has ended, and Ray knows
                watch.since, watch.answered, watch.silent = self._seconds(), False, False
                return None
            if watch.answered and not watch.silent:
                watch.since, watch.silent = begun, True
        else:
            watch.since, watch.answered, watch.silent = self._seconds(), True, False
            return edition
        patience_s = self._rules.stuck_s if watch.answered else self._rules.start_s
        if (silent_s := self._seconds() - watch.since) >= patience_s:
            log.warning("host %s has not answered for %.0f s: it is ended", seat.name, silent_s)
            await self._crew.end(seat, for_good=for_good)
            self._watches[seat.name] = _Watch(self._seconds())
        return None

    async def _renew(self, answers: Mapping[Seat, Edition | None]) -> None:
        """Replace one host of an earlier deployment; the next one in a later round, when all answer again.

        Ray starts a host with what it was made with, so it is ended for good. It is made anew at once: a replica of the
        earlier deployment would make it as it was.
        """
        if None in answers.values():
            return
        old = (seat for seat, edition in answers.items() if edition and self._edition.replaces(edition))
        if (seat := next(old, None)) is None:
            return
        log.info("host %s is of an earlier deployment: it is replaced", seat.name)
        try:
            await self._users.call(seat, "stop", timeout_s=self._rules.retire_s)
        except Unreachable as lost:
            if not lost.silent:  # another replica was faster, and what is there now may be new
                return
            log.warning(
                "host %s did not say that its users sleep", seat.name
            )  # as in a crash, nothing is lost
        await self._crew.end(seat, for_good=True)
        await self._crew.connect(seat)

    async def _retire(self) -> None:
        """Send away the hosts that the pool has no place for."""
        there, standing = await self._crew.pooled(), self._users.at(self.pool)
        for name in self._watches.keys() - {seat.name for seat in (*there, *self._users.seats())}:
            del self._watches[name]
        gone = {seat: link for seat, link in there.items() if seat not in standing}
        await asyncio.gather(*(self._send_away(seat, link) for seat, link in gone.items()))

    async def _send_away(self, seat: Seat, link: Link) -> None:
        """It agrees and sleeps before it is ended: it looks at the ledger once more."""
        try:
            agreed = await link.call("retire", timeout_s=self._rules.retire_s)
        except Unreachable:
            await self._listen(seat, link.call("ping", timeout_s=self._rules.ping_s), for_good=True)
        except HermesError as error:
            log.warning("host %s could not be sent away yet: %s", seat.name, error.code)
        else:
            if agreed:
                await self._crew.end(seat, for_good=True)
