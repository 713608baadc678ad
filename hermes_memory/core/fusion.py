"""One measure of how well memories answer a query, from meaning, words and neighbouring turns (SPEC §7.1, §7.3).

Every signal is evidence on one scale, in nats: how far the calibrated meaning lies above what any two texts share, and
how rare the words are that query and memory have in common (BM25). Evidence adds up. An episode, a turn as it was said,
often makes sense only beside its neighbours: their odds are added to its own, at a discount. Nothing is rescaled by
the other hits of a query, so a bad best hit stays low.

From the evidence two numbers follow. ``relevance`` says whether a memory bears on the query at all, on the calibrated
scale of the threshold; there words count for the share of the query that they cover, so that one stray word carries
nothing. ``match`` says how much of what is asked it carries, and spreads what passed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.calibration import Calibration, Floats
from hermes_memory.core.rules import FusionRules
from hermes_memory.core.vectors import VectorTable

Place = tuple[str, int]  # session id, turn index
Rows = NDArray[np.intp]

WHOLLY = 0.999  # coverage of all words, for all that floats round
_HIGHEST = 30.0  # nats; more says nothing more, and its odds would not be finite


class Match(NamedTuple):
    """Both in [0, 1]: ``relevance`` on the calibrated scale, ``match`` rising with the evidence."""

    relevance: float
    match: float


class Places:
    """Which memories rest on which turn, and where each was said last."""

    def __init__(self) -> None:
        self._at: dict[Place, dict[str, None]] = {}
        self._of: dict[str, tuple[Place, ...]] = {}

    def put(self, memory_id: str, places: Iterable[Place]) -> None:
        """Say on which turns a memory rests."""
        self.remove(memory_id)
        self._of[memory_id] = kept = tuple(dict.fromkeys(places))
        for place in kept:
            self._at.setdefault(place, {})[memory_id] = None

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id is ignored."""
        for place in self._of.pop(memory_id, ()):
            held = self._at[place]
            held.pop(memory_id, None)
            if not held:
                del self._at[place]

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._of

    def at(self, place: Place) -> Iterable[str]:
        """The ids of what rests on a turn."""
        return self._at.get(place, ())

    def of(self, memory_id: str) -> tuple[Place, ...]:
        """The turns that a memory rests on, oldest first."""
        return self._of.get(memory_id, ())


class Fused:
    """What one query finds on one shelf.

    Args:
        aimed: The query's vector as the calibration aims it.
        words: The query's words.
        common: Words of everyday use: they weigh less.
    """

    def __init__(
        self, table: VectorTable, index: WordIndex, calibration: Calibration, rules: FusionRules,
        aimed: Floats, words: Iterable[str], common: Container[str] = (),
    ) -> None:  # fmt: skip
        self._index = index
        self.ids, self._rows, self._rules, self._calibration = table.ids, table.rows, rules, calibration
        meaning = calibration.units(aimed, table.scores(aimed))
        lexical, covering = np.zeros_like(meaning), np.zeros_like(meaning)
        found = index.scores(tuple(words), common)
        rows = np.fromiter((self._rows.get(one, -1) for one in found.ids), np.intp, len(found.ids))
        held = rows >= 0
        lexical[rows[held]] = found.bm25[held]
        covering[rows[held]] = (found.bm25 * found.coverage)[held]
        self._evidence = rules.meaning * meaning + rules.words * lexical
        counted = rules.words * rules.covered / rules.meaning  # in units of meaning
        self._bearing = meaning + counted * covering

    def best(self, threshold: float, limit: int) -> Rows:
        """The rows whose relevance reaches the threshold; of more than ``limit`` those with most evidence."""
        rows = np.flatnonzero(self._calibration.at(self._bearing) >= threshold)
        if len(rows) <= limit:
            return rows
        return np.asarray(rows[np.argpartition(-self._evidence[rows], limit)[:limit]])

    def lift(self, memory_ids: Iterable[str], units: float) -> None:
        """Count something else that speaks for some memories as so many units of meaning."""
        rows = self._rows_of(memory_ids)
        self._bearing[rows] += units
        self._evidence[rows] += units * self._rules.meaning

    def expect(self, units: float) -> None:
        """Count what the query says of itself as so many units of meaning, for whether a memory bears on it."""
        self._bearing += np.float32(units)

    def matches(self, rows: Rows) -> dict[str, Match]:
        """Relevance and match of some rows, by memory id."""
        return self._read(rows, self._evidence[rows], self._bearing[rows])

    def of(self, memory_ids: Iterable[str]) -> dict[str, Match]:
        """The same of some memories; those without a vector are left out."""
        return self.matches(self._rows_of(memory_ids))

    def in_context(self, memory_ids: Iterable[str], places: Places) -> dict[str, Match]:
        """The same for memories whose neighbours speak for them too, by memory id."""
        rows, per_unit = self._rows_of(memory_ids), np.float32(self._rules.meaning)
        beside = self._beside(rows, places)
        evidence = _joined(self._evidence, rows, beside)
        bearing = _joined(per_unit * self._bearing, rows, beside) / per_unit
        return self._read(rows, evidence, bearing)

    def around(self, rows: Rows, places: Places) -> set[str]:
        """The ids of what was said near some rows, themselves included."""
        return around((self.ids[row] for row in rows.tolist()), places, self._rules)

    def _rows_of(self, memory_ids: Iterable[str]) -> Rows:
        return np.fromiter((self._rows[one] for one in memory_ids if one in self._rows), np.intp)

    def _beside(self, rows: Rows, places: Places) -> list[list[tuple[float, list[int]]]]:
        """For each row, what stands beside it: the discount and the rows of each neighbouring turn."""
        steps = [(-number - 1, share) for number, share in enumerate(self._rules.before)]
        steps += [(number + 1, share) for number, share in enumerate(self._rules.after)]
        return [[
            (share, [self._rows[one] for one in places.at((session, index + step)) if one in self._rows])
            for session, index in places.of(self.ids[row])[-1:] for step, share in steps
        ] for row in rows.tolist()]  # fmt: skip

    def _read(self, rows: Rows, evidence: Floats, bearing: Floats) -> dict[str, Match]:
        relevance = self._calibration.at(bearing)
        match = 1 / (1 + np.exp(np.clip(self._rules.even - evidence, -_HIGHEST, _HIGHEST)))
        return {
            self.ids[row]: Match(value, share)
            for row, value, share in zip(rows.tolist(), relevance.tolist(), match.tolist(), strict=True)
        }


def _joined(nats: Floats, rows: Rows, beside: list[list[tuple[float, list[int]]]]) -> Floats:
    """The evidence of ``rows`` when the odds of what stands beside them are added at their discount."""
    odds = np.exp(np.clip(nats, -_HIGHEST, _HIGHEST))
    total = [
        float(odds[row]) + sum(share * max((float(odds[one]) for one in near), default=0.0) for share, near in turns)
        for row, turns in zip(rows.tolist(), beside, strict=True)
    ]  # fmt: skip
    return np.log(np.asarray(total, np.float32))


def holding(index: WordIndex, words: Iterable[str]) -> list[str]:
    """The ids of what holds every one of the words."""
    found = index.scores(tuple(words))
    return [found.ids[number] for number in np.flatnonzero(found.coverage >= WHOLLY).tolist()]


def around(memory_ids: Iterable[str], places: Places, rules: FusionRules) -> set[str]:
    """The ids of what was said near some memories, themselves included."""
    steps = range(-len(rules.before), len(rules.after) + 1)
    said = [place for memory_id in memory_ids for place in places.of(memory_id)]
    turns = {(session, index + step) for session, index in said for step in steps}
    return {memory_id for turn in turns for memory_id in places.at(turn)}


def told_twice(matches: Mapping[str, float], places: Places, episodes: Iterable[str]) -> set[str]:
    """Of an episode and what else rests on the same turn the ids that score lower: one of them stands for the turn."""
    dropped: set[str] = set()
    for episode in episodes:
        for place in places.of(episode):
            rivals = [one for one in places.at(place) if one != episode and one in matches]
            if any(matches[one] >= matches[episode] for one in rivals):
                dropped.add(episode)
            else:
                dropped.update(rivals)
    return dropped
