"""The night of one user (SPEC §9): named steps, one after the other, each of them one decision.

The runtime runs each step as one or more commits of its own, so that other commands may come between; a decision
with no step named runs them all. Why they come in this order is told in docs/explanation/night.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta, tzinfo
from typing import Any

from hermes_memory.app.commands import Maintain
from hermes_memory.app.confirming import close_questions
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.inspecting import inspect_conflicts
from hermes_memory.app.records import profile_record
from hermes_memory.app.state import UserState
from hermes_memory.core import nightly
from hermes_memory.core.behaviour import behaviour
from hermes_memory.core.candidate import SAID
from hermes_memory.core.days import LocalDay
from hermes_memory.core.life import MANY, age
from hermes_memory.core.merging import DigestRules, compress, digest_events
from hermes_memory.core.model import Tier
from hermes_memory.core.rules import Rules
from hermes_memory.errors import InvalidInput

PARTS = 8  # changes that a merge makes, about


@dataclass(slots=True)
class Night:
    """One decision of a night: the draft, the user's day, and how many changes it may make."""

    draft: Draft
    today: LocalDay
    most: int
    expired: int = 0
    slots: int = 0
    step_of: list[str] = field(default_factory=list)  # which step made each change, in their order

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        return self.draft.desk.policy.rules


Step = Callable[[Night], bool]  # whether more of it is left to do


def maintain(state: UserState, command: Maintain, desk: Desk) -> Decision:
    """What the step, or every step, does as of ``command.now`` but never of the future.

    ``desk.prepared`` is the user's time zone, UTC where none is known. All that is decided follows from the state
    and the user's day: a second time on that day changes nothing.

    Raises InvalidInput for a step that nobody knows.
    """
    if command.step is not None and command.step not in STEPS:
        raise InvalidInput("step", "is none of the night's")
    zone = desk.prepared if isinstance(desk.prepared, tzinfo) else UTC
    today = LocalDay.of(min(command.now, desk.now), zone)
    draft = Draft(state, replace(desk, actor="nightly", seed=f"night:{today.day.isoformat()}"))
    draft.board.now = today.begins
    night = Night(draft, today, MANY if command.step is None else desk.policy.rules.night.portion)
    more = False
    for name in STEPS if command.step is None else (command.step,):
        more = STEPS[name](night)
        draft.tidy()
        night.slots += draft.take_up()
        night.step_of += [name] * (len(draft.board.changes) - len(night.step_of))
    result = _answer(night, more)
    changed = draft.board.changed or draft.board.deleted or draft.settings or draft.tally_from
    return draft.decide(result) if changed else Decision(None, result)


def _answer(night: Night, more: bool) -> dict[str, Any]:
    records = night.draft.records()
    changes = [{**record, "step": step} for record, step in zip(records, night.step_of, strict=True)]
    counts = {name: night.step_of.count(name) for name in dict.fromkeys(night.step_of)}
    return {
        "changes": changes, "expired_requests": night.expired, "steps": counts, "profile_slots": night.slots,
        "more": more,
    }  # fmt: skip


def joined(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The answers of a night's decisions as one."""
    steps: dict[str, int] = dict.fromkeys(STEPS, 0)
    for answer in answers:
        for name, count in answer["steps"].items():
            steps[name] += count
    return {
        "changes": [change for answer in answers for change in answer["changes"]],
        "expired_requests": sum(answer["expired_requests"] for answer in answers),
        "steps": steps,
        "profile_slots": sum(answer["profile_slots"] for answer in answers),
    }


def _cool_down(night: Night) -> bool:
    draft = night.draft
    scenes = {session.id: session.scene for session in draft.state.sessions.values()}
    return nightly.cool_down(draft.board, night.rules.life, draft.desk.policy.dimensions, scenes, night.most)


def _promote(night: Night) -> bool:
    return nightly.rise(night.draft.board, night.rules, night.most)


def _move_up(night: Night) -> bool:
    draft = night.draft
    return nightly.move_up(draft.board, draft.open_sessions(), draft.state.sessions, night.most)


def _age(night: Night) -> bool:
    return age(night.draft.board, night.rules.life, night.today, night.most)


def _stale_pending(night: Night) -> bool:
    days = night.rules.night.stale_pending_days
    return nightly.clear_pending(night.draft.board, days, night.today, night.most)


def _conflicts(night: Night) -> bool:
    """What leaves a merged record because it is disputed has not aged in there: it does so now."""
    more = inspect_conflicts(night.draft, night.most)
    age(night.draft.board, night.rules.life, night.today)
    nightly.clear_pending(night.draft.board, night.rules.night.stale_pending_days, night.today, MANY)
    return more


def _digest(night: Night) -> bool:
    draft, rules = night.draft, night.rules.night
    before = night.today.day - timedelta(days=rules.digest_days)
    which = DigestRules(before, rules.digest_least, SAID)
    made, more = digest_events(
        draft.board, which, night.today, draft.desk.made_by, draft.vector_of, night.most
    )
    draft.vectors |= made
    return more


def _merge(night: Night) -> bool:
    """Merge topics where a tier is nearly full, so that a conversation need not (SPEC §4.2, S2 §2.3)."""
    draft, capacity = night.draft, night.rules.capacity
    left = max(1, night.most // PARTS)
    for tier in (Tier.WORKING, Tier.LONGTERM):
        room = int(capacity.of(tier) * night.rules.night.merge_share)
        while left > 0:
            seed = draft.desk.made_by
            made = compress(draft.board, tier, capacity, seed, draft.vector_of, room, left)
            if not made:
                break
            draft.vectors |= made
            left -= len(made)
    return left <= 0


def _questions(night: Night) -> bool:
    night.expired += close_questions(night.draft)
    return False


def _behaviour(night: Night) -> bool:
    """Habits are counted from conversations; of a user who has paused nothing new is learnt."""
    draft = night.draft
    settings = draft.current_settings()
    if settings.paused:
        return False
    slots = behaviour(
        draft.state.sessions.values(), draft.board.by_id(), draft.desk.policy.dimensions, night.today.zone,
        night.rules.night.active_least,
    )  # fmt: skip
    counted = profile_record({"behavior": slots})["behavior"]
    before = settings.behavior
    if counted != dict(before):
        draft.change_settings(behavior=counted)
        night.slots += sum(before.get(name) != counted.get(name) for name in {*before, *counted})
    return False


def _profile(night: Night) -> bool:
    """What waited for the night is taken up into the slots of the user model (SPEC §8, S0 §4.1)."""
    night.slots += night.draft.take_up(everything=True)
    return False


def _tally(night: Night) -> bool:
    """Counts of long ago are forgotten; days of the tally are UTC's."""
    first = (night.today.begins.date() - timedelta(days=night.rules.night.tally_days)).isoformat()
    if any(day < first for day in night.draft.state.tally):
        night.draft.tally_from = first
    return False


STEPS: Mapping[str, Step] = {
    "age": _age,
    "stale_pending": _stale_pending,
    "cooldown": _cool_down,
    "conflicts": _conflicts,
    "promote": _promote,
    "tiers": _move_up,
    "digest": _digest,
    "merge": _merge,
    "questions": _questions,
    "behaviour": _behaviour,
    "profile": _profile,
    "tally": _tally,
}
