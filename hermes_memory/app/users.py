"""The one way to a user's memory, whether it lives in this process or in an actor on a cluster."""

from __future__ import annotations

import uuid
from typing import Any, Protocol

from hermes_memory.app.commands import Ask, Command, Ingest
from hermes_memory.core.ids import UserKey, digest


class Users(Protocol):
    """Reaches the actor of a user. Answers are JSON-ready; errors are those of ``hermes_memory.errors``."""

    async def execute(self, key: UserKey, command: Command, operation_id: str) -> Any:
        """Change a user's memory. The same operation id a second time changes nothing and answers the same.

        Raises:
            OutcomeUnknown: no answer within the deadline, though it was tried again.
            Overloaded: the user's mailbox is full.
        """
        ...

    async def ask(self, key: UserKey, query: Ask) -> dict[str, Any]:
        """Read a user's memory as of its last commit."""
        ...

    async def wait(self, key: UserKey, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Close the micro-batch and wait for a job to end; None when the time is over first."""
        ...


def operation_id_of(command: Command, request_id: str | None = None) -> str:
    """An operation id: the caller's, or one that follows from message ids, or a fresh one.

    A retry of a POST whose messages all carry ids is the same operation, even from a new connection.
    """
    if request_id:
        return f"req:{digest(type(command).__name__, request_id)}"
    if isinstance(command, Ingest) and all(message.id for message in command.messages):
        parts = [f"{message.id}\n{message.role}\n{message.content}" for message in command.messages]
        return f"msg:{digest(command.session_id, *parts)}"
    return f"new:{uuid.uuid4().hex}"
