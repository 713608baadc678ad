"""The one place where memories change: a working view over a user's memories that logs what it does.

Every use case moves its pieces here; the application turns the result into one commit. What a use case does
not name it cannot touch (SPEC §6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from hermes_memory.core.model import LIVE, Lock, Memory, Revision, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.core.transitions import LockEvent, StatusEvent, move_lock, move_status


class Op(StrEnum):
    """What happened to a memory, as the API names it."""

    ADDED = "added"
    REINFORCED = "reinforced"
    CONFIRMED = "confirmed"
    SUPERSEDED = "superseded"
    RIVAL = "rival"
    CONFLICT = "conflict"
    MERGED = "merged"
    FROZEN = "frozen"
    UNFROZEN = "unfrozen"
    REFROZEN = "refrozen"
    ARCHIVED = "archived"
    REACTIVATED = "reactivated"
    EVICTED = "evicted"
    ERASED = "erased"
    REFUSED = "refused"
    # not among the changes of a POST of messages, but in the audit
    EDITED = "edited"
    MOVED = "moved"
    REVIEW = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of the answer and of the audit."""

    op: Op
    reason: Reason
    memory_id: str | None = None
    message_id: str | None = None
    before: str | None = None
    after: str | None = None


# These grow without making a new version of the record: nothing in them is a statement (SPEC §5).
_FREE = {
    "version", "evidence", "confirmations", "contradictions", "access_count", "last_access_at", "feedback",
}  # fmt: skip
_VERSIONED = tuple(field.name for field in fields(Memory) if field.name not in _FREE)


Tiers = Mapping[Tier, Mapping[str, Memory]]  # the live memories by tier, then by id


def tiers_of(memories: Iterable[Memory]) -> Tiers:
    """The live ones of ``memories`` by tier."""
    held: dict[Tier, dict[str, Memory]] = {tier: {} for tier in Tier}
    for memory in memories:
        if memory.status in LIVE:
            held[memory.tier][memory.id] = memory
    return held


class Board:
    """A user's memories under change.

    Args:
        memories: As they are stored.
        now: Receipt time, the time of every change made here.
        tiers: The live ones of them by tier, where somebody keeps count already.
    """

    def __init__(self, memories: Mapping[str, Memory], now: datetime, tiers: Tiers | None = None) -> None:
        self._before = memories
        self._tiers = tiers if tiers is not None else tiers_of(memories.values())
        self._after: dict[str, Memory] = {}
        self.now = now
        self.changes: list[Change] = []
        self.deleted: set[str] = set()
        self.opened: set[str] = set()  # frozen memories that were opened with a verified unfreeze

    def __iter__(self) -> Iterator[Memory]:
        for memory_id, memory in self._before.items():
            if memory_id not in self.deleted:
                yield self._after.get(memory_id, memory)
        yield from (m for memory_id, m in self._after.items() if memory_id not in self._before)

    def __getitem__(self, memory_id: str) -> Memory:
        return self._after[memory_id] if memory_id in self._after else self._before[memory_id]

    def __contains__(self, memory_id: str) -> bool:
        return memory_id not in self.deleted and (memory_id in self._after or memory_id in self._before)

    def get(self, memory_id: str) -> Memory | None:
        """The memory as it stands, or None."""
        if memory_id in self.deleted:
            return None
        return self._after.get(memory_id) or self._before.get(memory_id)

    @property
    def touched(self) -> Iterable[Memory]:
        """The memories that were placed here, changed or not."""
        return self._after.values()

    @property
    def touched_ids(self) -> list[str]:
        """The ids of what was placed here or taken out."""
        return [*self._after, *sorted(self.deleted)]

    @property
    def changed(self) -> tuple[Memory, ...]:
        """The memories that differ from what they were, with their new versions."""
        return tuple(memory for memory in self._after.values() if memory != self._before.get(memory.id))

    def put(self, memory: Memory) -> Memory:
        """Place a new or changed memory; its version is one above the stored one if a statement changed."""
        before = self._before.get(memory.id)
        if before is not None:
            changed = any(getattr(memory, name) != getattr(before, name) for name in _VERSIONED)
            memory = memory.with_(version=before.version + 1 if changed else before.version)
        self._after[memory.id] = memory
        return memory

    def log(
        self,
        op: Op,
        reason: Reason,
        memory: Memory | None = None,
        message_id: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        """Write a line into the answer and the audit."""
        memory_id = memory.id if memory else None
        self.changes.append(
            Change(
                op=op, reason=reason, memory_id=memory_id, message_id=message_id, before=before, after=after
            )
        )

    def lock(
        self, memory: Memory, event: LockEvent, op: Op, reason: Reason, message_id: str | None = None
    ) -> Memory:
        """Move a lock through the table and log it."""
        moved = move_lock(memory, event)
        if event in {LockEvent.FREEZE, LockEvent.FREEZE_BY_HAND, LockEvent.FREEZE_AT_ONCE}:
            moved = moved.with_(freeze_reason=reason.value)
        self.log(op, reason, memory, message_id, before=memory.lock, after=moved.lock)
        return self.put(moved)

    def open(self, memory: Memory, why: str, message_id: str | None) -> Memory:
        """Unfreeze a frozen memory for one change in this commit; ``refreeze`` or ``supersede`` must follow."""
        self.opened.add(memory.id)
        opened = self.lock(memory, LockEvent.UNFREEZE, Op.UNFROZEN, Reason.VERIFIED, message_id)
        return self.put(opened.with_(unfreeze_reason=why))

    def refreeze(self, memory: Memory, message_id: str | None) -> Memory:
        """Close what ``open`` opened."""
        return self.lock(memory, LockEvent.REFREEZE, Op.REFROZEN, Reason.REFREEZE, message_id)

    def status(
        self, memory: Memory, event: StatusEvent, op: Op, reason: Reason, message_id: str | None = None
    ) -> Memory:
        """Move a status through the table, keep what was in the history, and log it."""
        moved = move_status(memory, event)
        kept = moved.with_(history=(*memory.history, self.revision(memory, reason, message_id)))
        if event is StatusEvent.ARCHIVE:
            kept = kept.with_(archived_at=self.now)
        elif event is StatusEvent.REACTIVATE:
            kept = kept.with_(archived_at=None, merged_into=None, updated_at=self.now)
        self.log(op, reason, memory, message_id, before=memory.status, after=moved.status)
        return self.put(kept)

    def revision(self, memory: Memory, reason: Reason, message_id: str | None) -> Revision:
        """What ``memory`` is now, as an entry of its history."""
        return Revision(
            at=self.now, version=memory.version, reason=reason.value, message_id=message_id, content=memory.content,
            object=memory.object, polarity=memory.polarity, lock=memory.lock, status=memory.status,
        )  # fmt: skip

    def delete(self, memory: Memory, reason: Reason) -> None:
        """Take a memory out, physically; only the user's or an operator's erasure may ask for it."""
        self.deleted.add(memory.id)
        self._after.pop(memory.id, None)
        self.log(Op.ERASED, reason, memory)

    def before(self, memory_id: str) -> Memory | None:
        """The memory as it is stored, or None."""
        return self._before.get(memory_id)

    def within(self, tier: Tier) -> list[Memory]:
        """The live memories of a tier, those placed here last."""
        held = [m for i, m in self._tiers[tier].items() if i not in self._after and i not in self.deleted]
        return held + [m for m in self._after.values() if m.tier is tier and m.status in LIVE]

    def live(self) -> Iterator[Memory]:
        """Every live memory."""
        return (memory for tier in Tier for memory in self.within(tier))

    def by_id(self) -> list[Memory]:
        """Every live memory in the order of the ids, which no restart changes."""
        return sorted(self.live(), key=lambda memory: memory.id)

    def count(self, tier: Tier) -> int:
        """How many live memories a tier holds."""
        left = sum(1 for i in (*self._after, *self.deleted) if i in self._tiers[tier])
        return (
            len(self._tiers[tier])
            - left
            + sum(m.tier is tier and m.status in LIVE for m in self._after.values())
        )

    def frozen(self) -> Iterator[Memory]:
        """Every frozen memory."""
        return (memory for memory in self if memory.lock is Lock.FROZEN)
