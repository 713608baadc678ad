"""What may be under way at one place: bounded, reads refused later, and when to come again."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from hermes_memory.errors import Overloaded
from hermes_memory.runtime.in_flight import LATEST_S, SOONEST_S, InFlight


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def test_a_write_is_refused_at_the_limit_and_a_read_at_half_as_much_again(seconds: Seconds) -> None:
    calls = InFlight(4, seconds)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(calls.write())
        assert calls.full
        with pytest.raises(Overloaded), calls.write():
            pass
        for _ in range(2):
            held.enter_context(calls.read())
        with pytest.raises(Overloaded), calls.read():
            pass
        assert len(calls) == 6, "what was refused is not counted"
    assert len(calls) == 0
    with calls.write():
        assert not calls.full


def test_what_fails_is_over_too(seconds: Seconds) -> None:
    calls = InFlight(1, seconds)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"), calls.write():
            raise ValueError("broken")
    assert len(calls) == 0


def test_come_again_after_as_long_as_a_call_takes(seconds: Seconds) -> None:
    calls = InFlight(1, seconds)
    assert calls.retry_after_s == SOONEST_S
    for _ in range(100):
        with calls.write():
            seconds.now += 3.0
    assert calls.retry_after_s == pytest.approx(3.0, rel=0.01)


def test_the_oldest_call_tells_of_a_place_that_is_stuck(seconds: Seconds) -> None:
    calls = InFlight(1, seconds)
    with calls.write():
        seconds.now += 12.0
        with pytest.raises(Overloaded) as refused, calls.write():
            pass
        assert refused.value.retry_after_s == 12.0
        seconds.now += 1_000.0
        assert calls.retry_after_s == LATEST_S
