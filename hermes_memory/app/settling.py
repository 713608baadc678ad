"""An extraction comes back: the gates run on the state as it is now, in one commit (ARCHITECTURE §4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hermes_memory.app.commands import FailExtraction, Settle
from hermes_memory.app.confirming import answer_from_words, close_questions
from hermes_memory.app.desk import PARKED, Decision, Desk, Draft, alert_id_of
from hermes_memory.app.records import change_record, request_record
from hermes_memory.app.state import UserState
from hermes_memory.core.bounded import Entrance
from hermes_memory.core.candidate import Refusal, Span
from hermes_memory.core.entry import Vector
from hermes_memory.core.life import end_session
from hermes_memory.core.model import Memory, Turn
from hermes_memory.core.settle import Settlement, Surroundings
from hermes_memory.core.tally import of_settlement
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.ledger import Alert, Job, JobStatus

Place = tuple[str, str]  # session id, message id


def settle(state: UserState, command: Settle, desk: Desk) -> Decision:
    """Run the gates, unless the result is of an older generation or its turns were settled meanwhile."""
    places = dict.fromkeys(command.turns)
    turns = [state.turns[place] for place in places if place in state.turns and state.turns[place].pending]
    if command.generation != state.generation or not turns:
        return Decision(None, {})
    draft = Draft(state, desk)
    settlement = Settlement(draft.board, surroundings(state, desk, turns))
    settled = {_place(turn) for turn in map(state.turns.get, places) if turn and not turn.pending}
    distilled = _of_turns(command.distilled, turns, settled)
    settlement.run(distilled.extraction, list(distilled.vectors))
    draft.vectors = settlement.vectors
    for session_id in {turn.session_id for turn in turns if draft.session(turn.session_id).ended}:
        end_session(draft.board, session_id, draft.open_sessions())
    if settlement.asked:
        asked = {request.id: request_record(request) for request in settlement.asked}
        draft.change_settings(confirmations={**state.settings.confirmations, **asked})
    answer_from_words(draft, turns, settlement.restated)
    close_questions(draft)
    changed = list(draft.board.changed)  # by what was said; the tiers are looked at later
    draft.counts += of_settlement(distilled.extraction, turns, draft.board.changes, changed)
    draft.tidy()
    draft.extracted = [(turn.session_id, turn.index) for turn in turns]
    _spend(draft, command.day, command.distilled.extraction.usage.tokens)
    _close_jobs(draft, turns)
    return draft.decide({"jobs": sorted(draft.jobs)})


def surroundings(state: UserState, desk: Desk, turns: Iterable[Turn]) -> Surroundings:
    """What a settlement looks at besides its candidates."""
    policy, turns = desk.policy, list(turns)

    def similar(vector: Vector, memory_id: str) -> float:
        stored = state.shelf.vectors.get(memory_id)
        return 0.0 if stored is None else policy.calibration.pair.of(float(np.dot(vector, stored)))

    def known(dimension: str) -> Iterator[Memory]:
        return (memory for memory in state.live.values() if memory.dimension == dimension)

    entrance = Entrance(
        turns={(turn.session_id, turn.message_id): turn for turn in turns},
        dimensions=policy.dimensions,
        rules=policy.rules.entry,
        grounding=policy.grounding,
        consents=bool(state.settings.consent.get("sensitive", False)),
        talk={turn.session_id: state.held(turn.session_id) for turn in turns},
        known=known,
    )
    return Surroundings(
        namespace=state.key.namespace,
        user_id=state.key.user_id,
        seed=desk.operation_id,
        rules=policy.rules,
        dimensions=policy.dimensions,
        entrance=entrance,
        similar=similar,
        near=state.lookup(policy.dimensions).near,
    )


def _of_turns(distilled: Distilled, turns: list[Turn], settled: Collection[Place]) -> Distilled:
    """What speaks of ``turns``, in the order of statement time: an older fact never follows a newer one.

    What speaks of turns ``settled`` meanwhile falls away; what points at any other comes last, for the gate to refuse.
    """
    when = {_place(turn): turn.created_at for turn in turns}
    latest = max(when.values())
    extraction = distilled.extraction
    candidates = [
        (when.get(_place(candidate.span), latest), number, candidate)
        for number, candidate in enumerate(extraction.candidates)
        if _place(candidate.span) not in settled
    ]
    candidates.sort(key=lambda item: item[:2])
    kept = [number for _, number, _ in candidates]
    return Distilled(
        replace(
            extraction,
            candidates=tuple(candidate for _, _, candidate in candidates),
            affirmations=tuple(a for a in extraction.affirmations if _place(a.span) not in settled),
            refusals=tuple(r for r in extraction.refusals if _place(r) in when),
        ),
        distilled.vectors[kept] if kept else distilled.vectors[:0],
    )


def _place(at: Span | Refusal | Turn) -> Place:
    return at.session_id, at.message_id


def _close_jobs(draft: Draft, turns: list[Turn]) -> None:
    """Each job learns what became of its own messages; it is done when none of its turns waits."""
    job_of = {turn.message_id: turn.job_id for turn in turns}
    by_job: dict[str | None, list[dict[str, Any]]] = {}
    for change in draft.board.changes:
        by_job.setdefault(job_of.get(change.message_id or "", turns[-1].job_id), []).append(
            change_record(change)
        )
    for job_id in {turn.job_id for turn in turns}:
        job = draft.state.jobs.get(job_id or "")
        if job is not None:
            draft.jobs[job.id] = _advance(job, turns, by_job.get(job_id, []), draft)


def _advance(job: Job, turns: list[Turn], changes: list[dict[str, Any]], draft: Draft) -> Job:
    """The job without these turns; one of which others are parked stays failed until they are read too."""
    left = job.pending_turns - sum(1 for turn in turns if turn.job_id == job.id)
    failed = job.status is JobStatus.FAILED
    if failed and left <= 0:
        draft.seen_to.add(alert_id_of(draft.state.key, PARKED, job.id))
    return replace(
        job,
        status=JobStatus.DONE if left <= 0 else JobStatus.FAILED if failed else JobStatus.RUNNING,
        updated_at=draft.desk.now,
        pending_turns=max(0, left),
        changes=(*job.changes, *changes),
        reason=job.reason if failed and left > 0 else None,
        version=draft.state.version + 1,
    )


def _spend(draft: Draft, day: str, tokens: int) -> None:
    """Count tokens of a language model for the user's day; they are no reason for a commit of their own."""
    if tokens:
        draft.change_settings(spent=draft.current_settings().spent.more(day, tokens))


def fail_extraction(state: UserState, command: FailExtraction, desk: Desk) -> Decision:
    """Count the attempt on every job it concerns; a parked job says why, also while it is tried anew. The turns stay.

    One of an older generation says nothing: of an erased user not even what reading has cost is kept.
    """
    if command.generation != state.generation:
        return Decision(None, {})
    draft = Draft(state, desk)
    _spend(draft, command.day, command.tokens)
    for job_id in {state.turns[place].job_id for place in command.turns if place in state.turns}:
        job = state.jobs.get(job_id or "")
        if job is not None:
            failed = command.parked or job.status is JobStatus.FAILED
            status = JobStatus.FAILED if failed else JobStatus.RUNNING
            draft.jobs[job.id] = replace(
                job, status=status, attempts=job.attempts + 1, reason=command.reason, updated_at=desk.now
            )
            if command.parked:
                alert_id = alert_id_of(state.key, PARKED, job.id)
                draft.alerts[alert_id] = Alert(id=alert_id, kind=PARKED, at=desk.now, job_id=job.id)
    return draft.decide({}) if draft.jobs or draft.settings else Decision(None, {})
