"""Knowledge packs: general knowledge that a namespace shares, and which of it answers a query (SPEC §7.1.4, S1 §2.1).

It is nobody's memory: it has no evidence and no lock, is never part of a profile, and yields to what is known of
the user. It is there for the first conversation, of which nothing is known yet (S1 §5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.calibration import Calibration
from hermes_memory.core.daytime import Limits, Moment
from hermes_memory.core.ranking import Query
from hermes_memory.core.rules import Rules
from hermes_memory.core.text import language
from hermes_memory.core.values import Tokens, tokens
from hermes_memory.core.vectors import VectorTable
from hermes_memory.errors import InvalidInput

Words = Callable[[str], tuple[str, ...]]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One piece of general knowledge.

    ``content`` and ``cues`` by language; a query that holds a cue calls for the entry. ``topics`` are words it is
    found by besides those of its content, ``dimensions`` what it helps to decide. ``limits`` (kind → names of
    ``core.daytime``) and ``scenes`` say when it is shown: always, if there are none.
    """

    id: str
    content: Mapping[str, str]
    cues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    limits: Limits = field(default_factory=dict)
    scenes: frozenset[str] = frozenset()

    @property
    def limited(self) -> bool:
        """Whether it is shown at times only."""
        return bool(self.limits or self.scenes)

    def meant_for(self, moment: Moment) -> bool:
        """Whether it is shown now: every limit is known to hold."""
        timely = all(names & moment.times.get(kind, frozenset()) for kind, names in self.limits.items())
        return timely and (not self.scenes or moment.scene in self.scenes)

    def text(self, in_language: str) -> str:
        """The content in a language, or else in the first it has."""
        return self.content.get(in_language) or next(iter(self.content.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A named set of entries: loaded, replaced and removed whole."""

    name: str
    version: str
    languages: tuple[str, ...]
    licence: str
    title: str = ""
    entries: tuple[Entry, ...] = ()

    @property
    def passages(self) -> list[str]:
        """The texts to be embedded: of every entry in its order, of every language in the order of its content."""
        return [text for entry in self.entries for text in entry.content.values()]


@dataclass(frozen=True, slots=True)
class Known:
    """An entry that answers a query; ``score`` is its relevance, more when it is meant for just this moment.

    ``language`` is the query's.
    """

    entry: Entry
    pack: Pack
    relevance: float
    score: float
    language: str


class KnowledgeShelf:
    """The packs of one namespace, made findable. Shared by all its users, never changed.

    Args:
        packs: Each with the vectors of its passages, shape (len(pack.passages), dimension).
        words: The segmenter.
        dimension: Length of the vectors.

    Raises:
        InvalidInput: a pack has another number of vectors than of passages, or vectors of another length.
    """

    def __init__(self, packs: Iterable[tuple[Pack, Matrix]], words: Words, dimension: int) -> None:
        self._entries: list[tuple[Entry, Pack]] = []
        self._owners: list[int] = []  # passage → number of its entry
        self._vectors, self._index = VectorTable(dimension), WordIndex()
        self._cues = _Cues()
        self._called: dict[str, set[int]] = {}
        for pack, vectors in packs:
            if len(vectors) != len(pack.passages):
                raise InvalidInput("vectors", "are not those of the pack's passages")
            rows = iter(vectors)
            for entry in pack.entries:
                self._put(entry, pack, words, rows)

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, entry: Entry, pack: Pack, words: Words, rows: Iterable[Matrix]) -> None:
        number = len(self._entries)
        self._entries.append((entry, pack))
        topics = " ".join(entry.topics)
        for text, row in zip(entry.content.values(), rows, strict=False):
            passage = str(len(self._owners))
            self._owners.append(number)
            self._vectors.put(passage, row)
            self._index.put(passage, words(f"{text} {topics}"))
        for cue in (cue for cues in entry.cues.values() for cue in cues):
            self._cues.put(cue, number)
        for dimension in entry.dimensions:
            self._called.setdefault(dimension, set()).add(number)

    def find(
        self, query: Query, moment: Moment, called: Iterable[str], calibration: Calibration, rules: Rules
    ) -> list[Known]:
        """What answers the query and is meant for the moment, best first; equal scores by pack and id.

        ``called`` are the dimensions that the query calls for.
        """
        asked_in = language(query.text)
        found = []
        for number, relevance in self._relevance(query, called, calibration, rules).items():
            entry, pack = self._entries[number]
            if entry.meant_for(moment):
                weight = rules.recall.fit_holds if entry.limited else 1.0
                found.append(Known(entry, pack, relevance, relevance * weight, asked_in))
        return sorted(found, key=lambda one: (-one.score, one.pack.name, one.entry.id))

    def _relevance(
        self, query: Query, called: Iterable[str], calibration: Calibration, rules: Rules
    ) -> dict[int, float]:
        """Number of an entry → the relevance of its nearest passage; only what reaches the threshold."""
        knowledge = rules.knowledge
        aimed = calibration.aim(query.vector)
        near = calibration.relevance(aimed, self._vectors.scores(aimed))
        most = (1 - knowledge.lexical_weight) * (1 - knowledge.dimension_weight)
        least = 1 - (1 - knowledge.threshold) / most if most else 0.0  # not even words and dimension lift it
        rows = np.flatnonzero(near >= least).tolist()
        covered = self._index.coverages(query.words, [str(row) for row in rows])
        helped = set().union(*(self._called.get(dimension, set()) for dimension in called))
        found: dict[int, float] = {}
        for row, share in zip(rows, covered, strict=True):
            number = self._owners[row]
            missing = (1 - float(near[row])) * (1 - knowledge.lexical_weight * share)
            missing *= 1 - knowledge.dimension_weight * (number in helped)
            found[number] = max(found.get(number, 0.0), 1 - missing)
        for number in self._cues.named_in(query.text):
            found[number] = max(found.get(number, 0.0), knowledge.cue_relevance)
        return {number: value for number, value in found.items() if value >= knowledge.threshold}


def beside(found: Sequence[Known], memories: int, rules: Rules) -> list[Known]:
    """What is shown beside that many memories which answer: each takes the place of an entry (SPEC §7.1.4)."""
    return list(found[: max(0, rules.knowledge.most - memories)])


class _Cues:
    """Phrases by their first token: a query is looked through once, however many there are."""

    def __init__(self) -> None:
        self._by_first: dict[str, list[tuple[Tokens, int]]] = {}

    def put(self, cue: str, number: int) -> None:
        """Add a phrase that calls for an entry; one without a letter or digit calls for nothing."""
        if phrase := tokens(cue):
            self._by_first.setdefault(phrase[0], []).append((phrase, number))

    def named_in(self, text: str) -> set[int]:
        """The entries of which ``text`` holds a phrase."""
        words = tokens(text)
        return {
            number
            for start, word in enumerate(words)
            for phrase, number in self._by_first.get(word, ())
            if words[start : start + len(phrase)] == phrase
        }
