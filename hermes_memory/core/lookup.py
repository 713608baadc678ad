"""Which memories may say the same as a statement, or its opposite: nominated by symbols, never by scanning all.

A user's tiers hold more than a thousand memories; a turn concerns a handful. What is nominated here is then judged
by ``core.settle`` and ``core.conflicts``; what is not can neither be a twin nor contradict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hermes_memory.core.model import Memory, Status
from hermes_memory.core.text import normal, pieces


class Lookup:
    """An incremental index by content hash, by subject and dimension, and by the words of the object."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._keys: dict[str, frozenset[str]] = {}
        self._sizes: dict[str, int] = {}  # how many words an object has
        self._numbers: dict[str, int] = {}  # the order in which they came
        self._ids: dict[str, set[str]] = {}
        self._next = 0
        for memory in memories:
            self.put(memory)

    def put(self, memory: Memory) -> None:
        """Add a memory, or follow its change. What is superseded is not looked up."""
        keys = frozenset() if memory.status is Status.SUPERSEDED else frozenset(_keys_of(memory))
        before = self._keys.get(memory.id, frozenset())
        if memory.id not in self._numbers:
            self._numbers[memory.id], self._next = self._next, self._next + 1
        if keys != before:
            self._leave(memory.id, before - keys)
            for key in keys - before:
                self._ids.setdefault(key, set()).add(memory.id)
            self._keys[memory.id], self._sizes[memory.id] = keys, len(pieces(memory.object))

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id is ignored."""
        self._leave(memory_id, self._keys.pop(memory_id, frozenset()))
        self._numbers.pop(memory_id, None)
        self._sizes.pop(memory_id, None)

    def near(self, hashed: str, subject: str, dimensions: Iterable[str], object_: str) -> list[str]:
        """The ids with that hash, in one of the dimensions, or with an object that names the same; oldest first.

        Only of that subject, except by hash.
        """
        who = normal(subject)
        keys = [_hash_key(hashed), _whole_key(who, object_), *(_topic_key(who, one) for one in dimensions)]
        found = {memory_id for key in keys for memory_id in self._ids.get(key, ())}
        found.update(self._naming(who, pieces(object_)))
        return sorted(found, key=self._numbers.__getitem__)

    def _naming(self, who: str, words: frozenset[str]) -> Iterator[str]:
        """Those of which the words all stand in the object, or the other way round."""
        shared = Counter(memory_id for word in words for memory_id in self._ids.get(_word_key(who, word), ()))
        for memory_id, number in shared.items():
            if number == min(len(words), self._sizes[memory_id]):
                yield memory_id

    def _leave(self, memory_id: str, keys: Iterable[str]) -> None:
        for key in keys:
            self._ids[key].discard(memory_id)
            if not self._ids[key]:
                del self._ids[key]


def _keys_of(memory: Memory) -> Iterator[str]:
    who = normal(memory.subject)
    yield _hash_key(memory.content_hash)
    yield _topic_key(who, memory.dimension)
    yield _whole_key(who, memory.object)
    yield from (_word_key(who, word) for word in pieces(memory.object))


def _hash_key(hashed: str) -> str:
    return f"hash {hashed}"


def _topic_key(who: str, dimension: str) -> str:
    return f"topic {who} {dimension}"


def _whole_key(who: str, object_: str) -> str:
    return f"whole {who} {normal(object_)}"


def _word_key(who: str, word: str) -> str:
    return f"word {who} {word}"
