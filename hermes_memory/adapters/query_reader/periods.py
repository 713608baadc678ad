"""The periods that a query names: single expressions first, then what joins them ("before", "since", "from … to …")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from hermes_memory.adapters.query_reader.data import Edge, Form, TimeRule, TimeWords
from hermes_memory.adapters.query_reader.resolving import resolve
from hermes_memory.adapters.query_reader.spans import Here, Span, midnight
from hermes_memory.core.asking import Period

_REACH = 24  # characters around an expression in which words belong to it
_HABITUAL = frozenset({"weekday", "unit", "season", "feast", "month"})  # "what do I usually do on Monday"
_TOPICS = frozenset(
    {"feast", "season"}
)  # in Chinese no preposition tells "at Christmas" from Christmas as such
_NAMED = ("step", "which", "week", "year")  # groups that say which one is meant
_CYCLES = {"date": "year", "month": "year", "season": "year", "feast": "year", "weekday": "week"}
_WEEK = timedelta(days=7)
_SHORTEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Named:
    """``text[start:end]`` names a span of time; ``comes_again`` where it does not say of which year or week."""

    start: int
    end: int
    span: Span
    comes_again: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The periods, and the text without the words that name them."""

    periods: tuple[Period, ...]
    rest: Form


class PeriodFinder:
    """Finds periods by the rules of the file; holds no state between texts."""

    def __init__(self, words: TimeWords) -> None:
        self._words = words

    def find(self, form: Form, as_of: datetime, zone: tzinfo, *, back: bool) -> Found:
        """The periods of a text in its search form, in the order of their places; ``back`` if it asks of the past."""
        if not self._words.hint.found_in(form):
            return Found((), form)
        try:
            now = as_of.astimezone(zone).replace(tzinfo=None)
        except OverflowError:
            return Found((), form)
        here = Here(now, back, self._words.calendar)
        named = self._joined(
            form.text, [self._edged(form.text, one) for one in self._single(form, here)], here
        )
        periods = (self._period(one.span, zone) for one in named)
        return Found(
            tuple(dict.fromkeys(period for period in periods if period)),
            replace(form, text=_without(form.text, named)),
        )

    def _single(self, form: Form, here: Here) -> list[Named]:
        """Each expression by itself; the first rule that takes a stretch keeps it, resolved or not."""
        taken: list[tuple[int, int]] = []
        found: list[Named] = []
        habit = self._words.habit.found_in(form)
        for rule in self._applicable(form):
            for hit in rule.regex.finditer(form.text):
                start, end = rule.span(hit)
                if any(start < other_end and other < end for other, other_end in taken):
                    continue
                taken.append((start, end))
                if not _is_loose(rule, hit, here, habit=habit) and (span := resolve(rule.kind, hit, here)):
                    found.append(Named(start, end, span, _comes_again(rule, hit)))
        return sorted(found, key=lambda one: one.start)

    def _applicable(self, form: Form) -> Iterator[TimeRule]:
        """The rules of the text's scripts of whose hints one is in it."""
        hinted = [any(map(form.text.__contains__, words)) for words in self._words.hints]
        for rule in self._words.rules:
            if hinted[rule.hint] and (
                rule.language is None or (form.han if rule.language == "zh" else form.latin)
            ):
                yield rule

    def _edged(self, text: str, one: Named) -> Named:
        """With "early", "底" and the like: the part of it that is meant."""
        before, behind = text[max(0, one.start - _REACH) : one.start], text[one.end : one.end + _REACH]
        for edge in self._words.edges:
            if (reach := edge.reach(before, behind)) is not None:
                span = _share(one.span, edge)
                return replace(one, start=one.start - reach[0], end=one.end + reach[1], span=span)
        return one

    def _joined(self, text: str, named: Sequence[Named], here: Here) -> list[Named]:
        joined: list[Named] = []
        at = 0
        while at < len(named):
            one = named[at]
            if at + 1 < len(named) and (whole := self._from_to(text, one, named[at + 1], here)):
                one, at = whole, at + 1
            joined.append(self._bounded(text, one, here))
            at += 1
        return joined

    def _from_to(self, text: str, one: Named, other: Named, here: Here) -> Named | None:
        """Two periods as the ends of one."""
        gap = text[one.end : other.start]
        if len(gap) > _REACH or not self._words.between.search(gap):
            return None
        first, last = _in_order(one, other, here)
        if first >= last:
            return None
        opened = self._words.opens.search(text[max(0, one.start - _REACH) : one.start])
        if self._words.apart.search(gap) and not opened:
            return None
        start = one.start - len(opened[0]) if opened else one.start
        return Named(start, other.end, (first, last))

    def _bounded(self, text: str, one: Named, here: Here) -> Named:
        """With "before", "after" or "since": what lies on that side of it."""
        before, behind = text[max(0, one.start - _REACH) : one.start], text[one.end : one.end + _REACH]
        for name, join in self._words.joins.items():
            if (reach := join.span(before, behind)) is not None:
                return Named(one.start - reach[0], one.end + reach[1], self._side(name, one.span, here))
        return one

    def _side(self, name: str, span: Span, here: Here) -> Span:
        words = self._words.calendar
        if name == "before":
            return midnight(here.today.replace(words.first_year, 1, 1)), span[0]
        if name == "after":
            return span[1], midnight(here.today.replace(words.last_year, 1, 1))
        tomorrow = midnight(here.today) + timedelta(days=1)
        return span[0], max(tomorrow, span[1])

    def _period(self, span: Span, zone: tzinfo) -> Period | None:
        words = self._words.calendar
        if not words.first_year <= span[0].year <= span[1].year <= words.last_year:
            return None
        start, end = (side.replace(tzinfo=zone) for side in span)
        return Period(start, end) if start.astimezone(UTC) < end.astimezone(UTC) else None


def _comes_again(rule: TimeRule, hit: re.Match[str]) -> str:
    return "" if any(hit.groupdict().get(name) for name in _NAMED) else _CYCLES.get(rule.kind, "")


def _in_order(one: Named, other: Named, here: Here) -> Span:
    """The outer ends of two: "May" of "May to July 2021" is that year's, "Monday to Friday" is of one week."""
    first, last = one.span[0], other.span[1]
    if one.comes_again == "year" and not other.comes_again:
        first = _in_year(first, other.span[0].year)
        return (first if first < last else _in_year(first, first.year - 1)), last
    if one.comes_again == other.comes_again == "week" and first >= last:
        return (first - _WEEK, last) if here.back else (first, last + _WEEK)
    return first, last


def _in_year(at: datetime, year: int) -> datetime:
    return at.replace(year=year, day=min(at.day, 28) if at.month == 2 else at.day)


def _is_loose(rule: TimeRule, hit: re.Match[str], here: Here, *, habit: bool) -> bool:
    """Whether it names no certain time: a weekday of every week, a feast as such."""
    if rule.kind not in _HABITUAL or any(hit.groupdict().get(name) for name in _NAMED):
        return False
    return habit or (rule.kind in _TOPICS and rule.language == "zh" and not here.back)


def _share(span: Span, edge: Edge) -> Span:
    """A part of it, in whole days where it has more than one."""
    length = span[1] - span[0]
    unit = timedelta(days=1) if length > timedelta(days=1) else _SHORTEST
    low, high = (round(length * share / unit) for share in edge.share)
    return span[0] + low * unit, span[0] + max(high, low + 1) * unit


def _without(text: str, named: Sequence[Named]) -> str:
    """The text with a blank for each of them."""
    return " ".join(_between(text, named))


def _between(text: str, named: Sequence[Named]) -> Iterator[str]:
    at = 0
    for one in named:
        yield text[at : one.start]
        at = max(at, one.end)
    yield text[at:]
