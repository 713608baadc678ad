"""Counters and timings. Labels are codes and names, never content."""

from __future__ import annotations

from typing import Protocol


class Metrics(Protocol):
    """Where the product counts what it does."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add ``amount`` to a counter."""
        ...

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record one observation, in the unit that the name ends with."""
        ...
