"""Lets the index let go of users who sleep: in the background, and only as well as it goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes_memory.core.failures import told
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import HermesError
from hermes_memory.ports.index import VectorIndex

log = logging.getLogger(__name__)


class Resting:
    """Users who were put to sleep, until the index has been told.

    Args:
        needed: Whether a user is in use again by the time its turn comes.
    """

    def __init__(self, index: VectorIndex, needed: Callable[[UserKey], bool]) -> None:
        self._index, self._needed = index, needed
        self._waiting: dict[UserKey, None] = {}
        self._something = asyncio.Event()

    def add(self, key: UserKey) -> None:
        """The user sleeps now."""
        self._waiting[key] = None
        self._something.set()

    async def run(self) -> None:
        """Tell the index for ever; what fails is left: the next time that the user falls asleep is another."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                if not self._needed(key):
                    await self._tell(key)

    async def _tell(self, key: UserKey) -> None:
        try:
            await self._index.rest(key)
        except HermesError as error:
            log.debug("the index keeps a sleeping user in memory: %s", error.code)
        except Exception as error:  # noqa: BLE001
            log.error("the index could not let go of a sleeping user: %s", told(error))
