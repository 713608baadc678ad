"""Which memories answer a query, and how well: a score is the product of its parts (SPEC §7.2, §7.5)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from math import prod

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.asking import NOTHING_KNOWN, Asked
from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.calibration import Calibration
from hermes_memory.core.candidate import SAID
from hermes_memory.core.daytime import Daytimes, Moment, fit
from hermes_memory.core.decay import decay
from hermes_memory.core.feedback import liking
from hermes_memory.core.fusion import Fused, Match, Places, holding, told_twice
from hermes_memory.core.model import USER, Category, Granularity, Layer, Lock, Memory, Scope, Status
from hermes_memory.core.rules import FusionRules, Rules
from hermes_memory.core.vectors import VectorTable

RERANK = "rerank"  # in place of "match", of what a second look was taken at
PARTS = ("relevance", "match", "decay", "lock", "importance", "polarity", "fit", "feedback")
NO_MATCH = Match(0.0, 0.0)
WIDER = 4  # so many hits are scored for each that is asked for: the other factors may raise one that far
Factors = tuple[float, ...]  # in the order of PARTS
Scored = tuple[float, Memory, Factors]


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
    asked: Asked = NOTHING_KNOWN
    called: frozenset[str] = frozenset()  # the dimensions that it calls for by a cue word
    named: tuple[tuple[str, ...], ...] = ()  # the words of each name, quotation or amount in it
    whole: bool = False  # also what stands far below the best: somebody looks at it again
    moment: Moment = field(default_factory=lambda: Moment({}))


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

    ``slots`` holds them by dimension, ``rivals`` those that stand against another one, ``places`` says which turns
    they rest on.
    """

    memories: Mapping[str, Memory]
    vectors: VectorTable
    words: WordIndex
    slots: Mapping[str, Mapping[str, Memory]]
    rivals: Mapping[str, Memory]
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What hits are measured with; the same for every query."""

    calibration: Calibration
    rules: Rules
    daytimes: Daytimes
    common: Container[str] = ()  # words of everyday use


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


def directs(memory: Memory) -> bool:
    """Whether it says how to answer the user: length, tone, form (S1 §1.3). The form of address is always on as it is."""
    return (
        memory.layer is Layer.STYLE
        and memory.subject == USER
        and memory.status is Status.ACTIVE
        and memory.granularity is Granularity.ATOMIC
        and memory.rival_of is None
        and memory.dimension != "form_of_address"
        and not always_on(memory)
    )


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


def matched(shelf: Shelf, query: Query, yardstick: Yardstick) -> dict[str, Match]:
    """How well memories answer, by id; only what reaches the threshold (SPEC §7.1, §7.3).

    A query that calls for a slot by a cue word finds its memories, one about a time gone by what was said or is true
    then. An errand that is nothing to the user must be met almost word for word.
    """
    if not shelf.vectors.ids:
        return {}
    rules, recall = yardstick.rules.fusion, yardstick.rules.recall
    aimed = yardstick.calibration.aim(query.vector)
    fused = Fused(
        shelf.vectors, shelf.words, yardstick.calibration, rules, aimed, query.words, yardstick.common
    )
    errand = query.asked.errand is not None and not query.asked.personal
    fused.expect(_prior(query, yardstick.calibration, rules))
    for named in query.named:
        fused.lift(holding(shelf.words, named), rules.exact)
    if query.asked.periods and query.asked.about_past:
        fused.lift(of_the_time(shelf.memories.values(), query), rules.period)
    most = min(rules.candidates, WIDER * query.top_k)
    found = fused.matches(fused.best(recall.threshold, most))
    if shelf.slots.get(SAID):
        near = fused.around(fused.best(0, most), shelf.places)
        found |= fused.in_context(_told(shelf, near | found.keys()), shelf.places)
    least = recall.errand_relevance if errand else recall.threshold
    found = {memory_id: match for memory_id, match in found.items() if match.relevance >= least}
    if not errand:
        wanted = [memory_id for dimension in query.called for memory_id in shelf.slots.get(dimension, ())]
        for memory_id, (relevance, match) in fused.of(wanted).items():
            beside = found.get(memory_id, NO_MATCH)  # what its neighbours say for it stays
            found[memory_id] = Match(
                max(relevance, beside.relevance, recall.slot_relevance), max(match, beside.match)
            )
    if len(found) > most:
        return dict(nlargest(most, found.items(), key=lambda item: item[1].match))
    return found


def _prior(query: Query, calibration: Calibration, rules: FusionRules) -> float:
    """What speaks for any memory, or against it, before it is looked at, in units of meaning (SPEC §7.2, intent).

    A query that is likely to concern the user needs less of a memory, one that is not needs more. Where the embedder's
    calibration cannot tell, a query that speaks of the user counts as one, and nothing counts against the others.
    """
    likely = calibration.concerns(query.vector)
    if likely is None:
        return rules.personal if query.asked.personal else 0.0
    return rules.personal * likely - rules.doubt * (1 - likely)


def of_the_time(memories: Iterable[Memory], query: Query) -> Iterator[str]:
    """The ids of what belongs to a period that the query names."""
    return (memory.id for memory in memories if _in_a_period(memory, query))


def _in_a_period(memory: Memory, query: Query) -> bool:
    """Whether it is true from a time on that the query names, or was said then, where it asks about the past."""
    for period in query.asked.periods:
        if memory.valid_from is not None and memory.valid_from in period:
            return True
        if query.asked.about_past and any(piece.created_at in period for piece in memory.evidence):
            return True
    return False


def _told(shelf: Shelf, memory_ids: Iterable[str]) -> list[str]:
    """Those that tell what happened, as it was said."""
    return [
        memory_id for memory_id in memory_ids
        if (memory := shelf.memories.get(memory_id)) is not None and memory.category is Category.EVENT
    ]  # fmt: skip


def rank(shelf: Shelf, query: Query, yardstick: Yardstick) -> list[Ranked]:
    """The hits in reach, best first, at most ``top_k``; only the current side of a contradiction.

    Equal scores put the newest words first, then go by id.
    """
    found = matched(shelf, query, yardstick)
    silenced = _silenced(shelf.rivals.values(), shelf.memories, query)
    hits: list[Scored] = []
    for memory_id, match in found.items():
        memory = shelf.memories.get(memory_id)
        if memory is not None and in_reach(memory, query) and _speaks(memory, silenced):
            factors = _factors(memory, match, query, yardstick)
            hits.append((prod(factors), memory, factors))
    if shelf.slots.get(SAID):
        hits = _told_once(hits, shelf.places)
    if not query.whole:
        hits = _standing_out(hits, yardstick.rules.fusion.cut, query.called)
    if len(hits) > query.top_k:  # only what may be among the best is put in order
        least = nlargest(query.top_k, (score for score, _, _ in hits))[-1]
        hits = [hit for hit in hits if hit[0] >= least]
    hits.sort(key=lambda hit: (-hit[0], -hit[1].stated_at.timestamp(), hit[1].id))
    return [
        Ranked(memory, dict(zip(PARTS, factors, strict=True))) for _, memory, factors in hits[: query.top_k]
    ]


def _standing_out(hits: list[Scored], cut: float, called: Container[str]) -> list[Scored]:
    """Without what carries far less than the best: where one hit is plainly meant, the rest is not.

    What answers a slot that is called for stays, for it is meant too.
    """
    carries = PARTS.index("match")
    least = cut * max((factors[carries] for _, _, factors in hits), default=0.0)
    return [hit for hit in hits if hit[2][carries] >= least or hit[1].dimension in called]


def _told_once(hits: list[Scored], places: Places) -> list[Scored]:
    """Without what says a turn over again: of an episode and what was distilled from it, the one that scores more."""
    scores = {memory.id: score for score, memory, _ in hits}
    episodes = [memory.id for _, memory, _ in hits if memory.dimension == SAID]
    over = told_twice(scores, places, episodes)
    return [hit for hit in hits if hit[1].id not in over]


def reranked(hits: Iterable[Ranked], relevances: Mapping[str, float]) -> list[Ranked]:
    """The hits that have a relevance of their own by memory id, best first.

    It takes the place of ``match`` in the score: who read query and memory together knows better how much of the one
    the other carries. Equal scores keep their order.
    """
    looked_at = [
        Ranked(hit.memory, {RERANK if part == "match" else part: relevances[hit.memory.id] if part == "match" else value
                            for part, value in hit.parts.items()})
        for hit in hits
        if hit.memory.id in relevances
    ]  # fmt: skip
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


def _factors(memory: Memory, match: Match, query: Query, yardstick: Yardstick) -> Factors:
    """The factors of a score, in the order of ``PARTS``."""
    rules = yardstick.rules
    return (
        match.relevance,
        match.match,
        1.0 if query.asked.about_past else decay(memory, query.as_of, rules.life),
        rules.recall.lock_weights[memory.lock],
        memory.importance,
        rules.recall.negative_factor if memory.negative else 1.0,
        _fit(memory, query, yardstick),
        liking(memory, rules.feedback),
    )


def _fit(memory: Memory, query: Query, yardstick: Yardstick) -> float:
    """More for what is meant for the moment, or of a time that is asked for; less for what is of another."""
    recall = yardstick.rules.recall
    meant = fit(memory, query.moment, yardstick.daytimes, recall)
    if not query.asked.periods:
        return meant
    if _in_a_period(memory, query):
        return meant * recall.period_holds
    return meant * (recall.period_fails if query.asked.about_past else 1.0)
