"""A candidate on its way to becoming a memory, and the small questions asked of it (SPEC §3.3, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.candidate import Candidate, SpeechAct
from hermes_memory.core.decay import days_between
from hermes_memory.core.frozen import source_confidence, start_confidence
from hermes_memory.core.model import Category, Evidence, Memory, Scope, Source, Turn
from hermes_memory.core.rules import Rules
from hermes_memory.core.scope import settled_scope
from hermes_memory.core.text import content_hash

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate that the entry checks let in, with what it becomes part of."""

    candidate: Candidate
    turn: Turn
    vector: Vector
    evidence: Evidence
    scope: Scope
    twin: Memory | None = None  # what says the same already, while the statement is contested

    @property
    def hash(self) -> str:
        """What two statements of the same words share."""
        return content_hash(self.candidate.subject, self.candidate.polarity, self.candidate.content)


def as_kept(candidate: Candidate) -> Candidate:
    """A one-off opinion is an EVENT whatever the extractor calls it (SPEC §4.1.5)."""
    if candidate.speech_act is not SpeechAct.OPINION:
        return candidate
    return replace(candidate, category=Category.EVENT, layer=None)


def met_again_scope(entry: Entry) -> Scope:
    """How far it reaches once met in a second session: an inference is then as good as a declaration."""
    return settled_scope(replace(entry.candidate, source=Source.EXPLICIT), entry.turn.scene)


def scene_of(scope: Scope, turn: Turn) -> str | None:
    """The scene a memory of this scope belongs to."""
    return turn.scene if scope is Scope.SCENE else None


def same_place(left: Evidence, right: Evidence) -> bool:
    """Whether both stand in one message."""
    return (left.session_id, left.message_id) == (right.session_id, right.message_id)


def other_period(candidate: Candidate, memory: Memory) -> bool:
    """Whether both are dated and the dates differ: two appointments, two stays, not one said twice."""
    new, old = candidate.valid_from, memory.valid_from
    if new is None or old is None:
        return False
    return days_between(min(new, old), max(new, old)) >= 1


def is_over(memory: Memory, candidate: Candidate, turn: Turn) -> bool:
    """Whether the memory's period had ended when the candidate was said to hold: said again, it is a new period."""
    if memory.category is Category.EVENT or memory.valid_to is None or candidate.valid_to is not None:
        return False
    return memory.valid_to <= turn.created_at


def counts_as_said(candidate: Candidate, memory: Memory, rules: Rules) -> bool:
    """Whether the words say the memory again as surely as it was said: a guess confirms no declaration."""
    surely = min(memory.source_confidence, rules.locks.change_confidence)
    return source_confidence(candidate, rules) >= surely


def evidence_of(candidate: Candidate, turn: Turn, extractor: str) -> Evidence:
    """The words the candidate rests on."""
    span = candidate.span
    return Evidence(
        session_id=turn.session_id,
        turn_index=turn.index,
        message_id=turn.message_id,
        role=turn.role,
        quote=turn.content[span.start : span.end],
        start=span.start,
        end=span.end,
        created_at=turn.created_at,
        intent=candidate.intent,
        kind=turn.kind,
        extractor=extractor,
    )


def first_memory(
    entry: Entry, memory_id: str, owner: tuple[str, str], rules: Rules, *, safety: bool
) -> Memory:
    """The memory a candidate becomes: pending, in the working tier, as sure as its source. ``owner``: namespace, user."""
    candidate, said_at = entry.candidate, entry.turn.created_at
    return Memory(
        id=memory_id,
        namespace=owner[0],
        user_id=owner[1],
        category=candidate.category,
        layer=candidate.layer,
        subject=candidate.subject,
        predicate=candidate.predicate,
        object=candidate.object,
        dimension=candidate.dimension,
        polarity=candidate.polarity,
        negative=candidate.negative,
        granularity=candidate.granularity,
        content=candidate.content,
        content_hash=entry.hash,
        topic=candidate.topic or candidate.dimension,
        entities=candidate.entities,
        scope=entry.scope,
        source=candidate.source,
        intent=candidate.intent,
        emotional=candidate.emotional,
        confidence=start_confidence(candidate.source, rules),
        source_confidence=source_confidence(candidate, rules),
        stability=candidate.stability,
        importance=candidate.importance,
        safety=safety,
        valid_from=candidate.valid_from,
        valid_to=candidate.valid_to,
        created_at=said_at,
        updated_at=said_at,
        evidence=(entry.evidence,),
    )
