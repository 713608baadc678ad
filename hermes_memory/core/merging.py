"""Compression: many memories of one topic become one record that keeps them addressable (SPEC §3.2, §4.2).

The merged record is a SPAN: recall reads it, while conflicts, locks and slots go on working on its parts, which
rest in the archive with ``merged_into``. Whatever happens to a part, ``mend`` writes the record anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.board import Board, Op
from hermes_memory.core.days import LocalDay
from hermes_memory.core.ids import digest
from hermes_memory.core.model import (
    LIVE,
    MAX_CONTENT_CHARS,
    Category,
    Granularity,
    Layer,
    Lock,
    Memory,
    Scope,
    Status,
    Tier,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import CapacityRules
from hermes_memory.core.text import content_hash, main_language
from hermes_memory.core.transitions import LockEvent, StatusEvent

Vector = NDArray[np.float32]
VectorOf = Callable[[str], Vector | None]  # memory id → its vector, shape (dimension,), if it has one

MANY = 1_000_000
_BETWEEN = {"zh": "；", "en": "; "}
_APART = {Layer.RESTRICTION, Layer.STYLE}  # always told one by one


def compress(
    board: Board,
    tier: Tier,
    rules: CapacityRules,
    seed: str,
    vector_of: VectorOf,
    room: int | None = None,
    most: int = MANY,
) -> dict[str, Vector]:
    """Merge the largest topics of a full tier until it is within its cap; returns the new records' vectors.

    ``seed`` makes their ids: the same operation gives the same ones. ``room`` takes the place of the cap; after
    ``most`` merges it stops.
    """
    made: dict[str, Vector] = {}
    room = rules.of(tier) if room is None else room
    if board.count(tier) <= room:
        return made
    for group in _topics(board, tier, rules):
        parts = _that_fit(group)
        vector = _middle(parts, vector_of)
        if len(parts) > 1 and vector is not None:
            made[_merge(board, parts, seed).id] = vector
        if board.count(tier) <= room or len(made) >= most:
            break
    return made


@dataclass(frozen=True, slots=True)
class DigestRules:
    """Which episodes are told in short: those of months that ended before a date, so many at least.

    What was kept ``verbatim`` by the product's choice (that dimension) stays as it is.
    """

    before: date
    least: int
    verbatim: str


def digest_events(
    board: Board, rules: DigestRules, today: LocalDay, seed: str, vector_of: VectorOf, most: int
) -> tuple[dict[str, Vector], bool]:
    """Tell the episodes of each month that is long over in short (SPEC §9, S4 §5.2).

    A digest is a merged record: the episodes' own words in the order of time, each with its outcome, and every
    episode addressable in it. Returns the new vectors, and whether months are left after ``most`` records.
    """
    made: dict[str, Vector] = {}
    for group in _months(board, rules, today):
        if len(made) >= most:
            return made, True
        left = group
        while left:
            parts = _that_fit(left)
            left = left[max(1, len(parts)) :]
            vector = _middle(parts, vector_of)
            if len(parts) > 1 and vector is not None:
                made[_merge(board, parts, seed, Reason.DIGESTED).id] = vector
    return made, False


def _months(board: Board, rules: DigestRules, today: LocalDay) -> list[list[Memory]]:
    """Episodes that differ in nothing but what they tell, by the month in which they were told, oldest first."""
    opposed = {memory.rival_of for memory in board.live() if memory.rival_of}
    months: dict[tuple[Any, ...], list[Memory]] = {}
    for memory in board.live():
        if memory.category is not Category.EVENT or memory.dimension == rules.verbatim:
            continue
        told = today.date_of(memory.stated_at)
        latest = max(told, today.date_of(memory.updated_at))
        if _month_after(latest) <= rules.before and _may_merge(memory) and memory.id not in opposed:
            months.setdefault((told.year, told.month, *map(str, _kind(memory))), []).append(memory)
    return [_in_order(months[key]) for key in sorted(months) if len(months[key]) >= rules.least]


def _month_after(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


def mend(board: Board, vector_of: VectorOf) -> tuple[dict[str, Vector], set[str]]:
    """Write merged records anew whose parts have changed, left or gone.

    Returns the new vectors, and the ids of the records that were dissolved: fewer than two parts are left, and
    what is left stands for itself again. A dissolved record is deleted, for it holds nothing of its own.
    """
    vectors: dict[str, Vector] = {}
    dissolved: set[str] = set()
    for span in _concerned(board):
        parts = _still_alike(board, span)
        if span.attributes.get("parts") == _listed(parts):
            continue
        if len(parts) < 2:
            dissolved.add(span.id)
            for part in parts:
                _let_go(board, part, span)
            board.delete(span, Reason.UNMERGED)
            continue
        told = _told(parts)
        past = (replace(old, content=told["content"], object=told["object"]) for old in span.history)
        board.put(span.with_(**told, history=tuple(past)))  # no word of what left stays anywhere
        board.log(Op.MERGED, Reason.MERGED, span)
        if (vector := _middle(parts, vector_of)) is not None:
            vectors[span.id] = vector
    return vectors, dissolved


def texts_of(memory: Memory) -> tuple[str, ...]:
    """What the vector of a memory stands for: its content or, of a merged record, what each of its parts says."""
    listed = memory.attributes.get("parts", ()) if memory.granularity is Granularity.SPAN else ()
    return tuple(part["content"] for part in listed) or (memory.content,)


def middle(vectors: Sequence[Vector]) -> Vector:
    """The unit vector between some, shape (dimension,)."""
    total = np.sum(vectors, axis=0)
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-9), np.float32)


def parts_of(board: Board, span: Memory) -> list[Memory]:
    """The memories that rest in a merged record, oldest words first."""
    listed = (board.get(part["id"]) for part in span.attributes.get("parts", ()))
    return _in_order(part for part in listed if part is not None and part.merged_into == span.id)


def _still_alike(board: Board, span: Memory) -> list[Memory]:
    """The parts of a record that may still be told with it; the others, edited since, stand for themselves."""
    alike = []
    for part in parts_of(board, span):
        if _may_merge(part.with_(status=Status.ACTIVE)) and _kind(part)[:-1] == _kind(span)[:-1]:
            alike.append(part)
        else:
            _let_go(board, part, span)
    return alike


def _let_go(board: Board, part: Memory, span: Memory) -> None:
    """A part leaves its record and stands as the record stood: what rests in the archive is not woken by it."""
    if span.status in LIVE:
        release(board, part, None)
        return
    why = Reason(span.history[-1].reason)
    past = board.revision(part, why, None)
    board.put(part.with_(merged_into=None, history=(*part.history, past)))
    board.log(Op.ARCHIVED, why, part)


def _concerned(board: Board) -> list[Memory]:
    """The merged records of which a part was touched."""
    held = [memory for memory_id in board.touched_ids if (memory := board.before(memory_id)) is not None]
    spans = (board.get(span_id) for span_id in dict.fromkeys(m.merged_into for m in held if m.merged_into))
    return [span for span in spans if span is not None]


def release(board: Board, part: Memory, message_id: str | None) -> Memory:
    """Take a part out of its record: it stands for itself again. ``mend`` must follow."""
    alone = board.status(part, StatusEvent.REACTIVATE, Op.REACTIVATED, Reason.UNMERGED, message_id)
    return board.put(alone.with_(updated_at=part.updated_at))  # it grows no younger by that


def _topics(board: Board, tier: Tier, rules: CapacityRules) -> Iterator[list[Memory]]:
    """Groups of more than ``merge_above`` memories that differ in nothing but what they say, largest first."""
    groups: dict[tuple[Any, ...], list[Memory]] = {}
    for memory in board.within(tier):
        if memory.dimension not in rules.topicless and _may_merge(memory):
            groups.setdefault(_kind(memory), []).append(memory)
    large = [group for group in groups.values() if len(group) > rules.merge_above]
    opposed = {memory.rival_of for memory in board.live() if memory.rival_of} if large else set()
    uncontested = ([memory for memory in group if memory.id not in opposed] for group in large)
    large = [group for group in uncontested if len(group) > rules.merge_above]
    yield from sorted(map(_in_order, large), key=lambda group: (-len(group), group[0].id))


def _may_merge(memory: Memory) -> bool:
    """Neither frozen nor about safety nor contested, and told in one breath with others without loss."""
    return (
        memory.status is Status.ACTIVE
        and (memory.valid_to is None or memory.category is Category.EVENT)
        and memory.lock in {Lock.PENDING, Lock.CONFIRMED}
        and memory.granularity is Granularity.ATOMIC
        and memory.scope is not Scope.SESSION
        and memory.layer not in _APART
        and not (memory.safety or memory.rival_of or memory.negative)
    )


def _kind(memory: Memory) -> tuple[Any, ...]:
    return (
        memory.subject, memory.topic, memory.dimension, memory.category, memory.layer, memory.polarity,
        memory.scope, memory.scene, memory.source, memory.lock,
    )  # fmt: skip


def _in_order(memories: Iterable[Memory]) -> list[Memory]:
    return sorted(memories, key=lambda memory: (memory.stated_at, memory.id))


def _that_fit(group: list[Memory]) -> list[Memory]:
    """As many as one content holds, the oldest first."""
    chosen: list[Memory] = []
    for memory in group:
        if len(_content([*chosen, memory])) <= MAX_CONTENT_CHARS:
            chosen.append(memory)
    return chosen


def _content(parts: list[Memory]) -> str:
    between = _BETWEEN[main_language(part.content for part in parts)]
    return between.join(dict.fromkeys(map(_as_told, parts)))


def _as_told(part: Memory) -> str:
    """What a part says, and how it turned out where that is known and not said in it."""
    if not part.outcome or part.outcome in part.content:
        return part.content
    return f"{part.content} → {part.outcome}"


def _listed(parts: list[Memory]) -> list[dict[str, str]]:
    """The details, addressable (SPEC §3.2): what each part says."""
    return [{"id": part.id, "content": part.content, "object": part.object} for part in parts]


def _told(parts: list[Memory]) -> dict[str, Any]:
    """The fields of a merged record that follow from its parts."""
    content = _content(parts)
    return {
        "content": content,
        "object": _BETWEEN[main_language([content])].join(dict.fromkeys(part.object for part in parts)),
        "content_hash": content_hash(parts[0].subject, parts[0].polarity, content),
        "entities": tuple(dict.fromkeys(name for part in parts for name in part.entities)),
        "confidence": min(part.confidence for part in parts),
        "importance": max(part.importance for part in parts),
        "stability": max(part.stability for part in parts),
        "created_at": min(part.created_at for part in parts),
        "updated_at": max(part.updated_at for part in parts),
        "access_count": sum(part.access_count for part in parts),
        "evidence": tuple(part.evidence[-1] for part in parts),
        "attributes": {"parts": _listed(parts)},
    }


def _merge(board: Board, parts: list[Memory], seed: str, why: Reason = Reason.MERGED) -> Memory:
    first = parts[0]
    lock = first.lock
    merged = board.put(
        first.with_(
            id=_free_id(board, first, seed),
            version=1, granularity=Granularity.SPAN, lock=Lock.PENDING, status=Status.ACTIVE, confirmations=(),
            contradictions=0, history=(), valid_from=None, valid_to=None, outcome=None,
            last_access_at=max((part.last_access_at for part in parts if part.last_access_at), default=None),
            **_told(parts),
        )
    )  # fmt: skip
    board.log(Op.MERGED, why, merged)
    if lock is Lock.CONFIRMED:
        merged = board.lock(merged, LockEvent.CONFIRM, Op.CONFIRMED, Reason.MERGED)
    for part in parts:
        resting = board.status(part, StatusEvent.ARCHIVE, Op.MERGED, why)
        board.put(resting.with_(merged_into=merged.id))
    return merged


def _free_id(board: Board, first: Memory, seed: str) -> str:
    """An id that no record has or had here: what left a record may be merged again under the same seed."""
    told = (first.namespace, first.user_id, seed, "merged", first.id)
    ids = ("mem_" + digest(*told, *([str(number)] if number else [])) for number in count())
    return next(made for made in ids if made not in board and made not in board.deleted)


def _middle(parts: Iterable[Memory], vector_of: VectorOf) -> Vector | None:
    """The unit vector between those of the parts, if they have any."""
    held = [vector for part in parts if (vector := vector_of(part.id)) is not None]
    return middle(held) if held else None
