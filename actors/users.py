"""The Users port over Ray: finds a user's actor, and survives its crashes by operation id (ARCHITECTURE §2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayActorError, RayTaskError

from actors.host import start_host
from actors.placement import Seat, Seating
from hermes_memory.app.commands import Ask, Command
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, HermesError, LeaseLost, OutcomeUnknown

LOST = (ActorUnavailableError, ActorDiedError, RayActorError, GetTimeoutError, TimeoutError)
RETRY_S = 0.1  # the first pause before another try; it doubles up to ten times that

Start = Callable[[Seat], ActorHandle[Any]]


class RayUsers:
    """Reaches user actors on Ray.

    A crash, a timeout or a cancellation means that the outcome is unknown: the call is repeated with the same
    operation id until the deadline.

    Args:
        call_timeout_s: How long one try may take.
        deadline_s: How long all tries together may take.
    """

    def __init__(
        self, seating: Seating, document: dict[str, Any], data: str, call_timeout_s: float, deadline_s: float
    ) -> None:
        self._seating, self._document, self._data = seating, document, data
        self._call_timeout_s, self._deadline_s = call_timeout_s, deadline_s
        self._actors: dict[str, ActorHandle[Any]] = {}

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory, exactly once."""
        tried = False

        def call(actor: ActorHandle[Any]) -> Any:
            nonlocal tried
            again, tried = tried, True
            return actor.execute.remote(key, command, operation_id, again)

        return await self._persist(key, call, self._call_timeout_s)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory."""
        answer: dict[str, Any] = await self._persist(
            key, lambda actor: actor.ask.remote(key, query), self._call_timeout_s
        )
        return answer

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end; a crash of the host meanwhile only costs the time it takes to come back."""
        seat, until = self._seating.seat_of(key), time.monotonic() + timeout_s
        while (left_s := until - time.monotonic()) > 0:
            call = partial(_wait, key=key, job_id=job_id, timeout_s=left_s)
            try:
                record: dict[str, Any] | None = await self._once(seat, call, left_s + 1)
            except (*LOST, Fenced, LeaseLost):
                await asyncio.sleep(min(RETRY_S, left_s))
            else:
                return record
        return None

    async def wake(self, key: UserKey) -> None:
        """Wake a user who has unread turns."""
        await self._persist(key, lambda actor: actor.wake.remote(key), self._call_timeout_s)

    def seats(self) -> list[Seat]:
        """The standing hosts."""
        return self._seating.standing()

    async def call(self, seat: Seat, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a host once."""
        return await self._once(seat, lambda actor: getattr(actor, method).remote(*arguments), timeout_s)

    async def _persist(self, key: UserKey, call: Callable[[ActorHandle[Any]], Any], timeout_s: float) -> Any:
        return await self._persist_at(self._seating.seat_of(key), call, timeout_s)

    async def _persist_at(self, seat: Seat, call: Callable[[ActorHandle[Any]], Any], timeout_s: float) -> Any:
        until, pause_s = time.monotonic() + self._deadline_s, RETRY_S
        while True:
            try:
                return await self._once(seat, call, timeout_s)
            except (*LOST, Fenced, LeaseLost):
                if time.monotonic() + pause_s >= until:
                    raise OutcomeUnknown from None
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_S * 10)

    async def _once(self, seat: Seat, call: Callable[[ActorHandle[Any]], Any], timeout_s: float) -> Any:
        try:
            actor = await self._actor(seat)
            return await asyncio.wait_for(_awaited(call(actor)), timeout_s)
        except RayTaskError as error:
            raise _domain(error) from None
        except LOST:
            self._actors.pop(seat.name, None)
            raise

    async def _actor(self, seat: Seat) -> ActorHandle[Any]:
        actor = self._actors.get(seat.name)
        if actor is None:
            actor = await asyncio.to_thread(start_host, seat, self._document, self._data)
            self._actors[seat.name] = actor
        return actor


def _wait(actor: ActorHandle[Any], *, key: UserKey, job_id: str, timeout_s: float) -> Any:
    return actor.wait.remote(key, job_id, timeout_s)


async def _awaited(reference: Any) -> Any:
    return await reference


def _domain(error: RayTaskError) -> Exception:
    """The domain's error inside Ray's, or Ray's own if it is not one of ours."""
    cause = error.cause
    return cause if isinstance(cause, HermesError) else error
