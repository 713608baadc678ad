"""The user model: slots aggregated from memories, never written by a turn (SPEC §8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Granularity, Layer, Lock, Memory, Scope, Source, Status

SECTIONS = ("identity", "restriction", "preference", "style", "context", "behavior")


@dataclass(frozen=True, slots=True)
class Slot:
    """One answer about a subject: ``value`` is a string, or a list for a dimension of many values."""

    value: str | list[str]
    confidence: float
    lock: Lock
    source: Source
    memory_ids: tuple[str, ...]
    contradictions: int
    updated_at: datetime


def supports(memory: Memory, subject: str = USER) -> bool:
    """Whether a memory may stand behind a slot: current, atomic, lasting, undisputed, about the subject."""
    stands = memory.status is Status.ACTIVE or memory.merged_into is not None  # a part goes on working (§3.2)
    return (
        stands
        and memory.subject == subject
        and memory.scope is Scope.USER
        and memory.granularity is Granularity.ATOMIC
        and memory.layer is not None
        and memory.rival_of is None
    )


def build_profile(
    memories: Iterable[Memory], dimensions: Dimensions, subject: str = USER
) -> dict[str, dict[str, Slot]]:
    """Layer → dimension → slot, from the memories as they are now; ``behavior`` is filled by the nightly job."""
    grouped: dict[tuple[Layer, str], list[Memory]] = {}
    for memory in memories:
        if supports(memory, subject) and memory.layer is not None:
            grouped.setdefault((memory.layer, memory.dimension), []).append(memory)
    profile: dict[str, dict[str, Slot]] = {section: {} for section in SECTIONS}
    for (layer, dimension), members in grouped.items():
        profile[layer.value][dimension] = _slot(members, single=dimensions.single(dimension))
    return profile


def _slot(members: list[Memory], *, single: bool) -> Slot:
    rank = {Lock.FROZEN: 3, Lock.UNFROZEN: 3, Lock.CONFIRMED: 2, Lock.PENDING: 1}
    ordered = sorted(members, key=lambda m: (rank[m.lock], m.confidence, m.updated_at), reverse=True)
    best = ordered[0]
    shown = [best] if single else ordered
    values = [f"{m.polarity.value if m.polarity == '-' else ''}{m.object}" for m in shown]
    return Slot(
        value=values[0] if single else values,
        confidence=best.confidence,
        lock=best.lock,
        source=best.source,
        memory_ids=tuple(m.id for m in ordered),
        contradictions=sum(m.contradictions for m in members),
        updated_at=max(m.updated_at for m in members),
    )
