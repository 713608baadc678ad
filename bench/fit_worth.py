"""``python -m bench.fit_worth [--write]``: the points of ``configs/extraction/worth.toml``.

Logistic regression over the cues, plain gradient steps, L2, from the first half of the persona chats. The labels are
per utterance, the cues per sentence: in an utterance with facts, the sentence that shares most content words with them
is the example to keep, and another that shares none counts a little as one to leave; in an utterance without facts all
sentences are to be left. Prints what five-fold cross-validation over dialogues says of each cut (utterances of which a
pattern stores something are kept anyway) and the points; ``--write`` puts the points into the file, rounded to one
decimal so that people can read them. Cues marked ``fixed`` keep theirs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.extraction_quality import NOTE, PERSONA, Embedded
from bench.persona_chats import Utterance, content_words, halves, utterances
from hermes_memory.adapters.rule_extractor.worth import Worth
from hermes_memory.core.candidate import ExtractionRequest

FILE = Path(__file__).parent.parent / "configs" / "extraction" / "worth.toml"
STEPS, RATE, DECAY, FOLDS = 600, 1.0, 0.002, 5
BESIDE = 0.2  # the weight of a sentence beside the one that says the fact
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bag:
    """The sentences of an utterance that no pattern reads: their cues, and the words they share with the facts."""

    cues: Floats  # sentences × cues, 0 or 1
    shared: tuple[int, ...]
    label: bool
    fold: int
    typed: bool  # a pattern stores something of the utterance, so it is kept whatever the points


def main() -> None:
    """Fit, validate, print."""
    reader = Embedded()
    worth = reader.extractor.rules.worth
    first, _ = halves(utterances(PERSONA))
    bags = [_bag(reader, one, worth) for one in first]
    _validate(bags, worth)
    points = _fit(bags, worth)
    for cue, value in zip(worth.cues, points, strict=True):
        print(f"{value:+.1f}  {cue.name}")
    if "--write" in sys.argv:
        FILE.write_text(_with(FILE.read_text(encoding="utf-8"), points), encoding="utf-8")


def _bag(reader: Embedded, one: Utterance, worth: Worth) -> Bag:
    request = ExtractionRequest(turns=(one.turn,), context=(one.before,) if one.before else ())
    found = reader.extractor.read(request).candidates
    stored = [item for item in found if reader.refuses(item, one.turn) is None]
    weighed, question = reader.extractor.reader.weighed(one.turn, one.before)
    signs = [{cue.name for cue in worth.signs(words, question)} for words in weighed]
    rows = [[float(cue.name in some) for cue in worth.cues] for some in signs]
    told = frozenset[str]().union(*(content_words(fact) for fact in one.facts))
    return Bag(
        cues=np.array(rows, dtype=np.float64).reshape(len(rows), len(worth.cues)),
        shared=tuple(len(content_words(words) & told) for words in weighed),
        label=bool(one.facts),
        fold=one.dialogue % FOLDS,
        typed=any(item.dimension != NOTE for item in stored),
    )


def _examples(bag: Bag) -> Iterator[tuple[Floats, float, float]]:
    """Cues, whether to keep, weight."""
    most = max(bag.shared, default=0)
    for row, shared in zip(bag.cues, bag.shared, strict=True):
        if not bag.label:
            yield row, 0.0, 1.0
        elif most and shared in {most, *range(2, most)}:
            yield row, 1.0, 1.0
        elif most:
            yield row, 0.0, BESIDE
        elif len(bag.shared) == 1:
            yield row, 1.0, 1.0


def _fit(bags: Sequence[Bag], worth: Worth) -> Floats:
    rows, kept, weights = (np.array(column) for column in zip(*_all(bags), strict=True))
    points = np.array([cue.points if cue.fixed else 0.0 for cue in worth.cues])
    free = np.array([not cue.fixed for cue in worth.cues], dtype=np.float64)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-rows @ points))
        points -= RATE * free * (rows.T @ (weights * (chance - kept)) / weights.sum() + DECAY * points)
    return points


def _all(bags: Sequence[Bag]) -> list[tuple[Floats, float, float]]:
    return [example for bag in bags for example in _examples(bag)]


def _validate(bags: Sequence[Bag], worth: Worth) -> None:
    labels = np.array([bag.label for bag in bags])
    scores = np.full(len(bags), np.inf)
    for fold in range(FOLDS):
        points = _fit([bag for bag in bags if bag.fold != fold], worth)
        for number, bag in enumerate(bags):
            if bag.fold == fold and not bag.typed:
                scores[number] = max(bag.cues @ points, default=-np.inf)
    for cut in np.arange(-0.5, 1.01, 0.1):
        print(f"cut {cut:+.1f}  {_rates(labels, scores >= cut)}")


def _rates(labels: NDArray[np.bool_], kept: NDArray[np.bool_]) -> str:
    hit, alarm = float((labels & kept).sum()), float((~labels & kept).sum())
    lost, right = float((labels & ~kept).sum()), float((~labels & ~kept).sum())
    macro = (2 * hit / (2 * hit + alarm + lost) + 2 * right / (2 * right + lost + alarm)) / 2
    recall, specificity = hit / (hit + lost), right / (right + alarm)
    return f"macro-F1 {macro:.4f}  recall {recall:.3f}  specificity {specificity:.3f}"


def _with(text: str, points: Floats) -> str:
    values = iter(points)
    return re.sub(r"(?m)^points = .*$", lambda _: f"points = {round(float(next(values)), 1) + 0.0}", text)


if __name__ == "__main__":
    main()
