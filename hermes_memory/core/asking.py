"""What a recall query asks, beside its words: which times, whether about the past, and whether about the user at all.

A pure value; ``adapters.query_reader`` reads it out of a text. Ranking decides what follows from it (SPEC §7.1, §7.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Errand(StrEnum):
    """A task that no personal memory bears on."""

    ARITHMETIC = "arithmetic"
    TRANSLATION = "translation"
    CODE = "code"
    SMALL_TALK = "small_talk"
    GENERAL = "general"  # general knowledge, or a text to be written or mended that says nothing of the user


class Want(StrEnum):
    """What kind of answer is expected."""

    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    HOW_MANY = "how_many"
    WHY = "why"
    WHICH = "which"


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The time from ``start`` up to, and without, ``end``; both aware.

    Raises:
        ValueError: it is empty, or a side names no time zone.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a period needs a time zone")
        if self.start.timestamp() >= self.end.timestamp():
            raise ValueError("a period must not be empty")

    def __contains__(self, at: datetime) -> bool:
        return self.start <= at < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as it was read.

    Attributes:
        periods: The times it names, in order of their place in the text, resolved as of the query.
        about_past: It asks what was, when something was, or what was said: old answers are as good as new ones.
        errand: A task that no personal memory bears on; None where memories may matter.
        personal: It speaks of the user, or wants something for the user. Beside an errand: the task names
            something of the user's ("translate my cat's name").
        entities: Exact names, quotations, identifiers, dates, amounts, in normal form (narrow, simplified, lower case).
        wants: The kinds of answer it expects; empty if unknown.
    """

    periods: tuple[Period, ...] = ()
    about_past: bool = False
    errand: Errand | None = None
    personal: bool = False
    entities: tuple[str, ...] = ()
    wants: tuple[Want, ...] = ()


NOTHING_KNOWN = Asked()
