"""Which memories may say the same as a statement, or its opposite: nominated by symbols, never by scanning all.

A user's tiers hold more than a thousand memories; a turn concerns a handful. What is nominated here is then judged
by ``core.settle`` and ``core.conflicts``; what is not can neither be a twin nor contradict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes_memory.core.conflicts import Statement
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Memory, Polarity, Status
from hermes_memory.core.text import normal

Key = tuple[object, ...]


class Lookup:
    """An incremental index by content hash, by the words of the object, and by what excludes each other.

    Args:
        dimensions: They know which dimensions and which words belong together.
    """

    def __init__(self, dimensions: Dimensions, memories: Iterable[Memory] = ()) -> None:
        self._dimensions = dimensions
        self._keys: dict[str, frozenset[Key]] = {}
        self._numbers: dict[str, int] = {}  # the order in which they came
        self._ids: dict[Key, set[str]] = {}
        self._next = 0
        for memory in memories:
            self.put(memory)

    def put(self, memory: Memory) -> None:
        """Add a memory, or follow its change. What is superseded is not looked up."""
        superseded = memory.status is Status.SUPERSEDED
        keys = frozenset() if superseded else frozenset(self._keys_of(memory.content_hash, memory))
        before = self._keys.get(memory.id, frozenset())
        if memory.id not in self._numbers:
            self._numbers[memory.id], self._next = self._next, self._next + 1
        if keys != before:
            self._leave(memory.id, before - keys)
            for key in keys - before:
                self._ids.setdefault(key, set()).add(memory.id)
            self._keys[memory.id] = keys

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id is ignored."""
        self._leave(memory_id, self._keys.pop(memory_id, frozenset()))
        self._numbers.pop(memory_id, None)

    def near(self, hashed: str, statement: Statement) -> list[str]:
        """The ids of what may say the same or the opposite, oldest first."""
        found = {memory_id for key in self._asked(hashed, statement) for memory_id in self._ids.get(key, ())}
        return sorted(found, key=self._numbers.__getitem__)

    def _leave(self, memory_id: str, keys: Iterable[Key]) -> None:
        for key in keys:
            self._ids[key].discard(memory_id)
            if not self._ids[key]:
                del self._ids[key]

    def _keys_of(self, hashed: str, one: Statement) -> Iterator[Key]:
        """Under which a memory is found."""
        known, who = self._dimensions, normal(one.subject)
        yield "hash", hashed
        yield "dimension", who, one.dimension
        yield from (("holds", who, word) for word in known.words(one.object))
        yield from (("head", who, word) for word in known.heads(one.object))
        yield from (
            ("attribute", who, one.dimension, a) for a in known.attributes(one.dimension, one.content)
        )
        if known.chooses(one.dimension, one.object):
            yield "choice", who, one.dimension
        if self._denies_all(one):
            yield "denied", who, one.dimension

    def _asked(self, hashed: str, one: Statement) -> Iterator[Key]:
        """Where a statement may find its like or its opposite.

        Two values say the same, or one more exactly than the other, when the last word of one stands in the other.
        """
        known, who = self._dimensions, normal(one.subject)
        yield "hash", hashed
        yield from (("holds", who, word) for word in known.heads(one.object))
        yield from (("head", who, word) for word in known.words(one.object))
        yield from (
            ("attribute", who, one.dimension, a) for a in known.attributes(one.dimension, one.content)
        )
        yield "denied", who, one.dimension
        if known.chooses(one.dimension, one.object):
            yield from (("choice", who, dimension) for dimension in known.relatives(one.dimension))
        if known.single(one.dimension) or self._denies_all(one):
            yield "dimension", who, one.dimension

    def _denies_all(self, one: Statement) -> bool:
        return one.polarity is Polarity.NEGATIVE and self._dimensions.general(one.dimension, one.object)
