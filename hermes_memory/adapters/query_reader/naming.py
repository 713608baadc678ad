"""Expressions that name a day, month, season, feast or week of the calendar: to spans of local time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from hermes_memory.adapters.query_reader.data import Feast
from hermes_memory.adapters.query_reader.spans import (
    Groups,
    Here,
    Span,
    days,
    midnight,
    moved,
    nearest,
    part_of,
    pick,
    unit_span,
    which_of,
    year_of,
    years_around,
)
from hermes_memory.adapters.rule_extractor.daytime import number


def day_named(groups: Groups, here: Here) -> Span | None:
    """A day of a month, "5月7号": of the year that is named, else the nearest."""
    month, day = _month_number(groups["month"] or "", here), int(groups["day"] or 0)
    if (year := year_of(groups, here)) is not None:
        return days(date(year, month, day))
    date(2000, month, day)  # is there such a day
    return nearest((days(one) for one in _dates_in(years_around(here), month, day)), None, here)


def _dates_in(years: Iterable[int], month: int, day: int) -> Iterator[date]:
    for year in years:
        try:
            yield date(year, month, day)
        except ValueError:
            continue  # the 29th of February


def _month_number(word: str, here: Here) -> int:
    return int(word) if word.isdigit() else here.words.months[word]


def month_named(groups: Groups, here: Here) -> Span | None:
    """A month: of the year that is named, the last or the next one, else the nearest."""
    month = _month_number(groups["month"] or "", here)
    if (year := year_of(groups, here)) is not None:
        return unit_span("month", date(year, month, 1), 0)
    spans = (unit_span("month", date(year, month, 1), 0) for year in years_around(here))
    return nearest(spans, which_of(groups, here), here)


def day_of_month(groups: Groups, here: Here) -> Span:
    """A day of the last, this or the next month."""
    first = moved(here.today.replace(day=1), here.words.steps[groups["step"] or ""])
    return days(first.replace(day=int(groups["day"] or 0)))


def day_alone(groups: Groups, here: Here) -> Span | None:
    """A day without its month, "on the 5th"."""
    day = int(groups["day"] or 0)
    months = (moved(here.today.replace(day=1), step) for step in range(-3, 4))
    spans = [days(one) for first in months for one in _dates_in([first.year], first.month, day)]
    return pick(spans, None, here) if spans else None


def quarter_named(groups: Groups, here: Here) -> Span:
    """A quarter: of the year that is named, else of the current one."""
    quarter = number(groups["quarter"] or "")
    year = year_of(groups, here)
    span = unit_span("quarter", date(year or here.today.year, 3 * quarter - 2, 1), 0)
    ahead = year is None and here.back and span[0] > here.now
    return unit_span("quarter", date(here.today.year - 1, 3 * quarter - 2, 1), 0) if ahead else span


def whole_year(groups: Groups, here: Here) -> Span:
    """A year by its number or from the current one."""
    return unit_span("year", date(year_of(groups, here) or 0, 1, 1), 0)


def decade_named(groups: Groups, here: Here) -> Span:
    """The ten years from one with a nought: "90年代" is the last one that has begun."""
    year = int(groups["year"] or 0)
    if year < 100:
        year += 2000 if 2000 + year <= here.today.year else 1900
    return unit_span("decade", date(year, 1, 1), 0)


def current_year(_: Groups, here: Here) -> Span:
    """The current year, of which only a part is named."""
    return unit_span("year", here.today, 0)


def season_named(groups: Groups, here: Here) -> Span | None:
    """A season: of a year, the last, this or the next one."""
    first = here.words.seasons[groups["season"] or ""]

    def in_year(year: int) -> Span:
        return midnight(date(year, first, 1)), midnight(moved(date(year, first, 1), 3))

    if (year := year_of(groups, here)) is not None:
        running = in_year(year - 1)  # "this winter", said in January
        return running if running[0] <= here.now < running[1] and groups.get("step") else in_year(year)
    return pick(map(in_year, years_around(here)), which_of(groups, here), here)


def feast_named(groups: Groups, here: Here) -> Span | None:
    """A feast: of a year, the last, this or the next one."""
    feast = here.words.feasts[groups["feast"] or ""]
    if (year := year_of(groups, here)) is not None:
        return next(_occasions(feast, [year]), None)
    return pick(_occasions(feast, years_around(here)), which_of(groups, here), here)


def _occasions(feast: Feast, years: Iterable[int]) -> Iterator[Span]:
    if feast.at is not None:
        yield from (days(date(year, *feast.at), feast.days) for year in years)
    else:
        wanted = set(years)
        yield from (days(day, feast.days) for day in feast.on if day.year in wanted)


def weekday_named(groups: Groups, here: Here) -> Span | None:
    """A weekday, of a week or by itself; "last Friday" is the nearest one behind."""
    wanted, today, step = here.words.weekdays[groups["weekday"] or ""], here.today, groups.get("step")
    if week := groups.get("week"):
        day = today + timedelta(days=wanted - today.weekday() + 7 * here.words.steps[week])
    elif step and step not in here.words.nearest and here.words.steps[step] >= 0:
        day = today + timedelta(days=wanted - today.weekday() + 7 * here.words.steps[step])
    elif step not in here.words.nearest and (step or here.back):
        day = today - timedelta(days=(today.weekday() - wanted) % 7 or 7)
    else:
        day = today + timedelta(days=(wanted - today.weekday()) % 7)
    return part_of(day, groups.get("part"), here)


def near_day(groups: Groups, here: Here) -> Span:
    """Today and its neighbours, or a part of them."""
    day = here.today + timedelta(days=here.words.near[groups["near"] or ""])
    return part_of(day, groups.get("part"), here)


def night_named(groups: Groups, here: Here) -> Span:
    """A day and its part in one word, "昨晚"."""
    step, part = here.words.nights[groups["night"] or ""]
    return part_of(here.today + timedelta(days=step), part, here)


def unit_named(groups: Groups, here: Here) -> Span:
    """The last, this or the next week, weekend, month, quarter, year or decade."""
    unit, step = here.words.units[groups["unit"] or ""], groups.get("step")
    if step is None:  # the weekend: one may be in it
        running = unit_span(unit, here.today, 0)
        return unit_span(unit, here.today, -1) if here.back and running[0] > here.now else running
    return unit_span(unit, here.today, here.words.steps[step])


def before_last(groups: Groups, here: Here) -> Span:
    """The one before the last, or after the next."""
    return unit_span(here.words.units[groups["unit"] or ""], here.today, 2 if groups.get("after") else -2)
