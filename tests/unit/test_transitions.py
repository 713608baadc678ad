"""The two tables (SPEC §2, §5): every pair of state and event, legal or not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hermes_memory.core.model import Layer, Lock, Scope, Status, Tier
from hermes_memory.core.transitions import (
    LOCKS,
    STATUSES,
    LockEvent,
    StatusEvent,
    may_leave_working,
    move_lock,
    move_status,
    next_lock,
    next_status,
)
from hermes_memory.errors import Illegal, MemoryFrozen
from tests.small_world import a_memory

LEGAL_LOCKS = {
    (Lock.PENDING, LockEvent.CONFIRM): Lock.CONFIRMED,
    (Lock.PENDING, LockEvent.FREEZE_AT_ONCE): Lock.FROZEN,
    (Lock.PENDING, LockEvent.FREEZE_BY_HAND): Lock.FROZEN,
    (Lock.CONFIRMED, LockEvent.FREEZE): Lock.FROZEN,
    (Lock.CONFIRMED, LockEvent.FREEZE_BY_HAND): Lock.FROZEN,
    (Lock.FROZEN, LockEvent.UNFREEZE): Lock.UNFROZEN,
    (Lock.UNFROZEN, LockEvent.REFREEZE): Lock.FROZEN,
}
LEGAL_STATUSES = {
    (Status.ACTIVE, StatusEvent.REVIEW): Status.REVIEW,
    (Status.ACTIVE, StatusEvent.SUPERSEDE): Status.SUPERSEDED,
    (Status.ACTIVE, StatusEvent.ARCHIVE): Status.ARCHIVED,
    (Status.REVIEW, StatusEvent.MENTION): Status.ACTIVE,
    (Status.REVIEW, StatusEvent.SUPERSEDE): Status.SUPERSEDED,
    (Status.REVIEW, StatusEvent.ARCHIVE): Status.ARCHIVED,
    (Status.ARCHIVED, StatusEvent.REACTIVATE): Status.ACTIVE,
}


def test_spec_5_the_lock_table_is_the_published_one() -> None:
    assert LOCKS == LEGAL_LOCKS


def test_spec_2_the_status_table_is_the_published_one() -> None:
    assert STATUSES == LEGAL_STATUSES


@pytest.mark.parametrize(("lock", "event"), list(itertools.product(Lock, LockEvent)))
def test_spec_5_every_lock_and_event(lock: Lock, event: LockEvent) -> None:
    memory = a_memory(lock=lock)
    if (lock, event) in LEGAL_LOCKS:
        assert next_lock(lock, event) is LEGAL_LOCKS[lock, event]
        assert move_lock(memory, event).lock is LEGAL_LOCKS[lock, event]
        return
    before = a_memory(lock=lock)
    with pytest.raises(Illegal) as caught:
        move_lock(memory, event)
    assert (caught.value.state, caught.value.event) == (lock, event)
    assert memory == before


@pytest.mark.parametrize(("status", "event"), list(itertools.product(Status, StatusEvent)))
def test_spec_2_every_status_and_event(status: Status, event: StatusEvent) -> None:
    memory = a_memory(status=status)
    if (status, event) in LEGAL_STATUSES:
        assert next_status(status, event) is LEGAL_STATUSES[status, event]
        assert move_status(memory, event) == memory.with_(status=LEGAL_STATUSES[status, event])
        return
    before = a_memory(status=status)
    with pytest.raises(Illegal) as caught:
        move_status(memory, event)
    assert (caught.value.state, caught.value.event) == (status, event)
    assert memory == before


@pytest.mark.parametrize(("status", "event"), list(itertools.product(Status, StatusEvent)))
def test_spec_5_a_frozen_memory_refuses_every_change_of_status(status: Status, event: StatusEvent) -> None:
    with pytest.raises(MemoryFrozen) as caught:
        move_status(a_memory(status=status, lock=Lock.FROZEN), event)
    assert caught.value.memory_id == "mem-1"


@pytest.mark.parametrize("lock", [Lock.PENDING, Lock.CONFIRMED, Lock.UNFROZEN])
def test_spec_5_only_a_frozen_memory_refuses(lock: Lock) -> None:
    assert move_status(a_memory(lock=lock), StatusEvent.ARCHIVE).status is Status.ARCHIVED


@pytest.mark.parametrize(
    ("lock", "event"), [pair for pair, lock in LEGAL_LOCKS.items() if lock is Lock.FROZEN]
)
def test_spec_4_2_what_is_frozen_belongs_to_the_core_tier(lock: Lock, event: LockEvent) -> None:
    assert move_lock(a_memory(lock=lock, tier=Tier.LONGTERM), event).tier is Tier.CORE


@pytest.mark.parametrize(
    ("scope", "layer", "tier"),
    [
        (Scope.USER, Layer.IDENTITY, Tier.LONGTERM),
        (Scope.SCENE, Layer.PREFERENCE, Tier.LONGTERM),
        (Scope.USER, Layer.CONTEXT, Tier.WORKING),
        (Scope.SESSION, Layer.IDENTITY, Tier.WORKING),
        (Scope.USER, None, Tier.LONGTERM),
    ],
)
def test_spec_4_2_confirmation_moves_to_longterm_what_may_leave_working(
    scope: Scope, layer: Layer | None, tier: Tier
) -> None:
    memory = a_memory(scope=scope, layer=layer)
    assert may_leave_working(memory) == (tier is Tier.LONGTERM)
    assert move_lock(memory, LockEvent.CONFIRM).tier is tier


def test_spec_4_2_confirmation_leaves_other_tiers_alone() -> None:
    assert move_lock(a_memory(tier=Tier.LONGTERM), LockEvent.CONFIRM).tier is Tier.LONGTERM


def test_spec_4_2_an_unfrozen_memory_stays_in_core() -> None:
    assert move_lock(a_memory(lock=Lock.FROZEN, tier=Tier.CORE), LockEvent.UNFREEZE).tier is Tier.CORE


@pytest.mark.parametrize(
    ("word", "lock"), [("fluid", Lock.PENDING), ("solid", Lock.CONFIRMED), ("frozen", Lock.FROZEN)]
)
def test_spec_2_other_words_for_locks_are_accepted_as_input(word: str, lock: Lock) -> None:
    assert Lock(word) is lock


@pytest.mark.parametrize("word", ["liquid", 3, None])
def test_spec_2_no_other_word_is_a_lock(word: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid Lock"):
        Lock(word)
