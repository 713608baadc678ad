"""Masking of what must never be stored (SPEC §4.1.3). What is found, and how, is the detector's matter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Finding(Protocol):
    """``text[start:end]`` is of ``kind``."""

    @property
    def start(self) -> int:
        """First character."""
        ...

    @property
    def end(self) -> int:
        """Behind the last character."""
        ...

    @property
    def kind(self) -> str:
        """The name that takes its place: id, card, address …"""
        ...


def mask(text: str, found: Iterable[Finding]) -> str:
    """``text`` with every finding replaced by its kind in brackets, and nothing else changed.

    Findings may come in any order; where two overlap the earlier one's kind stands for both.
    """
    pieces: list[str] = []
    at = 0
    for item in sorted(found, key=lambda one: (one.start, one.end)):
        if item.end <= at:
            continue
        if item.start >= at:
            pieces += [text[at : item.start], f"[{item.kind}]"]
        at = item.end
    pieces.append(text[at:])
    return "".join(pieces)
