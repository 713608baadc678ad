"""Time as a port, so that months pass in milliseconds in tests."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells receipt time."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after ``delay_s`` seconds of this clock."""
        ...
