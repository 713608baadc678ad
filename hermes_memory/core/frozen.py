"""The frozen gate: confirmations, and when a lock rises because of them (SPEC §5)."""

from __future__ import annotations

from hermes_memory.core.board import Board, Op
from hermes_memory.core.candidate import Candidate, Marker, SpeechAct
from hermes_memory.core.dimensions import SafetyClass
from hermes_memory.core.model import (
    Affirmed,
    Category,
    Granularity,
    Layer,
    Lock,
    Memory,
    Polarity,
    Scope,
    Source,
    Status,
    Tier,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Rules
from hermes_memory.core.scope import passing
from hermes_memory.core.transitions import LockEvent, StatusEvent

CORE_LAYERS = {Layer.IDENTITY, Layer.RESTRICTION}
# "No allergy" protects nobody and waits for a confirmation; "no pork" is how a taboo is declared.
_DENIABLE = {SafetyClass.ALLERGY, SafetyClass.ILLNESS, SafetyClass.MEDICATION}


def start_confidence(source: Source, rules: Rules) -> float:
    """Where confidence starts: 0.60 inferred, 0.75 explicit."""
    return rules.locks.start_inferred if source is Source.INFERRED else rules.locks.start_explicit


def source_confidence(candidate: Candidate, rules: Rules) -> float:
    """How sure the words are: marked correction 1.0, plain 0.95, hedged 0.7, inferred 0.6."""
    locks = rules.locks
    if candidate.source is Source.INFERRED:
        return locks.says_inferred
    if Marker.HEDGED in candidate.markers:
        return locks.says_hedged
    return locks.says_correction if Marker.CORRECTION in candidate.markers else locks.says_plain


def sessions_met(memory: Memory) -> set[str]:
    """The sessions in which it was said or confirmed, the session of origin among them."""
    return {piece.session_id for piece in memory.evidence} | {
        said.session_id for said in memory.confirmations
    }


def other_sessions(memory: Memory) -> set[str]:
    """The different sessions of its confirmations; the session of origin is not one of them."""
    return {said.session_id for said in memory.confirmations} - {memory.session_id}


def confirm(board: Board, memory: Memory, said: Affirmed, rules: Rules, *, explicit: bool) -> Memory:
    """Count one confirmation and let the lock rise if it may.

    A turn confirms a memory at most once, the turn that made it never; the step is 0.1, the cap 0.98.
    ``explicit`` tells an affirmation or a panel's confirm from the mere repetition of the words.
    """
    turn = (said.session_id, said.message_id)
    if any((earlier.session_id, earlier.message_id) == turn for earlier in memory.confirmations):
        return memory
    if memory.evidence and (memory.evidence[0].session_id, memory.evidence[0].message_id) == turn:
        return memory
    memory = _back_from_review(board, memory, said.message_id)
    met_before = len(sessions_met(memory))
    raised = min(rules.locks.cap, memory.confidence + rules.locks.step)
    counted = memory.with_(
        confirmations=(*memory.confirmations, said),
        confidence=max(memory.confidence, raised),
        updated_at=max(memory.updated_at, said.at),
    )
    return promote(
        board, board.put(counted), rules, said.message_id, explicit=explicit, met_before=met_before
    )


def _back_from_review(board: Board, memory: Memory, message_id: str | None) -> Memory:
    """A mention of the topic ends a review (SPEC §2)."""
    if memory.status is not Status.REVIEW or memory.lock is Lock.FROZEN:
        return memory
    return board.status(memory, StatusEvent.MENTION, Op.REACTIVATED, Reason.MENTIONED, message_id)


def promote(
    board: Board, memory: Memory, rules: Rules, message_id: str | None, *, explicit: bool, met_before: int = 0
) -> Memory:
    """Raise the lock as far as the memory has earned it."""
    locks = rules.locks
    if (
        memory.lock is Lock.PENDING
        and memory.confidence >= locks.confirm_confidence
        and len(memory.confirmations) >= locks.confirm_count
    ):
        memory = board.lock(memory, LockEvent.CONFIRM, Op.CONFIRMED, Reason.CONFIDENT, message_id)
    if memory.lock is Lock.CONFIRMED and (reason := _freeze_reason(memory, rules, explicit, met_before)):
        memory = freeze(board, memory, LockEvent.FREEZE, reason, rules, message_id)
    return memory


def _freeze_reason(memory: Memory, rules: Rules, explicit: bool, met_before: int) -> Reason | None:
    locks = rules.locks
    if memory.scope is not Scope.USER or memory.rival_of or memory.granularity is Granularity.SPAN:
        return None
    if memory.source is Source.INFERRED:
        strong = memory.confidence > locks.inferred_freeze_confidence and not memory.contradictions
        return Reason.INFERRED_STRONG if strong else None
    if memory.layer in CORE_LAYERS and len(other_sessions(memory)) >= locks.core_sessions:
        return Reason.CORE_ATTRIBUTE
    lasting = memory.category in {Category.PREFERENCE, Category.FACT}
    if lasting and explicit and met_before >= locks.candidate_sessions:
        return Reason.FREEZE_CANDIDATE
    return None


def freeze(
    board: Board, memory: Memory, event: LockEvent, reason: Reason, rules: Rules, message_id: str | None
) -> Memory:
    """Freeze, if the core tier has room; else the freeze waits and a freeze-conflict alert is logged (SPEC §4.2)."""
    if memory.tier is not Tier.CORE and board.count(Tier.CORE) >= rules.capacity.core:
        board.log(Op.CONFLICT, Reason.CORE_FULL, memory, message_id)
        return memory
    memory = _back_from_review(board, memory, message_id)
    return board.lock(memory, event, Op.FROZEN, reason, message_id)


def freezes_at_once(candidate: Candidate, scope: Scope, freeze_class: str | None, rules: Rules) -> bool:
    """Whether a fresh memory is frozen without waiting (SPEC §5, ``freeze.immediate`` and the presets).

    ``freeze_class`` is the class that the user declared in so many words, whatever dimension was named; None: none.
    """
    literal = candidate.speech_act in {SpeechAct.STATEMENT, SpeechAct.DIRECTIVE} and not passing(candidate)
    declared = candidate.source is Source.EXPLICIT and Marker.HEDGED not in candidate.markers
    denied = candidate.polarity is Polarity.NEGATIVE and freeze_class in _DENIABLE
    if not (literal and declared and scope is Scope.USER) or denied:
        return False
    if freeze_class in rules.locks.immediate:
        return True
    return rules.locks.eager_identity and (
        candidate.layer in CORE_LAYERS or candidate.stability >= rules.locks.eager_stability
    )
