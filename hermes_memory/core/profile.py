"""The user model: slots aggregated from memories, never written by a turn (SPEC §8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import (
    USER,
    Category,
    Granularity,
    Layer,
    Lock,
    Memory,
    Polarity,
    Scope,
    Source,
    Status,
    hundredths,
)
from hermes_memory.core.rules import ProfileRules

SECTIONS = ("identity", "restriction", "preference", "style", "context", "behavior")
_FIRMNESS = {Lock.FROZEN: 3, Lock.UNFROZEN: 3, Lock.CONFIRMED: 2, Lock.PENDING: 1}
_AT_ONCE = frozenset({Layer.IDENTITY, Layer.RESTRICTION})


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


def supports(memory: Memory, subject: str | None = USER, now: datetime | None = None) -> bool:
    """Whether a memory may stand behind a slot: current, atomic, lasting, undisputed, about the subject (None: any).

    What was over by ``now`` is a past period, not what somebody is like (SPEC §2); without it, what was over when the
    memory was last changed.
    """
    stands = memory.status is Status.ACTIVE or memory.merged_into is not None  # a part goes on working (§3.2)
    return (
        stands
        and subject in {None, memory.subject}
        and memory.scope is Scope.USER
        and memory.granularity is Granularity.ATOMIC
        and memory.layer is not None
        and memory.rival_of is None
        and (memory.valid_to is None or memory.valid_to > (now or memory.updated_at))
    )


def build_profile(
    memories: Iterable[Memory],
    dimensions: Dimensions,
    subject: str = USER,
    rules: ProfileRules | None = None,
    rivals: Iterable[Memory] = (),
    now: datetime | None = None,
    cap: float = 1.0,
) -> dict[str, dict[str, Slot]]:
    """Layer → dimension → slot, from the memories as they are now; ``behavior`` is filled by the nightly job.

    With ``rules`` the slots' confidence moves with what speaks for and against them; ``rivals`` are the live ones, and
    agreement raises it up to ``cap``.
    """
    grouped: dict[tuple[Layer, str], list[Memory]] = {}
    for memory in memories:
        if supports(memory, subject, now) and memory.layer is not None:
            grouped.setdefault((memory.layer, memory.dimension), []).append(memory)
    disputed = Counter(rival.rival_of for rival in rivals if rival.category is not Category.PREFERENCE)
    profile: dict[str, dict[str, Slot]] = {section: {} for section in SECTIONS}
    for (layer, dimension), members in grouped.items():
        slot = _slot(members, single=dimensions.single(dimension))
        if rules is not None:
            slot = replace(slot, confidence=_moved(slot, members, disputed, rules, cap))
        profile[layer.value][dimension] = slot
    return profile


def waits(memory: Memory) -> bool:
    """Whether a new memory waits for the night or for others before it makes a slot (S0 §4.1, S4 §2.3).

    What is about who somebody is and what they must not have counts at once.
    """
    return memory.layer not in _AT_ONCE


def slot_name(memory: Memory) -> str:
    """The slot that a memory stands behind, with its subject where that is not the user."""
    name = f"{memory.layer}/{memory.dimension}"
    return name if memory.subject == USER else f"{name}/{memory.subject}"


def _moved(
    slot: Slot, members: list[Memory], disputed: Mapping[str | None, int], rules: ProfileRules, cap: float
) -> float:
    """The slot's confidence with what agrees and what is in dispute (S2 §4.1).

    A rival of a PREFERENCE has lowered the memory already, when it was said (SPEC §6).
    """
    best = next(memory for memory in members if memory.id == slot.memory_ids[0])
    agreeing = sum(_value(one) == _value(best) for one in members) - 1
    opposing = sum(disputed[memory.id] for memory in members)
    if best.lock is Lock.FROZEN:
        return slot.confidence
    raised = min(max(cap, slot.confidence), slot.confidence + rules.agreement_bonus * agreeing)
    return hundredths(raised - rules.rival_malus * opposing)


def _slot(members: list[Memory], *, single: bool) -> Slot:
    """The firmest speaks, then the surest, then the newest; of one value at a time what is rather than what is not."""

    def place(memory: Memory) -> tuple[bool, int, float, datetime, str]:
        affirms = not single or memory.polarity is Polarity.POSITIVE
        return affirms, _FIRMNESS[memory.lock], memory.confidence, memory.updated_at, memory.id

    ordered = sorted(members, key=place, reverse=True)
    best = ordered[0]
    return Slot(
        value=_value(best) if single else list(dict.fromkeys(map(_value, ordered))),
        confidence=best.confidence,
        lock=best.lock,
        source=best.source,
        memory_ids=tuple(m.id for m in ordered),
        contradictions=sum(m.contradictions for m in members),
        updated_at=max(m.updated_at for m in members),
    )


def _value(memory: Memory) -> str:
    return f"-{memory.object}" if memory.polarity is Polarity.NEGATIVE else memory.object
