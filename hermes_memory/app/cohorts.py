"""A user's part in their cohort, and what a new user gets from it (S2 §7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory.app.desk import Policy
from hermes_memory.app.state import UserState
from hermes_memory.core.cohorts import in_common, part
from hermes_memory.core.model import USER
from hermes_memory.core.rules import CohortRules
from hermes_memory.ports.ledger import Ledger

NOTE = "cohorts"


def cohort_part(state: UserState, policy: Policy) -> dict[str, Any] | None:
    """What the user adds to the cohort; None without consent, while paused, or where there are no cohorts."""
    rules = policy.rules.cohorts
    if not rules.enabled or state.settings.paused or not state.settings.consent.get("cohort", False):
        return None
    return part(state.standing(), policy.dimensions, policy.cohort_values)


def defaults_for(state: UserState, cohort: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """Layer → dimension → values that others hold: for a user of whom little is known, and of that nothing at all.

    They are no slots and nobody's memory; what the user says of a dimension, even in passing, ends its default.
    """
    rules = policy.rules.cohorts
    if not rules.enabled or state.settings.paused or len(state.live) >= rules.known_below:
        return {}
    said = {memory.dimension for memory in state.memories.values() if memory.subject == USER}
    told = {
        layer: {dimension: values for dimension, values in slots.items() if dimension not in said}
        for layer, slots in cohort.get("slots", {}).items()
    }
    return {layer: slots for layer, slots in told.items() if slots}


async def keep(ledger: Ledger, namespace: str, sums: Mapping[str, Any], rules: CohortRules) -> dict[str, Any]:
    """Put the cohort of a namespace in the place of the last one; who has left it is in no figure any more."""
    common = in_common(sums if rules.enabled else {}, rules)
    if common["slots"] or await ledger.note(namespace, NOTE) is not None:
        await ledger.put_note(namespace, NOTE, common)
    return common
