"""Signals about what was recalled (API, feedback)."""

from __future__ import annotations

from hermes_memory.app.commands import Feedback
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.state import UserState
from hermes_memory.core.feedback import felt
from hermes_memory.core.model import Memory
from hermes_memory.core.profile import supports
from hermes_memory.core.tally import of_signal
from hermes_memory.errors import NotFound


def feedback(state: UserState, command: Feedback, desk: Desk) -> Decision:
    """Note a signal about each of the memories; those that are gone meanwhile are named.

    Raises NotFound when none of them is there.
    """
    wanted = list(dict.fromkeys(command.memory_ids))
    known = [memory for memory_id in wanted if (memory := state.memories.get(memory_id)) is not None]
    if not known:
        raise NotFound("memory")
    draft = Draft(state, desk)
    counted = sum(_noted(draft, memory, command) for memory in known)
    gone = [memory_id for memory_id in wanted if memory_id not in state.memories]
    result = {"counted": counted, "unknown": gone}
    return draft.decide(result) if counted else Decision(None, result)


def _noted(draft: Draft, memory: Memory, command: Feedback) -> bool:
    after = felt(memory, command.session_id, command.signal, draft.desk.now, draft.desk.policy.rules.feedback)
    if after is memory:
        return False
    draft.board.put(after)
    slotted = supports(memory, memory.subject)
    draft.counts += of_signal(command.signal, memory, slotted=slotted)
    return True
