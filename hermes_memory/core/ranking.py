"""Which memories answer a query, and how well: a score is the product of its parts (SPEC §7.2, §7.5)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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
from hermes_memory.core.model import USER, Granularity, Layer, Lock, Memory, Scope, Status
from hermes_memory.core.rules import RecallRules, Rules
from hermes_memory.core.vectors import VectorTable

PARTS = ("relevance", "decay", "lock", "importance", "polarity")
RERANK = "rerank"  # one more part, of what a second look was taken at
Factors = tuple[float, float, float, float, float]  # in the order of PARTS


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
    """A user's live memories by id, with what makes them findable.

    ``slots`` holds them by dimension, ``rivals`` those that stand against another one.
    """

    memories: Mapping[str, Memory]
    vectors: VectorTable
    words: WordIndex
    slots: Mapping[str, Mapping[str, Memory]]
    rivals: Mapping[str, Memory]


def in_reach(memory: Memory, query: Query) -> bool:
    """Whether a memory may be seen from where the query is asked: current, said by then, and within scope."""
    status = memory.status
    if not (status is Status.ACTIVE or status is Status.REVIEW) or memory.created_at > query.as_of:
        return False
    together = memory.granularity is Granularity.SPAN  # what holds many words shows none of them too early
    if together and memory.stated_at > query.as_of:
        return False
    if memory.valid_to is not None and memory.valid_to <= query.as_of and memory.layer is not None:
        return False
    if memory.scope is Scope.USER:
        return True
    if not together and any(piece.session_id == query.session_id for piece in memory.evidence):
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
    # Where meaning is this far off, not even all of the words would reach the threshold.
    least = 1 - (1 - rules.threshold) / (1 - rules.lexical_weight) if rules.lexical_weight < 1 else 0.0
    rows = np.flatnonzero(near >= least).tolist()
    held = [ids[row] for row in rows]
    covered = shelf.words.coverages(query.words, held)
    joined = 1 - (1 - near[rows]) * (1 - rules.lexical_weight * np.asarray(covered))
    found = {
        memory_id: value
        for memory_id, value in zip(held, joined.tolist(), strict=True)
        if value >= rules.threshold
    }
    for dimension in dimensions.called_by(query.text):
        for memory_id in shelf.slots.get(dimension, ()):
            found[memory_id] = max(found.get(memory_id, 0.0), rules.slot_relevance)
    return found


def rank(
    shelf: Shelf, query: Query, calibration: Calibration, rules: Rules, dimensions: Dimensions
) -> list[Ranked]:
    """The hits in reach, best first, at most ``top_k``; only the current side of a contradiction.

    Equal scores put the newest words first, then go by id.
    """
    found = relevance(shelf, query, calibration, rules.recall, dimensions)
    silenced = _silenced(shelf.rivals.values(), shelf.memories, query)
    hits: list[tuple[float, Memory, Factors]] = []
    for memory_id, value in found.items():
        memory = shelf.memories.get(memory_id)
        if memory is not None and in_reach(memory, query) and _speaks(memory, silenced):
            factors = _factors(memory, value, query, rules)
            hits.append((prod(factors), memory, factors))
    if len(hits) > query.top_k:  # only what may be among the best is put in order
        least = nlargest(query.top_k, (score for score, _, _ in hits))[-1]
        hits = [hit for hit in hits if hit[0] >= least]
    hits.sort(key=lambda hit: (-hit[0], -hit[1].stated_at.timestamp(), hit[1].id))
    return [
        Ranked(memory, dict(zip(PARTS, factors, strict=True))) for _, memory, factors in hits[: query.top_k]
    ]


def reranked(hits: Iterable[Ranked], relevances: Mapping[str, float]) -> list[Ranked]:
    """The hits that have a relevance of their own by memory id, with it as one more part of the score, best first.

    Equal scores keep their order.
    """
    looked_at = [
        Ranked(hit.memory, {**hit.parts, RERANK: relevances[hit.memory.id]})
        for hit in hits
        if hit.memory.id in relevances
    ]
    return sorted(looked_at, key=lambda hit: -hit.score)


def current_side(
    wanted: Iterable[Memory], rivals: Iterable[Memory], live: Mapping[str, Memory], query: Query
) -> set[str]:
    """The ids that may speak: where a rival was said it silences the old statement, elsewhere it waits.

    What is about safety is never silenced, nor is a frozen memory (SPEC §6).
    """
    silenced = _silenced(rivals, live, query)
    return {memory.id for memory in wanted if _speaks(memory, silenced)}


def _silenced(rivals: Iterable[Memory], live: Mapping[str, Memory], query: Query) -> set[str | None]:
    opposed = [rival for rival in rivals if rival.rival_of in live]
    speaking = {rival.id for rival in opposed if _said_near(rival, query)}
    return {rival.rival_of if rival.id in speaking else rival.id for rival in opposed}


def _speaks(memory: Memory, silenced: Container[str | None]) -> bool:
    return memory.id not in silenced or memory.safety or memory.lock is Lock.FROZEN


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
