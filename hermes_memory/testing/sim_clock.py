"""Simulated time with one driver: months pass in milliseconds, and always in the same order."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
_SETTLE_ROUNDS = 50  # turns of the loop that a woken task gets to do its work and sleep again


class SimClock:
    """A Clock that stands still until a test calls ``advance``."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The simulated present."""
        return self._now

    @property
    def sleepers(self) -> int:
        """How many tasks wait for time to pass."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, delay_s: float) -> None:
        """Return once the driver has moved time by ``delay_s``; at once for 0 or less."""
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._now + timedelta(seconds=delay_s)
        heapq.heappush(self._sleepers, (due, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time forward, waking each sleeper at its own moment, earliest first.

        A woken task may sleep again within the same advance. Work that leaves the event loop (threads,
        sockets) is not waited for.
        """
        end = self._now + timedelta(seconds=seconds)
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            if future.done():  # cancelled meanwhile
                continue
            self._now = max(self._now, due)
            future.set_result(None)
            await self._settle()
        self._now = end

    async def _settle(self) -> None:
        for _ in range(_SETTLE_ROUNDS):
            await asyncio.sleep(0)
