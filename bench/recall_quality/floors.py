"""What plain search finds in the same turns with the same embedder: the floor under the product.

Each stores every turn as ``[date] speaker: text`` and ranks all of a person's turns for each question, exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bench.recall_quality.data import Person
from bench.recall_quality.scores import DEPTH, Answer, timed
from hermes_memory.ports.embedder import Embedder, Vector

Scores = NDArray[np.float32]
Words = Callable[[str], Sequence[str]]
COSINE, BM25, FUSED = "exact cosine", "BM25", "z(cosine) + ½ z(previous + current) + z(BM25)"


class Bm25:
    """BM25 over a fixed list of documents.

    Args:
        documents: The words of each.
        k1: How soon repeating a word stops counting.
        b: How much long documents are held back, 0 to 1.
    """

    def __init__(self, documents: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._size = len(documents)
        lengths = np.array([len(words) for words in documents], np.float32)
        held_back = k1 * (1 - b + b * lengths / max(float(lengths.mean()), 1.0))
        found: dict[str, list[tuple[int, int]]] = {}
        for row, words in enumerate(documents):
            for word, count in Counter(words).items():
                found.setdefault(word, []).append((row, count))
        self._weights: dict[str, tuple[NDArray[np.intp], Scores]] = {}
        for word, places in found.items():
            rows = np.array([row for row, _ in places], np.intp)
            counts = np.array([count for _, count in places], np.float32)
            rarity = math.log(1 + (self._size - len(rows) + 0.5) / (len(rows) + 0.5))
            weights = rarity * (k1 + 1) * counts / (counts + held_back[rows])
            self._weights[word] = rows, weights.astype(np.float32)

    def scores(self, words: Sequence[str]) -> Scores:
        """One score for each document; words given twice count once."""
        total = np.zeros(self._size, np.float32)
        for word in dict.fromkeys(words):
            if word in self._weights:
                rows, weights = self._weights[word]
                total[rows] += weights
        return total


class Floors:
    """One person's turns, searchable in three ways."""

    def __init__(self, ids: Sequence[str], vectors: Scores, pairs: Scores, bm25: Bm25) -> None:
        self._ids = [frozenset({one}) for one in ids]
        self._vectors, self._pairs, self._bm25 = vectors, pairs, bm25
        self.ways: dict[str, Callable[[Vector, Sequence[str]], Scores]] = {
            COSINE: lambda vector, words: self._vectors @ vector,
            BM25: lambda vector, words: self._bm25.scores(words),
            FUSED: self._fused,
        }

    @classmethod
    async def over(cls, person: Person, embedder: Embedder, words: Words) -> Floors:
        """Embed and index all turns; the pair of a turn is the one before it in its session and itself."""
        texts = [turn.dated for turn in person.turns]
        pairs = list(chain.from_iterable(_pairs([t.dated for t in s.turns]) for s in person.sessions))
        return cls(
            [turn.id for turn in person.turns],
            await embedder.passages(texts),
            await embedder.passages(pairs),
            Bm25([words(text) for text in texts]),
        )

    def search(self, way: str, vector: Vector, words: Sequence[str]) -> list[frozenset[str]]:
        """The best turns, best first."""
        scores = self.ways[way](vector, words)
        return [self._ids[row] for row in np.argsort(-scores, kind="stable")[:DEPTH].tolist()]

    def _fused(self, vector: Vector, words: Sequence[str]) -> Scores:
        near, context = _z(self._vectors @ vector), _z(self._pairs @ vector)
        return near + 0.5 * context + _z(self._bm25.scores(words))


async def answers(people: Sequence[Person], embedder: Embedder, words: Words) -> dict[str, list[Answer]]:
    """Way → an answer to each question."""
    found: dict[str, list[Answer]] = {COSINE: [], BM25: [], FUSED: []}
    for person in people:
        floors = await Floors.over(person, embedder, words)
        for question in person.questions:
            vector = (await embedder.queries([question.text]))[0]
            for way, into in found.items():
                places, taken = timed(partial(_search, floors, way, vector, words, question.text))
                into.append(Answer(question, places, taken))
    return found


def _search(floors: Floors, way: str, vector: Vector, words: Words, query: str) -> list[frozenset[str]]:
    return floors.search(way, vector, words(query))


def _pairs(texts: Sequence[str]) -> list[str]:
    return [
        f"{before}\n{text}" if before else text for before, text in zip(["", *texts], texts, strict=False)
    ]


def _z(scores: Scores) -> Scores:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread else np.zeros_like(scores)
