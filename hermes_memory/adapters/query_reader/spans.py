"""Spans of local time, and which of those that come again is meant.

A question looks both ways: "on Monday" is the last one in a question about the past and the next one elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from hermes_memory.adapters.query_reader.data import Calendar

Span = tuple[datetime, datetime]  # local, without a time zone; the end is not in it
Groups = Mapping[str, str | None]

MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
DAYS_OF = {"day": 1, "week": 7, "weekend": 7}
_AROUND_YEARS = 2


@dataclass(frozen=True, slots=True)
class Here:
    """Where a question stands: its local time, and whether it looks back."""

    now: datetime
    back: bool
    words: Calendar

    @property
    def today(self) -> date:
        """The local day."""
        return self.now.date()


def midnight(day: date) -> datetime:
    """The beginning of a day."""
    return datetime.combine(day, time())  # local; the zone is put on last


def days(first: date, count: int = 1) -> Span:
    """So many whole days."""
    return midnight(first), midnight(first + timedelta(days=count))


def moved(day: date, months: int) -> date:
    """So many months later, on the last day where the month is too short."""
    total = day.year * 12 + day.month - 1 + months
    first = date(total // 12, total % 12 + 1, 1)
    following = date((total + 1) // 12, (total + 1) % 12 + 1, 1)
    return min(first + timedelta(days=day.day - 1), following - timedelta(days=1))


def unit_span(unit: str, today: date, step: int) -> Span:
    """The calendar's day, week, weekend, month, quarter, year or decade, ``step`` away from the current one."""
    if unit in DAYS_OF:
        monday = today + timedelta(days=7 * step - today.weekday())
        return days(monday + timedelta(days=5), 2) if unit == "weekend" else days(monday, 7)
    length = MONTHS_OF[unit]
    first = (today.year * 12 + today.month - 1) // length * length + step * length
    return midnight(date(first // 12, first % 12 + 1, 1)), midnight(
        moved(date(first // 12, first % 12 + 1, 1), length)
    )


def shifted(today: date, unit: str, count: float) -> date:
    """``count`` units later; parts of a month in days."""
    if unit in DAYS_OF:
        return today + timedelta(days=round(count * DAYS_OF[unit]))
    months = count * MONTHS_OF[unit]
    return moved(today, int(months)) + timedelta(days=round((months - int(months)) * 30))


def year_of(groups: Groups, here: Here) -> int | None:
    """The year that an expression names, by its number or from the current one; None if it names none."""
    if year := groups.get("year"):
        return int(year)
    if step := groups.get("step"):
        return here.today.year + here.words.steps[step]
    return None


def which_of(groups: Groups, here: Here) -> int | None:
    """Which one it names of what comes again: -1 the last, 0 this, 1 the next; None if it does not say."""
    word = groups.get("which")
    return here.words.steps[word] if word else None


def pick(occasions: Iterable[Span], which: int | None, here: Here) -> Span | None:
    """Of what comes again: the last, the current or the next; without a word for it as the question looks."""
    spans = sorted(occasions)
    now, day_end = here.now, midnight(here.today) + timedelta(days=1)
    if which == 0:
        near = [span for span in spans if span[0] <= now < span[1]]
        return next(iter(near or [span for span in spans if span[0].year == now.year]), None)
    if which is not None and which < 0:
        return max((span for span in spans if span[1] <= midnight(here.today)), default=None)
    if which is not None:
        return min((span for span in spans if span[0] >= day_end), default=None)
    if here.back:
        return max((span for span in spans if span[0] <= now), default=None)
    return min((span for span in spans if span[1] > midnight(here.today)), default=None)


def nearest(occasions: Iterable[Span], which: int | None, here: Here) -> Span | None:
    """As ``pick``, but in a question of no tense what is not long past comes before the next."""
    spans = sorted(occasions)
    if which is None and not here.back:
        since = here.now - timedelta(days=here.words.nearest_days)
        return next((span for span in spans if span[1] > since), None)
    return pick(spans, which, here)


def years_around(here: Here) -> range:
    """The years in which the nearest occasions lie."""
    return range(here.today.year - _AROUND_YEARS, here.today.year + _AROUND_YEARS + 1)


def part_of(day: date, part: str | None, here: Here) -> Span:
    """The hours of a day; the whole of it where no part is named. A night ends on the next day."""
    if part is None:
        return days(day)
    first, last = here.words.parts[part]
    return midnight(day) + timedelta(hours=first), midnight(day) + timedelta(hours=last)
