"""The user's answer to a confirmation request (SPEC §5, §6): instruction and verification in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermes_memory.app.commands import AnswerConfirmation
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.records import request_of, request_record
from hermes_memory.app.state import UserState
from hermes_memory.core.board import Board, Op
from hermes_memory.core.confirmation import Choice, ConfirmationRequest, RequestStatus
from hermes_memory.core.frozen import confirm, freeze
from hermes_memory.core.model import LIVE, Affirmed, Lock, Memory, Role, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Rules
from hermes_memory.core.text import normal
from hermes_memory.core.transitions import LockEvent, StatusEvent
from hermes_memory.errors import NotFound

PANEL = "panel"  # the session of what is answered by hand


def answer_confirmation(state: UserState, command: AnswerConfirmation, desk: Desk) -> Decision:
    """Settle an open request: the old one stands, the new one takes over, both hold, or neither."""
    record = state.settings.confirmations.get(command.request_id)
    request = request_of(record) if record else None
    if request is None or not request.open_at(desk.now):
        raise NotFound("open confirmation request")
    draft = Draft(state, desk)
    said = Affirmed(session_id=PANEL, message_id=request.id, at=desk.now)
    _Answer(draft.board, request, desk.policy.rules, said).give(command.choice)
    draft.tidy()
    answered = request.with_(status=RequestStatus.ANSWERED, answer=command.choice)
    draft.change_settings(
        confirmations={**state.settings.confirmations, request.id: request_record(answered)}
    )
    close_questions(draft)
    return draft.decide({"confirmation": request_record(answered), "changes": draft.records()})


def answer_from_words(draft: Draft, turns: Iterable[Turn], restated: Iterable[tuple[str, Turn]]) -> None:
    """An open question is settled by what the user says after it was put to them (SPEC §5, §6).

    They name a choice ("the second one"), or say or affirm one side plainly. The words of the turn in which the
    question arose never answer it, nor does a bare "yes".
    """
    for request in _open_requests(draft):
        chosen = _choice_in_words(request, draft, turns) or _side_taken(request, restated)
        if chosen is None:
            continue
        choice, turn = chosen
        said = Affirmed(session_id=turn.session_id, message_id=turn.message_id, at=turn.created_at)
        _Answer(draft.board, request, draft.desk.policy.rules, said).give(choice)
        answered = request_record(request.with_(status=RequestStatus.ANSWERED, answer=choice))
        draft.change_settings(confirmations={**draft.current_settings().confirmations, request.id: answered})


def _choice_in_words(
    request: ConfirmationRequest, draft: Draft, turns: Iterable[Turn]
) -> tuple[Choice, Turn] | None:
    """What the first user turn after the question names, if it names nothing else."""
    later = [t for t in turns if t.role is Role.USER and request.answers(t.session_id, t.received_at)]
    if not later or _spoke_before(request, draft, later[0]):
        return None
    choice = draft.desk.policy.answers.get(normal(later[0].content))
    return None if choice is None else (choice, later[0])


def _spoke_before(request: ConfirmationRequest, draft: Draft, turn: Turn) -> bool:
    """Whether the user said something between the question and this turn: then it answers something else."""
    return any(
        other.role is Role.USER
        and other.index < turn.index
        and request.answers(other.session_id, other.received_at)
        for other in draft.state.turns.values()
        if other.session_id == turn.session_id
    )


def _side_taken(
    request: ConfirmationRequest, restated: Iterable[tuple[str, Turn]]
) -> tuple[Choice, Turn] | None:
    sides = dict(zip(request.memory_ids, (Choice.OLD, Choice.NEW), strict=True))
    taken = [
        (sides[memory_id], turn)
        for memory_id, turn in restated
        if memory_id in sides and request.answers(turn.session_id, turn.received_at)
    ]
    return taken[-1] if len({choice for choice, _ in taken}) == 1 else None


def _open_requests(draft: Draft) -> list[ConfirmationRequest]:
    known = draft.current_settings().confirmations
    requests = [request_of(record) for record in known.values() if record["status"] == RequestStatus.OPEN]
    return [request for request in requests if request.open_at(draft.desk.now)]


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

    def __init__(self, board: Board, request: ConfirmationRequest, rules: Rules, said: Affirmed) -> None:
        self.board, self.rules, self.said = board, rules, said
        self.message_id = said.message_id
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
        self.board.log(Op.REINFORCED, Reason.VERIFIED, memory, self.message_id)
        return confirm(self.board, memory, self.said, self.rules, explicit=True)
