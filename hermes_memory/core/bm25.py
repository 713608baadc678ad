"""Search by words over one user's memories: BM25 for order, coverage for relevance (SPEC §7.1, §7.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.top import Scores, best

# Words weigh as if this many further texts, holding none of them, stood beside the user's memories: so the weights
# are sensible from the first memory on and drift slowly.
BACKGROUND_TEXTS = 100
BESIDE = 0.3  # what a word of the lesser field counts
COMMON_TEXTS = 30  # so many of them hold each word of everyday use


@dataclass(frozen=True, slots=True)
class WordScores:
    """Scores of the documents that hold at least one of the words; row i belongs to ``ids[i]``."""

    ids: list[str]
    bm25: Scores
    coverage: Scores

    def top(self, limit: int, keep: Container[str] | None = None) -> list[tuple[str, float]]:
        """The best by BM25, best first, equal scores by id."""
        return best(self.ids, self.bm25, limit, keep)


@dataclass(slots=True)
class _Posting:
    """In which rows a word stands and how often; the arrays are rebuilt after a change."""

    counts: dict[int, float] = field(default_factory=dict)
    arrays: tuple[NDArray[np.intp], Scores] | None = None

    def set(self, row: int, count: float) -> None:
        self.counts[row] = count
        self.arrays = None

    def discard(self, row: int) -> None:
        self.counts.pop(row, None)
        self.arrays = None

    def read(self) -> tuple[NDArray[np.intp], Scores]:
        if self.arrays is None:
            size = len(self.counts)
            rows = np.fromiter(self.counts.keys(), np.intp, size)
            self.arrays = rows, np.fromiter(self.counts.values(), np.float32, size)
        return self.arrays


class WordIndex:
    """An incremental inverted index. Not thread-safe.

    Args:
        k1: How soon repeating a word stops counting.
        b: How much long documents are held back, 0 to 1.
    """

    def __init__(self, *, k1: float = 1.0, b: float = 0.5) -> None:
        self._k1, self._b = k1, b
        self._rows: dict[str, int] = {}
        self._words: dict[str, dict[str, float]] = {}
        self._postings: dict[str, _Posting] = {}
        self._ids: list[str] = []  # "" in a free row
        self._free: list[int] = []
        self._lengths: Scores = np.zeros(16, np.float32)
        self._total = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._rows

    def put(self, document_id: str, words: Sequence[str], beside: Iterable[str] = ()) -> None:
        """Add a document, or replace the one of that id.

        Words ``beside`` it, in a lesser field, count ``BESIDE`` of one each, once, and make it no longer.
        """
        self.remove(document_id)
        row = self._take_row()
        self._rows[document_id], self._ids[row] = row, document_id
        counts: dict[str, float] = dict.fromkeys(beside, BESIDE)
        counts.update(Counter(words))
        self._words[document_id] = counts
        self._lengths[row] = len(words)
        self._total += len(words)
        for word, count in counts.items():
            self._postings.setdefault(word, _Posting()).set(row, count)

    def remove(self, document_id: str) -> None:
        """Remove a document; an unknown id is ignored."""
        row = self._rows.pop(document_id, None)
        if row is None:
            return
        for word in self._words.pop(document_id):
            posting = self._postings[word]
            posting.discard(row)
            if not posting.counts:
                del self._postings[word]
        self._total -= int(self._lengths[row])
        self._lengths[row], self._ids[row] = 0, ""
        self._free.append(row)

    def scores(self, words: Sequence[str], common: Container[str] = ()) -> WordScores:
        """Score every document that holds one of ``words``; words given twice count once, ``common`` ones weigh less.

        ``coverage`` is the share of the query that the document answers, each word weighed by how rare it is:
        1 when it holds them all. It does not depend on the other hits, so a bad best hit stays low.
        """
        wanted = list(dict.fromkeys(words))
        bm25, covered = np.zeros(len(self._ids), np.float32), np.zeros(len(self._ids), np.float32)
        hold_back, whole = self._hold_back(), 0.0
        for word in wanted:
            posting = self._postings.get(word)
            weight = self._weight(word, COMMON_TEXTS if word in common else 0)
            whole += weight
            if posting is not None:
                rows, counts = posting.read()
                bm25[rows] += weight * (self._k1 + 1) * counts / (counts + hold_back[rows])
                covered[rows] += weight
        found = np.flatnonzero(covered)
        coverage = np.minimum(covered[found] / np.float32(whole or 1), np.float32(1))
        return WordScores([self._ids[row] for row in found.tolist()], bm25[found], coverage)

    def coverages(self, words: Sequence[str], document_ids: Iterable[str]) -> list[float]:
        """The coverage of these documents alone; 0 for one that is not there. Quicker than ``scores`` for few."""
        weights = {word: self._weight(word) for word in dict.fromkeys(words)}
        whole = sum(weights.values()) or 1.0
        return [
            sum(weight for word, weight in weights.items() if word in held) / whole
            for held in (self._words.get(document_id, ()) for document_id in document_ids)
        ]

    def _weight(self, word: str, beside: int = 0) -> float:
        """How rare a word is, in nats; ``beside`` of the background texts hold it."""
        posting = self._postings.get(word)
        holding = (
            max(1, len(posting.counts)) if posting else 1
        )  # a word never seen is as rare as one seen once
        holding += beside
        return log(1 + (len(self._rows) + BACKGROUND_TEXTS - holding + 0.5) / (holding + 0.5))

    def _hold_back(self) -> Scores:
        """BM25's length term per row."""
        mean = self._total / len(self._rows) if self._total else 1.0
        lengths = self._lengths[: len(self._ids)]
        return np.asarray(self._k1 * (1 - self._b + self._b * lengths / mean), np.float32)

    def _take_row(self) -> int:
        if self._free:
            return self._free.pop()
        self._ids.append("")
        if len(self._ids) > len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        return len(self._ids) - 1
