"""Contradictions that slipped past the gates, through an edit or by coming back, are put to the user (SPEC §6, §9)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from hermes_memory.app.desk import Draft
from hermes_memory.app.records import request_record
from hermes_memory.core.board import Op
from hermes_memory.core.confirmation import ask
from hermes_memory.core.ids import digest
from hermes_memory.core.inspection import inspect
from hermes_memory.core.merging import release
from hermes_memory.core.model import LIVE, Lock, Memory, Status
from hermes_memory.core.reasons import Reason


def inspect_conflicts(draft: Draft, most: int | None = None) -> bool:
    """Link each contradicting pair that was never asked about, and ask which one holds.

    The newer becomes the rival of the older, as it would have at write; only a frozen one always stands, and of two
    frozen ones both do. A pair about which the user was asked once is left as they answered it. After ``most`` questions it stops and answers
    whether there are more.
    """
    known = draft.current_settings().confirmations
    asked = {frozenset(record["memory_ids"]) for record in known.values()}
    conflicts = draft.desk.policy.rules.conflicts
    expires_at = draft.board.now + timedelta(days=conflicts.confirmation_days)
    requests: dict[str, dict[str, Any]] = {}
    more = False
    for pair in inspect(_standing(draft), draft.desk.policy.dimensions, asked):
        old, new = draft.board[pair.older.id], draft.board[pair.newer.id]
        if old.rival_of or new.rival_of or {old.lock, new.lock} == {Lock.FROZEN}:
            continue  # of two that were frozen neither may be moved here (SPEC §5)
        if more := len(requests) == most:
            break
        old, new = (release(draft.board, m, None) if m.merged_into else m for m in (old, new))
        if new.lock is Lock.FROZEN and old.lock is not Lock.FROZEN:
            old, new = new, old
        new = draft.board.put(
            new.with_(rival_of=old.id, updated_at=max(new.updated_at, draft.board.now))
        )  # its term begins
        draft.board.log(Op.RIVAL, Reason.INSPECTED, new)
        request = ask(
            "ask_" + digest(draft.desk.made_by, old.id, new.id), old, new, Reason.INSPECTED.value,
            draft.board.now, expires_at,
        )  # fmt: skip
        requests[request.id] = request_record(request)
    if requests:
        draft.change_settings(confirmations={**known, **requests})
        draft.tidy()  # a part may have left its record
    return more


def _standing(draft: Draft) -> Iterator[Memory]:
    """The live memories, and the parts of live records as if each stood alone (SPEC §3.2)."""
    yield from draft.board.live()
    for part in draft.parts():
        record = draft.board.get(part.merged_into or "")
        if record is not None and record.status in LIVE:
            yield part.with_(status=Status.ACTIVE)
