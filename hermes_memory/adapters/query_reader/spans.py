"""What an expression of time stands for: local days or hours, seen from the day of the query.

A question looks both ways: "on Monday" is the last one in a question about the past and the next one elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from hermes_memory.adapters.query_reader.data import Calendar, Feast
from hermes_memory.adapters.rule_extractor.daytime import number

Span = tuple[datetime, datetime]  # local, without a time zone; the end is not in it
Groups = Mapping[str, str | None]

_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DAYS_OF = {"day": 1, "week": 7, "weekend": 7}
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


def resolve(kind: str, hit: re.Match[str], here: Here) -> Span | None:
    """The span of one expression; None where it names no day there is, or none that memory reaches."""
    try:
        return RESOLVE[kind](hit.groupdict(), here)
    except (ValueError, OverflowError, KeyError):
        return None  # the thirty-first of June


def midnight(day: date) -> datetime:
    """The beginning of a day."""
    return datetime.combine(day, time())


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
    if unit == "day":
        return days(today + timedelta(days=step))
    if unit in _DAYS_OF:
        monday = today + timedelta(days=7 * step - today.weekday())
        return days(monday + timedelta(days=5), 2) if unit == "weekend" else days(monday, 7)
    length = _MONTHS_OF[unit]
    first = (today.year * 12 + today.month - 1) // length * length + step * length
    return midnight(date(first // 12, first % 12 + 1, 1)), midnight(
        moved(date(first // 12, first % 12 + 1, 1), length)
    )


def _shifted(today: date, unit: str, count: float) -> date:
    """``count`` units later; parts of a month in days."""
    if unit in _DAYS_OF:
        return today + timedelta(days=round(count * _DAYS_OF[unit]))
    months = count * _MONTHS_OF[unit]
    return moved(today, int(months)) + timedelta(days=round((months - int(months)) * 30))


def _year(groups: Groups, here: Here) -> int | None:
    if year := groups.get("year"):
        return int(year)
    if step := groups.get("step"):
        return here.today.year + here.words.steps[step]
    return None


def _which(groups: Groups, here: Here) -> int | None:
    word = groups.get("which")
    return here.words.steps[word] if word else None


def _pick(occasions: Iterable[Span], which: int | None, here: Here) -> Span | None:
    """Of what comes again: the last, the current or the next; without a word for it as the question looks."""
    spans = sorted(occasions)
    now, day_end = here.now, midnight(here.today) + timedelta(days=1)
    if which == 0:
        near = [span for span in spans if span[0] <= now < span[1]]
        return (near or [span for span in spans if span[0].year == now.year] or [None])[0]
    if which is not None and which < 0:
        return max((span for span in spans if span[1] <= midnight(here.today)), default=None)
    if which is not None:
        return min((span for span in spans if span[0] >= day_end), default=None)
    if here.back:
        return max((span for span in spans if span[0] <= now), default=None)
    return min((span for span in spans if span[1] > midnight(here.today)), default=None)


def _nearest(occasions: Iterable[Span], which: int | None, here: Here) -> Span | None:
    """As ``_pick``, but in a question of no tense what is not long past comes before the next."""
    spans = sorted(occasions)
    if which is None and not here.back:
        since = here.now - timedelta(days=here.words.nearest_days)
        return next((span for span in spans if span[1] > since), None)
    return _pick(spans, which, here)


def _years(here: Here) -> range:
    return range(here.today.year - _AROUND_YEARS, here.today.year + _AROUND_YEARS + 1)


# --------------------------------------------------------------------------------------------------- dates


def _month_number(word: str, here: Here) -> int:
    return int(word) if word.isdigit() else here.words.months[word]


def _date(groups: Groups, here: Here) -> Span | None:
    month, day = _month_number(groups["month"] or "", here), int(groups["day"] or 0)
    if (year := _year(groups, here)) is not None:
        return days(date(year, month, day))
    date(2000, month, day)  # is there such a day
    return _nearest((days(one) for one in _on(_years(here), month, day)), None, here)


def _on(years: Iterable[int], month: int, day: int) -> Iterator[date]:
    for year in years:
        try:
            yield date(year, month, day)
        except ValueError:
            continue  # the 29th of February


def _month(groups: Groups, here: Here) -> Span | None:
    month = _month_number(groups["month"] or "", here)
    if (year := _year(groups, here)) is not None:
        return unit_span("month", date(year, month, 1), 0)
    spans = (unit_span("month", date(year, month, 1), 0) for year in _years(here))
    return _nearest(spans, _which(groups, here), here)


def _day_of_month(groups: Groups, here: Here) -> Span:
    first = moved(here.today.replace(day=1), here.words.steps[groups["step"] or ""])
    return days(first.replace(day=int(groups["day"] or 0)))


def _day(groups: Groups, here: Here) -> Span | None:
    day = int(groups["day"] or 0)
    months = (moved(here.today.replace(day=1), step) for step in range(-3, 4))
    spans = [days(one) for first in months for one in _on([first.year], first.month, day)]
    return _pick(spans, None, here) if spans else None


def _quarter(groups: Groups, here: Here) -> Span:
    quarter = number(groups["quarter"] or "")
    year = _year(groups, here)
    span = unit_span("quarter", date(year or here.today.year, 3 * quarter - 2, 1), 0)
    ahead = year is None and here.back and span[0] > here.now
    return unit_span("quarter", date(here.today.year - 1, 3 * quarter - 2, 1), 0) if ahead else span


def _whole_year(groups: Groups, here: Here) -> Span:
    return unit_span("year", date(_year(groups, here) or 0, 1, 1), 0)


def _decade(groups: Groups, here: Here) -> Span:
    year = int(groups["year"] or 0)
    if year < 100:
        year += 2000 if 2000 + year <= here.today.year else 1900
    return unit_span("decade", date(year, 1, 1), 0)


def _current_year(_: Groups, here: Here) -> Span:
    return unit_span("year", here.today, 0)


# ------------------------------------------------------------------------------------- seasons, feasts, weeks


def _season(groups: Groups, here: Here) -> Span | None:
    first = here.words.seasons[groups["season"] or ""]

    def in_year(year: int) -> Span:
        return midnight(date(year, first, 1)), midnight(moved(date(year, first, 1), 3))

    if (year := _year(groups, here)) is not None:
        running = in_year(year - 1)  # "this winter", said in January
        return running if running[0] <= here.now < running[1] and groups.get("step") else in_year(year)
    return _pick(map(in_year, _years(here)), _which(groups, here), here)


def _feast(groups: Groups, here: Here) -> Span | None:
    feast = here.words.feasts[groups["feast"] or ""]
    if (year := _year(groups, here)) is not None:
        return next(_occasions(feast, [year]), None)
    return _pick(_occasions(feast, _years(here)), _which(groups, here), here)


def _occasions(feast: Feast, years: Iterable[int]) -> Iterator[Span]:
    if feast.at is not None:
        yield from (days(date(year, *feast.at), feast.days) for year in years)
    else:
        wanted = set(years)
        yield from (days(day, feast.days) for day in feast.on if day.year in wanted)


def _weekday(groups: Groups, here: Here) -> Span | None:
    wanted, today, step = here.words.weekdays[groups["weekday"] or ""], here.today, groups.get("step")
    if week := groups.get("week"):
        day = today + timedelta(days=wanted - today.weekday() + 7 * here.words.steps[week])
    elif step and step not in here.words.nearest and here.words.steps[step] >= 0:
        day = today + timedelta(days=wanted - today.weekday() + 7 * here.words.steps[step])
    elif step not in here.words.nearest and (step or here.back):
        day = today - timedelta(days=(today.weekday() - wanted) % 7 or 7)
    else:
        day = today + timedelta(days=(wanted - today.weekday()) % 7)
    return _part_of(day, groups.get("part"), here)


def _part_of(day: date, part: str | None, here: Here) -> Span:
    """The hours of a day; the whole of it where no part is named. A night ends on the next day."""
    if part is None:
        return days(day)
    first, last = here.words.parts[part]
    return midnight(day) + timedelta(hours=first), midnight(day) + timedelta(hours=last)


def _near(groups: Groups, here: Here) -> Span:
    day = here.today + timedelta(days=here.words.near[groups["near"] or ""])
    return _part_of(day, groups.get("part"), here)


def _night(groups: Groups, here: Here) -> Span:
    step, part = here.words.nights[groups["night"] or ""]
    return _part_of(here.today + timedelta(days=step), part, here)


def _unit(groups: Groups, here: Here) -> Span:
    unit, step = here.words.units[groups["unit"] or ""], groups.get("step")
    if step is None:  # the weekend: one may be in it
        running = unit_span(unit, here.today, 0)
        return unit_span(unit, here.today, -1) if here.back and running[0] > here.now else running
    return unit_span(unit, here.today, here.words.steps[step])


def _before_last(groups: Groups, here: Here) -> Span:
    return unit_span(here.words.units[groups["unit"] or ""], here.today, 2 if groups.get("after") else -2)


# -------------------------------------------------------------------------------------------------- distances


def _count(groups: Groups, here: Here, name: str = "n") -> tuple[float, float]:
    word = groups[name] or ""
    low, high = here.words.numbers[word] if word in here.words.numbers else (float(number(word)),) * 2
    half = 0.5 if groups.get("half") or groups.get("half2") else 0.0
    return low + half, high + half


def _ago(groups: Groups, here: Here) -> Span | None:
    """Around the day so long ago; a day is exact, a longer unit leaves half of itself on both sides."""
    low, high = _count(groups, here)
    unit = here.words.units[groups["unit"] or ""]
    if unit == "hour":
        return here.now - timedelta(hours=high + 0.5), here.now - timedelta(hours=max(0.0, low - 0.5))
    if high * _MONTHS_OF.get(unit, 0) > here.words.most_years * 12:
        return None
    slack = here.words.slack_days.get(unit, here.words.slack_days["week"]) if unit != "day" else 0
    slack = slack // 2 if high < 1 else slack
    first = _shifted(here.today, unit, -high) - timedelta(days=slack)
    last = min(_shifted(here.today, unit, -low) + timedelta(days=slack), here.today)
    return days(first, (last - first).days + 1)


def _ahead(groups: Groups, here: Here) -> Span | None:
    if here.back:
        return None  # "in three weeks" of a question about the past is a length of time
    name = "n" if groups["n"] else "n2"
    unit = here.words.units[groups["unit" if name == "n" else "unit2"] or ""]
    low, high = _count(groups, here, name)
    if unit == "hour":
        return here.now + timedelta(hours=max(0.0, low - 0.5)), here.now + timedelta(hours=high + 0.5)
    slack = here.words.slack_days.get(unit, 0)
    first = max(_shifted(here.today, unit, low) - timedelta(days=slack), here.today)
    last = _shifted(here.today, unit, high) + timedelta(days=slack)
    return days(first, (last - first).days + 1)


def _last_n(groups: Groups, here: Here) -> Span | None:
    """So long up to now, or from now on."""
    _, count = _count(groups, here)
    unit, ahead = here.words.units[groups["unit"] or ""], groups["dir"] in here.words.ahead
    if unit == "hour":
        length = timedelta(hours=count)
        return (here.now, here.now + length) if ahead else (here.now - length, here.now)
    if count * _MONTHS_OF.get(unit, 0) > here.words.most_years * 12:
        return None
    tomorrow = midnight(here.today) + timedelta(days=1)
    if ahead:
        return midnight(here.today), midnight(_shifted(here.today, unit, count)) + timedelta(days=1)
    return midnight(_shifted(here.today, unit, -count)), tomorrow


def _same_time(groups: Groups, here: Here) -> Span:
    unit = here.words.units[groups.get("unit") or "year"]
    day = _shifted(here.today, unit, -1)
    if groups.get("unit2") in here.words.near:
        return days(day)
    slack = min(here.words.same_time_days, here.words.slack_days[unit])
    return days(day - timedelta(days=slack), 2 * slack + 1)


def _vague(groups: Groups, here: Here) -> Span:
    oldest, newest = here.words.vague[groups["vague"] or ""]
    return days(here.today - timedelta(days=oldest), oldest - newest)


RESOLVE: Mapping[str, Callable[[Groups, Here], Span | None]] = {
    "date": _date,
    "month": _month,
    "day_of_month": _day_of_month,
    "day": _day,
    "quarter": _quarter,
    "year": _whole_year,
    "decade": _decade,
    "edge_of_year": _current_year,
    "season": _season,
    "feast": _feast,
    "weekday": _weekday,
    "near": _near,
    "night": _night,
    "unit": _unit,
    "before_last": _before_last,
    "ago": _ago,
    "ahead": _ahead,
    "last_n": _last_n,
    "same_time": _same_time,
    "vague": _vague,
}
