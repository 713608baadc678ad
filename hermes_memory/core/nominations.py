"""Ranking over what an index nominates instead of over everything: the same measure, fewer rows (SPEC §7.1).

An index knows meaning and words. What else may lift a memory, the time asked for, a name that it holds, the slot that
is called for, or what was said beside it, is known here and nominated too, so that nothing is missed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.candidate import SAID
from hermes_memory.core.fusion import around, holding
from hermes_memory.core.model import Memory
from hermes_memory.core.ranking import Query, Shelf, of_the_time
from hermes_memory.core.rules import FusionRules
from hermes_memory.core.vectors import VectorTable


def singled_out(memories: Mapping[str, Memory], words: WordIndex, query: Query) -> list[str]:
    """The ids of what the query lifts whatever its meaning, the last said first.

    It holds a name, a quotation or an amount of the query as a whole, or belongs to the time that is asked for.
    """
    ids = {memory_id for named in query.named for memory_id in holding(words, named)}
    if query.asked.periods and query.asked.about_past:
        ids.update(of_the_time(memories.values(), query))
    known = [memory for memory_id in ids if (memory := memories.get(memory_id)) is not None]
    return [
        memory.id for memory in sorted(known, key=lambda memory: (-memory.stated_at.timestamp(), memory.id))
    ]


def narrowed(shelf: Shelf, query: Query, memory_ids: Iterable[str], rules: FusionRules) -> Shelf:
    """The shelf with the vectors of these memories only, and of what ranking looks at besides."""
    wanted = {*memory_ids, *singled_out(shelf.memories, shelf.words, query)}
    for dimension in query.called:
        wanted.update(shelf.slots.get(dimension, ()))
    if shelf.slots.get(SAID):
        for _ in range(2):  # what stands beside them, and what lends that its odds
            wanted |= around(wanted, shelf.places, rules)
    table = VectorTable(shelf.vectors.dimension)
    for memory_id in shelf.vectors.ids:  # in their order: so ties fall as they do there
        if memory_id in wanted and (vector := shelf.vectors.get(memory_id)) is not None:
            table.put(memory_id, vector)
    return replace(shelf, vectors=table)
