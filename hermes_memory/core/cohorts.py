"""What the consenting users of a namespace have in common: weak defaults for those who are new (S2 §7.2, SPEC §12).

A value is told only when a whole group holds it, as a share in coarse steps, so that neither a member nor the coming or going
of one can be read off. Only values of a catalogue are counted, never a user's own words, and only in preferences and
style: nothing about who somebody is, nor about safety, health, faith, money or names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Layer, Memory, Polarity
from hermes_memory.core.profile import supports
from hermes_memory.core.rules import CohortRules

_LAYERS = frozenset({Layer.PREFERENCE, Layer.STYLE})

Catalogue = Mapping[str, Mapping[str, str]]  # dimension → wording of users → the value that is told


def part(memories: Iterable[Memory], dimensions: Dimensions, catalogue: Catalogue) -> dict[str, Any]:
    """What one member adds: a number for each value of the catalogue, summed by whoever goes through the members.

    A member counts once for a value, and no word of theirs is in it.
    """
    values: dict[str, dict[str, int]] = {}
    for memory in memories:
        value = catalogue.get(memory.dimension, {}).get(" ".join(memory.object.casefold().split()))
        if value is not None and _may_be_told(memory, dimensions):
            values.setdefault(f"{memory.layer}/{memory.dimension}", {})[value] = 1
    return {"members": 1, "values": values}


def _may_be_told(memory: Memory, dimensions: Dimensions) -> bool:
    key = memory.dimension
    named = dimensions.safety(key) or dimensions.sensitive(key) or dimensions.freeze_class(key)
    return (
        supports(memory, USER)
        and memory.layer in _LAYERS
        and memory.polarity is Polarity.POSITIVE
        and not memory.safety
        and not named
    )


def in_common(sums: Mapping[str, Any], rules: CohortRules) -> dict[str, Any]:
    """The cohort of a namespace from the sum of its members' parts, JSON-ready; without slots where the group is small.

    ``slots``: layer → dimension → values with the share of members that hold them, most first.
    """
    members = int(sums.get("members", 0))
    if members < rules.min_group:
        return {"members": 0, "slots": {}}
    slots: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for slot, counts in sorted(sums.get("values", {}).items()):
        held = Counter({value: n for value, n in counts.items() if n >= rules.min_group})
        shares = [(value, _coarse(n / members, rules.share_step)) for value, n in sorted(held.items())]
        told = [{"value": value, "share": share} for value, share in shares if share >= rules.least_share]
        if told:
            layer, _, dimension = slot.partition("/")
            told.sort(key=lambda one: (-one["share"], one["value"]))
            slots.setdefault(layer, {})[dimension] = told[: rules.most_values]
    return {"members": members - members % rules.min_group, "slots": slots}


def _coarse(share: float, step: float) -> float:
    """Rounded down to whole steps."""
    return round(int(share / step + 1e-9) * step, 4)
