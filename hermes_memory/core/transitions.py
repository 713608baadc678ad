"""The two state machines of a memory as tables: its lock (SPEC §5) and its status (SPEC §2, §4.3).

Nothing else may change a lock or a status. An event that a table does not know raises and leaves the
memory as it was. The diagrams in the docs are generated from here.
"""

from __future__ import annotations

from enum import StrEnum

from hermes_memory.core.model import Lock, Memory, Status, Tier
from hermes_memory.errors import Illegal, MemoryFrozen


class LockEvent(StrEnum):
    """What can happen to a lock."""

    CONFIRM = "confirm"
    FREEZE = "freeze"
    FREEZE_BY_HAND = "freeze_by_hand"
    FREEZE_AT_ONCE = "freeze_at_once"
    UNFREEZE = "unfreeze"
    REFREEZE = "refreeze"


class StatusEvent(StrEnum):
    """What can happen to a status."""

    REVIEW = "review"
    MENTION = "mention"
    SUPERSEDE = "supersede"
    ARCHIVE = "archive"
    REACTIVATE = "reactivate"


LOCKS: dict[tuple[Lock, LockEvent], Lock] = {
    (Lock.PENDING, LockEvent.CONFIRM): Lock.CONFIRMED,
    (Lock.PENDING, LockEvent.FREEZE_AT_ONCE): Lock.FROZEN,
    (Lock.PENDING, LockEvent.FREEZE_BY_HAND): Lock.FROZEN,
    (Lock.CONFIRMED, LockEvent.FREEZE): Lock.FROZEN,
    (Lock.CONFIRMED, LockEvent.FREEZE_BY_HAND): Lock.FROZEN,
    (Lock.FROZEN, LockEvent.UNFREEZE): Lock.UNFROZEN,
    (Lock.UNFROZEN, LockEvent.REFREEZE): Lock.FROZEN,
}

STATUSES: dict[tuple[Status, StatusEvent], Status] = {
    (Status.ACTIVE, StatusEvent.REVIEW): Status.REVIEW,
    (Status.ACTIVE, StatusEvent.SUPERSEDE): Status.SUPERSEDED,
    (Status.ACTIVE, StatusEvent.ARCHIVE): Status.ARCHIVED,
    (Status.REVIEW, StatusEvent.MENTION): Status.ACTIVE,
    (Status.REVIEW, StatusEvent.SUPERSEDE): Status.SUPERSEDED,
    (Status.REVIEW, StatusEvent.ARCHIVE): Status.ARCHIVED,
    (Status.ARCHIVED, StatusEvent.REACTIVATE): Status.ACTIVE,
}


def next_lock(lock: Lock, event: LockEvent) -> Lock:
    """The lock after ``event``; Illegal when the table has no such transition."""
    try:
        return LOCKS[lock, event]
    except KeyError:
        raise Illegal(lock, event) from None


def next_status(status: Status, event: StatusEvent) -> Status:
    """The status after ``event``; Illegal when the table has no such transition."""
    try:
        return STATUSES[status, event]
    except KeyError:
        raise Illegal(status, event) from None


def move_lock(memory: Memory, event: LockEvent) -> Memory:
    """``memory`` with its next lock. What is frozen belongs to the core tier, what is confirmed leaves working."""
    lock = next_lock(memory.lock, event)
    tier = memory.tier
    if lock is Lock.FROZEN:
        tier = Tier.CORE
    elif lock is Lock.CONFIRMED and tier is Tier.WORKING and may_leave_working(memory):
        tier = Tier.LONGTERM
    return memory.with_(lock=lock, tier=tier)


def move_status(memory: Memory, event: StatusEvent) -> Memory:
    """``memory`` with its next status. A frozen memory refuses: it must be unfrozen first (SPEC §5)."""
    if memory.lock is Lock.FROZEN:
        raise MemoryFrozen(memory.id)
    return memory.with_(status=next_status(memory.status, event))


def may_leave_working(memory: Memory) -> bool:
    """Layer ``context`` and session scope never leave the working tier (SPEC §4.2)."""
    return memory.layer != "context" and memory.scope != "session"
