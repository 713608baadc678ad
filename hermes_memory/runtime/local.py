"""Users in this process: the same port as on Ray, one host, no cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hermes_memory.app.commands import Ask, Command
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, LeaseLost
from hermes_memory.runtime.host import UserHost

TRIES = 4


class LocalUsers:
    """Reaches user actors on one host in this process."""

    def __init__(self, host: UserHost) -> None:
        self._host = host

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory; again if another host had taken the user meanwhile."""
        return await self._again(lambda again: self._host.execute(key, command, operation_id, again))

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory."""
        answer: dict[str, Any] = await self._again(lambda _: self._host.ask(key, query))
        return answer

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end."""
        record: dict[str, Any] | None = await self._again(lambda _: self._host.wait(key, job_id, timeout_s))
        return record

    async def _again(self, call: Callable[[bool], Awaitable[Any]]) -> Any:
        """Again after the user or the lease was lost: a process that was suspended finds its lease run out.

        A user whom another host wants as well may be lost several times in a row.
        """
        for tried in range(TRIES - 1):
            try:
                return await call(tried > 0)
            except Fenced:
                continue
            except LeaseLost:
                await self._host.renew()
        return await call(True)
