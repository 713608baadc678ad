"""The pure value: a period is aware and not empty."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hermes_memory.core.asking import NOTHING_KNOWN, Asked, Period

DAY = datetime(2023, 8, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (DAY, DAY),
        (DAY, DAY - timedelta(days=1)),
        (DAY.replace(tzinfo=None), DAY + timedelta(days=1)),
        (DAY, (DAY + timedelta(days=1)).replace(tzinfo=None)),
        # the clocks go back: two o'clock comes after a quarter past
        (datetime(2024, 11, 3, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")), datetime(2024, 11, 3, 6, 15, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_what_is_no_period(start: datetime, end: datetime) -> None:
    with pytest.raises(ValueError, match="period"):
        Period(start, end)


def test_a_period_holds_its_start_and_not_its_end() -> None:
    period = Period(DAY, DAY + timedelta(days=1))
    assert DAY in period
    assert DAY + timedelta(days=1) not in period


def test_nothing_known_asks_nothing() -> None:
    assert Asked() == NOTHING_KNOWN
