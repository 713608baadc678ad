"""Counters, timings and levels. Labels are codes and names, never content."""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol

from hermes_memory.errors import HermesError


class Metrics(Protocol):
    """Where the product counts what it does. What it may count is declared in ``adapters.metric_catalogue``."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add ``amount`` to a counter."""
        ...

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record one observation, in the unit that the name ends with."""
        ...

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set how much there is now. Set again before every scrape, so that no level outlives what it measures."""
        ...


def code_of(error: BaseException) -> str:
    """What an error counts as: its code, of a stranger's ``timeout`` or ``internal``, never its words."""
    if isinstance(error, HermesError):
        return error.code
    return "timeout" if isinstance(error, TimeoutError) else "internal"


def name_of(kind: type) -> str:
    """A class as a label: ``FailExtraction`` is ``fail_extraction``."""
    return _snake(kind.__name__)


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
