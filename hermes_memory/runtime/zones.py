"""Time zones by name. The first look at one reads a file, so it is done off the event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo


class Zones:
    """Every zone that was asked for, held for the next time: there are some six hundred at most."""

    def __init__(self) -> None:
        self._known: dict[str, tzinfo] = {"UTC": UTC}

    async def of(self, name: str | None) -> tzinfo | None:
        """The zone of an IANA name; None for None, and for a name that nobody knows."""
        if name is None:
            return None
        if name not in self._known:
            try:
                self._known[name] = await asyncio.to_thread(ZoneInfo, name)
            except (ValueError, OSError, LookupError):
                return None
        return self._known[name]
