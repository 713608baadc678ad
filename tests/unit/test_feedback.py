"""Signals move rank, and the disproof count of negative memories; nothing else (SPEC §12, S1 §4.3, S2 §4.4)."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.config import load_settings
from hermes_memory.core.board import Board
from hermes_memory.core.decay import decay
from hermes_memory.core.feedback import adrift, felt, liking
from hermes_memory.core.model import Affirmed, Lock, Memory, Signal
from hermes_memory.testing.builders import NOW, a_memory

RULES = load_settings().rules
FEEDBACK = RULES.feedback


def after(memory: Memory, *signals: Signal) -> Memory:
    """Each from a conversation of its own."""
    for number, signal in enumerate(signals):
        memory = felt(memory, f"s{number}", signal, NOW, FEEDBACK)
    return memory


def test_a_like_raises_and_a_dislike_lowers_the_rank() -> None:  # S1 §4.3
    assert liking(a_memory(), FEEDBACK) == 1.0
    assert liking(after(a_memory(), Signal.LIKE), FEEDBACK) == pytest.approx(1.05)
    assert liking(after(a_memory(), Signal.CLICK), FEEDBACK) == pytest.approx(1.05)
    assert liking(after(a_memory(), Signal.DISLIKE), FEEDBACK) == pytest.approx(0.95)
    assert liking(after(a_memory(), Signal.IGNORE), FEEDBACK) == pytest.approx(0.975)


@given(st.lists(st.sampled_from(Signal), max_size=60), st.booleans())
def test_the_factor_stays_within_its_bounds(signals: list[Signal], negative: bool) -> None:
    memory = after(a_memory(negative=negative), *signals)
    assert FEEDBACK.least <= liking(memory, FEEDBACK) <= FEEDBACK.most
    assert len(memory.feedback) <= FEEDBACK.kept


@given(st.lists(st.sampled_from(Signal), max_size=10), st.sampled_from(Lock), st.booleans())
def test_nothing_else_of_a_memory_changes(signals: list[Signal], lock: Lock, negative: bool) -> None:
    memory = a_memory(lock=lock, negative=negative)
    then = after(memory, *signals)
    changed = {
        field.name for field in fields(Memory) if getattr(then, field.name) != getattr(memory, field.name)
    }
    assert changed <= {"feedback", "contradictions"}
    assert negative or then.contradictions == memory.contradictions


def test_the_same_signal_of_a_conversation_counts_once() -> None:
    once = felt(a_memory(negative=True), "s1", Signal.CLICK, NOW, FEEDBACK)
    assert felt(once, "s1", Signal.CLICK, NOW, FEEDBACK) is once
    assert felt(once, "s2", Signal.CLICK, NOW, FEEDBACK).contradictions == 2


def test_three_clicks_end_the_two_weeks_of_a_negative_memory() -> None:  # S2 §4.4, SPEC §7.2
    memory = a_memory(negative=True, category="PREFERENCE", stability=0.0)
    old = memory.with_(updated_at=NOW.replace(year=NOW.year - 1))
    assert decay(old, NOW, RULES.life) < 1.0
    fast = replace(RULES.life, plateau_days=0.0)  # what is not kept high decays from the first week on
    in_ten_days = memory.updated_at + timedelta(days=10)
    for clicks, kept in ((2, True), (3, False)):
        clicked = after(memory, *[Signal.CLICK] * clicks)
        assert clicked.contradictions == clicks
        assert (decay(clicked, in_ten_days, fast) == 1.0) is kept
    assert liking(after(memory, Signal.CLICK), FEEDBACK) < 1.0


def test_a_like_and_a_click_of_one_conversation_are_one_disproof() -> None:
    liked = felt(a_memory(negative=True), "s1", Signal.LIKE, NOW, FEEDBACK)
    assert felt(liked, "s1", Signal.CLICK, NOW, FEEDBACK).contradictions == 1
    assert felt(liked, "s1", Signal.DISLIKE, NOW, FEEDBACK).contradictions == 1


def test_behaviour_speaks_against_a_slot_when_more_is_against_it_than_for_it() -> None:  # S2 §5.5
    once = a_memory(contradictions=1)
    assert not adrift([once])
    assert adrift([once.with_(contradictions=2)])
    said = Affirmed(session_id="s2", message_id="m2", at=NOW)
    assert not adrift([once.with_(contradictions=2, confirmations=(said,))])
    assert not adrift([once.with_(contradictions=2), a_memory(confirmations=(said,))])
    assert adrift([after(a_memory(), Signal.DISLIKE, Signal.DISLIKE)])
    assert not adrift([after(a_memory(), Signal.DISLIKE, Signal.DISLIKE, Signal.CLICK)])
    assert not adrift([after(a_memory(negative=True), Signal.DISLIKE, Signal.DISLIKE)])
    assert adrift([after(a_memory(negative=True), Signal.CLICK, Signal.CLICK)])
    assert not adrift([after(a_memory(), *[Signal.IGNORE] * 5)])


def test_a_signal_makes_no_new_version() -> None:
    memory = a_memory()
    board = Board({memory.id: memory}, NOW)
    board.put(after(memory, Signal.LIKE))
    assert board[memory.id].version == memory.version
    assert len(board.changed) == 1
