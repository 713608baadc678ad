"""Long-term search in process: exact cosine and BM25 per user (ARCHITECTURE §3, the embedded default).

It keeps nothing on disk: vectors and words come back from the ledger when a process starts.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.ids import UserKey
from hermes_memory.core.vectors import VectorTable
from hermes_memory.errors import InvalidInput
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit


class _Shelf:
    """One user's documents."""

    def __init__(self, dimension: int) -> None:
        self.vectors = VectorTable(dimension)
        self.words = WordIndex()
        self.sides: dict[bool, set[str]] = {True: set(), False: set()}  # ids by archived

    def put(self, document: Document) -> None:
        self.vectors.put(document.memory_id, document.vector)
        self.words.put(document.memory_id, document.words)
        self.sides[document.archived].add(document.memory_id)
        self.sides[not document.archived].discard(document.memory_id)

    def remove(self, memory_id: str) -> None:
        self.vectors.remove(memory_id)
        self.words.remove(memory_id)
        for side in self.sides.values():
            side.discard(memory_id)

    def keep(self, archived: bool | None) -> Container[str] | None:
        return None if archived is None else self.sides[archived]


class ExactIndex:
    """A ``VectorIndex`` of plain arrays. Users are apart by construction: each has a shelf of their own.

    Args:
        dimension: Length of every vector; None: that of each user's first one.
    """

    def __init__(self, dimension: int | None = None) -> None:
        self._dimension = dimension
        self._shelves: dict[UserKey, _Shelf] = {}

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of but what Python lets go of."""

    async def ping(self) -> None:
        """It can always be read."""

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        """Add or replace documents by memory id; of two with one id the later counts.

        Returns:
            ``bad_vector`` for those whose vector has another dimension than the others or is not finite.
        """
        refused: dict[str, str] = {}
        for memory_id, document in {each.memory_id: each for each in documents}.items():
            shelf = self._shelves.get(key) or _Shelf(self._dimension or len(document.vector))
            try:
                shelf.put(document)
            except InvalidInput:
                refused[memory_id] = "bad_vector"
            else:
                self._shelves[key] = shelf
        return refused

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        shelf = self._shelves.get(key)
        if shelf is None:
            return
        for memory_id in memory_ids:
            shelf.remove(memory_id)
        if not len(shelf.vectors):
            del self._shelves[key]

    async def drop(self, key: UserKey) -> None:
        """Remove everything of a user."""
        self._shelves.pop(key, None)

    async def rest(self, key: UserKey) -> None:
        """Nothing to do: what it keeps of a user is all there is of it."""

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` nearest by cosine, best first; ``archived`` filters, None takes both."""
        shelf = self._shelves.get(key)
        if shelf is None:
            return []
        return [Hit(found, score) for found, score in shelf.vectors.near(vector, limit, shelf.keep(archived))]

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` best by BM25 over ``words``, best first; only positive scores."""
        shelf = self._shelves.get(key)
        if shelf is None:
            return []
        return [
            Hit(found, score) for found, score in shelf.words.scores(words).top(limit, shelf.keep(archived))
        ]

    async def ids(self, key: UserKey) -> list[str]:
        """The ids of all documents of a user, in order."""
        shelf = self._shelves.get(key)
        return sorted(shelf.vectors.ids) if shelf else []

    async def count(self, key: UserKey) -> int:
        """How many documents of the user it holds."""
        shelf = self._shelves.get(key)
        return len(shelf.vectors) if shelf else 0
