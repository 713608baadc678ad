"""What keeps failing is left alone for a while, then tried by one."""

from __future__ import annotations

from datetime import timedelta

from hermes_memory.runtime.breaker import Breaker
from hermes_memory.testing.builders import NOW

LATER = NOW + timedelta(seconds=5)


def shut() -> Breaker:
    breaker = Breaker(failures=2, pause_s=5.0)
    for _ in range(2):
        assert breaker.lets(NOW)
        breaker.failed(NOW)
    return breaker


def test_it_shuts_after_so_many_failures_in_a_row() -> None:
    breaker = Breaker(failures=2, pause_s=5.0)
    breaker.failed(NOW)
    breaker.succeeded()
    breaker.failed(NOW)
    assert breaker.lets(NOW)
    breaker.failed(NOW)
    assert not breaker.lets(NOW)
    assert not breaker.lets(LATER - timedelta(microseconds=1))


def test_after_the_pause_one_tries_and_a_success_lets_everybody_through() -> None:
    breaker = shut()
    assert [breaker.lets(LATER) for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert breaker.lets(LATER)
    breaker.failed(LATER)
    assert breaker.lets(LATER)  # it counts from the beginning


def test_a_failed_try_begins_another_pause() -> None:
    breaker = shut()
    assert breaker.lets(LATER)
    breaker.failed(LATER)
    assert not breaker.lets(LATER)
    assert breaker.lets(LATER + timedelta(seconds=5))


def test_who_gives_up_lets_another_try() -> None:
    breaker = shut()
    assert breaker.lets(LATER)
    breaker.given_up()
    assert [breaker.lets(LATER) for _ in range(2)] == [True, False]
