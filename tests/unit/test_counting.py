"""What the runtime counts is what happened: gates by reason, locks and statuses by their tables, recalls, commands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Command, SetPaused
from hermes_memory.core.board import Board, Op
from hermes_memory.core.model import Lock, Memory, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.core.transitions import LOCKS, STATUSES, LockEvent, StatusEvent
from hermes_memory.errors import Overloaded
from hermes_memory.ports.ledger import AuditEntry, Commit
from hermes_memory.runtime.counting import count_commit, count_recall, counted
from hermes_memory.testing.builders import KEY, NOW, a_memory
from tests.unit.test_metrics import samples

REASONS = {  # under which an event moves a lock
    LockEvent.CONFIRM: {Reason.CONFIDENT, Reason.MERGED},
    LockEvent.FREEZE: {Reason.CORE_ATTRIBUTE, Reason.FREEZE_CANDIDATE, Reason.INFERRED_STRONG},
    LockEvent.FREEZE_BY_HAND: {Reason.BY_HAND, Reason.VERIFIED},
    LockEvent.FREEZE_AT_ONCE: {Reason.IMMEDIATE},
    LockEvent.UNFREEZE: {Reason.VERIFIED},
    LockEvent.REFREEZE: {Reason.REFREEZE},
}


def commit_of(board: Board) -> Commit:
    entries = tuple(
        AuditEntry(at=NOW, op=c.op.value, reason=c.reason.value, actor="user", before=c.before, after=c.after)
        for c in board.changes
    )
    return Commit(key=KEY, expected_version=1, epoch=1, operation_id="o", at=NOW, audit=entries)


def counts(board: Board, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """What a commit of the board's changes adds; without what stays 0."""
    metrics = PrometheusMetrics()
    count_commit(metrics, commit_of(board))
    return {labels: value for labels, value in samples(metrics.render(), name).items() if value}


def board_of(memory: Memory) -> Board:
    return Board({memory.id: memory}, NOW)


@pytest.mark.parametrize(
    ("lock", "event", "reason"), [(lock, e, r) for lock, e in LOCKS for r in sorted(REASONS[e])]
)
def test_every_move_of_a_lock_is_counted_as_its_event(lock: Lock, event: LockEvent, reason: Reason) -> None:
    memory = a_memory(lock=lock, tier=Tier.CORE if lock is Lock.FROZEN else Tier.LONGTERM)
    board = board_of(memory)
    board.lock(memory, event, Op.FROZEN, reason)
    after = LOCKS[lock, event]
    expected = (("event", event.value), ("from", lock.value), ("to", after.value))
    assert counts(board, "hermes_lock_transitions_total") == {expected: 1.0}
    assert counts(board, "hermes_status_transitions_total") == {}


@pytest.mark.parametrize(("status", "event"), STATUSES)
def test_every_move_of_a_status_is_counted_as_its_event(status: Any, event: StatusEvent) -> None:
    memory = a_memory(status=status)
    board = board_of(memory)
    board.status(memory, event, Op.ARCHIVED, Reason.STALE)
    expected = (("event", event.value), ("from", status.value), ("to", STATUSES[status, event].value))
    assert counts(board, "hermes_status_transitions_total") == {expected: 1.0}
    assert counts(board, "hermes_lock_transitions_total") == {}


def test_a_move_between_tiers_is_in_no_table() -> None:
    memory = a_memory()
    board = board_of(memory)
    board.log(Op.MOVED, Reason.SESSION_ENDED, memory, before=Tier.WORKING, after=Tier.LONGTERM)
    assert counts(board, "hermes_lock_transitions_total") == {}
    assert counts(board, "hermes_status_transitions_total") == {}


def test_every_reason_is_counted_as_accepted_or_refused() -> None:
    for reason in Reason:
        board = board_of(a_memory())
        board.log(Op.ADDED, reason)
        board.log(Op.REFUSED, reason)
        board.log(Op.REFUSED, reason)
        assert counts(board, "hermes_gate_reasons_total") == {
            (("outcome", "accepted"), ("reason", reason.value)): 1.0,
            (("outcome", "refused"), ("reason", reason.value)): 2.0,
        }
        assert counts(board, "hermes_changes_total") == {
            (("op", "added"), ("reason", reason.value)): 1.0,
            (("op", "refused"), ("reason", reason.value)): 2.0,
        }


def test_a_recall_is_counted_by_stage_with_what_it_brought_and_lacked() -> None:
    metrics = PrometheusMetrics()
    answer = {"timings_ms": {"rank": 2.0, "assemble": 0.5}, "memories": [{}, {}, {}], "degraded": ["index"]}
    count_recall(metrics, answer)
    text = metrics.render()
    seconds = samples(text, "hermes_recall_stage_seconds_sum")
    assert seconds == {(("stage", "rank"),): 0.002, (("stage", "assemble"),): 0.0005}
    assert samples(text, "hermes_recalled_memories_sum") == {(): 3.0}
    assert samples(text, "hermes_recall_degraded_total")[("part", "index"),] == 1.0


COMMAND: Command = SetPaused(paused=True)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "ok"), (Overloaded(1.0), "overloaded"), (TimeoutError(), "timeout"), (ValueError("ana"), "internal"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)  # fmt: skip
def test_a_command_is_counted_with_how_it_ended(error: BaseException | None, outcome: str) -> None:
    metrics = PrometheusMetrics()
    try:
        with counted(metrics, COMMAND):
            if error is not None:
                raise error
    except BaseException as raised:  # noqa: BLE001
        assert raised is error
    text = metrics.render()
    ended = {labels for labels, value in samples(text, "hermes_commands_total").items() if value}
    assert ended == {(("command", "set_paused"), ("outcome", outcome))}
    assert samples(text, "hermes_command_seconds_count") == {(("command", "set_paused"),): 1.0}


def test_a_move_that_no_table_knows_counts_as_a_change_only() -> None:
    board = board_of(a_memory())
    board.log(Op.FROZEN, Reason.STALE, before=Lock.FROZEN, after=Lock.PENDING)
    assert counts(board, "hermes_lock_transitions_total") == {}
    assert sum(counts(board, "hermes_changes_total").values()) == 1
