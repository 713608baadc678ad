"""How the hosts are, for who watches: all are asked at once, and none that hangs is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from actors.placement import Seat

WATCH_S = 4.0  # for a host to tell how it is: less than readiness waits


class Hosts(Protocol):
    """Who knows the hosts, and the way to each."""

    def seats(self) -> Sequence[Seat]:
        """Those that are there, or should be."""
        ...

    async def call(self, seat: Seat, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Call a host once."""
        ...


class Watch:
    """Asks every host once."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    async def stats(self) -> dict[str, dict[str, Any] | BaseException]:
        """Counts of every host by its name, or what came instead of an answer."""
        return await self._each("stats")

    async def metrics(self) -> dict[str, bytes | None]:
        """The metrics of every host by its name, in Prometheus' text format; None of one that is away."""
        texts = await self._each("metrics")
        return {name: text if isinstance(text, bytes) else None for name, text in texts.items()}

    async def _each(self, method: str) -> dict[str, Any]:
        seats = self._hosts.seats()
        tries = [
            asyncio.wait_for(self._hosts.call(seat, method, timeout_s=WATCH_S), WATCH_S) for seat in seats
        ]
        answers = await asyncio.gather(*tries, return_exceptions=True)
        return {seat.name: answer for seat, answer in zip(seats, answers, strict=True)}
