"""What is counted of a user on a day: names, and which of them each thing that happens counts for (SPEC §10).

Numbers only, never words. ``core.quality`` makes figures of the sums; docs/reference/quality.md lists the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from hermes_memory.core.board import Change, Op
from hermes_memory.core.candidate import Extraction
from hermes_memory.core.model import Memory, Role, Signal, Turn
from hermes_memory.core.reasons import Reason

Counts = Mapping[str, int]
Place = tuple[str, str]  # session id, message id


class Count(StrEnum):
    """The names, beside one ``refused_<reason>`` for each reason and one ``signal_<kind>`` for each signal."""

    RECALLS = "recalls"
    RECALLS_DISPUTED = "recalls_disputed"  # with both sides of a contradiction in the block
    SHOWN = "shown"  # ranked hits of all recalls
    WELCOME = "welcome"  # signals that a recalled memory helped
    UNWELCOME = "unwelcome"  # signals that it did not
    BATCHES = "batches"  # extractions that were settled
    TURNS = "turns"  # messages of the user among them
    TURNS_INFORMATIVE = "turns_informative"  # of these, what had something to remember
    TURNS_REMEMBERED = "turns_remembered"  # of these, what a memory rests on
    PROPOSED = "proposed"  # statements and affirmations that an extractor made
    UNGROUNDED = "ungrounded"  # of these, what the user never said
    KEPT = "kept"  # statements that were let in: new, or known already
    REPEATED = "repeated"  # of these, what was known already
    EVICTED = "evicted"
    MISSED = "missed"  # evicted ones that came back: recalled, or said again
    BORNE_OUT = "borne_out"  # times that a later turn or signal spoke for what is behind a slot
    OPPOSED = "opposed"  # times that one spoke against it


WELCOME = frozenset({Signal.LIKE, Signal.CLICK})
UNGROUNDED = frozenset(
    {Reason.UNGROUNDED, Reason.NOT_A_USER_TURN, Reason.NOT_SUPPORTED, Reason.UNKNOWN_MEMORY}
)
# Refused for one of these a turn might have been remembered all the same; for any other there was nothing to remember.
_LOST = {*UNGROUNDED, Reason.SCHEMA, Reason.TOO_LONG, Reason.LOW_VALUE, Reason.TOO_MANY}
_NO_REPETITION = {Reason.AFFIRMED, Reason.PANEL, Reason.VERIFIED}  # asked for, or an answer
_AGAINST = {Reason.WEAK_RIVAL, Reason.ASK_FIRST}  # of a conflict: what the night finds is no later turn
_BACK = {Reason.RECALLED, Reason.SAID_AGAIN}

TALLIED = (
    *(name.value for name in Count),
    *(f"refused_{reason.value}" for reason in Reason),
    *(f"signal_{signal.value}" for signal in Signal),
)


def of_change(op: str, reason: str, *, evicted: bool = False, slotted: bool = False) -> Counter[str]:
    """What one line of the audit counts for.

    ``evicted``: it concerns what had gone for want of room; ``slotted``: what stood behind a slot of the user model.
    """
    names: list[str] = []
    if op in {Op.ADDED, Op.RIVAL}:
        names = [Count.KEPT]
    elif op == Op.REINFORCED:
        names = [Count.KEPT, Count.REPEATED] if reason not in _NO_REPETITION else []
        names += [Count.BORNE_OUT] if slotted else []
    elif op == Op.REFUSED:
        names = [f"refused_{reason}", *([Count.OPPOSED] if slotted else [])]
    elif op == Op.EVICTED:
        names = [Count.EVICTED]
    elif op == Op.REACTIVATED and reason in _BACK and evicted:
        names = [Count.MISSED]
    elif slotted and (op == Op.SUPERSEDED or (op == Op.CONFLICT and reason in _AGAINST)):
        names = [Count.OPPOSED]
    return Counter(str(name) for name in names)


def of_recall(shown: int, *, disputed: bool) -> Counter[str]:
    """What one recall counts for."""
    return _only({Count.RECALLS: 1, Count.SHOWN: shown, Count.RECALLS_DISPUTED: int(disputed)})


def of_signal(signal: Signal, memory: Memory, *, slotted: bool) -> Counter[str]:
    """What a signal about one memory counts for.

    Of a negative memory the sides change: who comes back to what they had turned down speaks against it, and who
    turns it down again bears it out (S2 §4.4). To be ignored is unwelcome, but says nothing about the user.
    """
    helped = (signal in WELCOME) != memory.negative
    counts = {Count.WELCOME if helped else Count.UNWELCOME: 1, f"signal_{signal}": 1}
    if slotted and signal is not Signal.IGNORE:
        counts[Count.BORNE_OUT if helped else Count.OPPOSED] = 1
    return _only(counts)


def of_settlement(
    extraction: Extraction, turns: Iterable[Turn], changes: Iterable[Change], changed: Iterable[Memory]
) -> Counter[str]:
    """What an extraction of ``turns`` counts for, beside its changes one by one.

    A turn is informative unless something in it was refused only because there was nothing to remember.
    """
    refused: dict[str | None, list[Reason]] = {}
    for change in changes:
        if change.op is Op.REFUSED:
            refused.setdefault(change.message_id, []).append(change.reason)
    said = [turn for turn in turns if turn.role is Role.USER]
    places = set(_places(changed))
    remembered = [turn for turn in said if (turn.session_id, turn.message_id) in places]
    missed = [turn for turn in said if turn not in remembered and not _idle(refused.get(turn.message_id, ()))]
    told = sum(one.reason in UNGROUNDED for one in extraction.refusals)  # the extractor looked itself
    counts: dict[str, int] = {
        Count.BATCHES: 1,
        Count.TURNS: len(said),
        Count.TURNS_INFORMATIVE: len(remembered) + len(missed),
        Count.TURNS_REMEMBERED: len(remembered),
        Count.PROPOSED: len(extraction.candidates) + len(extraction.affirmations) + told,
        Count.UNGROUNDED: sum(reason in UNGROUNDED for reasons in refused.values() for reason in reasons),
    }
    return _only(counts)


def _idle(reasons: Collection[Reason]) -> bool:
    return bool(reasons) and not any(reason in _LOST for reason in reasons)


def summed(tallies: Iterable[Counts]) -> Counter[str]:
    """All counts together."""
    total: Counter[str] = Counter()
    for tally in tallies:
        total.update(tally)
    return total


def _places(memories: Iterable[Memory]) -> Iterable[Place]:
    for memory in memories:
        yield from ((piece.session_id, piece.message_id) for piece in memory.evidence)
        yield from ((one.session_id, one.message_id) for one in memory.confirmations)


def _only(counts: Mapping[str, int]) -> Counter[str]:
    return Counter({str(name): number for name, number in counts.items() if number})
