"""Expressions that count from the day of the query, "two weeks ago", "过去三个月": to spans of local time."""

from __future__ import annotations

from datetime import timedelta

from hermes_memory.adapters.query_reader.spans import MONTHS_OF, Groups, Here, Span, days, midnight, shifted
from hermes_memory.adapters.rule_extractor.daytime import number


def _count(groups: Groups, here: Here, name: str = "n") -> tuple[float, float]:
    word = groups[name] or ""
    low, high = here.words.numbers[word] if word in here.words.numbers else (float(number(word)),) * 2
    half = 0.5 if groups.get("half") or groups.get("half2") else 0.0
    return low + half, high + half


def ago(groups: Groups, here: Here) -> Span | None:
    """Around the day so long ago; a day is exact, a longer unit leaves half of itself on both sides."""
    low, high = _count(groups, here)
    unit = here.words.units[groups["unit"] or ""]
    if unit == "hour":
        return here.now - timedelta(hours=high + 0.5), here.now - timedelta(hours=max(0.0, low - 0.5))
    if high * MONTHS_OF.get(unit, 0) > here.words.most_years * 12:
        return None
    slack = here.words.slack_days.get(unit, here.words.slack_days["week"]) if unit != "day" else 0
    slack = slack // 2 if high < 1 else slack
    first = shifted(here.today, unit, -high) - timedelta(days=slack)
    last = min(shifted(here.today, unit, -low) + timedelta(days=slack), here.today)
    return days(first, (last - first).days + 1)


def ahead(groups: Groups, here: Here) -> Span | None:
    """Around the day so far ahead."""
    if here.back:
        return None  # "in three weeks" of a question about the past is a length of time
    name = "n" if groups["n"] else "n2"
    unit = here.words.units[groups["unit" if name == "n" else "unit2"] or ""]
    low, high = _count(groups, here, name)
    if unit == "hour":
        return here.now + timedelta(hours=max(0.0, low - 0.5)), here.now + timedelta(hours=high + 0.5)
    slack = here.words.slack_days.get(unit, 0)
    first = max(shifted(here.today, unit, low) - timedelta(days=slack), here.today)
    last = shifted(here.today, unit, high) + timedelta(days=slack)
    return days(first, (last - first).days + 1)


def last_n(groups: Groups, here: Here) -> Span | None:
    """So long up to now, or from now on."""
    _, count = _count(groups, here)
    unit, ahead = here.words.units[groups["unit"] or ""], groups["dir"] in here.words.ahead
    if unit == "hour":
        length = timedelta(hours=count)
        return (here.now, here.now + length) if ahead else (here.now - length, here.now)
    if count * MONTHS_OF.get(unit, 0) > here.words.most_years * 12:
        return None
    tomorrow = midnight(here.today) + timedelta(days=1)
    if ahead:
        return midnight(here.today), midnight(shifted(here.today, unit, count)) + timedelta(days=1)
    return midnight(shifted(here.today, unit, -count)), tomorrow


def same_time(groups: Groups, here: Here) -> Span:
    """The days around this one a year, a month or a week ago."""
    unit = here.words.units[groups.get("unit") or "year"]
    day = shifted(here.today, unit, -1)
    if groups.get("unit2") in here.words.near:
        return days(day)
    slack = min(here.words.same_time_days, here.words.slack_days[unit])
    return days(day - timedelta(days=slack), 2 * slack + 1)


def vague(groups: Groups, here: Here) -> Span:
    """A stretch that is no exact time, "the other day"."""
    oldest, newest = here.words.vague[groups["vague"] or ""]
    return days(here.today - timedelta(days=oldest), oldest - newest)
