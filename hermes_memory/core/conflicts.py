"""Contradictions: found by symbols first, settled by one table (SPEC §6). Vectors only nominate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from hermes_memory.core.candidate import Candidate, Marker
from hermes_memory.core.decay import days_between
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import (
    Category,
    Layer,
    Lock,
    Memory,
    Polarity,
    Scope,
    Source,
    Status,
    Turn,
    hundredths,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import ConflictRules, Rules
from hermes_memory.core.scope import passing
from hermes_memory.core.text import normal, numbers, overlap

SAME_OBJECT_OVERLAP = 0.99  # every piece of the shorter object stands in the longer one


def same_object(left: str, right: str) -> bool:
    """Whether two objects name the same thing: equal, or one's words all stand in the other, numbers alike."""
    if normal(left) == normal(right):
        return True
    return numbers(left) == numbers(right) and overlap(left, right) >= SAME_OBJECT_OVERLAP


class Statement(Protocol):
    """What a candidate and a memory have in common: enough to see whether two of them contradict."""

    @property
    def subject(self) -> str: ...
    @property
    def object(self) -> str: ...
    @property
    def dimension(self) -> str: ...
    @property
    def category(self) -> Category: ...
    @property
    def layer(self) -> Layer | None: ...
    @property
    def polarity(self) -> Polarity: ...


def contradicts(candidate: Statement, memory: Statement, dimensions: Dimensions) -> bool:
    """Whether the two cannot both hold, by symbols alone.

    Episodes never contradict. Opposite polarity of one object does, on the same or a related dimension or
    between two statements of the same kind; so do two objects of a single-valued dimension, and two values
    of one exclusive group.
    """
    if normal(candidate.subject) != normal(memory.subject) or Category.EVENT in {
        candidate.category,
        memory.category,
    }:
        return False
    related = dimensions.related(candidate.dimension, memory.dimension)
    if same_object(candidate.object, memory.object):
        return candidate.polarity is not memory.polarity and (related or candidate.layer is memory.layer)
    if not related or Polarity.NEGATIVE in {candidate.polarity, memory.polarity}:
        return False
    same = candidate.dimension == memory.dimension and dimensions.single(memory.dimension)
    return same or _exclusive(candidate, memory, dimensions)


def opposes(one: Memory, other: Memory, dimensions: Dimensions) -> bool:
    """Whether two memories cannot both hold at one time; periods that do not meet can."""
    if one.id == other.id or not contradicts(one, other, dimensions):
        return False
    ends = ((one.valid_to, other.valid_from), (other.valid_to, one.valid_from))
    return not any(end is not None and start is not None and end <= start for end, start in ends)


def _exclusive(candidate: Statement, memory: Statement, dimensions: Dimensions) -> bool:
    dimension = dimensions.get(candidate.dimension)
    if dimension is None:
        return False
    new, old = normal(candidate.object), normal(memory.object)
    return any(
        any(normal(value) in new for value in group) and any(normal(value) in old for value in group)
        for group in dimension.exclusive
    )


def comparable(candidate: Candidate, memory: Memory, scope: Scope, turn: Turn) -> bool:
    """Whether a contradiction between the two means anything: both current, and reaching equally far.

    What holds only today or only here does not contradict what holds in general, nor what holds elsewhere.
    """
    if memory.status not in {Status.ACTIVE, Status.REVIEW}:
        return False
    if scope is Scope.USER:
        return True
    if memory.scope is Scope.USER:
        return not passing(candidate) and candidate.scope is Scope.USER
    if Scope.SESSION in {scope, memory.scope}:
        return any(piece.session_id == turn.session_id for piece in memory.evidence)
    return memory.scene == turn.scene


class Outcome(StrEnum):
    """What becomes of a contradiction."""

    REPLACE = "replace"  # the new one stands, the old one is superseded
    RIVAL = "rival"  # the old one stands, the new one is kept as its weak rival
    ASK = "ask"  # as RIVAL, and the user is asked
    KEEP = "keep"  # the old one stands, the new one is not kept
    PAST = "past"  # the new one is an older period


@dataclass(frozen=True, slots=True)
class Resolution:
    """One row of the table, chosen; ``weaken`` takes a step of confidence from the old memory."""

    outcome: Outcome
    reason: Reason
    weaken: bool = False


@dataclass(frozen=True, slots=True)
class Dispute:
    """One contradiction to settle. ``said_at`` is the statement time of the candidate."""

    candidate: Candidate
    memory: Memory
    said_at: datetime
    source_confidence: float
    rules: Rules
    dimensions: Dimensions

    @property
    def marked(self) -> bool:
        """Whether the words mark a correction or a lasting change of mind."""
        return bool({Marker.CORRECTION, Marker.LASTING_CHANGE} & self.candidate.markers)

    @property
    def gap_days(self) -> float:
        """Days of statement time between old and new."""
        return days_between(self.memory.stated_at, self.said_at)

    @property
    def category(self) -> Category:
        """The row of the table; when old and new differ the dimension decides."""
        if self.candidate.category is self.memory.category:
            return self.memory.category
        dimension = self.dimensions.get(self.memory.dimension)
        return dimension.category if dimension else self.memory.category


Row = Callable[[Dispute], Resolution]


def settle_fact(dispute: Dispute) -> Resolution:
    """Newest verified statement wins; ask when it is old and confirmed, or the new one is inferred."""
    stale = dispute.memory.lock is Lock.CONFIRMED and dispute.gap_days > dispute.rules.conflicts.fact_gap_days
    if stale or dispute.candidate.source is Source.INFERRED:
        return Resolution(Outcome.ASK, Reason.ASK_FIRST)
    return Resolution(Outcome.REPLACE, Reason.CORRECTION if dispute.marked else Reason.NEWEST_WINS)


def settle_preference(dispute: Dispute) -> Resolution:
    """A marked correction replaces at once; otherwise the new one is a weak rival and the old one loses a step."""
    if dispute.marked:
        return Resolution(Outcome.REPLACE, Reason.CORRECTION)
    return Resolution(Outcome.RIVAL, Reason.WEAK_RIVAL, weaken=True)


def settle_state(dispute: Dispute) -> Resolution:
    """A marked correction wins; within the window the more certain one, ties and later ones to the newer."""
    conflicts = dispute.rules.conflicts
    if dispute.marked:
        return Resolution(Outcome.REPLACE, Reason.CORRECTION)
    if dispute.gap_days > conflicts.state_window_days:
        return Resolution(Outcome.REPLACE, Reason.NEWEST_WINS)
    candidate, memory, locks = dispute.candidate, dispute.memory, dispute.rules.locks
    inferred = candidate.source is Source.INFERRED
    new = _standing(locks.start_inferred if inferred else locks.start_explicit, candidate.source, conflicts)
    old = _standing(memory.confidence, memory.source, conflicts)
    if memory.confirmations:
        old += conflicts.state_affirmed_bonus
    if hundredths(old) > hundredths(new):
        return Resolution(Outcome.RIVAL, Reason.HIGHER_CONFIDENCE)
    return Resolution(Outcome.REPLACE, Reason.NEWEST_WINS)


def _standing(confidence: float, source: Source, conflicts: ConflictRules) -> float:
    return confidence - (conflicts.state_inferred_malus if source is Source.INFERRED else 0.0)


ROWS: dict[Category, Row] = {
    Category.FACT: settle_fact,
    Category.PREFERENCE: settle_preference,
    Category.STATE: settle_state,
}


def resolve(dispute: Dispute) -> Resolution:
    """Settle one contradiction: what protects comes first, then the row of its category."""
    memory, candidate = dispute.memory, dispute.candidate
    if dispute.said_at < memory.stated_at:
        return Resolution(Outcome.PAST, Reason.PAST_PERIOD)
    if memory.lock in {Lock.FROZEN, Lock.UNFROZEN}:
        return Resolution(Outcome.ASK, Reason.FROZEN)
    if memory.safety or dispute.dimensions.safety(candidate.dimension):
        return Resolution(Outcome.ASK, Reason.SAFETY)
    if memory.lock is Lock.CONFIRMED and candidate.emotional:
        return Resolution(Outcome.KEEP, Reason.VENTING)
    if memory.lock is Lock.CONFIRMED and dispute.source_confidence < dispute.rules.locks.change_confidence:
        return Resolution(Outcome.ASK, Reason.NOT_SURE_ENOUGH)
    return ROWS[dispute.category](dispute)
