"""The Users port over hosts that come, go and crash: finds a user's host, tries again by operation id (ADR 5)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from actors.links import Link, Unreachable
from actors.placement import Seat, Seating
from hermes_memory.app.commands import Ask, Command
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, HermesError, LeaseLost, OutcomeUnknown
from hermes_memory.ports.ledger import HostPool
from hermes_memory.runtime.in_flight import InFlight
from hermes_memory.runtime.seating import Moved

log = logging.getLogger(__name__)

RETRY_S = 0.1  # the first pause before another try; it doubles up to ten times that
AGAIN = (Unreachable, Fenced, LeaseLost)  # what another try may get over

Connect = Callable[[Seat], Awaitable[Link]]  # makes the host if it is not there; raises Unreachable
Look = Callable[[], Awaitable[HostPool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """How callers reach hosts.

    Args:
        call_timeout_s: How long one try may take.
        deadline_s: How long all tries together may take.
        probe_s: How long a host may take to tell how it is.
        max_in_flight: Calls under way at one host; see ``InFlight``.
    """

    call_timeout_s: float
    deadline_s: float
    probe_s: float
    max_in_flight: int


class SeatedUsers:
    """Reaches user actors wherever they sit.

    A crash, a timeout or a cancellation means that the outcome is unknown: the call is repeated with the same
    operation id until the deadline. A host that no longer carries a user says how large the pool is.

    Args:
        connect: The way to the host of a seat.
        look: The size of the pool in the ledger; asked for when a host is gone. None where it never changes.
    """

    def __init__(
        self, seating: Seating, connect: Connect, rules: CallRules, look: Look | None = None
    ) -> None:
        self._seating, self._connect, self._rules, self._look = seating, connect, rules, look
        self._links: dict[str, tuple[Seat, Link]] = {}
        self._connecting: dict[str, asyncio.Task[Link]] = {}
        self._in_flight: dict[str, InFlight] = {}

    # the port

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory, exactly once."""
        with self._calls(key).write():
            return await self._persist(key, "execute", key, command, operation_id)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory."""
        with self._calls(key).read():
            answer: dict[str, Any] = await self._persist(key, "ask", key, query)
        return answer

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end; a crash or a move meanwhile only costs the time it takes."""
        until = time.monotonic() + timeout_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                record: dict[str, Any] | None = await self.call(
                    self._seating.seat_of(key), "wait", key, job_id, left_s, timeout_s=left_s + 1
                )
            except Moved as moved:
                if not self.reseat(moved.pool):
                    await asyncio.sleep(min(RETRY_S, left_s))
            except AGAIN:
                await self._pause(min(RETRY_S, left_s))
            else:
                return record
        return None

    async def wake(self, key: UserKey) -> None:
        """Wake a user who has unread turns."""
        await self._persist(key, "wake", key)

    # the hosts

    @property
    def pool(self) -> HostPool:
        """The pool as it is seen here."""
        return self._seating.pool

    def reseat(self, pool: HostPool) -> bool:
        """Go by another size of the pool from now on; False when this one is not newer."""
        if pool.revision <= self._seating.pool.revision:
            return False
        self._seating = self._seating.at(pool)
        return True

    def seats(self) -> list[Seat]:
        """The standing hosts and those that have been called on demand."""
        standing = self._seating.standing()
        return standing + [
            seat for seat, _ in list(self._links.values()) if seat.user is not None and seat not in standing
        ]

    def at(self, pool: HostPool) -> list[Seat]:
        """The standing hosts of a pool of that size."""
        return self._seating.at(pool).standing()

    async def call(self, seat: Seat, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a host once; the way to one that is gone is looked for anew the next time."""
        link = await self._link(seat)
        try:
            return await link.call(method, *arguments, timeout_s=timeout_s)
        except Unreachable as lost:
            if not lost.silent and self._links.get(seat.name) == (seat, link):
                del self._links[seat.name]
            raise

    async def _link(self, seat: Seat) -> Link:
        """The way to a host; many who look for the same one find it together."""
        if seat.name in self._links:
            return self._links[seat.name][1]
        task = self._connecting.get(seat.name)
        if task is None:
            task = self._connecting[seat.name] = asyncio.create_task(self._connected(seat))
            task.add_done_callback(lambda _: self._connecting.pop(seat.name, None))
        return await asyncio.shield(task)

    async def _connected(self, seat: Seat) -> Link:
        link = await self._connect(seat)
        self._links[seat.name] = seat, link
        return link

    async def stats(self) -> list[dict[str, Any]]:
        """Counts of every standing host. Raises OutcomeUnknown when one does not answer in time."""
        try:
            return list(
                await asyncio.gather(*(self._told(seat, "stats") for seat in self._seating.standing()))
            )
        except Unreachable:
            raise OutcomeUnknown from None

    async def metrics(self) -> dict[str, bytes]:
        """The metrics of every standing host that answers in time, in Prometheus' text format, by its name."""
        seats = self._seating.standing()
        texts = await asyncio.gather(*(self._told(seat, "metrics") for seat in seats), return_exceptions=True)
        for seat, text in zip(seats, texts, strict=True):
            if isinstance(text, BaseException):
                log.warning("no metrics of %s: %s", seat.name, type(text).__name__)
        return {seat.name: text for seat, text in zip(seats, texts, strict=True) if isinstance(text, bytes)}

    async def _told(self, seat: Seat, method: str) -> Any:
        return await self.call(seat, method, timeout_s=self._rules.probe_s)

    # trying again

    def _calls(self, key: UserKey) -> InFlight:
        return self._in_flight.setdefault(
            self._seating.seat_of(key).name, InFlight(self._rules.max_in_flight)
        )

    async def _persist(self, key: UserKey, method: str, *arguments: Any) -> Any:
        until, pause_s, again = time.monotonic() + self._rules.deadline_s, RETRY_S, False
        while (left_s := until - time.monotonic()) > 0:
            timeout_s = min(self._rules.call_timeout_s, left_s)
            more = (again,) if method == "execute" else ()
            try:
                return await self.call(
                    self._seating.seat_of(key), method, *arguments, *more, timeout_s=timeout_s
                )
            except Moved as moved:
                if self.reseat(moved.pool):
                    continue
                await asyncio.sleep(pause_s)
            except AGAIN:
                again = True
                await self._pause(min(pause_s, max(0.0, until - time.monotonic())))
            pause_s = min(pause_s * 2, RETRY_S * 10)
        raise OutcomeUnknown

    async def _pause(self, pause_s: float) -> None:
        """Wait, and look whether the pool has another size: the host may have gone for good."""
        await asyncio.sleep(pause_s)
        if self._look is None:
            return
        try:
            self.reseat(await self._look())
        except HermesError as error:  # the ledger is away too; the next try says what comes of it
            log.warning("the size of the pool could not be read: %s", error.code)
