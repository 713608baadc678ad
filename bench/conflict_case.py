"""The labelled cases of the conflict suite as values, read from ``bench/conflict_cases`` (SPEC §6, §10)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "conflict_cases"
LANGUAGES = ("zh", "en", "mixed")
ROWS = ("FACT", "PREFERENCE", "STATE", "safety", "frozen", "none")  # of the table in SPEC §6


class Fate(StrEnum):
    """What becomes of the last turn's statement and of what stood before it."""

    REPLACE = "replace"  # the old one is superseded, the new one stands
    RIVAL = "rival"  # the old one stands, the new one is kept as its rival, nobody is asked
    ASK = "ask"  # the old one stands, a confirmation request is open
    PAST = "past"  # the new one is stored superseded, the old one stands
    COEXIST = "coexist"  # both stand, neither is a rival
    SAME = "same"  # the old one is reinforced, nothing is new
    NONE = "none"  # the old one is as it was, nothing that contradicts it is stored


CONFLICTS = frozenset({Fate.REPLACE, Fate.RIVAL, Fate.ASK, Fate.PAST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """One message of the user: received on ``day`` of the story, said on ``said_on`` (the same if None)."""

    day: float
    session: str
    text: str
    said_on: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A story whose last turn is judged."""

    id: str
    language: str
    row: str
    turns: tuple[Saying, ...]
    expect: Fate
    looks_like_conflict: bool
    why: str

    @property
    def conflict(self) -> bool:
        """Whether the last turn truly contradicts what stood before it."""
        return self.expect in CONFLICTS


def cases(folder: Path = FOLDER) -> list[Case]:
    """Every case of every file, in order. Raises ValueError for a case that does not hold together."""
    found = [case for path in sorted(folder.glob("*.jsonl")) for case in _of_file(path)]
    ids = [case.id for case in found]
    if twice := {i for i in ids if ids.count(i) > 1}:
        raise ValueError(f"used twice: {', '.join(sorted(twice))}")
    return found


def _of_file(path: Path) -> Iterator[Case]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                yield _case(json.loads(line))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}:{number}: {error!r}") from error


def _case(row: Mapping[str, Any]) -> Case:
    turns = tuple(Saying(**turn) for turn in row["turns"])
    days = [turn.day for turn in turns]
    if not turns or days != sorted(days) or not all(turn.text.strip() for turn in turns):
        raise ValueError("turns must have words and stand in the order of their days")
    if row["lang"] not in LANGUAGES or row["row"] not in ROWS:
        raise ValueError("unknown language or row")
    return Case(
        id=row["id"],
        language=row["lang"],
        row=row["row"],
        turns=turns,
        expect=Fate(row["expect"]),
        looks_like_conflict=bool(row["looks_like_conflict"]),
        why=row["why"],
    )
