"""A pool of hosts in one process: the links that callers and the supervisor use, without Ray.

Each host is the class that Ray would run in a process of its own, over a ledger handle of its own. A test can kill,
suspend and restart it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from actors.links import Link, Unreachable
from actors.placement import Seat, is_pooled

Make = Callable[[Seat], Any]


class LocalLink:
    """Calls the host that now has the name; suspended, it is silent; crashed, it is gone."""

    def __init__(self, crew: LocalCrew, seat: Seat) -> None:
        self._crew, self._seat = crew, seat
        self._host = crew.hosts[seat]

    async def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        self._crew.calls[method] += 1
        if self._crew.hosts.get(self._seat) is not self._host:
            raise Unreachable(self._seat.name, False)
        work = asyncio.create_task(self._run(method, arguments))
        self._crew.running.setdefault(self._seat, set()).add(work)
        try:
            return await asyncio.wait_for(work, timeout_s)
        except TimeoutError:
            raise Unreachable(self._seat.name, True) from None
        except asyncio.CancelledError:
            if self._crew.hosts.get(self._seat) is self._host:
                raise
            raise Unreachable(self._seat.name, False) from None
        finally:
            self._crew.running.get(self._seat, set()).discard(work)

    async def _run(self, method: str, arguments: tuple[Any, ...]) -> Any:
        await self._crew.awake(self._seat).wait()
        return await getattr(self._host, method)(*arguments)


class LocalCrew:
    """Makes hosts with ``make``, ends what they do by themselves with ``kill``; notes who was ended."""

    def __init__(self, make: Make, kill: Callable[[Any], None] = lambda _: None) -> None:
        self._make, self._kill = make, kill
        self.hosts: dict[Seat, Any] = {}
        self.running: dict[Seat, set[asyncio.Task[Any]]] = {}
        self.calls: Counter[str] = Counter()
        self.ended: list[tuple[str, bool]] = []
        self._awake: dict[Seat, asyncio.Event] = {}
        self._making = asyncio.Lock()

    def awake(self, seat: Seat) -> asyncio.Event:
        if seat not in self._awake:
            self._awake[seat] = asyncio.Event()
            self._awake[seat].set()
        return self._awake[seat]

    def suspend(self, seat: Seat) -> None:
        self.awake(seat).clear()

    async def connect(self, seat: Seat) -> Link:
        async with self._making:
            if seat not in self.hosts:
                self.hosts[seat] = await asyncio.to_thread(self._make, seat)  # a real one reads files
        return LocalLink(self, seat)

    async def pooled(self) -> dict[Seat, Link]:
        return {seat: LocalLink(self, seat) for seat in list(self.hosts) if is_pooled(seat.name)}

    async def end(self, seat: Seat, *, for_good: bool) -> None:
        self.ended.append((seat.name, for_good))
        self.crash(seat)
        if not for_good:
            await self.connect(seat)

    def crash(self, seat: Seat) -> None:
        """The process is gone with everything under way; who waits for it learns that."""
        host = self.hosts.pop(seat, None)
        if host is not None:
            self._kill(host)
        for work in self.running.pop(seat, set()):
            work.cancel()
        self._awake.pop(seat, None)
