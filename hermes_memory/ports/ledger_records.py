"""What a ledger keeps and gives: the records of one user, of a namespace and of the store itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hermes_memory.core.ids import UserKey
from hermes_memory.core.knowledge import Pack
from hermes_memory.core.model import Memory, Turn
from hermes_memory.core.window import EMPTY, Summary
from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors


class JobStatus(StrEnum):
    """Where an extraction job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One accepted POST of messages and what came of it; ``changes`` are JSON-ready."""

    id: str
    status: JobStatus
    created_at: datetime
    updated_at: datetime
    pending_turns: int
    attempts: int = 0
    reason: str | None = None
    changes: tuple[dict[str, Any], ...] = ()
    version: int = 0
    accepted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation, bound to its user; times are receipt times. ``summary`` is empty once it has ended."""

    id: str
    started_at: datetime
    last_at: datetime
    turns: int = 0
    ended: bool = False
    asked: bool = False
    scene: str | None = None
    summary: Summary = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that happened: names ids, reasons and versions, never content."""

    at: datetime
    op: str
    reason: str
    actor: str
    memory_id: str | None = None
    message_id: str | None = None
    before: str | None = None
    after: str | None = None
    version: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that waits for an operator: names ids and a kind, never content. One for each ``id`` of a user.

    ``key`` is filled in by the ledger when it lists; None for one about the whole namespace. ``measured`` are the
    figure and the limit that it broke, of an alarm about quality (SPEC §10).
    """

    id: str
    kind: str
    at: datetime
    memory_id: str | None = None
    job_id: str | None = None
    key: UserKey | None = None
    measured: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One thing the long-term index must learn; delivered at least once. ``op``: put, remove or drop.

    ``seq`` and ``key`` are filled in by the ledger; seqs of one user grow. ``reason`` says why it was buried.
    """

    op: str
    memory_id: str
    seq: int = 0
    key: UserKey | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class HostPool:
    """How many hosts carry the users now; ``revision`` grows with every change, both are 0 before the first."""

    hosts: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of language models that a user's turns have taken on a ``day`` (ISO, of the user's zone)."""

    day: str = ""
    tokens: int = 0

    def on(self, day: str) -> int:
        """What counts on that day: a zone further west has no earlier day to spend anew."""
        return self.tokens if self.day >= day else 0

    def more(self, day: str, tokens: int) -> Spent:
        """With ``tokens`` of that day."""
        return Spent(max(day, self.day), self.on(day) + tokens)


NOTHING_SPENT = Spent()

# Counts of what happened to one user: day (ISO, UTC, of receipt time) → name → number. Never content.
Tally = Mapping[str, Mapping[str, int]]
NOTHING_COUNTED: Tally = {}


@dataclass(frozen=True, slots=True)
class Note:
    """What a job leaves for later in a namespace: a checkpoint, a report, cohort profiles; ``value`` is JSON-ready.

    ``revision`` starts at 1 and grows by one with every writing.
    """

    value: Any
    revision: int


class GrantKind(StrEnum):
    """Why a frozen row may be touched in this commit."""

    UNFREEZE = "unfreeze"
    ERASE = "erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user has decided about remembering, and what is kept of the aggregate; JSON-ready documents.

    ``profile``: slot → ids of the memories behind it. ``behavior``: slots of habits. ``timezone``: of the last turn.
    """

    paused: bool = False
    consent: Mapping[str, bool] = field(default_factory=dict)
    confirmations: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    challenges: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    behavior: Mapping[str, Any] = field(default_factory=dict)
    timezone: str = "UTC"
    spent: Spent = NOTHING_SPENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a user's actor needs to wake up. A user never seen is version 0 with nothing in it.

    ``memories`` of every status and all ``sessions``. ``turns`` are the pending ones and those of sessions that
    have not ended, by receipt time, then session, then index. ``jobs`` are those that are not done. ``tally`` is
    what ``touch`` has counted.
    """

    key: UserKey
    version: int = 0
    generation: int = 0
    owner_epoch: int = 0
    memories: tuple[Memory, ...] = ()
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    sessions: tuple[Session, ...] = ()
    turns: tuple[Turn, ...] = ()
    jobs: tuple[Job, ...] = ()
    settings: Settings = field(default_factory=Settings)
    tally: Tally = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one user. ``expected_version`` + 1 is the new version.

    ``result`` is the JSON-ready answer that a replay of ``operation_id`` gets back. ``grants`` name the
    frozen memories that this commit may change or delete; without one the ledger refuses the commit with
    MemoryFrozen, whatever the application believes (SPEC §5). ``extracted`` marks turns (session id,
    index) as no longer pending. ``message_hashes`` remembers (session id, message id) → (content hash,
    job id). ``rewritten`` turns replace the kept ones and create none. What is both written and deleted is
    deleted, and answers of earlier operations that name a deleted memory are forgotten, for they may hold its words.
    ``seen_to`` are the ids of alerts that are closed; one that is raised too is open afterwards. A
    memory never lowers its stored access count or time. A settings of None leaves them as they are.
    ``tally_from`` forgets what was counted on days before it.
    """

    key: UserKey
    expected_version: int
    epoch: int
    operation_id: str
    at: datetime
    result: Any = None
    memories: tuple[Memory, ...] = ()
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    grants: Mapping[str, GrantKind] = field(default_factory=dict)
    sessions: tuple[Session, ...] = ()
    turns: tuple[Turn, ...] = ()
    message_hashes: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    extracted: tuple[tuple[str, int], ...] = ()
    rewritten: tuple[Turn, ...] = ()
    jobs: tuple[Job, ...] = ()
    audit: tuple[AuditEntry, ...] = ()
    outbox: tuple[OutboxEntry, ...] = ()
    alerts: tuple[Alert, ...] = ()
    seen_to: tuple[str, ...] = ()
    settings: Settings | None = None
    tally_from: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a commit gave: the version after it, and whether it had been applied before (a replay).

    For a replay ``result`` is the first answer; for a fresh commit it is the commit's own.
    """

    version: int
    replayed: bool
    result: Any


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What an erasure removed, and what it could still find afterwards (must be 0)."""

    memories: int
    vectors: int
    turns: int
    audit: int
    jobs: int
    profile_slots: int
    remaining: int
    version: int


@dataclass(frozen=True, slots=True)
class Reembedding:
    """How far the change of the embedding model is: ``done`` of ``total`` stored vectors, of memories and of packs.

    ``stored`` is the model that the data belongs to now, ``target`` the one it shall belong to.
    """

    stored: EmbedderInfo
    target: EmbedderInfo
    done: int
    total: int

    @property
    def finished(self) -> bool:
        """Whether the data belongs to the target."""
        return self.stored == self.target


@dataclass(frozen=True, slots=True)
class AccessCount:
    """Recalls of one memory since the last flush."""

    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPack:
    """A knowledge pack of a namespace; ``vectors`` are those of its passages, shape (len(pack.passages), dimension)."""

    namespace: str
    pack: Pack
    vectors: Vectors
    loaded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPack:
    """A knowledge pack whose first ``done`` passages have new vectors; ``revision`` as of ``packs_revision``."""

    namespace: str
    pack: Pack
    done: int
    revision: int

    @property
    def rest(self) -> list[str]:
        """The passages that wait."""
        return self.pack.passages[self.done :]
