"""What ``configs/words/asking.toml`` holds, compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from hermes_memory.core.asking import Errand, Want

Regex = re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Form:
    """A query in its search form, and the letters it has. Without Chinese characters it is read as English."""

    text: str
    han: bool
    latin: bool

    @staticmethod
    def of(text: str) -> Form:
        """The form of a text that is in its search form already."""
        return Form(text, _HAN.search(text) is not None, _LATIN.search(text) is not None)

    def cut(self, *patterns: Regex | None) -> Form:
        """Without what the patterns find; a blank stays where it stood."""
        text = self.text
        for pattern in patterns:
            text = pattern.sub(" ", text) if pattern else text
        return Form(text, self.han, self.latin)


_HAN = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[a-z]")


@dataclass(frozen=True, slots=True)
class Words:
    """Expressions by the script they are written in; a text is searched with those whose letters it has."""

    zh: Regex | None
    en: Regex | None

    def of(self, form: Form) -> Sequence[Regex]:
        """Those that may match a text in this form."""
        wanted = (self.zh if form.han else None, self.en if form.latin or not form.han else None)
        return [pattern for pattern in wanted if pattern is not None]

    def found_in(self, form: Form) -> bool:
        """Whether one of them occurs anywhere."""
        return any(pattern.search(form.text) for pattern in self.of(form))

    def opens(self, form: Form, at: int) -> bool:
        """Whether one of them begins at this place."""
        return any(pattern.match(form.text, at) for pattern in self.of(form))

    def cut_from(self, form: Form) -> Form:
        """The form without what they find."""
        return form.cut(*self.of(form))


@dataclass(frozen=True, slots=True)
class Feast:
    """A day or days of the year: by month and day, or, of another calendar, the dates."""

    at: tuple[int, int] | None
    on: tuple[date, ...]
    days: int


@dataclass(frozen=True, slots=True)
class TimeRule:
    """How one kind of expression looks; ``language`` is None where it is the same in all.

    ``hint`` is the number of the words of which one must be in a text: looking for them is much cheaper.
    """

    kind: str
    language: str | None
    hint: int
    regex: Regex
    leads: bool

    def span(self, hit: re.Match[str]) -> tuple[int, int]:
        """The stretch that a hit names a time with: without what only has to stand before it."""
        return hit.end("lead") if self.leads else hit.start(), hit.end()


@dataclass(frozen=True, slots=True)
class Calendar:
    """The words of time, each with what it stands for, and the limits."""

    units: Mapping[str, str]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    seasons: Mapping[str, int]
    steps: Mapping[str, int]
    near: Mapping[str, int]
    nights: Mapping[str, tuple[int, str]]
    parts: Mapping[str, tuple[int, int]]
    numbers: Mapping[str, tuple[float, float]]
    vague: Mapping[str, tuple[int, int]]
    feasts: Mapping[str, Feast]
    ahead: frozenset[str]
    nearest: frozenset[str]
    slack_days: Mapping[str, int]
    same_time_days: int
    nearest_days: int
    most_years: int
    first_year: int
    last_year: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A part of a period, as shares of it, and the words right before or behind that name it."""

    share: tuple[float, float]
    before: tuple[str, ...]
    after: tuple[str, ...]

    def reach(self, before: str, behind: str) -> tuple[int, int] | None:
        """How many characters of either side name it; None if it is not there."""
        if self.before and before[-1:] in {" ", "-"} and before[:-1].endswith(self.before):
            word = max((word for word in self.before if before[:-1].endswith(word)), key=len)
            return len(word) + 1, 0
        if self.after and behind.removeprefix("的").startswith(self.after):
            word = max((word for word in self.after if behind.removeprefix("的").startswith(word)), key=len)
            return 0, len(behind) - len(behind.removeprefix("的")) + len(word)
        return None


@dataclass(frozen=True, slots=True)
class Join:
    """Words right before or right behind a period."""

    before: Regex | None
    after: Regex | None

    def span(self, before: str, behind: str) -> tuple[int, int] | None:
        """How many characters of either side belong to it; None if it is not there."""
        if self.before and (hit := self.before.search(before)):
            return len(before) - hit.start(), 0
        if self.after and (hit := self.after.search(behind)):
            return 0, hit.end()
        return None


@dataclass(frozen=True, slots=True)
class TimeWords:
    """All that is needed to find periods."""

    calendar: Calendar
    rules: Sequence[TimeRule]
    hints: Sequence[Sequence[str]]
    hint: Words
    habit: Words
    edges: Sequence[Edge]
    joins: Mapping[str, Join]
    between: Regex
    opens: Regex
    apart: Regex


@dataclass(frozen=True, slots=True)
class ErrandRule:
    """One errand: how it begins, what gives it away, what the whole query is made of, and what speaks against it.

    ``about`` gives it away right behind a ``subject``: one search for all of them. ``named`` gives it away in a text
    that ``asks``: words that no one uses of their own life.
    """

    errand: Errand
    start: Words
    anywhere: Words
    whole: Regex | None
    subject: Regex | None
    about: Regex | None
    named: Words
    asks: Words
    veto: Words

    def gives_away(self, form: Form) -> bool:
        """Whether it stands anywhere, or something is asked of one of the things that it is about."""
        if self.anywhere.found_in(form) or (self.named.found_in(form) and self.asks.found_in(form)):
            return True
        if self.subject is None or self.about is None or not form.han:
            return False
        return any(self.about.match(form.text, hit.end()) for hit in self.subject.finditer(form.text))


@dataclass(frozen=True, slots=True)
class ErrandWords:
    """The errands in the order in which they are tried, what is passed over, and what speaks of the user.

    ``polite`` names the user and says nothing of them within an errand, ``telling`` nowhere. ``wish`` and ``life`` speak of
    the user without a pronoun; a wish also speaks against an errand.
    """

    rules: Sequence[ErrandRule]
    contracted: Regex
    expanded: str
    opens: Regex
    payload: Regex
    user: Words
    polite: Words
    telling: Words
    wish: Words
    life: Words


@dataclass(frozen=True, slots=True)
class EntityWords:
    """What is worth an exact match."""

    quoted: Regex
    exact: Regex
    number: Regex
    latin: Regex
    capital: Regex
    common: frozenset[str]


@dataclass(frozen=True, slots=True)
class WantWords:
    """What asks for one kind of answer; in English one of the hints must be there."""

    hints: Sequence[str]
    words: Words

    def found_in(self, form: Form) -> bool:
        """Whether a query asks for it."""
        if self.words.zh and form.han and self.words.zh.search(form.text):
            return True
        hinted = form.latin and any(hint in form.text for hint in self.hints)
        return hinted and self.words.en is not None and self.words.en.search(form.text) is not None


@dataclass(frozen=True, slots=True)
class AskingWords:
    """The whole file."""

    max_chars: int
    time: TimeWords
    past: Words
    errands: ErrandWords
    entities: EntityWords
    wants: Mapping[Want, WantWords]
