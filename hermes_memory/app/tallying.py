"""What a commit counts for, seen from the state that it changes (SPEC §10)."""

from __future__ import annotations

from collections import Counter

from hermes_memory.app.state import UserState
from hermes_memory.core.model import Memory
from hermes_memory.core.profile import supports
from hermes_memory.core.reasons import Reason
from hermes_memory.core.tally import of_change
from hermes_memory.ports.ledger import Commit


def tallied(state: UserState, commit: Commit) -> Counter[str]:
    """Sums over the lines of its audit; ``state`` is the one before it is applied."""
    total: Counter[str] = Counter()
    for entry in commit.audit:
        memory = state.memories.get(entry.memory_id or "")
        evicted, slotted = memory is not None and _evicted(memory), memory is not None and _slotted(memory)
        total.update(of_change(entry.op, entry.reason, evicted=evicted, slotted=slotted))
    return total


def _evicted(memory: Memory) -> bool:
    return bool(memory.history) and memory.history[-1].reason == Reason.CAPACITY


def _slotted(memory: Memory) -> bool:
    return supports(memory, memory.subject)
