"""What jobs over many users may learn of one: counts, and nothing that the user said."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hermes_memory.app.commands import Aggregate
from hermes_memory.app.desk import Policy
from hermes_memory.app.state import UserState
from hermes_memory.core.quality import summed


def aggregate(state: UserState, wanted: Aggregate, _: Policy) -> dict[str, Any]:
    """Counts of the days from ``wanted.since`` on, and of what is kept now."""
    memories = list(state.memories.values())
    return {
        "tally": dict(summed(counts for day, counts in state.tally.items() if day >= wanted.since)),
        "memories": len(memories),
        "by_status": dict(Counter(memory.status.value for memory in memories)),
        "by_lock": dict(Counter(memory.lock.value for memory in state.live.values())),
        "by_category": dict(Counter(memory.category.value for memory in state.live.values())),
        "version": state.version,
        "paused": state.settings.paused,
    }
