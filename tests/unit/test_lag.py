"""The index's lag is seen from the outbox alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import LedgerUnavailable
from hermes_memory.runtime.lag import MAX_PAGES, PAGE, Lag
from hermes_memory.testing.builders import NOW
from tests.unit.test_metrics import samples

ANA, BEN = UserKey("default", "ana"), UserKey("default", "ben")


class Outbox:
    def __init__(self) -> None:
        self.waiting: set[UserKey] = set()
        self.buried: set[UserKey] = set()
        self.away = False
        self.asked = 0

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        self.asked += 1
        if self.away:
            raise LedgerUnavailable("x")
        return sorted(
            (key for key in (self.buried if buried else self.waiting) if str(key) > after), key=str
        )[:limit]


def levels(metrics: PrometheusMetrics) -> list[float]:
    names = ("waiting_users", "oldest_seconds", "dead_letter_users")
    return [samples(metrics.render(), f"hermes_outbox_{name}")[()] for name in names]


async def test_a_user_waits_from_the_first_look_that_saw_it() -> None:
    outbox, metrics = Outbox(), PrometheusMetrics()
    lag = Lag(outbox, metrics)
    await lag.look(NOW)
    assert levels(metrics) == [0, 0, 0]
    outbox.waiting = {ANA}
    await lag.look(NOW)
    outbox.waiting, outbox.buried = {ANA, BEN}, {BEN}
    await lag.look(NOW + timedelta(seconds=40))
    assert levels(metrics) == [2, 40, 1]
    outbox.waiting = {BEN}  # ana was delivered
    await lag.look(NOW + timedelta(seconds=50))
    assert levels(metrics) == [1, 10, 1]
    outbox.waiting, outbox.buried = set(), set()
    await lag.look(NOW + timedelta(seconds=60))
    assert levels(metrics) == [0, 0, 0]
    outbox.waiting = {BEN}  # anew
    await lag.look(NOW + timedelta(seconds=70))
    assert levels(metrics) == [1, 0, 0]


async def test_of_others_users_nothing_is_said() -> None:
    outbox, metrics = Outbox(), PrometheusMetrics()
    outbox.waiting = outbox.buried = {ANA, BEN}
    await Lag(outbox, metrics, lambda key: key == ANA).look(NOW)
    assert levels(metrics) == [1, 0, 1]


async def test_a_look_is_bounded_however_much_waits() -> None:
    outbox, metrics = Outbox(), PrometheusMetrics()
    outbox.waiting = {UserKey("default", f"u{n:06}") for n in range(PAGE * MAX_PAGES + 700)}
    await Lag(outbox, metrics).look(NOW)
    assert levels(metrics) == [PAGE * MAX_PAGES, 0, 0]
    assert outbox.asked == MAX_PAGES + 1


async def test_without_the_ledger_the_levels_stay() -> None:
    outbox, metrics = Outbox(), PrometheusMetrics()
    outbox.waiting = {ANA}
    lag = Lag(outbox, metrics)
    await lag.look(NOW)
    outbox.away = True
    with pytest.raises(LedgerUnavailable):
        await lag.look(NOW + timedelta(seconds=5))
    outbox.away = False
    await lag.look(NOW + timedelta(seconds=9))
    assert levels(metrics) == [1, 9, 0]
