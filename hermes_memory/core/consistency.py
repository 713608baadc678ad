"""Whether what goes into a prompt contradicts itself (S1 §4.4): measured at every recall, so by a few look-ups."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import combinations

from hermes_memory.core.conflicts import opposes
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Category, Memory, Polarity


def both_sides(shown: Collection[Memory], dimensions: Dimensions) -> bool:
    """Whether two of the memories contradict each other: a rival beside what it disputes, or by symbols (SPEC §6).

    By symbols only what shares subject and dimension is looked at closer: two objects of one that has a single value,
    or one object with either polarity.
    """
    ids = {memory.id for memory in shown}
    if any(memory.rival_of in ids for memory in shown):
        return True
    groups: dict[tuple[str, str], list[Memory]] = {}
    for memory in shown:
        if memory.category is not Category.EVENT:
            groups.setdefault((memory.subject, memory.dimension), []).append(memory)
    return any(
        opposes(one, other, dimensions)
        for (_, dimension), group in groups.items()
        if len(group) > 1
        for one, other in _suspects(group, single=dimensions.single(dimension))
    )


def _suspects(group: list[Memory], *, single: bool) -> Iterable[tuple[Memory, Memory]]:
    if not single and len({memory.polarity for memory in group}) < len(Polarity):
        return ()
    return ((a, b) for a, b in combinations(group, 2) if single or a.polarity is not b.polarity)
