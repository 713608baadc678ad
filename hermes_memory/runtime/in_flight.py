"""How many calls may be under way at one place: what is not taken in cannot pile up (ARCHITECTURE §2)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes_memory.errors import Overloaded

READS_MORE = 1.5  # reads are refused later than writes: they are what a conversation waits for
NEWEST = 0.1  # the weight of the newest call in the mean
SOONEST_S, LATEST_S = 1.0, 30.0


class InFlight:
    """Counts the calls under way and turns away what is too much.

    Args:
        limit: From so many on a write is refused; a read from ``READS_MORE`` times as many.
        seconds: A clock that never goes back.
    """

    def __init__(self, limit: int, seconds: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._seconds = limit, seconds
        self._begun: dict[int, float] = {}  # in the order of their beginnings
        self._numbers = itertools.count()
        self._mean_s = 0.0

    def __len__(self) -> int:
        return len(self._begun)

    @contextmanager
    def write(self) -> Iterator[None]:
        """One write is under way. Raises Overloaded."""
        with self._counted(self._limit):
            yield

    @contextmanager
    def read(self) -> Iterator[None]:
        """One read is under way. Raises Overloaded."""
        with self._counted(int(self._limit * READS_MORE)):
            yield

    @property
    def full(self) -> bool:
        """Whether a write would be refused."""
        return len(self._begun) >= self._limit

    @property
    def retry_after_s(self) -> float:
        """When to come again: what is here is through after as long as a call takes (Little's law).

        The oldest call tells of a place that is stuck, where none ends.
        """
        oldest = next(iter(self._begun.values()), None)
        waited_s = 0.0 if oldest is None else self._seconds() - oldest
        return min(LATEST_S, max(SOONEST_S, self._mean_s, waited_s))

    @contextmanager
    def _counted(self, limit: int) -> Iterator[None]:
        if len(self._begun) >= limit:
            raise Overloaded(self.retry_after_s)
        number, begun = next(self._numbers), self._seconds()
        self._begun[number] = begun
        try:
            yield
        finally:
            del self._begun[number]
            self._mean_s += NEWEST * (self._seconds() - begun - self._mean_s)
