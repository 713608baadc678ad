"""What a night decides about memories one by one, from what is known already (SPEC §4.2, §4.3, §5, §9).

Each function works on a board, leaves frozen memories alone, logs whatever it changes and stops after ``most``
changes; it answers whether more is left to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from hermes_memory.core.board import Board, Op
from hermes_memory.core.conflicts import contradicts
from hermes_memory.core.days import LocalDay
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.frozen import promote
from hermes_memory.core.model import (
    Category,
    Granularity,
    Layer,
    Lock,
    Memory,
    Scope,
    Source,
    Status,
    Tier,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import LifeRules, Rules
from hermes_memory.core.transitions import StatusEvent, may_leave_working


def cool_down(
    board: Board, rules: LifeRules, dimensions: Dimensions, scenes: Mapping[str, str | None], most: int
) -> bool:
    """Inferences that recurred within days, and in more than one scene, hold for the user as such (S1 §5.1).

    ``scenes`` maps conversations to theirs. One that came up in a single scene is formal there, and stays weak
    elsewhere; so does one that contradicts what stands.
    """
    done = 0
    for memory in [m for m in board.by_id() if _is_weak(m) and _recurred(m, rules, scenes)]:
        raised = memory.with_(scope=Scope.USER, scene=None)
        others = (other for other in board.live() if other.scope is Scope.USER)
        if any(contradicts(raised, other, dimensions) for other in others):
            continue
        if done == most:
            return True
        done += 1
        board.log(Op.MOVED, Reason.RECURRED, memory, before=memory.scope, after=Scope.USER)
        board.put(raised)
    return False


def _is_weak(memory: Memory) -> bool:
    unfixed = memory.lock is Lock.PENDING and memory.scope is Scope.SCENE and not memory.rival_of
    stated = memory.granularity is Granularity.ATOMIC and memory.category is not Category.EVENT
    return unfixed and stated and memory.source is Source.INFERRED and not memory.safety


def _recurred(memory: Memory, rules: LifeRules, scenes: Mapping[str, str | None]) -> bool:
    """Whether enough conversations within the days of the cool-down brought it, and not all in one scene."""
    span = timedelta(days=rules.cooldown_days)
    for piece in memory.evidence:
        near = {
            other.session_id for other in memory.evidence if abs(other.created_at - piece.created_at) <= span
        }
        if len(near) >= rules.cooldown_conversations and len({scenes.get(one) for one in near}) > 1:
            return True
    return False


def rise(board: Board, rules: Rules, most: int) -> bool:
    """Locks that have been earned and were not given: a core that was full then has room now (SPEC §5).

    Nothing here says a word for a memory: a freeze candidate waits for the user's.
    """
    done = 0
    for memory in [m for m in board.by_id() if _may_rise(m)]:
        if done >= most:
            return True
        done += _raised(board, memory, rules)
    return False


def _may_rise(memory: Memory) -> bool:
    earned = memory.lock in {Lock.PENDING, Lock.CONFIRMED} and bool(memory.confirmations)
    return earned and memory.status is Status.ACTIVE and not memory.rival_of


def _raised(board: Board, memory: Memory, rules: Rules) -> bool:
    """A full core was told to the operator when the freeze was earned; the night does not tell it again."""
    logged = len(board.changes)
    after = promote(board, memory, rules, None, explicit=False)
    if after.lock is memory.lock:
        del board.changes[logged:]
    return after.lock is not memory.lock


def move_up(board: Board, open_sessions: Collection[str], known: Collection[str], most: int) -> bool:
    """What stayed behind when its conversations ended: to longterm, or to the archive (SPEC §4.2).

    ``known`` are all conversations: what rests on none of them, as what was typed into a panel, ended with its
    request.
    """
    done = 0
    for memory in [m for m in board.by_id() if m.tier is Tier.WORKING]:
        said_in = {piece.session_id for piece in memory.evidence}
        if memory.lock is Lock.FROZEN or not said_in.isdisjoint(open_sessions):
            continue
        if memory.scope is not Scope.SESSION and not may_leave_working(memory):
            continue
        ended = memory.scope is Scope.SESSION and not said_in.isdisjoint(known) and not memory.rival_of
        if memory.scope is Scope.SESSION and not ended:
            continue
        if done == most:
            return True
        done += 1
        if ended:
            board.status(memory, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.SESSION_ENDED)
        else:
            moved = board.put(memory.with_(tier=Tier.LONGTERM))
            board.log(Op.MOVED, Reason.SESSION_ENDED, moved, before=Tier.WORKING, after=Tier.LONGTERM)
    return False


def clear_pending(board: Board, stale_days: float, today: LocalDay, most: int) -> bool:
    """Weak statements that nobody said or needed again go to the archive, from where recall may bring them back.

    Weak is what is pending and passing (the working tier) or inferred (S2 §5.5): what the user plainly declared
    for good has the terms of SPEC §4.3. Never a declared FACT, a safety matter or a restriction.
    """
    stale = [m for m in board.by_id() if _is_passing(m) and today.since(_last_needed(m)) > stale_days]
    for memory in stale[:most]:
        board.status(memory, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.STALE_PENDING)
    return len(stale) > most


def _last_needed(memory: Memory) -> datetime:
    return max(memory.updated_at, memory.last_access_at or memory.updated_at)


def _is_passing(memory: Memory) -> bool:
    if memory.lock is not Lock.PENDING or memory.rival_of:
        return False
    inferred = memory.source is Source.INFERRED
    if memory.safety or memory.layer is Layer.RESTRICTION or memory.category is Category.EVENT:
        return False
    if memory.category is Category.FACT and not inferred:
        return False
    return inferred or memory.tier is Tier.WORKING
