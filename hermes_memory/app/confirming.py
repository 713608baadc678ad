"""The user's answer to a confirmation request (SPEC §5, §6): instruction and verification in one."""

from __future__ import annotations

from hermes_memory.app.commands import AnswerConfirmation
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.records import request_of, request_record
from hermes_memory.app.state import UserState
from hermes_memory.core.board import Board, Op
from hermes_memory.core.confirmation import Choice, ConfirmationRequest, RequestStatus
from hermes_memory.core.frozen import confirm, freeze
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
    answered = request.with_(status=RequestStatus.ANSWERED, answer=command.choice)
    draft.change_settings(
        confirmations={**state.settings.confirmations, request.id: request_record(answered)}
    )
    return draft.decide({"confirmation": request_record(answered), "changes": draft.records()})


class _Answer:
    """Moves the two memories of a request; only these two (SPEC §6)."""

    def __init__(self, board: Board, request: ConfirmationRequest, rules: Rules) -> None:
        self.board, self.rules = board, rules
        self.message_id = request.id
        self.old, self.new = (board.get(i) for i in request.memory_ids)

    def give(self, choice: Choice) -> None:
        """Carry out one choice on what is still there."""
        if choice in {Choice.NEW, Choice.NEITHER} and self.old is not None and self.old.status in LIVE:
            self._end_old(self.old, keep_frozen=self.old.lock is Lock.FROZEN)
        if self.new is not None and self.new.status in LIVE:
            if choice in {Choice.OLD, Choice.NEITHER}:
                self.board.status(
                    self.new, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.VERIFIED, self.message_id
                )
            else:
                self._accept(self.new, choice)
        if choice in {Choice.OLD, Choice.BOTH} and self.old is not None and self.old.status in LIVE:
            self._affirm(self.old)

    def _end_old(self, old: Memory, *, keep_frozen: bool) -> None:
        if keep_frozen:
            old = self.board.open(old, f"answer to {self.message_id}", self.message_id)
        old = self.board.status(old, StatusEvent.SUPERSEDE, Op.SUPERSEDED, Reason.VERIFIED, self.message_id)
        if keep_frozen:
            self.board.refreeze(old, self.message_id)

    def _accept(self, new: Memory, choice: Choice) -> None:
        replaced = choice is Choice.NEW and self.old is not None
        scope = self.old.scope if replaced and self.old is not None else new.scope
        new = self.board.put(new.with_(rival_of=None, scope=scope))
        new = self._affirm(new)
        was_frozen = replaced and self.old is not None and self.old.lock is Lock.FROZEN
        if was_frozen and new.lock is not Lock.FROZEN:
            freeze(self.board, new, LockEvent.FREEZE_BY_HAND, Reason.VERIFIED, self.rules, self.message_id)

    def _affirm(self, memory: Memory) -> Memory:
        said = Affirmed(session_id="panel", message_id=self.message_id, at=self.board.now)
        return confirm(self.board, memory, said, self.rules, explicit=True)
