"""What the doctor found, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How good a finding is; only a PROBLEM makes the command fail."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``part`` groups findings; ``name`` is unique in its part."""

    part: str
    name: str
    level: Level
    detail: str
