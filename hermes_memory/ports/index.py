"""Long-term search: vectors and words apart; the core fuses them (ARCHITECTURE §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import Vector


@dataclass(frozen=True, slots=True)
class Document:
    """One memory as the index sees it; ``words`` are segmented by our own segmenter."""

    memory_id: str
    words: tuple[str, ...]
    vector: Vector
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """``score`` is a cosine for ``near`` and a BM25 score for ``match``."""

    memory_id: str
    score: float


class VectorIndex(Protocol):
    """Finds a user's memories by vector and by words. Feeding it twice changes nothing.

    All methods raise IndexUnavailable when the index cannot be reached or does not answer in time: what was written
    may or may not be there, and is written again.
    """

    async def open(self) -> None:
        """Connect, and create what is needed once. May be tried again after a failure."""
        ...

    async def close(self) -> None:
        """Let go of every resource. May be called twice."""
        ...

    async def ping(self) -> None:
        """Answer if the index can be read now."""
        ...

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        """Add or replace documents by memory id.

        Those that it will never take, however often they come, are named with a reason; the others are taken.
        """
        ...

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        ...

    async def drop(self, key: UserKey) -> None:
        """Remove everything of a user; when it returns nothing of the user is found."""
        ...

    async def rest(self, key: UserKey) -> None:
        """The user sleeps: let go of what the index keeps in memory for it. The next use wakes it."""
        ...

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` nearest by cosine, best first; ``archived`` filters, None takes both."""
        ...

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` best by BM25 over ``words``, best first; only positive scores."""
        ...

    async def ids(self, key: UserKey) -> list[str]:
        """The ids of all documents of a user, in order: what the index holds against what it should."""
        ...

    async def count(self, key: UserKey) -> int:
        """How many documents of the user it holds."""
        ...
