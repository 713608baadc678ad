"""Users in this process: the same port as on Ray, one host, no cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hermes_memory.app.commands import Ask, Command
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, LeaseLost
from hermes_memory.runtime.host import UserHost


class LocalUsers:
    """Reaches user actors on one host in this process."""

    def __init__(self, host: UserHost) -> None:
        self._host = host

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory; once more if another host had taken the user meanwhile."""
        return await self._twice(lambda again: self._host.execute(key, command, operation_id, again))

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory."""
        answer: dict[str, Any] = await self._twice(lambda _: self._host.ask(key, query))
        return answer

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end."""
        record: dict[str, Any] | None = await self._twice(lambda _: self._host.wait(key, job_id, timeout_s))
        return record

    async def _twice(self, call: Callable[[bool], Awaitable[Any]]) -> Any:
        """Once more after the user or the lease was lost: a process that was suspended finds its lease run out."""
        try:
            return await call(False)
        except Fenced:
            return await call(True)
        except LeaseLost:
            await self._host.renew()
            return await call(True)
