"""The JSON forms of the domain's values, by the names of SPEC §3.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from hermes_memory.core.board import Change
from hermes_memory.core.confirmation import ConfirmationRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Evidence, Memory, Turn
from hermes_memory.core.profile import Slot
from hermes_memory.ports.ledger import Alert, AuditEntry, Job, OutboxEntry, Session

_MEMORY, _TURN = TypeAdapter(Memory), TypeAdapter(Turn)
_REQUEST, _SLOT = TypeAdapter(ConfirmationRequest), TypeAdapter(Slot)
_AUDIT, _JOB, _SESSION = TypeAdapter(AuditEntry), TypeAdapter(Job), TypeAdapter(Session)


def memory_record(memory: Memory) -> dict[str, Any]:
    """The whole record."""
    record: dict[str, Any] = _MEMORY.dump_python(memory, mode="json")
    return record


def evidence_record(evidence: Evidence) -> dict[str, Any]:
    """What recall shows of a piece of evidence."""
    return {
        "session_id": evidence.session_id,
        "message_id": evidence.message_id,
        "quote": evidence.quote,
        "created_at": evidence.created_at.isoformat().replace("+00:00", "Z"),
    }


def turn_record(turn: Turn) -> dict[str, Any]:
    """A raw turn, for the export."""
    return dict(_TURN.dump_python(turn, mode="json"))


def request_record(request: ConfirmationRequest) -> dict[str, Any]:
    """A confirmation request, as stored and as answered."""
    return dict(_REQUEST.dump_python(request, mode="json"))


def request_of(record: Mapping[str, Any]) -> ConfirmationRequest:
    """The inverse of ``request_record``."""
    return _REQUEST.validate_python(record)


def change_record(change: Change) -> dict[str, Any]:
    """One line of a job's changes."""
    return {
        "op": change.op.value,
        "memory_id": change.memory_id,
        "reason": change.reason.value,
        "message_id": change.message_id,
    }


def audit_record(entry: AuditEntry) -> dict[str, Any]:
    """One audit entry."""
    return dict(_AUDIT.dump_python(entry, mode="json"))


def job_record(job: Job) -> dict[str, Any]:
    """What ``GET /v1/jobs/{id}`` shows."""
    record = _JOB.dump_python(job, mode="json", exclude={"id", "pending_turns", "accepted"})
    return {"job_id": job.id, **record}


def session_record(session: Session) -> dict[str, Any]:
    """A session, for the export."""
    return dict(_SESSION.dump_python(session, mode="json"))


def slot_record(slot: Slot) -> dict[str, Any]:
    """One slot of the user model."""
    return dict(_SLOT.dump_python(slot, mode="json"))


def profile_record(profile: Mapping[str, Mapping[str, Slot]]) -> dict[str, Any]:
    """Layer → dimension → slot."""
    return {
        layer: {key: slot_record(slot) for key, slot in slots.items()} for layer, slots in profile.items()
    }


def dead_letters_record(key: UserKey, entries: Sequence[OutboxEntry]) -> dict[str, Any]:
    """What the long-term index refused of a user, for operators: ids and codes."""
    letters = [{"memory_id": entry.memory_id, "op": entry.op, "reason": entry.reason} for entry in entries]
    return {"user_id": key.user_id, "memories": letters}


def alert_record(alert: Alert) -> dict[str, Any]:
    """An open alert, for operators."""
    return {
        "id": alert.id,
        "kind": alert.kind,
        "user_id": alert.key.user_id if alert.key else None,
        "memory_id": alert.memory_id,
        "job_id": alert.job_id,
        "measured": list(alert.measured) if alert.measured else None,
        "at": alert.at.isoformat().replace("+00:00", "Z"),
    }
