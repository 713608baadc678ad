"""Which memories may say the same as a statement, or its opposite: nominated by symbols, never by scanning all.

A user's tiers hold more than a thousand memories; a turn concerns a handful. What is nominated here is then judged
by ``core.settle`` and ``core.conflicts``; what is not can neither be a twin nor contradict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Memory, Status
from hermes_memory.core.text import normal


class Lookup:
    """An incremental index by content hash, by subject and dimension, and by the head of the object.

    Args:
        dimensions: They know which dimensions and which words belong together.
    """

    def __init__(self, dimensions: Dimensions, memories: Iterable[Memory] = ()) -> None:
        self._dimensions = dimensions
        self._keys: dict[str, frozenset[str]] = {}
        self._numbers: dict[str, int] = {}  # the order in which they came
        self._ids: dict[str, set[str]] = {}
        self._next = 0
        for memory in memories:
            self.put(memory)

    def put(self, memory: Memory) -> None:
        """Add a memory, or follow its change. What is superseded is not looked up."""
        keys = frozenset() if memory.status is Status.SUPERSEDED else frozenset(self._keys_of(memory))
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

    def near(self, hashed: str, subject: str, dimension: str, object_: str) -> list[str]:
        """The ids with that hash, in a related dimension, or with an object of the same head; oldest first.

        Only of that subject, except by hash.
        """
        who = normal(subject)
        keys = [_hash_key(hashed), *(_topic_key(who, one) for one in self._dimensions.relatives(dimension))]
        keys += [_head_key(who, head) for head in self._dimensions.heads(object_)]
        found = {memory_id for key in keys for memory_id in self._ids.get(key, ())}
        return sorted(found, key=self._numbers.__getitem__)

    def _leave(self, memory_id: str, keys: Iterable[str]) -> None:
        for key in keys:
            self._ids[key].discard(memory_id)
            if not self._ids[key]:
                del self._ids[key]

    def _keys_of(self, memory: Memory) -> Iterator[str]:
        who = normal(memory.subject)
        yield _hash_key(memory.content_hash)
        yield _topic_key(who, memory.dimension)
        yield from (_head_key(who, head) for head in self._dimensions.heads(memory.object))


def _hash_key(hashed: str) -> str:
    return f"hash {hashed}"


def _topic_key(who: str, dimension: str) -> str:
    return f"topic {who} {dimension}"


def _head_key(who: str, head: str) -> str:
    return f"head {who} {head}"
