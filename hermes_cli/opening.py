"""Where a command finds the memory: in a data directory, in this process; or at a server, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from hermes_memory.app.commands import Incoming
from hermes_memory.errors import DataInUse


class Store(Protocol):
    """What the in-process ``Memory`` and the ``HermesClient`` have in common."""

    def remember(
        self,
        user: str,
        text: str,
        *,
        session: str = ...,
        message_id: str | None = ...,
        said_at: datetime | None = ...,
        timezone: str | None = ...,
        scene: str | None = ...,
    ) -> dict[str, Any]:
        """Store one user message and wait until it is settled."""
        ...

    def send(
        self, user: str, session: str, messages: Sequence[Incoming], *, timezone: str | None = ...
    ) -> dict[str, Any]:
        """Store messages of any role and wait until they are settled."""
        ...

    def recall(
        self,
        user: str,
        query: str,
        *,
        session: str | None = ...,
        scene: str | None = ...,
        top_k: int | None = ...,
        budget_chars: int | None = ...,
        as_of: datetime | None = ...,
        timezone: str | None = ...,
    ) -> dict[str, Any]:
        """What matters for a query."""
        ...

    def memories(self, user: str, **filters: str) -> list[dict[str, Any]]:
        """Every record, newest first."""
        ...

    def why(self, user: str, memory_id: str) -> list[dict[str, Any]]:
        """The evidence of one memory."""
        ...

    def forget(self, user: str, memory_id: str | None = ...) -> dict[str, Any]:
        """Remove one memory or the whole user."""
        ...


class HeldByAServer(DataInUse):
    """A running server holds the directory: ask it instead."""

    def __str__(self) -> str:
        return f"{self.path} is in use by {self.holder}; if that is a server, ask it with --url, or set HERMES_URL"


@contextmanager
def opened(data: Path, config: Path | None, url: str | None, key: str | None) -> Iterator[Store]:
    """The store for one command.

    Raises:
        HeldByAServer: the directory is in use and no ``url`` is given.
    """
    if url:
        from hermes_memory.client import HermesClient

        with HermesClient(url, key=key) as client:
            yield client
        return
    from hermes_memory import Memory  # loads the extractor's tables; a client needs none

    try:
        memory = Memory.open(data, config=config)
    except DataInUse as error:
        raise HeldByAServer(error.path, error.holder) from None
    with memory:
        yield memory
