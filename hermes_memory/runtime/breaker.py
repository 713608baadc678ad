"""Sparing callers the wait for something that is down."""

from __future__ import annotations

from datetime import datetime, timedelta


class Breaker:
    """Turns callers away from what keeps failing.

    After ``failures`` in a row nobody is let through for ``pause_s`` seconds. Then one is, to try it: a success lets
    everybody through again, a failure begins another pause. A caller that was let through must say how it went.
    """

    def __init__(self, failures: int, pause_s: float) -> None:
        self._most, self._pause = failures, timedelta(seconds=pause_s)
        self._failures = 0
        self._shut_until: datetime | None = None
        self._tried = False

    def lets(self, now: datetime) -> bool:
        """Whether to try now."""
        if self._shut_until is None:
            return True
        if self._tried or now < self._shut_until:
            return False
        self._tried = True
        return True

    def succeeded(self) -> None:
        """It answered."""
        self._failures, self._shut_until, self._tried = 0, None, False

    def failed(self, now: datetime) -> None:
        """It did not."""
        self._failures += 1
        self._tried = False
        if self._failures >= self._most:
            self._shut_until = now + self._pause

    def given_up(self) -> None:
        """The caller went away before it was known."""
        self._tried = False
