"""What comes back from the archive, and what the user decides about remembering as such."""

from __future__ import annotations

from dataclasses import replace

from hermes_memory.app.commands import BringBack, SetConsent, SetPaused
from hermes_memory.app.desk import PARKED, Decision, Desk, Draft, alert_id_of
from hermes_memory.app.recall import may_come_back
from hermes_memory.app.state import UserState
from hermes_memory.core.life import bring_back
from hermes_memory.core.reasons import Reason
from hermes_memory.ports.ledger import Job, JobStatus


def reactivate(state: UserState, command: BringBack, desk: Desk) -> Decision:
    """What recall found in the archive is active again; what left it or is contradicted meanwhile stays as it is."""
    draft = Draft(state, desk)
    known = [memory for i in command.memory_ids if (memory := state.memories.get(i)) is not None]
    may = [memory.id for memory in known if may_come_back(state, memory, desk.policy, desk.now)]
    bring_back(draft.board, may)
    if not draft.board.changes:
        return Decision(None, None)
    draft.tidy()
    return draft.decide(None)


def set_paused(state: UserState, command: SetPaused, desk: Desk) -> Decision:
    """Pause or resume; turns that wait are not read any more once paused."""
    if state.settings.paused == command.paused:
        return Decision(None, {"paused": command.paused})
    draft = Draft(state, desk)
    draft.change_settings(paused=command.paused)
    if command.paused:
        draft.extracted = [(turn.session_id, turn.index) for turn in state.pending]
        draft.jobs = {job.id: _dropped(job, draft) for job in state.jobs.values()}
        parked = (job.id for job in state.jobs.values() if job.status is JobStatus.FAILED)
        draft.seen_to |= {alert_id_of(state.key, PARKED, job_id) for job_id in parked}
    return draft.decide({"paused": command.paused})


def _dropped(job: Job, draft: Draft) -> Job:
    return replace(
        job, status=JobStatus.DONE, reason=Reason.PAUSED.value, pending_turns=0, updated_at=draft.desk.now,
        version=draft.state.version + 1,
    )  # fmt: skip


def set_consent(state: UserState, command: SetConsent, desk: Desk) -> Decision:
    """Record what the user agrees to; None leaves an answer as it is."""
    given = {"sensitive": command.sensitive, "cohort": command.cohort}
    consent = {
        **state.settings.consent,
        **{name: value for name, value in given.items() if value is not None},
    }
    if consent == dict(state.settings.consent):
        return Decision(None, {"consent": consent})
    draft = Draft(state, desk)
    draft.change_settings(consent=consent)
    return draft.decide({"consent": consent})
