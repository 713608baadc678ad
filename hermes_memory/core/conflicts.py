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
from hermes_memory.core.text import same_name

CHANGES = frozenset({Marker.CORRECTION, Marker.LASTING_CHANGE})  # words that mark a change of mind or of life


class Statement(Protocol):
    """What a candidate and a memory have in common: whose, about what, yes or no."""

    @property
    def subject(self) -> str: ...
    @property
    def category(self) -> Category: ...
    @property
    def layer(self) -> Layer | None: ...
    @property
    def dimension(self) -> str: ...
    @property
    def object(self) -> str: ...
    @property
    def polarity(self) -> Polarity: ...
    @property
    def content(self) -> str: ...


def contradicts(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    """Whether the two cannot both hold, by symbols alone; the same in either direction.

    Episodes never contradict. A denial contradicts what it covers: the same object or one of its kinds, on the
    same or a related dimension or between two statements of the same kind. Two objects contradict when their
    dimension, or the attribute they are values of, holds one at a time, and when they exclude each other.
    """
    if Category.EVENT in {left.category, right.category} or not same_name(left.subject, right.subject):
        return False
    if left.polarity is right.polarity:
        clash = _differ(left, right, dimensions)
    elif left.polarity is Polarity.NEGATIVE:
        clash = _denies(left, right, dimensions)
    else:
        clash = _denies(right, left, dimensions)
    reader, contents = dimensions.reader, (left.content, right.content)
    return (
        clash
        and reader.same_one(*contents)
        and (reader.same_period(*contents) or _over(left, right, dimensions))
    )


def _over(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    """Whether one denies by saying that it once was so: "I used to play bass"."""
    if left.polarity is right.polarity:
        return False
    denial = left if left.polarity is Polarity.NEGATIVE else right
    return dimensions.reader.past(denial.content)


def opposes(one: Memory, other: Memory, dimensions: Dimensions) -> bool:
    """Whether two memories cannot both hold at one time; periods that do not meet can."""
    return one.id != other.id and not disjoint(one, other) and contradicts(one, other, dimensions)


def _denies(denial: Statement, claim: Statement, dimensions: Dimensions) -> bool:
    """Whether ``denial`` covers ``claim``: as wide or wider in its object and its circumstances."""
    both_facts = denial.category is claim.category is Category.FACT
    kin = dimensions.related(denial.dimension, claim.dimension) or denial.layer is claim.layer or both_facts
    if not kin or not _covers(denial, claim, dimensions):
        return False
    reader = dimensions.reader
    return reader.circumstances(denial.content) <= reader.circumstances(claim.content)


def _covers(denial: Statement, claim: Statement, dimensions: Dimensions) -> bool:
    if denial.dimension == claim.dimension and dimensions.general(denial.dimension, denial.object):
        return True
    reader = dimensions.reader
    denied, claimed = reader.value(denial.object), reader.value(claim.object)
    if not denied:
        return False
    if (
        dimensions.same(claim.dimension, denial.object, claim.object)
        or reader.refines(claimed, denied)
        or reader.model_of(claimed, denied)
    ):
        return True
    keys = (denial.dimension, claim.dimension)
    return dimensions.related(*keys) and dimensions.kind_of(keys, claim.object, denial.object)


def _differ(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    """Whether two values, both claimed or both denied, cannot stand beside each other."""
    if not dimensions.related(left.dimension, right.dimension):
        return False
    clash = _other_value(left, right, dimensions) if left.dimension == right.dimension else False
    if left.polarity is Polarity.POSITIVE:
        clash = clash or dimensions.exclude(left.dimension, right.dimension, left.object, right.object)
    return clash and _alike(left, right, dimensions)


def _other_value(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    """Whether two objects of one dimension are different values where there is but one."""
    key = left.dimension
    if dimensions.same(key, left.object, right.object):
        return False
    if left.polarity is Polarity.POSITIVE and dimensions.single(key):
        return not dimensions.finer(key, left.object, right.object)
    return _share_attribute(left, right, dimensions)


def _share_attribute(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    mine, theirs = (dimensions.attributes(one.dimension, one.content) for one in (left, right))
    return not mine.isdisjoint(theirs)


def _alike(left: Statement, right: Statement, dimensions: Dimensions) -> bool:
    """Whether both speak of the same circumstances; facts always do."""
    if Category.FACT in {left.category, right.category}:
        return True
    reader, contents = dimensions.reader, (left.content, right.content)
    objects = reader.circumstances(left.object) | reader.circumstances(
        right.object
    )  # "夏天" may be the value itself
    narrow = [reader.circumstances(content) - objects for content in contents]
    return narrow[0] == narrow[1] and not reader.apart(*contents)


class Dated(Protocol):
    """What holds for a time; None is open."""

    @property
    def valid_from(self) -> datetime | None: ...
    @property
    def valid_to(self) -> datetime | None: ...


def disjoint(left: Dated, right: Dated) -> bool:
    """Whether their periods do not meet, so that both can be true."""
    return any(
        one.valid_to is not None and other.valid_from is not None and one.valid_to <= other.valid_from
        for one, other in ((left, right), (right, left))
    )


def comparable(candidate: Candidate, memory: Memory, scope: Scope, turn: Turn) -> bool:
    """Whether a contradiction between the two means anything: both current, and reaching equally far.

    What holds only today or only here does not contradict what holds in general, nor what holds elsewhere. What
    one message says in one breath ("nine to five, and till two on Fridays") stands together, unless it marks a
    correction or a change.
    """
    if memory.status not in {Status.ACTIVE, Status.REVIEW}:
        return False
    if not CHANGES & candidate.markers and _said_in(memory, turn):
        return False
    if scope is Scope.USER:
        return True
    if memory.scope is Scope.USER:
        return not passing(candidate) and candidate.scope is Scope.USER
    if Scope.SESSION in {scope, memory.scope}:
        return any(piece.session_id == turn.session_id for piece in memory.evidence)
    return memory.scene == turn.scene


def _said_in(memory: Memory, turn: Turn) -> bool:
    place = turn.session_id, turn.message_id
    return bool(memory.evidence) and all((p.session_id, p.message_id) == place for p in memory.evidence)


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
        return bool(CHANGES & self.candidate.markers)

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
