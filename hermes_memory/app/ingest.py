"""Turns come in: masked, checked against what was sent before, appended durably, queued (SPEC §4.1.3, API)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hermes_memory.app.commands import EndIdleSessions, EndSession, Incoming, Ingest, MarkAsked
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.inspecting import inspect_conflicts
from hermes_memory.app.records import request_of, request_record
from hermes_memory.app.state import UserState
from hermes_memory.core.board import Op
from hermes_memory.core.ids import digest
from hermes_memory.core.life import end_session
from hermes_memory.core.model import Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import LifeRules
from hermes_memory.core.window import Summary, fold, since
from hermes_memory.errors import InvalidInput, MessageIdReused
from hermes_memory.ports.ledger import Job, JobStatus, Session

FUTURE_TOLERANCE = timedelta(minutes=1)  # API: created_at may not lie further ahead

Seen = Mapping[str, tuple[str, str]]  # message id → (content hash, job id)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A message that was not sent before; ``content`` is masked."""

    message: Incoming
    message_id: str
    content: str

    @property
    def content_hash(self) -> str:
        return digest(self.message.role, self.content)


def ingest(state: UserState, command: Ingest, desk: Desk) -> Decision:
    """Append what is new; what was sent before counts as a duplicate, with other content it is an error.

    ``desk.prepared`` holds the known ones among the message ids.
    """
    draft = Draft(state, desk)
    job_id = "job_" + digest(state.key.namespace, state.key.user_id, desk.operation_id)
    fresh, first_job = _fresh(command, desk, desk.prepared or {})
    duplicates = len(command.messages) - len(fresh)
    if not fresh:
        return Decision(None, _answer(first_job or job_id, 0, duplicates))
    if state.settings.paused:
        return _ignore(draft, job_id, fresh, duplicates)
    if command.session_id not in state.sessions:
        inspect_conflicts(draft)
    session = draft.session(command.session_id)
    if command.scene is not None:  # a caller's word, but it may be a user's
        command = replace(command, scene=desk.policy.mask(command.scene))
    for entry in fresh:
        turn = _turn(entry, command, session, desk, job_id)
        draft.turns.append(turn)
        draft.message_hashes[command.session_id, turn.message_id] = (entry.content_hash, job_id)
        session = replace(
            session, turns=session.turns + 1, last_at=desk.now, ended=False, scene=command.scene
        )
    if command.timezone != state.settings.timezone:
        draft.change_settings(timezone=command.timezone)
    draft.sessions[session.id] = _folded(draft, session)
    draft.jobs[job_id] = Job(
        id=job_id, status=JobStatus.QUEUED, created_at=desk.now, updated_at=desk.now,
        pending_turns=len(fresh), accepted=len(fresh),
    )  # fmt: skip
    return draft.decide(_answer(job_id, len(fresh), duplicates))


def _folded(draft: Draft, session: Session) -> Session:
    """The session with its older turns folded, in the commit that brings the newer ones (SPEC §3.4)."""
    policy = draft.desk.policy
    turns = [*draft.state.held(session.id), *draft.turns]
    summary = fold(turns, session.summary, policy.rules.window, policy.anchors)
    oldest = draft.desk.now - timedelta(hours=policy.rules.life.turns_hours)
    return replace(session, summary=since(summary, oldest))


def check_times(command: Ingest, now: datetime) -> None:
    """Raise InvalidInput for a message from the future."""
    for number, message in enumerate(command.messages):
        if message.created_at is not None and message.created_at > now + FUTURE_TOLERANCE:
            raise InvalidInput(f"messages.{number}.created_at", "lies in the future")


def check_ids(command: Ingest) -> None:
    """Raise MessageIdReused for one id with two contents in the same request."""
    said: dict[str, tuple[str, str]] = {}
    for message in command.messages:
        words = (message.role.value, message.content)
        if message.id is not None and said.setdefault(message.id, words) != words:
            raise MessageIdReused(message.id)


def repeated(command: Ingest, first: Mapping[str, str] | None) -> dict[str, object]:
    """The answer to messages that were all sent before; after an erasure (None) they revive nobody."""
    job_id = first["job_id"] if first else "job_" + digest("erased")
    return _answer(job_id, 0, len(command.messages))


def _fresh(command: Ingest, desk: Desk, seen: Seen) -> tuple[list[_Fresh], str | None]:
    """The messages that are new, and the job of the first one that is not."""
    fresh: dict[str, _Fresh] = {}
    first_job: str | None = None
    for number, message in enumerate(command.messages):
        content = desk.policy.mask(message.content)
        entry = _Fresh(message, message.id or f"msg_{digest(desk.operation_id, str(number))}", content)
        known, job_id = seen.get(entry.message_id) or (None, None)
        if entry.message_id in fresh:
            known = fresh[entry.message_id].content_hash
        if known is None:
            fresh[entry.message_id] = entry
        elif known != entry.content_hash:
            raise MessageIdReused(entry.message_id)
        else:
            first_job = first_job or job_id
    return list(fresh.values()), first_job


def _turn(entry: _Fresh, command: Ingest, session: Session, desk: Desk, job_id: str) -> Turn:
    return Turn(
        session_id=command.session_id,
        index=session.turns,
        message_id=entry.message_id,
        role=entry.message.role,
        content=entry.content,
        created_at=entry.message.created_at or desk.now,
        received_at=desk.now,
        timezone=command.timezone,
        scene=command.scene,
        job_id=job_id,
        kind=command.kind,
    )


def _ignore(draft: Draft, job_id: str, fresh: list[_Fresh], duplicates: int) -> Decision:
    """While paused nothing is kept; the job says so."""
    now = draft.desk.now
    changes = tuple(
        {"op": "refused", "memory_id": None, "reason": Reason.PAUSED.value, "message_id": entry.message_id}
        for entry in fresh
    )
    draft.jobs[job_id] = Job(
        id=job_id,
        status=JobStatus.DONE,
        created_at=now,
        updated_at=now,
        pending_turns=0,
        changes=changes,
        version=draft.state.version + 1,
    )
    return draft.decide(_answer(job_id, 0, duplicates))


def _answer(job_id: str, accepted: int, duplicates: int) -> dict[str, object]:
    return {"job_id": job_id, "accepted": accepted, "duplicates": duplicates}


def end(state: UserState, command: EndSession, desk: Desk) -> Decision:
    """Close a conversation; an unknown one is closed already."""
    if command.session_id not in state.sessions or state.sessions[command.session_id].ended:
        return Decision(None, {"session_id": command.session_id, "ended": True})
    draft = Draft(state, desk)
    _close(draft, command.session_id)
    draft.tidy()
    return draft.decide({"session_id": command.session_id, "ended": True})


def end_idle(state: UserState, _: EndIdleSessions, desk: Desk) -> Decision:
    """Close the conversations that have been silent long enough, and give up turns nobody could read in time."""
    life = desk.policy.rules.life
    draft = Draft(state, desk)
    _give_up(draft, outdated(state, desk.now, life))
    given_up = set(draft.extracted)
    before = idle_before(desk.now, life)
    waiting = {turn.session_id for turn in state.pending if (turn.session_id, turn.index) not in given_up}
    for session in state.sessions.values():
        if not session.ended and session.last_at <= before and session.id not in waiting:
            _close(draft, session.id)
    draft.tidy()
    result = {"ended": sorted(draft.sessions)}
    return draft.decide(result) if draft.sessions or draft.extracted else Decision(None, result)


def outdated(state: UserState, now: datetime, life: LifeRules) -> list[Turn]:
    """Turns that still wait although raw turns are kept no longer (SPEC §4.3)."""
    before = now - timedelta(hours=life.turns_hours)
    return [turn for turn in state.pending if turn.received_at < before]


def _give_up(draft: Draft, turns: list[Turn]) -> None:
    """They are read no more; their jobs say so."""
    now = draft.desk.now
    draft.extracted += [(turn.session_id, turn.index) for turn in turns]
    for job_id in dict.fromkeys(turn.job_id for turn in turns):
        job = draft.state.jobs.get(job_id or "")
        if job is None:
            continue
        lost = [turn for turn in turns if turn.job_id == job_id]
        left = max(0, job.pending_turns - len(lost))
        waits = left > 0 and job.status is not JobStatus.FAILED
        refused = tuple(
            {
                "op": "refused",
                "memory_id": None,
                "reason": Reason.OUTDATED.value,
                "message_id": turn.message_id,
            }
            for turn in lost
        )
        draft.jobs[job.id] = replace(
            job, status=JobStatus.RUNNING if waits else JobStatus.FAILED, reason=Reason.OUTDATED.value,
            pending_turns=left, changes=(*job.changes, *refused), updated_at=now, version=draft.state.version + 1,
        )  # fmt: skip
    for turn in turns:
        draft.board.log(Op.REFUSED, Reason.OUTDATED, None, turn.message_id)


def idle_before(now: datetime, life: LifeRules) -> datetime:
    """A session whose last message came then or before has ended."""
    return now - timedelta(minutes=life.session_idle_minutes)


def _close(draft: Draft, session_id: str) -> None:
    """The window and its summary end with the conversation; should it go on, it begins anew (SPEC §4.3)."""
    session = draft.session(session_id)
    draft.sessions[session_id] = replace(session, ended=True, summary=Summary(upto=session.turns))
    end_session(draft.board, session_id, draft.open_sessions())


def mark_asked(state: UserState, command: MarkAsked, desk: Desk) -> Decision:
    """Remember that a question was handed out, so that no conversation gets a second one."""
    draft = Draft(state, desk)
    if command.session_id in state.sessions:
        draft.sessions[command.session_id] = replace(draft.session(command.session_id), asked=True)
    record = state.settings.confirmations.get(command.request_id)
    if record is not None:
        asked = request_of(record).with_(asked_in=command.session_id, asked_at=desk.now)
        draft.change_settings(confirmations={**state.settings.confirmations, asked.id: request_record(asked)})
    return draft.decide() if draft.sessions or draft.settings else Decision(None, None)
