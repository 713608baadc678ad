"""Habits, counted from conversations: a section of the user model, never a fact of the user (SPEC §8, S2 §4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Protocol

from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, EvidenceKind, Lock, Memory, Source, hundredths
from hermes_memory.core.profile import Slot
from hermes_memory.core.text import main_language

PARTS_OF_DAY = (
    (5, "night"),
    (12, "morning"),
    (18, "afternoon"),
    (23, "evening"),
    (24, "night"),
)  # up to the hour
SATURDAY = 5
MOST_TOPICS = 3
_NUMB = 5  # so many cases are worth as much as the doubt before any


class Conversation(Protocol):
    """What is looked at of one: when it was, and how many turns it had."""

    @property
    def started_at(self) -> datetime:
        """Receipt time of its first turn."""
        ...

    @property
    def last_at(self) -> datetime:
        """Receipt time of its last turn."""
        ...

    @property
    def turns(self) -> int:
        """How many messages."""
        ...


def behaviour(
    conversations: Iterable[Conversation],
    memories: Iterable[Memory],
    dimensions: Dimensions,
    zone: tzinfo,
    least: int,
) -> dict[str, Slot]:
    """Slots by name: ``active_time``, ``active_days``, ``conversation_turns``, ``language``, ``topics``.

    What fewer than ``least`` conversations show is no habit and makes no slot. Topics are those that the user spoke of
    themselves; what is sensitive (health, religion, safety) is none.
    """
    talks = [one for one in conversations if one.turns > 0]
    if len(talks) < least:
        return {}
    updated_at = max(one.last_at for one in talks)
    starts = [one.started_at.astimezone(zone) for one in talks]
    slots = {
        "active_time": _most(Counter(_part_of_day(start) for start in starts), updated_at),
        "active_days": _most(
            Counter("weekend" if start.weekday() >= SATURDAY else "weekdays" for start in starts), updated_at
        ),
        "conversation_turns": _slot(
            str(_middle([one.turns for one in talks])), len(talks), len(talks), updated_at
        ),
    }
    said = [memory for memory in memories if memory.subject == USER and _in_own_words(memory)]
    quotes = [piece.quote for memory in said for piece in memory.evidence]
    if quotes:
        slots["language"] = _slot(main_language(quotes), len(quotes), len(quotes), updated_at)
    topics = Counter(
        {memory.topic: 0 for memory in said if memory.topic and not _sensitive(memory, dimensions)}
    )
    topics.update(m.topic for m in said for _ in m.evidence if m.topic in topics)
    often = sorted(
        ((count, topic) for topic, count in topics.items() if count >= least), key=lambda it: (-it[0], it[1])
    )
    if often:
        names = [topic for _, topic in often[:MOST_TOPICS]]
        behind = tuple(sorted(memory.id for memory in said if memory.topic in names))
        slots["topics"] = _slot(names, often[0][0], often[0][0], updated_at, behind)
    return slots


def _in_own_words(memory: Memory) -> bool:
    return memory.source is Source.EXPLICIT and any(
        piece.kind is EvidenceKind.SAID for piece in memory.evidence
    )


def _sensitive(memory: Memory, dimensions: Dimensions) -> bool:
    return memory.safety or dimensions.sensitive(memory.dimension) is not None


def _part_of_day(moment: datetime) -> str:
    return next(name for hour, name in PARTS_OF_DAY if moment.hour < hour)


def _middle(numbers: Sequence[int]) -> int:
    return sorted(numbers)[len(numbers) // 2]


def _most(counts: Counter[str], updated_at: datetime) -> Slot:
    """What is seen most often; of equals the first by name."""
    value, seen = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return _slot(value, seen, counts.total(), updated_at)


def _slot(
    value: str | list[str], seen: int, cases: int, updated_at: datetime, memory_ids: tuple[str, ...] = ()
) -> Slot:
    return Slot(
        value=value,
        confidence=hundredths(seen / (cases + _NUMB)),
        lock=Lock.PENDING,
        source=Source.INFERRED,
        memory_ids=memory_ids,
        contradictions=0,
        updated_at=updated_at,
    )
