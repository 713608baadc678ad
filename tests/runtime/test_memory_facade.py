"""``Memory``: the whole library behind synchronous calls, in a directory, without Ray and without a model."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory import Memory
from hermes_memory.app.commands import Export, SetPaused
from hermes_memory.errors import (
    DataInUse,
    EmbedderMismatch,
    InvalidConfig,
    InvalidId,
    InvalidInput,
    MessageIdReused,
    NotFound,
    SessionOwned,
)
from tests.runtime.local_app import WITHOUT_MODEL

PEANUTS = "I'm allergic to peanuts."


def opened(data: Path, **more: Any) -> Memory:
    return Memory.open(data, **WITHOUT_MODEL, **more)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path) as made:
        yield made


def ended(before: set[threading.Thread]) -> None:
    """Every thread that was started since has ended, or is about to."""
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive(), thread.name


def test_remember_recall_why_forget(memory: Memory) -> None:
    job = memory.remember("ana", PEANUTS, message_id="m-1")
    assert (job["status"], [change["op"] for change in job["changes"]]) == ("done", ["added", "frozen"])
    (record,) = memory.memories("ana")
    answer = memory.recall("ana", "a recipe for cookies")
    assert "peanuts" in answer["context"]
    assert [shown["id"] for shown in answer["memories"]] == [record["id"]]
    (piece,) = memory.why("ana", record["id"])
    assert (piece["quote"] in PEANUTS, piece["message_id"]) == (True, "m-1")
    receipt = memory.forget("ana", record["id"])
    assert (receipt["erased"]["memories"], receipt["remaining"]) == (1, 0)
    assert memory.memories("ana") == []
    assert memory.recall("ana", "a recipe for cookies")["context"] == ""
    with pytest.raises(NotFound):
        memory.why("ana", record["id"])
    with pytest.raises(NotFound):
        memory.forget("ana", record["id"])


def test_forgetting_a_user_takes_everything(memory: Memory) -> None:
    memory.remember("ana", PEANUTS, session="s-1", message_id="m-1")
    memory.remember("ben", "I have a cat.", session="s-2")
    receipt = memory.forget("ana")
    assert (receipt["erased"]["memories"], receipt["remaining"]) == (1, 0)
    exported = memory.ask("ana", Export())
    assert not any(exported[name] for name in ("memories", "turns", "sessions", "audit", "confirmations"))
    assert len(memory.memories("ben")) == 1
    assert memory.forget("nobody")["remaining"] == 0
    with pytest.raises(NotFound):  # a late retry revives nobody
        memory.remember("ana", PEANUTS, session="s-1", message_id="m-1")
    assert memory.memories("ana") == []
    memory.remember("ana", PEANUTS, session="s-3", message_id="m-2")
    assert len(memory.memories("ana")) == 1


def test_what_was_remembered_is_there_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember("ana", PEANUTS)
        before = memory.memories("ana")
    with opened(tmp_path) as memory:
        assert memory.memories("ana") == before
        assert "peanuts" in memory.recall("ana", "cookies")["context"]


def test_one_at_a_time_for_each_directory(tmp_path: Path) -> None:
    with opened(tmp_path / "one"):
        with pytest.raises(DataInUse):
            opened(tmp_path / "one")
        opened(tmp_path / "two").close()
    opened(tmp_path / "one").close()


def test_an_open_that_fails_lets_go_of_the_directory(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    opened(tmp_path).close()
    wrong: list[dict[str, Any]] = [
        {"actors": {"hosts": "many"}},
        {"nonsense": {}},
        {"ledger": {"kind": "stone"}},
    ]
    for broken in wrong:
        with pytest.raises(InvalidConfig):
            Memory.open(tmp_path, **{**WITHOUT_MODEL, **broken})
    with pytest.raises(EmbedderMismatch):
        Memory.open(tmp_path)  # by default another model
    ended(before)
    opened(tmp_path).close()


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    memory = opened(tmp_path)
    memory.remember("ana", PEANUTS)
    memory.close()
    memory.close()
    ended(before)
    with pytest.raises(InvalidInput):
        memory.remember("ana", "x")
    with pytest.raises(InvalidInput):
        memory.recall("ana", "x")
    with pytest.raises(InvalidInput):
        memory.forget("ana")


def test_an_error_inside_the_context_closes_it_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), opened(tmp_path):
        raise ZeroDivisionError
    opened(tmp_path).close()


def test_the_same_message_again_is_no_second_memory(memory: Memory) -> None:
    first = memory.remember("ana", PEANUTS, message_id="m-1")
    again = memory.remember("ana", PEANUTS, message_id="m-1")
    assert again["job_id"] == first["job_id"]
    assert len(memory.memories("ana")) == 1
    with pytest.raises(MessageIdReused):
        memory.remember("ana", "I have a cat.", message_id="m-1")


def test_bad_input_is_refused_before_anything_happens(memory: Memory) -> None:
    future = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(InvalidInput):
        memory.remember("ana", "  ")
    with pytest.raises(InvalidInput):
        memory.recall("ana", "\n")
    with pytest.raises(InvalidInput):
        memory.remember("ana", PEANUTS, said_at=future)
    for bad in ("", ".", "a\nb", "x" * 129, "\ud800"):
        with pytest.raises(InvalidId):
            memory.remember(bad, PEANUTS)
        with pytest.raises(InvalidId):
            memory.remember("ana", PEANUTS, session=bad)
    assert memory.memories("ana") == []


def test_a_session_is_one_user_s(memory: Memory) -> None:
    memory.remember("ana", PEANUTS, session="s-1")
    with pytest.raises(SessionOwned):
        memory.remember("ben", PEANUTS, session="s-1")
    with pytest.raises(SessionOwned):
        memory.recall("ben", "cookies", session="s-1")


def test_namespaces_do_not_see_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.remember("ana", PEANUTS)
    with opened(tmp_path, namespace="other") as memory:
        assert memory.memories("ana") == []
        memory.remember("ana", "I have a cat.")  # the same session id, in another namespace


def test_a_message_while_paused_is_a_job_that_says_so(memory: Memory) -> None:
    memory.execute("ana", SetPaused(paused=True))
    job = memory.remember("ana", PEANUTS)
    assert (job["status"], [change["reason"] for change in job["changes"]]) == ("done", ["paused"])
    assert memory.memories("ana") == []


def test_many_threads_may_share_one_memory(memory: Memory) -> None:
    texts = [f"I have a cat called Tom{number}." for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: memory.remember("ana", text, session=text[-6:-1]), texts))
        found = list(pool.map(lambda _: memory.recall("ana", "my cat"), range(8)))
    assert len({answer["version"] for answer in found}) == 1
    exported = memory.ask("ana", Export())
    assert sorted(turn["content"] for turn in exported["turns"]) == sorted(texts)


def test_more_than_a_page_of_memories(memory: Memory) -> None:
    for number in range(3):
        memory.remember("ana", f"I have a cat called Tom{number}.")
    records = memory.memories("ana")
    assert records
    assert [record["id"] for record in memory.memories("ana", status="active")] == [r["id"] for r in records]
    assert memory.memories("ana", lock="frozen") == []


WITHOUT_RAY = """
import sys
sys.modules["ray"] = None  # importing it raises
from pathlib import Path
from hermes_memory import Memory
settings = {"embedder": {"kind": "hash", "calibration": "hash"}, "ledger": {"synchronous": "NORMAL"}}
with Memory.open(Path(sys.argv[1]), **settings) as memory:
    memory.remember("ana", "I'm allergic to peanuts.")
    print(memory.recall("ana", "a recipe for cookies")["context"])
"""


def test_it_works_where_ray_is_not_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "peanuts" in done.stdout


def test_feedback_moves_rank(memory: Memory) -> None:  # SPEC §12
    memory.remember("ana", PEANUTS, session="s1")
    (record,) = memory.memories("ana")
    assert memory.feedback("ana", "s1", [record["id"]], "like") == {"counted": 1, "unknown": []}
    assert [one["signal"] for one in memory.memories("ana")[0]["feedback"]] == ["like"]
    with pytest.raises(NotFound):
        memory.feedback("ana", "s1", ["mem_0"], "click")
    with pytest.raises(SessionOwned):
        memory.feedback("bob", "s1", [record["id"]], "click")
    for ids, signal in (([], "like"), (["m"] * 51, "like"), ([record["id"]], "love")):
        with pytest.raises(InvalidInput):
            memory.feedback("ana", "s1", ids, signal)
    with pytest.raises(InvalidId):
        memory.feedback("ana", "", [record["id"]], "like")
