"""Conversations from elsewhere: what they are, and what a set of them holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hermes_memory.app.commands import Incoming
from hermes_memory.errors import HermesError

MESSAGES_A_REQUEST = 200  # API: messages of one request


class Unreadable(HermesError):
    """A record of a file that cannot be taken; ``reason`` is a stable word and holds nothing of the record."""

    code = "unreadable"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"not imported: {self.reason}"


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be taken: the line or element, from 1, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of one user, in order; its ids are the same each time it is read."""

    user: str
    session_id: str
    messages: tuple[Incoming, ...]

    def parts(self) -> Iterator[tuple[Incoming, ...]]:
        """The messages in pieces that one request takes."""
        for start in range(0, len(self.messages), MESSAGES_A_REQUEST):
            yield self.messages[start : start + MESSAGES_A_REQUEST]


@dataclass(slots=True)
class Counts:
    """What was read. Holds no words."""

    conversations: int = 0
    users: set[str] = field(default_factory=set)
    roles: Counter[str] = field(default_factory=Counter)
    untimed: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, found: Conversation | Problem) -> None:
        """Count one reading."""
        if isinstance(found, Problem):
            self.refused[found.reason] += 1
            return
        self.conversations += 1
        self.users.add(found.user)
        self.roles.update(message.role.value for message in found.messages)
        times = [message.created_at for message in found.messages if message.created_at is not None]
        self.untimed += len(found.messages) - len(times)
        self._span(times)

    def _span(self, times: Iterable[datetime]) -> None:
        for time in times:
            self.earliest = min(self.earliest or time, time)
            self.latest = max(self.latest or time, time)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "conversations": self.conversations,
            "users": len(self.users),
            "messages": dict(sorted(self.roles.items())),
            "without_a_time": self.untimed,
            "earliest": self.earliest.isoformat() if self.earliest else None,
            "latest": self.latest.isoformat() if self.latest else None,
            "refused": dict(sorted(self.refused.items())),
        }
