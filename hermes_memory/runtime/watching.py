"""Waiting for a job to end, in the time of the host's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hermes_memory.ports.clock import Clock


async def came_before(event: asyncio.Event, timer: asyncio.Future[Any]) -> bool:
    """Wait for the event or the timer, whichever is first; whether the event came."""
    news = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({news, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()
    return event.is_set()


@dataclass(slots=True)
class _Watch:
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: int = 0


class Watches:
    """Who waits for which job of one user."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[str, _Watch] = {}

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._watched

    def __bool__(self) -> bool:
        return bool(self._watched)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._watched))

    def end(self, job_ids: Iterable[str]) -> None:
        """Let go of everyone who waits for one of the jobs."""
        for job_id in job_ids:
            if watch := self._watched.pop(job_id, None):
                watch.ended.set()

    async def wait(self, job_id: str, timeout_s: float) -> bool:
        """Wait until ``end`` names the job; False when the time is over first."""
        watch = self._watched.setdefault(job_id, _Watch())
        watch.watchers += 1
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            return await came_before(watch.ended, timer)
        finally:
            timer.cancel()
            watch.watchers -= 1
            if not watch.watchers and self._watched.get(job_id) is watch:
                del self._watched[job_id]
