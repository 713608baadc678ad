"""Which memories the user model is made of (SPEC §8): kept by id, so that no slot can say what no memory says.

A slot is read from the memories behind it, as they are. What is kept is which of them have been taken up: at once what
is about identity and restrictions, the rest by the night or together with enough others. So an addition waits, while
a memory that is edited, superseded or deleted changes its slot in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hermes_memory.app.state import UserState
from hermes_memory.core.board import Board
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import LIVE, USER, Granularity, Memory, Status
from hermes_memory.core.profile import Slot, build_profile, slot_name, supports, waits
from hermes_memory.core.rules import ProfileRules, Rules

Taken = Mapping[str, list[str]]  # slot → the ids of the memories behind it


def taken_ids(taken: Mapping[str, Any]) -> set[str]:
    """The memories that are behind slots."""
    return {memory_id for ids in taken.values() for memory_id in ids}


def retaken(
    board: Board, parts: Iterable[Memory], taken: Taken, rules: ProfileRules, *, everything: bool = False
) -> dict[str, list[str]] | None:
    """The slots after the changes on the board; None where they stay as they are.

    ``parts`` are those of merged records, ``everything`` takes up what waits.
    """
    known = taken_ids(taken)
    touched = board.touched_ids
    if not everything and not any(_moves(board.get(i), i in known, taken, board.now) for i in touched):
        return None
    standing = [memory for memory in _standing(board, parts) if supports(memory, None, board.now)]
    waiting = [memory for memory in standing if memory.id not in known and waits(memory)]
    everything = everything or len(waiting) >= rules.new_memories
    left_out = set() if everything else {memory.id for memory in waiting}
    slots: dict[str, list[str]] = {}
    for memory in standing:
        if memory.id not in left_out:
            slots.setdefault(slot_name(memory), []).append(memory.id)
    after = {name: sorted(slots[name]) for name in sorted(slots)}
    return None if after == taken else after


def _moves(memory: Memory | None, known: bool, taken: Taken, now: datetime) -> bool:
    """Whether a change of a memory can be one of the slots: most only make it firmer."""
    if memory is None or memory.granularity is Granularity.SPAN:
        return True
    stands = supports(memory, None, now)
    return stands != known or (stands and memory.id not in taken.get(slot_name(memory), ()))


def _standing(board: Board, parts: Iterable[Memory]) -> Iterator[Memory]:
    """The live memories, and the parts of live records as if each stood alone (SPEC §3.2)."""
    yield from board.live()
    for one in parts:
        part = board.get(one.id)
        record = board.get(part.merged_into or "") if part is not None else None
        if part is not None and record is not None and record.status in LIVE:
            yield part.with_(status=Status.ACTIVE)


def profile_of(
    state: UserState, dimensions: Dimensions, rules: Rules, subject: str = USER
) -> dict[str, dict[str, Slot]]:
    """The user model as it has been taken up, every slot read from the memories behind it.

    Of users who were stored before slots were, all that stands counts as soon as it is enough.
    """
    known = taken_ids(state.settings.profile)
    standing = [memory for memory in state.standing() if supports(memory, None)]
    waiting = {memory.id for memory in standing if memory.id not in known and waits(memory)}
    left_out = waiting if len(waiting) < rules.profile.new_memories else set()
    behind = (memory for memory in standing if memory.id not in left_out)
    return build_profile(
        behind, dimensions, subject, rules.profile, state.rivals.values(), cap=rules.locks.cap
    )


def slots_about(
    state: UserState, found: Iterable[Memory], dimensions: Dimensions, rules: Rules, now: datetime
) -> dict[str, dict[str, Slot]]:
    """The slots of the user that ``found`` are members of, with what else has been taken up for them."""
    found = list(found)
    members = {one.id: one for one in found}
    known = taken_ids(state.settings.profile)
    for dimension in {one.dimension for one in found}:
        for one in state.slots.get(dimension, {}).values():
            if (one.id in known or not waits(one)) and one.created_at <= now:
                members[one.id] = one
    return build_profile(
        members.values(), dimensions, USER, rules.profile, state.rivals.values(), now, rules.locks.cap
    )
