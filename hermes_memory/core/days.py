"""Whole days as a user lives them: the night counts in these, so that the hour at which it runs decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo


@dataclass(frozen=True, slots=True)
class LocalDay:
    """One day of a time zone."""

    day: date
    zone: tzinfo = UTC

    @classmethod
    def of(cls, now: datetime, zone: tzinfo = UTC) -> LocalDay:
        """The day that ``now`` falls on there."""
        return cls(_local(now, zone), zone)

    @property
    def begins(self) -> datetime:
        """The first moment of it, in UTC: the present of everything that a night decides."""
        try:
            return datetime.combine(self.day, time(), self.zone).astimezone(UTC)
        except OverflowError:  # the first or the last day that a calendar knows
            return datetime.combine(self.day, time(), UTC)

    def since(self, then: datetime) -> int:
        """Whole days from the day of ``then`` to this one, never negative."""
        return max(0, (self.day - self.date_of(then)).days)

    def date_of(self, then: datetime) -> date:
        """The date of ``then`` in this zone."""
        return _local(then, self.zone)


def _local(moment: datetime, zone: tzinfo) -> date:
    try:
        return moment.astimezone(zone).date()
    except OverflowError:  # west of the first or east of the last day that a calendar knows
        return moment.date()
