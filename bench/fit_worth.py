"""``python -m bench.fit_worth [--write]``: the points of ``configs/extraction/worth.toml``, from the first half of the persona chats.

Only utterances are looked at of which no pattern stores anything; each counts by its most promising sentence, since
the labels are per utterance. Logistic regression over the cues, plain gradient steps, L2. Prints the points, and what
five-fold cross-validation over dialogues says of them; ``--write`` puts them into the file. Rounded to one decimal, so
that people can read them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.extraction_quality import NOTE, PERSONA, Embedded
from bench.persona_chats import Utterance, halves, utterances
from hermes_memory.adapters.rule_extractor.worth import Worth
from hermes_memory.core.candidate import ExtractionRequest

FILE = Path(__file__).parent.parent / "configs" / "extraction" / "worth.toml"
STEPS, RATE, DECAY, FOLDS = 600, 1.0, 0.001, 5
Floats = NDArray[np.float64]


def main() -> None:
    """Fit, validate, print."""
    reader = Embedded()
    first, _ = halves(utterances(PERSONA))
    worth = reader.extractor.rules.worth
    bags, labels, folds, typed = _gathered(reader, first, worth)
    open_ = ~typed
    scores = np.full(len(labels), 9.0)
    for fold in range(FOLDS):
        train, test = open_ & (folds != fold), open_ & (folds == fold)
        points = _fit([bags[i] for i in np.flatnonzero(train)], labels[train], worth)
        for i in np.flatnonzero(test):
            scores[i] = max((bag @ points for bag in bags[i]), default=-9.0)
    for cut in np.arange(-1.0, 1.01, 0.1):
        print(
            f"cut {cut:+.1f}  macro-F1 {_macro(labels, scores >= cut):.4f}  {_rates(labels, scores >= cut)}"
        )
    points = _fit([bags[i] for i in np.flatnonzero(open_)], labels[open_], worth)
    for cue, value in zip(worth.cues, points, strict=True):
        print(f"{value:+.1f}  {cue.name}")
    if "--write" in sys.argv:
        FILE.write_text(_with(FILE.read_text(encoding="utf-8"), points), encoding="utf-8")


def _with(text: str, points: Floats) -> str:
    values = iter(points)
    return re.sub(r"(?m)^points = .*$", lambda _: f"points = {round(float(next(values)), 1) + 0.0}", text)


def _gathered(
    reader: Embedded, first: list[Utterance], worth: Worth
) -> tuple[list[Floats], NDArray[np.bool_], NDArray[np.int_], NDArray[np.bool_]]:
    bags, labels, folds, typed = [], [], [], []
    for one in first:
        request = ExtractionRequest(turns=(one.turn,), context=(one.before,) if one.before else ())
        found = reader.extractor.read(request).candidates
        stored = [item for item in found if reader.refuses(item, one.turn) is None]
        weighed, question = reader.extractor.reader.weighed(one.turn, one.before)
        signs = [{cue.name for cue in worth.signs(words, question)} for words in weighed]
        rows = [[float(cue.name in some) for cue in worth.cues] for some in signs]
        bags.append(np.array(rows, dtype=np.float64).reshape(len(rows), len(worth.cues)))
        labels.append(bool(one.facts))
        folds.append(one.dialogue % FOLDS)
        typed.append(any(item.dimension != NOTE for item in stored))
    return bags, np.array(labels), np.array(folds), np.array(typed)


def _fit(bags: list[Floats], labels: NDArray[np.bool_], worth: Worth) -> Floats:
    kept = [(bag, label) for bag, label in zip(bags, labels, strict=True) if len(bag)]
    wanted = np.array([label for _, label in kept], dtype=np.float64)
    points = np.array([cue.points if cue.fixed else 0.0 for cue in worth.cues])
    free = np.array([not cue.fixed for cue in worth.cues], dtype=np.float64)
    for _ in range(STEPS):
        best = np.stack([bag[int(np.argmax(bag @ points))] for bag, _ in kept])
        chance = 1 / (1 + np.exp(-best @ points))
        points -= RATE * free * (best.T @ (chance - wanted) / len(kept) + DECAY * points)
    return points


def _macro(labels: NDArray[np.bool_], kept: NDArray[np.bool_]) -> float:
    hit, alarm = float((labels & kept).sum()), float((~labels & kept).sum())
    lost, right = float((labels & ~kept).sum()), float((~labels & ~kept).sum())
    return (2 * hit / (2 * hit + alarm + lost) + 2 * right / (2 * right + lost + alarm)) / 2


def _rates(labels: NDArray[np.bool_], kept: NDArray[np.bool_]) -> str:
    recall, specificity = float(kept[labels].mean()), float((~kept)[~labels].mean())
    return f"recall {recall:.3f}  specificity {specificity:.3f}"


if __name__ == "__main__":
    main()
