"""What is remembered: one memory, what it rests on, and the turn it came from (SPEC §2, §3).

All values are frozen; a change makes a new value. Times are aware datetimes. ``created_at`` of a turn is
statement time (when it was said); ``received_at`` is receipt time (when it reached us).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

USER = "user"  # the subject of what a user says of themselves
MAX_CONTENT_CHARS = 256  # SPEC §3.1
MAX_FELT = 50  # memories that one signal is about


class Category(StrEnum):
    """What kind of statement it is (S3 §3.2); EVENT is episodic."""

    FACT = "FACT"
    PREFERENCE = "PREFERENCE"
    STATE = "STATE"
    EVENT = "EVENT"


class Layer(StrEnum):
    """Where in the user model it belongs (S0 §4.1); an EVENT has none."""

    IDENTITY = "identity"
    RESTRICTION = "restriction"
    PREFERENCE = "preference"
    STYLE = "style"
    CONTEXT = "context"


class Scope(StrEnum):
    """How far it reaches, narrowest first."""

    SESSION = "session"
    SCENE = "scene"
    USER = "user"


class Tier(StrEnum):
    """Where it lives (S2 §2.2)."""

    WORKING = "working"
    LONGTERM = "longterm"
    CORE = "core"


class Lock(StrEnum):
    """How hard it is to change (SPEC §5); ``core.transitions`` holds the table."""

    PENDING = "pending"
    CONFIRMED = "confirmed"
    FROZEN = "frozen"
    UNFROZEN = "unfrozen"

    @classmethod
    def _missing_(cls, value: object) -> Lock | None:
        aliases = {"fluid": cls.PENDING, "solid": cls.CONFIRMED}  # S0's words, accepted as input
        return aliases.get(value) if isinstance(value, str) else None


class Status(StrEnum):
    """Whether it takes part in recall; ``core.transitions`` holds the table."""

    ACTIVE = "active"
    REVIEW = "review"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


LIVE = frozenset({Status.ACTIVE, Status.REVIEW})  # what takes part in gates and recall


class Polarity(StrEnum):
    """Whether the statement affirms or denies."""

    POSITIVE = "+"
    NEGATIVE = "-"

    @property
    def opposite(self) -> Polarity:
        """The other one."""
        return Polarity.NEGATIVE if self is Polarity.POSITIVE else Polarity.POSITIVE


class Granularity(StrEnum):
    """L2 atomic triples take part in gates and slots; L1 spans are for reference only (S3 §2)."""

    ATOMIC = "ATOMIC"
    SPAN = "SPAN"


class Source(StrEnum):
    """Who vouches for it (S1 §3.1)."""

    EXPLICIT = "explicit"
    INFERRED = "inferred"
    OPERATOR = "operator"


class Intent(StrEnum):
    """What the utterance set out to do (S3 §3.3)."""

    STATEMENT = "STATEMENT"
    ADDRESS_UPDATE = "ADDRESS_UPDATE"
    PREFERENCE_REVEAL = "PREFERENCE_REVEAL"
    CORRECTION = "CORRECTION"
    TASK_INSTRUCTION = "TASK_INSTRUCTION"
    CONFIRMATION = "CONFIRMATION"


class Role(StrEnum):
    """Who speaks in a turn; only ``user`` turns can be evidence (SPEC §3.3)."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class EvidenceKind(StrEnum):
    """How the words reached us."""

    SAID = "said"
    PANEL = "panel"
    EDIT = "edit"
    OPERATOR = "operator"


class Signal(StrEnum):
    """What the user made of memories that a reply used (S1 §4.3)."""

    LIKE = "like"
    DISLIKE = "dislike"
    CLICK = "click"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """One signal about a memory: from which conversation, and when."""

    session_id: str
    signal: Signal
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message as stored: its content is already masked by the privacy gate."""

    session_id: str
    index: int
    message_id: str
    role: Role
    content: str
    created_at: datetime
    received_at: datetime
    timezone: str
    scene: str | None = None
    job_id: str | None = None
    pending: bool = True
    kind: EvidenceKind = EvidenceKind.SAID


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One utterance a memory rests on; ``quote == turn.content[start:end]``, verbatim (SPEC §3.3)."""

    session_id: str
    turn_index: int
    message_id: str
    role: Role
    quote: str
    start: int
    end: int
    created_at: datetime
    intent: Intent = Intent.STATEMENT
    kind: EvidenceKind = EvidenceKind.SAID
    extractor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affirmed:
    """One confirmation of a memory: where and when."""

    session_id: str
    message_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a memory was before a change, when and why it changed, and by which turn."""

    at: datetime
    version: int
    reason: str
    message_id: str | None
    content: str
    object: str
    polarity: Polarity
    lock: Lock
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One atomic statement about a subject (SPEC §3.1). The embedding is kept beside the record."""

    id: str
    namespace: str
    user_id: str
    version: int = 1
    category: Category
    layer: Layer | None
    subject: str
    predicate: str
    object: str
    dimension: str
    polarity: Polarity = Polarity.POSITIVE
    negative: bool = False
    granularity: Granularity = Granularity.ATOMIC
    content: str
    content_hash: str
    topic: str = ""
    scene: str | None = None
    entities: tuple[str, ...] = ()
    scope: Scope
    tier: Tier = Tier.WORKING
    lock: Lock = Lock.PENDING
    status: Status = Status.ACTIVE
    source: Source = Source.EXPLICIT
    intent: Intent = Intent.STATEMENT
    emotional: bool = False
    confidence: float
    source_confidence: float
    stability: float
    importance: float
    safety: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    created_at: datetime
    updated_at: datetime
    last_access_at: datetime | None = None
    access_count: int = 0
    confirmations: tuple[Affirmed, ...] = ()
    contradictions: int = 0
    evidence: tuple[Evidence, ...] = ()
    history: tuple[Revision, ...] = ()
    rival_of: str | None = None
    merged_into: str | None = None
    archived_at: datetime | None = None
    freeze_reason: str | None = None
    unfreeze_reason: str | None = None
    outcome: str | None = None
    feedback: tuple[Felt, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", hundredths(self.confidence))

    @property
    def session_id(self) -> str:
        """The session of origin."""
        return self.evidence[0].session_id if self.evidence else ""

    @property
    def stated_at(self) -> datetime:
        """Statement time of the newest words for it: an utterance it rests on, or a confirmation."""
        said = [*(piece.created_at for piece in self.evidence), *(one.at for one in self.confirmations)]
        return max(said, default=self.updated_at)

    def with_(self, **changes: Any) -> Memory:
        """A copy with ``changes`` applied."""
        return dataclasses.replace(self, **changes)


def hundredths(value: float) -> float:
    """``value`` clamped to [0, 1] and held in whole hundredths, so that steps of 0.1 never drift."""
    return min(100, max(0, round(value * 100))) / 100


# What a frozen memory protects: none of these may change without a grant (SPEC §5). The ledger enforces it.
MEANING_FIELDS = (
    "category", "layer", "subject", "predicate", "object", "dimension", "polarity", "content",
    "scope", "scene", "tier", "lock", "status", "safety", "valid_from", "valid_to",
)  # fmt: skip
