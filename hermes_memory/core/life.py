"""How long memories live, and how many there may be (SPEC §4.2, §4.3). Frozen ones are never touched."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from datetime import datetime

from hermes_memory.core.board import Board, Op
from hermes_memory.core.days import LocalDay
from hermes_memory.core.decay import retention
from hermes_memory.core.merging import Vector, VectorOf, compress
from hermes_memory.core.model import LIVE, Category, Layer, Lock, Memory, Scope, Status, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import LifeRules, Rules
from hermes_memory.core.transitions import StatusEvent, may_leave_working

_RESTS = {Reason.CAPACITY, Reason.STALE, Reason.STALE_PENDING}  # went for want of room or of use
MANY = 1_000_000


def end_session(board: Board, session_id: str, still_open: Container[str] = ()) -> None:
    """What a session leaves: user and scene scope move to longterm, session scope is archived; rivals live on.

    What was also said in one of the conversations that are ``still_open`` waits for their end.
    """
    for memory in [
        m for m in board
        if m.status in LIVE and m.lock is not Lock.FROZEN and (m.tier is Tier.WORKING or m.scope is Scope.SESSION)
    ]:  # fmt: skip
        if all(piece.session_id != session_id for piece in memory.evidence):
            continue
        if memory.scope is Scope.SESSION and not memory.rival_of:
            if any(piece.session_id in still_open for piece in memory.evidence):
                continue
            board.status(memory, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.SESSION_ENDED)
        elif may_leave_working(memory):
            moved = board.put(memory.with_(tier=Tier.LONGTERM))
            board.log(Op.MOVED, Reason.SESSION_ENDED, moved, before=Tier.WORKING, after=Tier.LONGTERM)


def keep_caps(board: Board, rules: Rules, seed: str, vector_of: VectorOf) -> dict[str, Vector]:
    """Bring every tier back under its cap: topics are merged first, then memories evicted (SPEC §4.2).

    Working gives up its oldest first, the others what retention values least; each eviction is logged with the
    id. Returns the vectors of merged records; ``seed`` makes their ids.
    """
    vectors: dict[str, Vector] = {}
    for tier in (Tier.WORKING, Tier.LONGTERM):
        vectors |= compress(board, tier, rules.capacity, seed, vector_of)
        over = board.count(tier) - rules.capacity.of(tier)
        if over <= 0:
            continue
        held = [memory for memory in board.within(tier) if memory.lock is not Lock.FROZEN]
        for memory in sorted(held, key=_least_wanted(tier, board.now, rules.life))[:over]:
            board.status(memory, StatusEvent.ARCHIVE, Op.EVICTED, Reason.CAPACITY)
    return vectors


def may_return(memory: Memory) -> bool:
    """Whether recall may bring it back from the archive: it went for want of room or of use, not for being wrong."""
    if memory.status is not Status.ARCHIVED or memory.merged_into or not memory.history:
        return False
    return memory.history[-1].reason in _RESTS and not memory.rival_of


def bring_back(board: Board, memory_ids: Iterable[str]) -> None:
    """Reactivate what recall found in the archive; its clocks start again (SPEC §4.3)."""
    for memory in [found for memory_id in memory_ids if (found := board.get(memory_id)) is not None]:
        if may_return(memory):
            board.status(memory, StatusEvent.REACTIVATE, Op.REACTIVATED, Reason.RECALLED)


def _least_wanted(
    tier: Tier, now: datetime, life: LifeRules
) -> Callable[[Memory], tuple[float, int, int, str]]:
    """Of equal ones those go first that came first; what came back since, or was changed, stays longer."""
    working = tier is Tier.WORKING

    def worth(memory: Memory) -> tuple[float, int, int, str]:
        value = memory.updated_at.timestamp() if working else retention(memory, now, life)
        turn = memory.evidence[0].turn_index if memory.evidence else 0
        return value, len(memory.history), turn, memory.id

    return worth


def age(board: Board, rules: LifeRules, today: LocalDay | None = None, most: int = MANY) -> bool:
    """One night of ageing: rivals expire, the stale is archived, the old and unused goes to review.

    Counts in whole days up to ``today``, by default the board's in UTC. Stops after ``most`` changes and answers
    whether there are more.
    """
    today = today or LocalDay.of(board.now)
    done = 0
    for memory in [m for m in board.by_id() if m.lock is not Lock.FROZEN]:
        days = today.since(memory.updated_at)
        reason = _archive_reason(memory, days, rules)
        review = memory.status is Status.ACTIVE and _wants_review(memory, days, rules)
        if not (reason or review):
            continue
        if done == most:
            return True
        done += 1
        if reason:
            board.status(memory, StatusEvent.ARCHIVE, Op.ARCHIVED, reason)
        else:
            board.status(memory, StatusEvent.REVIEW, Op.REVIEW, Reason.STALE)
    return False


def _archive_reason(memory: Memory, days: int, rules: LifeRules) -> Reason | None:
    if memory.rival_of:  # about safety only an answer decides
        return Reason.STALE if days > rules.rival_days and not memory.safety else None
    if memory.contradictions >= rules.archive_disproved and memory.lock is Lock.PENDING and not memory.safety:
        return Reason.DISPROVED
    if memory.safety:  # it goes by the user's word, never by its age
        return None
    slight = memory.importance < rules.archive_event_importance
    if memory.category is Category.EVENT and days > rules.archive_event_days and slight:
        return Reason.STALE
    unused = days > rules.archive_unused_days and memory.access_count == 0 and memory.lock is Lock.PENDING
    return Reason.STALE if unused and not _declared_fact(memory) else None


def _wants_review(memory: Memory, days: int, rules: LifeRules) -> bool:
    if memory.safety or memory.layer is Layer.RESTRICTION:
        return False  # in review it would not be told any more (SPEC §7.1), and it binds however old it is
    old = days > rules.review_days
    return old and memory.access_count < rules.review_min_access and not _declared_fact(memory)


def _declared_fact(memory: Memory) -> bool:
    """Declared FACTs are exempt from review and age archive (SPEC §4.3)."""
    return memory.category is Category.FACT and memory.source != "inferred"
