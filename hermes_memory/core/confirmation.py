"""Confirmation requests: what the memory asks its user when it may not decide alone (SPEC §6)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hermes_memory.core.model import Memory
from hermes_memory.core.text import language


class Choice(StrEnum):
    """What a user may answer."""

    OLD = "old"
    NEW = "new"
    BOTH = "both"
    NEITHER = "neither"


class RequestStatus(StrEnum):
    """Where a request stands."""

    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Option:
    """One answer with its words in the user's language."""

    choice: Choice
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequest:
    """A question about two statements; ``memory_ids`` and ``quotes`` name the old one first."""

    id: str
    question: str
    options: tuple[Option, ...]
    memory_ids: tuple[str, str]
    quotes: tuple[str, str]
    reason: str
    status: RequestStatus = RequestStatus.OPEN
    created_at: datetime
    expires_at: datetime
    asked_in: str | None = None
    asked_at: datetime | None = None
    answer: Choice | None = None

    def with_(self, **changes: object) -> ConfirmationRequest:
        """A copy with ``changes`` applied."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked by the dataclass itself

    def open_at(self, now: datetime) -> bool:
        """Whether it still waits for an answer."""
        return self.status is RequestStatus.OPEN and now < self.expires_at

    def answers(self, session_id: str, received_at: datetime) -> bool:
        """Whether what a turn says can be the answer: said where it was asked, and afterwards."""
        return self.asked_in == session_id and self.asked_at is not None and received_at > self.asked_at


_WORDS = {
    "zh": (
        "您之前说过“{old}”，后来又说“{new}”。现在以哪个为准？",
        {
            Choice.OLD: "仍是：{old}",
            Choice.NEW: "改为：{new}",
            Choice.BOTH: "两者都对",
            Choice.NEITHER: "两者都不对",
        },
    ),
    "en": (
        "You said “{old}” before and “{new}” later. Which one holds now?",
        {
            Choice.OLD: "Still: {old}",
            Choice.NEW: "Now: {new}",
            Choice.BOTH: "Both",
            Choice.NEITHER: "Neither",
        },
    ),
}


def ask(
    request_id: str, old: Memory, new: Memory, reason: str, now: datetime, expires_at: datetime
) -> ConfirmationRequest:
    """The question whether ``old`` or ``new`` holds, quoting both, in the language of the newer words."""
    quotes = _quote(old), _quote(new)
    words = {"old": quotes[0], "new": quotes[1]}
    question, labels = _WORDS[language(quotes[1])]
    return ConfirmationRequest(
        id=request_id,
        question=question.format(**words),
        options=tuple(Option(choice, label.format(**words)) for choice, label in labels.items()),
        memory_ids=(old.id, new.id),
        quotes=quotes,
        reason=reason,
        created_at=now,
        expires_at=expires_at,
    )


def _quote(memory: Memory) -> str:
    return memory.evidence[-1].quote if memory.evidence else memory.content
