"""Secrets and strong identifiers in text, before anything is stored or logged (SPEC §4.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Found:
    """``text[start:end]`` is a secret of ``kind`` (id, card, iban, secret, address …)."""

    start: int
    end: int
    kind: str


class Detector(Protocol):
    """Finds what must never be stored."""

    def find(self, text: str) -> list[Found]:
        """All findings, in order, not overlapping."""
        ...
