"""What jobs over many users may learn of one: counts, and with consent what a cohort may know; no words otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hermes_memory.app.cohorts import cohort_part
from hermes_memory.app.commands import Aggregate
from hermes_memory.app.desk import Policy
from hermes_memory.app.state import UserState
from hermes_memory.core.feedback import adrift
from hermes_memory.core.profile import Slot, build_profile
from hermes_memory.core.tally import summed


def aggregate(state: UserState, wanted: Aggregate, policy: Policy) -> dict[str, Any]:
    """Counts of the days from ``wanted.since`` on, and of what is kept now; JSON-ready (``night_sums.NightSums.add``).

    ``slots`` counts those about the user by layer, ``slots_adrift`` those of them that behaviour speaks against.
    """
    live = state.live.values()
    profile = build_profile(state.standing(), policy.dimensions)
    return {
        "tally": dict(summed(counts for day, counts in state.tally.items() if day >= wanted.since)),
        "memories": len(state.memories),
        "by_status": _counted(memory.status for memory in state.memories.values()),
        "by_lock": _counted(memory.lock for memory in live),
        "by_category": _counted(memory.category for memory in live),
        "by_tier": _counted(memory.tier for memory in live),
        "slots": {layer: len(slots) for layer, slots in profile.items() if slots},
        "slots_adrift": sum(_adrift(state, slots) for slots in profile.values()),
        "cohort": cohort_part(state, policy),
        "version": state.version,
        "paused": state.settings.paused,
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(str(value) for value in values))


def _adrift(state: UserState, slots: Mapping[str, Slot]) -> int:
    return sum(adrift(state.memories[memory_id] for memory_id in slot.memory_ids) for slot in slots.values())
