"""How far the long-term index is behind the ledger, as seen from one host."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.metrics import Metrics

PAGE, MAX_PAGES = 500, 20  # a look stays cheap however much waits: beyond so many users it says "at least"


class Outbox(Protocol):
    """The part of a ledger that is looked at."""

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        """As ``Ledger.outbox_users``."""
        ...


class Lag:
    """Looks at the outbox and sets ``hermes_outbox_waiting_users``, ``…_oldest_seconds`` and ``…_dead_letter_users``.

    An entry has no time of its own: a user's lag counts from the first look that saw it waiting, until one that does
    not. It needs no feeder to be alive. Of the users only those that ``owns`` names, so that hosts add up.
    """

    def __init__(
        self, outbox: Outbox, metrics: Metrics, owns: Callable[[UserKey], bool] = lambda _: True
    ) -> None:
        self._outbox, self._metrics, self._owns = outbox, metrics, owns
        self._since: dict[UserKey, datetime] = {}

    async def look(self, now: datetime) -> None:
        """See who waits now. Raises LedgerUnavailable; the levels then stay as they were."""
        waiting, dead = await self._users(buried=False), await self._users(buried=True)
        self._since = {key: self._since.get(key, now) for key in waiting}
        oldest = min(self._since.values(), default=now)
        self._metrics.gauge("hermes_outbox_waiting_users", len(waiting))
        self._metrics.gauge("hermes_outbox_oldest_seconds", (now - oldest).total_seconds())
        self._metrics.gauge("hermes_outbox_dead_letter_users", len(dead))

    async def _users(self, *, buried: bool) -> list[UserKey]:
        found: list[UserKey] = []
        after = ""
        for _ in range(MAX_PAGES):
            page = await self._outbox.outbox_users(after, PAGE, buried=buried)
            found += [key for key in page if self._owns(key)]
            if len(page) < PAGE:
                break
            after = str(page[-1])
        return found
