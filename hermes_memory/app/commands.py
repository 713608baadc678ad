"""What can be asked of one user's memory. Commands change it, one at a time; queries read the last commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.asking import Asked
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.model import USER, EvidenceKind, Role, Signal
from hermes_memory.ports.distiller import Distilled


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One message as it arrives; without an id it is new each time."""

    role: Role
    content: str
    id: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """Base of all commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest(Command):
    """Append turns durably and queue them for extraction."""

    session_id: str
    messages: tuple[Incoming, ...]
    timezone: str
    scene: str | None = None
    kind: EvidenceKind = EvidenceKind.SAID


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Command):
    """Run the gates over an extraction of the named turns (session id, index).

    ``day``: the user's, ISO, on which the tokens of the extraction's usage count.
    """

    turns: tuple[tuple[str, int], ...]
    distilled: Distilled
    generation: int
    day: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailExtraction(Command):
    """Record a failed attempt that has used ``tokens`` on that ``day``; ``parked`` when the next is long to come."""

    turns: tuple[tuple[str, int], ...]
    generation: int
    reason: str
    parked: bool
    day: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSession(Command):
    """A conversation is over."""

    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndIdleSessions(Command):
    """Conversations without a message for the configured minutes are over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkAsked(Command):
    """A question was handed out in this conversation."""

    session_id: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(Command):
    """A correction in the panel: an explicit management instruction (SPEC §11). None leaves a field as it is."""

    memory_id: str
    expected_version: int | None
    content: str | None = None
    scope: str | None = None
    scene: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    unfreeze_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Command):
    """Remove one memory physically."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmMemory(Command):
    """The panel's confirm: counts once per memory and session."""

    memory_id: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeMemory(Command):
    """Freeze by hand, with a reason."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUnfreeze(Command):
    """Ask for a challenge; reason and source dialog are mandatory (SPEC §5). An operator gets the token at once."""

    memory_id: str
    reason: str
    source_session_id: str
    by_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChallenge(Command):
    """Echo the one-time code in a later request."""

    memory_id: str
    challenge_id: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerConfirmation(Command):
    """The user's answer to a confirmation request: verification enough for a frozen memory (SPEC §5)."""

    request_id: str
    choice: Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPaused(Command):
    """Pause or resume remembering; late results of before are dropped."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConsent(Command):
    """What the user agrees to."""

    sensitive: bool | None = None
    cohort: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseKind(Command):
    """Remove one kind of memories: a layer's name, or ``event``."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseUser(Command):
    """Remove everything of the user, everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintain(Command):
    """What the nightly job does, for one user, as of ``now``; None for ``step``: every step, one after the other."""

    now: datetime
    step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback(Command):
    """A signal about memories that a recall of this conversation gave."""

    session_id: str
    memory_ids: tuple[str, ...]
    signal: Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack(Command):
    """Recall found these in the archive: they are active again (SPEC §4.3)."""

    memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Base of all queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Ask):
    """What matters for ``query``; its vector and words were made at the ingress. ``timezone`` is the user's.

    ``asked`` is what the query was read to ask, at the ingress too; None: it is read where it is answered.
    """

    query: str
    vector: NDArray[np.float32]
    words: tuple[str, ...]
    session_id: str | None = None
    scene: str | None = None
    top_k: int | None = None
    budget_chars: int | None = None
    as_of: datetime | None = None
    timezone: str | None = None
    asked: Asked | None = None
    include: frozenset[str] = frozenset({"memories", "profile", "ask"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMemories(Ask):
    """A page of records, newest first. ``filters`` maps a field of the record to its wanted value."""

    filters: dict[str, str]
    contains: str | None = None
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMemory(Ask):
    """One whole record."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetProfile(Ask):
    """The user model, or what is known of another ``subject``, by their name or role."""

    subject: str = USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise(Ask):
    """What is remembered about the user, in plain words with quotes (SPEC §11)."""

    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfirmations(Ask):
    """Every confirmation request, newest first."""

    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAudit(Ask):
    """What happened, oldest first."""

    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Export(Ask):
    """Everything that is kept about the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Ask):
    """What jobs over many users may learn of one: counts and, with consent, slots; no words of the user otherwise.

    ``since`` is the first day of the tally that counts (ISO, UTC).
    """

    since: str
