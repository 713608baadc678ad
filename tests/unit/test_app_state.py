"""The aggregate mirrors what was committed, and nothing else (ARCHITECTURE §2)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.app.commands import Command, Delete, EndSession
from hermes_memory.app.handlers import HANDLERS
from hermes_memory.app.records import session_record, turn_record
from hermes_memory.core.board import Board, Op
from hermes_memory.core.model import Status, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.ports.ledger import AccessCount
from tests.small_world import DAY, HOUR, NOW, a_memory, a_turn, say
from tests.tiny_ledger import Person


def test_every_command_but_the_erasure_of_a_user_has_its_handler() -> None:
    assert {kind.__name__ for kind in Command.__subclasses__()} - {kind.__name__ for kind in HANDLERS} == {
        "EraseUser"
    }


def test_a_restart_gives_the_same_state() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"), say("我住在苏州", object="苏州"))
    person.tell(say("我住在杭州", object="杭州", at=NOW + HOUR))
    person.ingest(say("还没读", session="s2"))
    before = person.state
    person.restart()
    after = person.state
    assert after is not before
    for name in (
        "version",
        "generation",
        "settings",
        "memories",
        "live",
        "always",
        "rivals",
        "sessions",
        "turns",
        "jobs",
        "asked",
    ):
        assert getattr(after, name) == getattr(before, name), name
    assert sorted(after.shelf.vectors.ids) == sorted(before.shelf.vectors.ids)
    assert len(after.shelf.words) == len(before.shelf.words) == 2


def test_spec_3_4_what_is_not_folded_yet_and_the_window_of_an_open_conversation_are_kept() -> None:
    person = Person()
    for number in range(15):
        person.tell(say(f"第{number}句", importance=0.1, at=NOW + number * HOUR))
    assert [turn.index for turn in person.state.window("s1")] == list(range(5, 15))
    assert len(person.state.turns) == 15
    person.tell(say("第15句", importance=0.1, at=NOW + 15 * HOUR))
    assert [turn.index for turn in person.state.window("s1")] == list(range(6, 16))
    assert len(person.state.turns) == 10
    person.act(EndSession(session_id="s1"))
    assert person.state.window("s1") == []


def test_a_turn_that_waits_is_kept_whatever_the_window() -> None:
    person = Person()
    person.ingest(*(say(f"第{number}句") for number in range(15)))
    person.act(EndSession(session_id="s1"))
    assert len(person.state.pending) == 15


def test_what_was_extracted_after_its_turn_went_is_ignored() -> None:
    person = Person()
    said = say("我住在苏州", object="苏州")
    person.ingest(said)
    command = person.settle_command(said)
    decision = person.decide(command)
    assert decision.commit is not None
    person.state.turns.clear()
    person.state.apply(decision.commit)
    assert person.state.pending == []
    assert len(person.state.memories) == 1


def test_accesses_are_counted_beside_and_written_later() -> None:
    person = Person()
    memory = person.remember(say("我养猫", dimension="pet", object="猫"))
    state = person.state
    state.note_access([memory.id, "gone"], NOW)
    state.note_access([memory.id], NOW + HOUR)
    counts = state.take_access()
    assert counts[memory.id] == AccessCount(2, NOW + HOUR)
    assert state.take_access() == {}
    state.count_access(counts)
    counted = person.memory(memory.id)
    assert (counted.access_count, counted.last_access_at, counted.version) == (2, NOW + HOUR, memory.version)
    assert memory.id in state.shelf.vectors


def test_counts_that_could_not_be_written_wait() -> None:
    person = Person()
    person.state.note_access(["a"], NOW)
    counts = person.state.take_access()
    person.state.note_access(["a"], NOW + HOUR)
    person.state.put_back_access(counts)
    person.state.put_back_access({"b": AccessCount(1, NOW)})
    assert person.state.take_access() == {"a": AccessCount(2, NOW + HOUR), "b": AccessCount(1, NOW)}


def test_a_newer_state_inherits_what_only_the_memory_knows() -> None:
    person = Person()
    person.state.note_access(["a"], NOW)
    person.state.asked.add("s1")
    before = person.state
    person.restart()
    person.state.inherit(before)
    assert (person.state.asked, person.state.take_access()) == ({"s1"}, {"a": AccessCount(1, NOW)})
    person.ledger.generation += 1
    person.restart()
    person.state.inherit(before)
    assert person.state.asked == set()


def test_a_deleted_memory_is_out_of_every_shelf() -> None:
    person = Person()
    memory = person.remember(say("我对花生过敏", dimension="allergy", object="花生"))
    person.state.note_access([memory.id], NOW)
    size = person.state.cost_bytes()
    person.act(Delete(memory_id=memory.id))
    state = person.state
    shelves: list[Any] = [
        state.memories,
        state.live,
        state.always,
        state.rivals,
        state.access,
        state.shelf.vectors,
        state.shelf.words,
    ]
    assert all(memory.id not in shelf for shelf in shelves)
    assert state.cost_bytes() < size


# the board (SPEC §5, §6)


def test_spec_5_counters_make_no_new_version_and_statements_do() -> None:
    memory = a_memory(version=3)
    board = Board({memory.id: memory}, NOW)
    assert (
        board.put(memory.with_(contradictions=1, access_count=4, evidence=memory.evidence * 2)).version == 3
    )
    assert board.put(memory.with_(confidence=0.9)).version == 4
    assert board.put(board["mem-1"].with_(content="x")).version == 4  # one commit, one version
    assert [m.id for m in board.changed] == ["mem-1"]


def test_what_is_put_back_as_it_was_is_no_change() -> None:
    memory = a_memory()
    board = Board({memory.id: memory}, NOW)
    board.put(memory.with_(content="x"))
    board.put(memory)
    assert board.changed == ()


def test_what_was_deleted_is_gone_from_the_board() -> None:
    memory, new = a_memory(), a_memory(id="new")
    board = Board({memory.id: memory}, NOW)
    board.put(new)
    board.put(memory.with_(content="x"))
    for doomed in (memory, new):
        board.delete(doomed, Reason.ERASED)
    assert list(board) == []
    assert board.changed == ()
    assert "mem-1" not in board
    assert (board.get("mem-1"), board.get("never")) == (None, None)
    assert [change.op for change in board.changes] == [Op.ERASED, Op.ERASED]


@pytest.mark.parametrize("status", Status)
def test_spec_4_2_a_tier_counts_what_lives_in_it(status: Status) -> None:
    board = Board({"mem-1": a_memory(status=status)}, NOW)
    assert board.count(Tier.WORKING) == (status in {"active", "review"})
    assert board.count(Tier.CORE) == 0


def test_records_are_json_ready() -> None:
    assert turn_record(a_turn())["role"] == "user"
    person = Person()
    person.ingest(say("你好", at=NOW - DAY))
    assert session_record(person.state.sessions["s1"])["id"] == "s1"
