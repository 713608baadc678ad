"""Which memories answer a query, and how well: a score is the product of its parts (SPEC §7.2, §7.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from math import prod

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.calibration import Calibration
from hermes_memory.core.decay import decay
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Layer, Lock, Memory, Scope, Status
from hermes_memory.core.rules import RecallRules, Rules
from hermes_memory.core.vectors import VectorTable

PARTS = ("relevance", "decay", "lock", "importance", "polarity")
Factors = tuple[float, float, float, float, float]  # in the order of PARTS
_CURRENT = frozenset({Status.ACTIVE, Status.REVIEW})


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked, from where and as of when (statement time). ``vector`` and ``words`` come with it."""

    text: str
    vector: NDArray[np.float32]
    words: tuple[str, ...]
    session_id: str | None
    scene: str | None
    as_of: datetime
    top_k: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """One hit; ``parts`` are the factors of its score."""

    memory: Memory
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        """The product of the parts."""
        return prod(self.parts.values())


@dataclass(frozen=True, slots=True)
class Shelf:
    """A user's live memories with what makes them findable."""

    memories: Mapping[str, Memory]
    vectors: VectorTable
    words: WordIndex


def in_reach(memory: Memory, query: Query) -> bool:
    """Whether a memory may be seen from where the query is asked: current, said by then, and within scope."""
    if memory.status not in _CURRENT or memory.created_at > query.as_of:
        return False
    if memory.valid_to is not None and memory.valid_to <= query.as_of and memory.layer is not None:
        return False
    if memory.scope is Scope.USER:
        return True
    if any(piece.session_id == query.session_id for piece in memory.evidence):
        return True
    return memory.scope is Scope.SCENE and memory.scene is not None and memory.scene == query.scene


def always_on(memory: Memory) -> bool:
    """Restrictions and safety whatever their lock, the form of address, frozen identity (SPEC §7.1).

    Of others than the user only what concerns their safety. A rival never speaks for its dimension, unless it
    is about safety: until the user has answered both sides stay in sight.
    """
    if memory.status is not Status.ACTIVE or (memory.rival_of and not memory.safety):
        return False
    if memory.subject != USER:
        return memory.safety
    if memory.safety or memory.layer is Layer.RESTRICTION or memory.dimension == "form_of_address":
        return True
    return memory.layer is Layer.IDENTITY and memory.lock is Lock.FROZEN


def relevance(
    shelf: Shelf, query: Query, calibration: Calibration, rules: RecallRules, dimensions: Dimensions
) -> dict[str, float]:
    """Memory id → relevance in [0, 1]; only what reaches the threshold.

    Meaning and words are joined so that either can carry a hit and neither can hide one; nothing is rescaled
    by the other hits of the query (SPEC §7.3). A query that calls for a slot by a cue word finds its memories.
    """
    ids = shelf.vectors.ids
    if not ids:
        return {}
    aimed = calibration.aim(query.vector)
    near = calibration.relevance(aimed, shelf.vectors.scores(aimed))
    by_words = shelf.words.scores(query.words)
    position = shelf.vectors.rows
    covered = np.zeros(len(ids), np.float32)
    for memory_id, share in zip(by_words.ids, by_words.coverage.tolist(), strict=True):
        if memory_id in position:
            covered[position[memory_id]] = share
    joined = 1 - (1 - near) * (1 - rules.lexical_weight * covered)
    found = {ids[row]: float(joined[row]) for row in np.flatnonzero(joined >= rules.threshold).tolist()}
    called = dimensions.called_by(query.text)
    if called:
        for memory in shelf.memories.values():
            if memory.dimension in called:
                found[memory.id] = max(found.get(memory.id, 0.0), rules.slot_relevance)
    return found


def rank(
    shelf: Shelf, query: Query, calibration: Calibration, rules: Rules, dimensions: Dimensions
) -> list[Ranked]:
    """The hits in reach, best first, at most ``top_k``; only the current side of a contradiction."""
    found = relevance(shelf, query, calibration, rules.recall, dimensions)
    hits = [
        (shelf.memories[memory_id], value)
        for memory_id, value in found.items()
        if memory_id in shelf.memories
    ]
    reachable = [(memory, value) for memory, value in hits if in_reach(memory, query)]
    rivals = [memory for memory in shelf.memories.values() if memory.rival_of]
    current = current_side([memory for memory, _ in reachable], rivals, shelf.memories, query)
    factors = [
        (memory, _factors(memory, value, query, rules)) for memory, value in reachable if memory.id in current
    ]
    return _best(factors, query.top_k)


def _best(factors: list[tuple[Memory, Factors]], top_k: int) -> list[Ranked]:
    """The ``top_k`` by score, then the newest, then by id; only what may be among them is put in order."""
    scores = [prod(parts) for _, parts in factors]
    least = nlargest(top_k, scores)[-1] if 0 < top_k < len(scores) else 0.0
    ranked = [
        Ranked(memory, dict(zip(PARTS, parts, strict=True)))
        for (memory, parts), score in zip(factors, scores, strict=True)
        if score >= least
    ]
    ranked.sort(key=lambda hit: (-hit.score, -hit.memory.stated_at.timestamp(), hit.memory.id))
    return ranked[:top_k]


def current_side(
    wanted: Iterable[Memory], rivals: Iterable[Memory], live: Mapping[str, Memory], query: Query
) -> set[str]:
    """The ids that may speak: where a rival was said it silences the old statement, elsewhere it waits.

    What is about safety is never silenced, nor is a frozen memory (SPEC §6).
    """
    opposed = [rival for rival in rivals if rival.rival_of in live]
    speaking = {rival.id for rival in opposed if _said_near(rival, query)}
    silenced = {rival.rival_of for rival in opposed if rival.id in speaking}
    silenced |= {rival.id for rival in opposed if rival.id not in speaking}
    return {m.id for m in wanted if m.id not in silenced or m.safety or m.lock is Lock.FROZEN}


def _said_near(rival: Memory, query: Query) -> bool:
    here = any(piece.session_id == query.session_id for piece in rival.evidence)
    return rival.status is Status.ACTIVE and in_reach(rival, query) and (here or rival.scope is Scope.SCENE)


def _factors(memory: Memory, value: float, query: Query, rules: Rules) -> Factors:
    """The factors of a score, in the order of ``PARTS``."""
    recall = rules.recall
    return (
        value,
        decay(memory, query.as_of, rules.life),
        recall.lock_weights[memory.lock],
        memory.importance,
        recall.negative_factor if memory.negative else 1.0,
    )
