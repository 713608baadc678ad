"""Exact search by vector over one user's memories: the tiers bound it, so nothing cleverer is needed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from hermes_memory.core.top import Scores, best
from hermes_memory.errors import InvalidInput

HUGE_PAGE = 2 << 20  # bytes
ADVISED = 4 << 20  # NumPy asks for huge pages from this many bytes on


class VectorTable:
    """Unit vectors by id, in one growing float32 matrix. Not thread-safe.

    Args:
        dimension: Length of every vector.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._matrix: Scores = _room(16, dimension)
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    @property
    def ids(self) -> Sequence[str]:
        """The ids in the order of the rows that ``scores`` answers; valid until the next change."""
        return self._ids

    @property
    def rows(self) -> Mapping[str, int]:
        """Id → row in ``ids`` and ``scores``; valid until the next change."""
        return self._rows

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, vector_id: object) -> bool:
        return vector_id in self._rows

    def get(self, vector_id: str) -> Scores | None:
        """A copy of a vector, or None."""
        row = self._rows.get(vector_id)
        return None if row is None else self._matrix[row].copy()

    def put(self, vector_id: str, vector: Scores) -> None:
        """Add a vector, or replace the one of that id.

        Raises:
            InvalidInput: It has another shape, or holds a value that is not finite.
        """
        self._check(vector)
        row = self._rows.get(vector_id)
        if row is None:
            row = self._rows[vector_id] = len(self._ids)
            self._ids.append(vector_id)
            if row == len(self._matrix):
                grown = _room(2 * row, self._dimension)
                grown[:row] = self._matrix
                self._matrix = grown
        self._matrix[row] = vector

    def remove(self, vector_id: str) -> None:
        """Remove a vector; an unknown id is ignored. The last row takes its place."""
        row = self._rows.pop(vector_id, None)
        if row is None:
            return
        last = self._ids.pop()
        if last != vector_id:
            self._ids[row], self._rows[last] = last, row
            self._matrix[row] = self._matrix[len(self._ids)]
        self._matrix[len(self._ids)] = 0  # what was removed is not kept in memory

    def scores(self, vector: Scores) -> Scores:
        """Cosine of every row with the unit ``vector``, shape (len(self),), in the order of ``ids``."""
        self._check(vector)
        # Not a BLAS call: its threads wait for each other longer than the whole product takes on a busy machine.
        held = self._matrix[: len(self._ids)]
        return np.asarray(np.einsum("ij,j->i", held, vector.astype(np.float32, copy=False)), np.float32)

    def near(self, vector: Scores, limit: int, keep: Container[str] | None = None) -> list[tuple[str, float]]:
        """The ``limit`` nearest by cosine, best first, equal ones by id; only ids in ``keep`` where given."""
        return best(self._ids, self.scores(vector), limit, keep)

    def _check(self, vector: Scores) -> None:
        if vector.shape != (self._dimension,):
            raise InvalidInput("vector", f"must have {self._dimension} dimensions")
        if not np.isfinite(vector).all():
            raise InvalidInput("vector", "must hold finite numbers only")


def _room(rows: int, dimension: int) -> Scores:
    """Zeros of shape (rows, dimension); from a huge page's size on, they start where one does.

    A table is read from end to end, mostly after something else has had the processor's caches. With small pages
    that takes twice as long. Only what is written takes up memory.
    """
    size = rows * dimension
    if size * 4 < HUGE_PAGE:
        return np.zeros((rows, dimension), np.float32)
    spare = np.zeros(max(size * 4 + HUGE_PAGE, ADVISED) // 4, np.float32)
    start = -spare.ctypes.data % HUGE_PAGE // 4
    return spare[start : start + size].reshape(rows, dimension)
