"""The best few of many scores, with ties in a fixed order."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


def best(
    ids: Sequence[str], scores: Scores, limit: int, keep: Container[str] | None = None
) -> list[tuple[str, float]]:
    """The ``limit`` highest ``scores`` with their ids, best first; equal scores by id.

    Args:
        ids: One id per score.
        scores: Shape (len(ids),).
        limit: How many at most; none if it is not positive.
        keep: Where given, only ids in it.
    """
    if keep is not None:
        rows = [row for row, found in enumerate(ids) if found in keep]
        ids, scores = [ids[row] for row in rows], scores[rows]
    if limit <= 0 or not ids:
        return []
    if limit < len(ids):
        floor = np.partition(scores, len(ids) - limit)[len(ids) - limit]
        chosen = np.flatnonzero(scores >= floor)
    else:
        chosen = np.arange(len(ids))
    pairs = [(ids[row], float(scores[row])) for row in chosen.tolist()]
    pairs.sort(key=lambda pair: (-pair[1], pair[0]))
    return pairs[:limit]
