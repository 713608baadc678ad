"""Fits a calibration to labelled pairs, and measures what it separates (SPEC §7.3).

The knots of a ramp are quantiles of the pairs' similarities, by the marks of ``FitRules``; so 0.76 and 0.85 let
the same share of unrelated texts pass with every model, and how many related ones they find tells how good the
model is. The query's knots come from pairs in one language: where a model keeps languages apart, pairs across
them would move the scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import numpy as np

from hermes_memory.core.calibration import Calibration, Centring, Floats, Ramp
from hermes_memory.core.concern import Concern, learn, unseen
from hermes_memory.core.labelled import LabelledPairs, Texts
from hermes_memory.errors import InvalidInput

Sides = tuple[Sequence[Texts], Sequence[Texts]]  # related and unrelated


class Side(StrEnum):
    """Which pairs a mark counts."""

    RELATED = "related"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True)
class Mark:
    """``value`` stands where ``share`` of that side scores at most."""

    side: Side
    share: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRules:
    """How to fit; the values are data (``configs/embedders/calibrating.toml``)."""

    query: tuple[Mark, ...]
    pair: tuple[Mark, ...]
    recall_at: float
    duplicate_at: float
    pair_start: float
    step: float
    mean_share: float
    direction_share: float
    centring_gain: float
    folds: int
    seed: int
    least_pairs: int
    least_groups: int
    ridge: float
    concern_folds: int


@dataclass(frozen=True, slots=True)
class Figures:
    """How well one kind of pairs is told apart: AUC, and what passes a threshold (0 to 1 each)."""

    what: str
    related: int
    unrelated: int
    auc: float
    threshold: float | None = None
    hits: float | None = None
    false_alarms: float | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibration and what it does to the pairs that it was fitted to, and to held-out ones."""

    calibration: Calibration
    figures: tuple[Figures, ...]


class Embedded:
    """Labelled pairs with vectors.

    ``queries`` and ``passages`` have shape (n, dimension), in the pairs' order; ``asked`` those of the queries by
    themselves, None without any.

    Raises:
        InvalidInput: too few pairs, or vectors that are not finite, not of one shape or not of unit length.
    """

    def __init__(
        self,
        pairs: LabelledPairs,
        queries: Floats,
        passages: Floats,
        rules: FitRules,
        asked: Floats | None = None,
    ) -> None:
        pairs.check(rules.least_pairs, rules.least_groups)
        if asked is not None:
            _check(asked, (len(pairs.asked), passages.shape[-1]))
        self.asked_alone = asked
        for texts, vectors in ((pairs.queries, queries), (pairs.passages, passages)):
            _check(vectors, (len(texts), passages.shape[-1]))
        self.pairs, self.queries, self.passages, self.rules = pairs, queries, passages, rules
        self._query_rows = {text: row for row, text in enumerate(pairs.queries)}
        self._passage_rows = {text: row for row, text in enumerate(pairs.passages)}

    def centring(self, groups: Iterable[str] | None = None) -> Centring:
        """Means over the languages alike, and the directions in which they differ; of the texts of ``groups``."""
        kept = None if groups is None else set(groups)
        means, gaps = [], []
        for texts, vectors in ((self.pairs.queries, self.queries), (self.pairs.passages, self.passages)):
            chosen = [kept is None or self.pairs.groups.get(text) in kept for text in texts]
            parts = [np.mean(part, axis=0) for part in self._by_language(texts, vectors, chosen)]
            means.append(np.asarray(sum(parts) / len(parts), np.float32))
            gaps += [parts[0] - other for other in parts[1:]]
        apart = np.linalg.svd(np.stack(gaps), full_matrices=False)[2] if gaps else self.queries[:0]
        directions = np.asarray(apart, np.float32)
        return Centring(means[0], means[1], directions, self.rules.mean_share, self.rules.direction_share)

    def _by_language(self, texts: Sequence[str], vectors: Floats, chosen: Sequence[bool]) -> Iterator[Floats]:
        spoken = [
            self.pairs.languages[text] if kept else "" for text, kept in zip(texts, chosen, strict=True)
        ]
        for name in sorted({*spoken} - {""}, reverse=True):
            yield vectors[[other == name for other in spoken]]

    def asked(self, pairs: Sequence[Texts], centring: Centring | None) -> Floats:
        """What the query ramp is given, per (query, memory)."""
        aimed = self.queries if centring is None else np.stack([centring.aim(row) for row in self.queries])
        level = np.zeros(len(aimed)) if centring is None else aimed @ centring.passage_mean
        scores = np.asarray(aimed @ self.passages.T - level[:, None], np.float32)
        rows = [(self._query_rows[query], self._passage_rows[text]) for query, text in pairs]
        return np.asarray(scores[tuple(np.array(rows).T)], np.float32)

    def stated(self, pairs: Sequence[Texts]) -> Floats:
        """What the pair ramp is given, per (statement, statement)."""
        rows = np.array([[self._passage_rows[text] for text in pair] for pair in pairs])
        held = self.passages[rows]
        return np.asarray(np.einsum("ij,ij->i", held[:, 0], held[:, 1]), np.float32)

    def arbitrary(self) -> Floats:
        """The similarities of all statements with all others."""
        cosines = self.passages @ self.passages.T
        return np.asarray(cosines[np.triu_indices(len(cosines), 1)], np.float32)


def fit(texts: Embedded) -> Fitted:
    """The calibration of the model that embedded ``texts``; centred if that tells held-out groups apart better."""
    rules = texts.rules
    plain, centred = _held_out_recall(texts, centred=False), _held_out_recall(texts, centred=True)
    gains = centred.auc - plain.auc >= rules.centring_gain
    centring = texts.centring() if gains else None
    recalls, statements = texts.pairs.recalls, texts.pairs.statements
    related, unrelated = (texts.asked(texts.pairs.one_language(side), centring) for side in recalls)
    query = ramp_through(rules.query, related, unrelated, -1.0, rules.step)
    start = round(float(np.quantile(texts.arbitrary(), rules.pair_start)), 2)
    same, different = (texts.stated(side) for side in statements)
    pair = ramp_through(rules.pair, same, different, start, rules.step)
    raw = [texts.asked(side, None) for side in recalls]
    figures = (
        _figures("recall, plain cosine", raw[0], raw[1]),
        *(_recall_figures(what, texts, sides, query, centring) for what, sides in _by_kind(texts.pairs)),
        centred if gains else plain,
        _figures("same statement", pair.apply(same), pair.apply(different), rules.duplicate_at),
        _held_out_statements(texts, start),
    )
    concern, told_apart = _concern(texts)
    return Fitted(Calibration(query, pair, centring, concern), (*figures, *told_apart))


def _concern(texts: Embedded) -> tuple[Concern | None, tuple[Figures, ...]]:
    """What tells the queries that concern the user, and how well it does so with queries it was not learnt from."""
    rules, vectors = texts.rules, texts.asked_alone
    if vectors is None:
        return None, ()
    labels = np.array([label for _, label in texts.pairs.asked])
    likely = unseen(vectors, labels, rules.ridge, rules.concern_folds, rules.seed)
    figures = _figures("query concerns the user, held out", likely[labels], likely[~labels], 0.5)
    return learn(vectors, labels, rules.ridge), (figures,)


def ramp_through(
    marks: Sequence[Mark], related: Floats, unrelated: Floats, start: float, step: float
) -> Ramp:
    """The ramp from (start, 0) through the marks up to 1; knots keep ``step`` apart, whatever the quantiles say."""
    knots = [(start, 0.0)]
    for mark in marks:
        side = related if mark.side is Side.RELATED else unrelated
        cosine = round(float(np.quantile(side, mark.share)), 3)
        knots.append((max(cosine, knots[-1][0] + step), mark.value))
    if knots[-1][1] < 1:
        knots.append((max(1.0, knots[-1][0] + step), 1.0))
    above = reversed(range(len(knots)))  # what was pushed beyond 1 comes back, still in order
    held = [
        (round(min(cosine, 1 - step * rank), 3), value)
        for rank, (cosine, value) in zip(above, knots, strict=True)
    ]
    return Ramp(tuple(held))


def auc(related: Floats, unrelated: Floats) -> float:
    """The chance that a random related pair scores above a random unrelated one."""
    order = np.sort(unrelated)
    below, upto = np.searchsorted(order, related, "left"), np.searchsorted(order, related, "right")
    return float(np.mean((below + upto) / 2) / len(unrelated))


def _check(vectors: Floats, shape: tuple[int, int]) -> None:
    if vectors.shape != shape:
        raise InvalidInput("embedder", f"gave vectors of shape {vectors.shape} where {shape} is needed")
    if not np.isfinite(vectors).all():
        raise InvalidInput("embedder", "gave vectors that are not finite")
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
        raise InvalidInput("embedder", "gave vectors that are not of unit length")


def _by_kind(pairs: LabelledPairs) -> Iterator[tuple[str, Sides]]:
    """All (query, memory), then those of each two languages that occur."""
    yield "recall", pairs.recalls
    spoken = pairs.languages
    names = sorted({spoken[text] for pair in pairs.recalls[0] for text in pair}, reverse=True)
    for asked, held in product(names, names) if len(names) > 1 else ():
        related, unrelated = (
            [pair for pair in side if (spoken[pair[0]], spoken[pair[1]]) == (asked, held)]
            for side in pairs.recalls
        )
        if related and unrelated:
            yield f"  {asked} query, {held} memory", (related, unrelated)


def _figures(what: str, related: Floats, unrelated: Floats, threshold: float | None = None) -> Figures:
    counts = len(related), len(unrelated)
    area = auc(related, unrelated)
    if threshold is None:
        return Figures(what, *counts, area)
    hits, alarms = (float(np.mean(side >= threshold)) for side in (related, unrelated))
    return Figures(what, *counts, area, threshold, hits, alarms)


def _recall_figures(
    what: str, texts: Embedded, sides: Sides, ramp: Ramp, centring: Centring | None
) -> Figures:
    related, unrelated = (ramp.apply(texts.asked(side, centring)) for side in sides)
    return _figures(what, related, unrelated, texts.rules.recall_at)


def _held_out_recall(texts: Embedded, *, centred: bool) -> Figures:
    """Centring and ramp fitted on half of the groups, measured on the other half."""
    rules, measured = texts.rules, []
    for learnt in _halves(sorted(set(texts.pairs.groups.values())), rules):
        inside, outside = (
            [_within(texts.pairs, side, learnt, wanted) for side in texts.pairs.recalls]
            for wanted in (True, False)
        )
        if not all(map(len, (*inside, *outside))):
            continue
        centring = texts.centring(learnt) if centred else None
        known = [texts.asked(side, centring) for side in inside]
        ramp = ramp_through(rules.query, known[0], known[1], -1.0, rules.step)
        unseen = [ramp.apply(texts.asked(side, centring)) for side in outside]
        measured.append(_figures("", unseen[0], unseen[1], rules.recall_at))
    return _mean("recall, held out", measured)


def _held_out_statements(texts: Embedded, start: float) -> Figures:
    """The pair ramp fitted on half of the statements that pairs begin with, measured on the other half."""
    rules, sides = texts.rules, texts.pairs.statements
    measured = []
    for learnt in _halves(sorted({first for side in sides for first, _ in side}), rules):
        inside, outside = (
            [[pair for pair in side if (pair[0] in learnt) is wanted] for side in sides]
            for wanted in (True, False)
        )
        if not all(map(len, (*inside, *outside))):
            continue
        known = [texts.stated(side) for side in inside]
        ramp = ramp_through(rules.pair, known[0], known[1], start, rules.step)
        unseen = [ramp.apply(texts.stated(side)) for side in outside]
        measured.append(_figures("", unseen[0], unseen[1], rules.duplicate_at))
    return _mean("same statement, held out", measured)


def _mean(what: str, measured: Sequence[Figures]) -> Figures:
    """The mean of all folds. Raises InvalidInput when no half held enough to fit to."""
    if not measured:
        raise InvalidInput("pairs", f"half of the groups is too little to fit to ({what})")
    parts = [(one.related, one.unrelated, one.auc, one.hits, one.false_alarms) for one in measured]
    related, unrelated, area, hits, alarms = np.mean(np.array(parts, np.float64), axis=0).tolist()
    return Figures(what, round(related), round(unrelated), area, measured[0].threshold, hits, alarms)


def _halves(names: Sequence[str], rules: FitRules) -> Iterator[set[str]]:
    """Half of ``names``, so many times; the same halves every time."""
    rng = np.random.default_rng(rules.seed)
    for _ in range(rules.folds):
        yield set(rng.permutation(list(names))[: len(names) // 2].tolist())


def _within(pairs: LabelledPairs, side: Sequence[Texts], learnt: set[str], wanted: bool) -> list[Texts]:
    """The pairs in one language of which both texts are of the learnt groups, or neither."""
    groups = pairs.groups
    return [
        pair
        for pair in pairs.one_language(side)
        if all((groups.get(text, "") in learnt) is wanted for text in pair)
    ]
