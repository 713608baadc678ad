"""Users in this process: the same port as on Ray, one host, no cluster."""

from __future__ import annotations

from typing import Any

from hermes_memory.app.commands import Ask, Command
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced
from hermes_memory.runtime.host import UserHost


class LocalUsers:
    """Reaches user actors on one host in this process."""

    def __init__(self, host: UserHost) -> None:
        self._host = host

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory; once more if another host had taken the user meanwhile."""
        try:
            return await self._host.execute(key, command, operation_id)
        except Fenced:
            return await self._host.execute(key, command, operation_id, again=True)

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory."""
        return await self._host.ask(key, query)

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Wait for a job to end."""
        return await self._host.wait(key, job_id, timeout_s)
