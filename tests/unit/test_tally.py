"""What each thing that happens counts for (SPEC §10)."""

from __future__ import annotations

import pytest

from hermes_memory.core.board import Change, Op
from hermes_memory.core.candidate import Extraction, Refusal
from hermes_memory.core.model import Affirmed, Role, Signal
from hermes_memory.core.reasons import Reason
from hermes_memory.core.tally import of_change, of_recall, of_settlement, of_signal, summed
from hermes_memory.testing.builders import NOW, a_memory, a_turn, an_evidence


@pytest.mark.parametrize(
    ("op", "reason", "counts"),
    [
        (Op.ADDED, Reason.NEW, {"kept"}),
        (Op.RIVAL, Reason.WEAK_RIVAL, {"kept"}),
        (Op.REINFORCED, Reason.DUPLICATE, {"kept", "repeated", "borne_out"}),
        (Op.REINFORCED, Reason.AFFIRMED, {"borne_out"}),
        (Op.REINFORCED, Reason.PANEL, {"borne_out"}),
        (Op.REFUSED, Reason.FILLER, {"refused_filler", "opposed"}),
        (Op.CONFLICT, Reason.WEAK_RIVAL, {"opposed"}),
        (Op.CONFLICT, Reason.INSPECTED, set()),  # the night's own finding
        (Op.CONFLICT, Reason.CONTRADICTED_OFTEN, set()),  # the same contradiction again
        (Op.SUPERSEDED, Reason.CORRECTION, {"opposed"}),
        (Op.EVICTED, Reason.CAPACITY, {"evicted"}),
        (Op.REACTIVATED, Reason.RECALLED, {"missed"}),
        (Op.REACTIVATED, Reason.SAID_AGAIN, {"missed"}),
        (Op.REACTIVATED, Reason.UNMERGED, set()),
        (Op.FROZEN, Reason.IMMEDIATE, set()),
    ],
)
def test_a_change_counts_for(op: Op, reason: Reason, counts: set[str]) -> None:
    assert set(of_change(op, reason, evicted=True, slotted=True)) == counts
    assert set(of_change(op, reason)) == counts - {"borne_out", "opposed", "missed"}


def test_a_recall_counts_for() -> None:
    assert of_recall(3, disputed=True) == {"recalls": 1, "shown": 3, "recalls_disputed": 1}
    assert of_recall(0, disputed=False) == {"recalls": 1}


@pytest.mark.parametrize(
    ("signal", "plain", "negative"),
    [
        (Signal.LIKE, {"welcome", "borne_out"}, {"unwelcome", "opposed"}),
        (Signal.CLICK, {"welcome", "borne_out"}, {"unwelcome", "opposed"}),
        (Signal.DISLIKE, {"unwelcome", "opposed"}, {"welcome", "borne_out"}),
        (Signal.IGNORE, {"unwelcome"}, {"welcome"}),
    ],
)
def test_a_signal_counts_for(signal: Signal, plain: set[str], negative: set[str]) -> None:
    own = {f"signal_{signal}"}
    assert set(of_signal(signal, a_memory(), slotted=True)) == plain | own
    assert set(of_signal(signal, a_memory(negative=True), slotted=True)) == negative | own
    assert set(of_signal(signal, a_memory(), slotted=False)) == (plain | own) - {"borne_out", "opposed"}


def test_sums() -> None:
    assert summed([{"a": 1}, {"a": 2, "b": 1}]) == {"a": 3, "b": 1}


def refused(message_id: str | None, reason: Reason) -> Change:
    return Change(op=Op.REFUSED, reason=reason, message_id=message_id)


def test_of_the_turns_that_had_something_to_remember_those_that_memories_rest_on() -> None:  # S4 §4.3
    turns = [a_turn(message_id=f"m{number}", index=number) for number in range(6)]
    turns.append(a_turn(message_id="m6", index=6, role=Role.ASSISTANT))
    changes = [
        refused("m0", Reason.FILLER),  # said and confirmed all the same
        refused("m1", Reason.QUESTION),  # idle
        refused("m2", Reason.LOW_VALUE),  # missed
        refused("m3", Reason.FILLER), refused("m3", Reason.UNGROUNDED),  # missed
        refused(None, Reason.UNKNOWN_MEMORY),
        Change(op=Op.ADDED, reason=Reason.NEW, message_id="m4"),
    ]  # fmt: skip
    confirmed = Affirmed(session_id="s1", message_id="m0", at=NOW)
    kept = [
        a_memory(evidence=(an_evidence(message_id="m4"),), confirmations=(confirmed,)),
        a_memory(evidence=(an_evidence(message_id="m2", session_id="another"),)),
    ]
    told = (Refusal("m3", Reason.UNGROUNDED, "s1"), Refusal("m1", Reason.QUESTION, "s1"))
    extraction = Extraction(extractor="test-1", refusals=told)
    assert of_settlement(extraction, turns, changes, kept) == {
        "batches": 1, "turns": 6, "turns_informative": 5, "turns_remembered": 2, "proposed": 1, "ungrounded": 2,
    }  # fmt: skip
