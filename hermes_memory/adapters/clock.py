"""The clock of the machine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class SystemClock:
    """Wall-clock time in UTC; sleeping is asyncio's."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, delay_s: float) -> None:
        """Return after ``delay_s`` seconds; another task may run even if that is 0."""
        await asyncio.sleep(max(0.0, delay_s))
