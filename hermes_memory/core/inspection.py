"""Contradictions among what is already remembered (SPEC §6, §9): at session start and in the nightly inspection.

Pairs are nominated by symbols, never all against all: statements about one subject that share a dimension, a
related one, or the head of their object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

from hermes_memory.core.conflicts import contradicts, disjoint
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Category, Granularity, Memory, Polarity, Scope, Status
from hermes_memory.core.text import normal

_LIVE = {Status.ACTIVE, Status.REVIEW}
Pair = tuple[Memory, Memory]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two standing memories that cannot both hold, in the order in which they were last said."""

    older: Memory
    newer: Memory


def inspect(
    memories: Iterable[Memory], dimensions: Dimensions, settled: Container[frozenset[str]] = ()
) -> list[Contradiction]:
    """Every pair of standing memories that contradict each other, oldest first; each pair once.

    Episodes, spans, and rivals of what still stands are left out: of those it is known already. So are pairs
    that reach differently far, pairs whose periods do not meet, and those whose ids are among the ``settled``.
    """
    known = {memory.id: memory for memory in memories}
    standing = sorted((m for m in known.values() if _stands(m, known)), key=_said)
    found = {
        (one.id, other.id): Contradiction(one, other)
        for one, other in map(_in_order, _nominated(standing, dimensions))
        if frozenset((one.id, other.id)) not in settled
        and _meet(one, other)
        and contradicts(one, other, dimensions)
    }
    return sorted(found.values(), key=lambda pair: (_said(pair.older), _said(pair.newer)))


def _stands(memory: Memory, known: dict[str, Memory]) -> bool:
    if memory.status not in _LIVE or memory.category is Category.EVENT:
        return False
    old = known.get(memory.rival_of or "")
    return memory.granularity is Granularity.ATOMIC and (old is None or old.status not in _LIVE)


def _said(memory: Memory) -> tuple[float, str]:
    return memory.stated_at.timestamp(), memory.id


def _in_order(pair: Pair) -> Pair:
    one, other = sorted(pair, key=_said)
    return one, other


def _nominated(standing: Iterable[Memory], dimensions: Dimensions) -> Iterator[Pair]:
    """The pairs that may contradict: everything else could stand side by side a thousand times over."""
    by_subject: dict[str, list[Memory]] = defaultdict(list)
    for memory in standing:
        by_subject[normal(memory.subject)].append(memory)
    for held in by_subject.values():
        yield from _rivalling(held, dimensions)
        yield from _denied(held, dimensions)


def _rivalling(held: Iterable[Memory], dimensions: Dimensions) -> Iterator[Pair]:
    """Values of which one at most holds: of a single-valued dimension, of one attribute, of an exclusive group."""
    groups: dict[object, list[Memory]] = defaultdict(list)
    choosy: dict[str, list[Memory]] = defaultdict(list)
    for memory in held:
        if dimensions.single(memory.dimension):
            groups[memory.dimension].append(memory)
        for attribute in dimensions.attributes(memory.dimension, memory.content):
            groups[memory.dimension, attribute].append(memory)
        if dimensions.chooses(memory.dimension, memory.object):
            choosy[memory.dimension].append(memory)
    for group in groups.values():
        yield from combinations(group, 2)
    for key, group in choosy.items():
        yield from combinations(group, 2)
        for other in (o for o in choosy if o > key and dimensions.related(key, o)):
            yield from product(group, choosy[other])


def _denied(held: Iterable[Memory], dimensions: Dimensions) -> Iterator[Pair]:
    """A denial and what it may cover: the same head, or all of a dimension."""
    by_head: dict[str, list[Memory]] = defaultdict(list)
    by_dimension: dict[str, list[Memory]] = defaultdict(list)
    for memory in held:
        by_dimension[memory.dimension].append(memory)
        for head in dimensions.heads(memory.object):
            by_head[head].append(memory)
    for group in by_head.values():
        denials = [memory for memory in group if memory.polarity is Polarity.NEGATIVE]
        yield from product(denials, (memory for memory in group if memory.polarity is Polarity.POSITIVE))
    for group in by_dimension.values():
        whole = [
            m for m in group if m.polarity is Polarity.NEGATIVE and dimensions.general(m.dimension, m.object)
        ]
        yield from product(whole, (memory for memory in group if memory.polarity is Polarity.POSITIVE))


def _meet(one: Memory, other: Memory) -> bool:
    """Whether both reach the same place at the same time."""
    if one.scope is not other.scope or disjoint(one, other):
        return False
    if one.scope is Scope.SCENE:
        return one.scene == other.scene
    if one.scope is Scope.SESSION:
        sessions = ({piece.session_id for piece in memory.evidence} for memory in (one, other))
        return bool(set.intersection(*sessions))
    return True
