"""The knowledge packs of a host: read once for a namespace, however many of its users are awake."""

from __future__ import annotations

import asyncio
import logging

from hermes_memory.app.desk import Policy
from hermes_memory.core.failures import told
from hermes_memory.core.knowledge import KnowledgeShelf
from hermes_memory.errors import EmbedderMismatch, InvalidInput
from hermes_memory.ports.ledger import Ledger

log = logging.getLogger(__name__)


class Packs:
    """Shelves by namespace, kept in step with the ledger by ``refresh``.

    Both methods that read raise LedgerUnavailable and may be called again. Packs that nobody can read are logged
    and left out: general knowledge is an extra and keeps no user asleep.
    """

    def __init__(self, ledger: Ledger, policy: Policy, dimension: int) -> None:
        self._ledger, self._policy, self._dimension = ledger, policy, dimension
        self._shelves: dict[str, KnowledgeShelf | None] = {}
        self._revision = -1
        self._reading = asyncio.Lock()

    def of(self, namespace: str) -> KnowledgeShelf | None:
        """The packs of a namespace; None if it has none, or they were not fetched."""
        return self._shelves.get(namespace)

    async def fetch(self, namespace: str) -> None:
        """Read a namespace's packs, unless they are here."""
        if namespace in self._shelves:
            return
        async with self._reading:
            if namespace not in self._shelves:
                self._shelves[namespace] = await self._read(namespace)

    async def refresh(self) -> None:
        """Read the packs again if any was changed since the last time."""
        revision = await self._ledger.packs_revision()
        if revision == self._revision:
            return
        async with self._reading:
            for namespace in self._shelves:
                self._shelves[namespace] = await self._read(namespace)
            self._revision = revision

    async def _read(self, namespace: str) -> KnowledgeShelf | None:
        try:
            packs = [(stored.pack, stored.vectors) for stored in await self._ledger.packs(namespace)]
            if not packs:
                return None
            # Cutting thousands of entries into words takes a while: the loop goes on meanwhile.
            return await asyncio.to_thread(KnowledgeShelf, packs, self._policy.words, self._dimension)
        except (
            ValueError,
            InvalidInput,
            EmbedderMismatch,
        ) as error:  # pydantic's among them; or vectors of another model
            log.error("the knowledge packs of a namespace cannot be read: %s", told(error))
            return None
