"""What a model is given of a text, and what is accepted of its answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors

WHAT = "the embedder"


def clipped(text: str, max_chars: int) -> str:
    """``text`` as a model takes it: no NUL or lone surrogate, single spaces, at most ``max_chars``.

    Of a longer text the first three quarters of the room and the end are kept: what is asked stands at
    either.
    """
    plain = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    plain = " ".join(plain.split())
    if len(plain) <= max_chars:
        return plain
    head = max_chars * 3 // 4
    return plain[:head] + plain[len(plain) - (max_chars - head) :]


def unit_rows(rows: NDArray[np.floating], count: int, info: EmbedderInfo) -> Vectors:
    """A model's vectors of ``count`` texts with length 1, shape (count, dimension).

    Raises:
        InvalidConfig: the vectors have another dimension than ``info`` says.
        ModelFailed: there are more or fewer than texts, or one of them has no direction.
    """
    if rows.ndim != 2 or len(rows) != count:
        raise ModelFailed(WHAT, f"not one vector for each of {count} texts")
    if rows.shape[1] != info.dimension:
        raise InvalidConfig(
            "embedder.dimension", f"is {info.dimension}, and {info.name} gives vectors of {rows.shape[1]}"
        )
    exact = np.asarray(rows, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise ModelFailed(WHAT, "a vector is zero or not a number")
    return np.asarray(exact / lengths, np.float32)


def stacked(rows: Sequence[Vector], dimension: int) -> Vectors:
    """The rows as one array, shape (len(rows), dimension), also of none."""
    return np.stack(rows) if rows else np.zeros((0, dimension), np.float32)
