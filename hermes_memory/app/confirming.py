"""The user's answer to a confirmation request (SPEC §5, §6): instruction and verification in one."""

from __future__ import annotations

from typing import Any

from hermes_memory.app.commands import AnswerConfirmation
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.records import request_of, request_record
from hermes_memory.app.state import UserState
from hermes_memory.core.board import Board, Op
from hermes_memory.core.confirmation import Choice, ConfirmationRequest, RequestStatus
from hermes_memory.core.frozen import confirm, freeze
from hermes_memory.core.life import keep_caps
from hermes_memory.core.model import Affirmed, Lock, Memory, Status
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Rules
from hermes_memory.core.transitions import LockEvent, StatusEvent
from hermes_memory.errors import NotFound

LIVE = {Status.ACTIVE, Status.REVIEW}


def answer_confirmation(state: UserState, command: AnswerConfirmation, desk: Desk) -> Decision:
    """Settle an open request: the old one stands, the new one takes over, both hold, or neither."""
    record = state.settings.confirmations.get(command.request_id)
    request = request_of(record) if record else None
    if request is None or not request.open_at(desk.now):
        raise NotFound("open confirmation request")
    draft = Draft(state, desk)
    answer = _Answer(draft.board, request, desk.policy.rules)
    answer.give(command.choice)
    keep_caps(draft.board, desk.policy.rules)
    answered = request.with_(status=RequestStatus.ANSWERED, answer=command.choice)
    draft.change_settings(
        confirmations={**state.settings.confirmations, request.id: request_record(answered)}
    )
    close_questions(draft)
    return draft.decide({"confirmation": request_record(answered), "changes": draft.records()})


def close_questions(draft: Draft) -> int:
    """Expire the open requests that are over: too late, or the two no longer contradict each other."""
    known = draft.current_settings().confirmations
    requests = [request_of(record) for record in known.values() if record["status"] == RequestStatus.OPEN]
    over = [request for request in requests if not _waits(request, draft)]
    if over:
        expired = {r.id: request_record(r.with_(status=RequestStatus.EXPIRED)) for r in over}
        draft.change_settings(confirmations={**known, **expired})
    return len(over)


def _waits(request: ConfirmationRequest, draft: Draft) -> bool:
    old, new = (draft.board.get(memory_id) for memory_id in request.memory_ids)
    if old is None or new is None or not request.open_at(draft.board.now):
        return False
    return {old.status, new.status} <= LIVE and new.rival_of == old.id


class _Answer:
    """Moves the two memories of a request; only these two (SPEC §6)."""

    def __init__(self, board: Board, request: ConfirmationRequest, rules: Rules) -> None:
        self.board, self.rules = board, rules
        self.message_id = request.id
        self.old, self.new = (board.get(i) for i in request.memory_ids)

    def give(self, choice: Choice) -> None:
        """Carry out one choice on what is still there."""
        if choice in {Choice.NEW, Choice.NEITHER} and self.old is not None and self.old.status in LIVE:
            self._supersede(self.old)
        if self.new is not None and self.new.status in LIVE:
            if choice in {Choice.OLD, Choice.NEITHER}:
                self._reject(self.new)
            else:
                self._accept(self.new, choice)
        if choice in {Choice.OLD, Choice.BOTH} and self.old is not None and self.old.status in LIVE:
            self._affirm(self.old)

    def _supersede(self, memory: Memory) -> None:
        frozen = memory.lock is Lock.FROZEN
        if frozen:
            memory = self.board.open(memory, f"answer to {self.message_id}", self.message_id)
        memory = self.board.status(
            memory, StatusEvent.SUPERSEDE, Op.SUPERSEDED, Reason.VERIFIED, self.message_id
        )
        if frozen:
            self.board.refreeze(memory, self.message_id)

    def _reject(self, memory: Memory) -> None:
        """Put a rival aside; one that was frozen by hand may not come back by being said again."""
        if memory.lock is Lock.FROZEN:
            self._supersede(memory)
        else:
            self.board.status(memory, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.VERIFIED, self.message_id)

    def _accept(self, new: Memory, choice: Choice) -> None:
        replaced = self.old if choice is Choice.NEW else None
        changes: dict[str, Any] = {"rival_of": None}
        if replaced is not None and new.lock is not Lock.FROZEN:
            changes |= {"scope": replaced.scope, "scene": replaced.scene}
        new = self._affirm(self.board.put(new.with_(**changes)))
        if replaced is not None and replaced.lock is Lock.FROZEN and new.lock is not Lock.FROZEN:
            freeze(self.board, new, LockEvent.FREEZE_BY_HAND, Reason.VERIFIED, self.rules, self.message_id)

    def _affirm(self, memory: Memory) -> Memory:
        said = Affirmed(session_id="panel", message_id=self.message_id, at=self.board.now)
        self.board.log(Op.REINFORCED, Reason.VERIFIED, memory, self.message_id)
        return confirm(self.board, memory, said, self.rules, explicit=True)
