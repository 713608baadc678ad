"""The rule that resolves each kind of expression of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hermes_memory.adapters.query_reader import distances, naming
from hermes_memory.adapters.query_reader.spans import Groups, Here, Span


def resolve(kind: str, hit: re.Match[str], here: Here) -> Span | None:
    """The span of one expression; None where it names no day there is, or none that memory reaches."""
    try:
        return RESOLVE[kind](hit.groupdict(), here)
    except (ValueError, OverflowError, KeyError):
        return None  # the thirty-first of June


RESOLVE: Mapping[str, Callable[[Groups, Here], Span | None]] = {
    "date": naming.day_named,
    "month": naming.month_named,
    "day_of_month": naming.day_of_month,
    "day": naming.day_alone,
    "quarter": naming.quarter_named,
    "year": naming.whole_year,
    "decade": naming.decade_named,
    "edge_of_year": naming.current_year,
    "season": naming.season_named,
    "feast": naming.feast_named,
    "weekday": naming.weekday_named,
    "near": naming.near_day,
    "night": naming.night_named,
    "unit": naming.unit_named,
    "before_last": naming.before_last,
    "ago": distances.ago,
    "ahead": distances.ahead,
    "last_n": distances.last_n,
    "same_time": distances.same_time,
    "vague": distances.vague,
}
