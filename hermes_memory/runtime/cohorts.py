"""The cohorts of a host's namespaces: read beside the users, never while one of them waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory.app.cohorts import NOTE
from hermes_memory.ports.ledger import Ledger

NO_COHORT: Mapping[str, Any] = {}


class Cohorts:
    """What consenting users have in common, by namespace; read again by ``refresh``, as often as the caller likes."""

    def __init__(self, ledger: Ledger, *, enabled: bool) -> None:
        self._ledger, self._enabled = ledger, enabled
        self._known: dict[str, Mapping[str, Any]] = {}

    def of(self, namespace: str) -> Mapping[str, Any]:
        """The cohort as it was read last; empty where there is none."""
        return self._known.get(namespace, NO_COHORT)

    async def fetch(self, namespace: str) -> None:
        """Read a namespace's, unless it is here. Raises LedgerUnavailable."""
        if self._enabled and namespace not in self._known:
            await self._read(namespace)

    async def refresh(self) -> None:
        """Read all of them again: the night may have made others. Raises LedgerUnavailable."""
        for namespace in list(self._known):
            await self._read(namespace)

    async def _read(self, namespace: str) -> None:
        note = await self._ledger.note(namespace, NOTE)
        self._known[namespace] = note.value if note is not None else NO_COHORT
