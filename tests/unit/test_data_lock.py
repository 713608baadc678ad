"""One process for one data directory; the kernel lets go when the holder dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory.adapters.data_lock import LOCK_FILE, DataLock
from hermes_memory.errors import DataInUse, InvalidConfig

HOLD = """
import sys, time
from pathlib import Path
from hermes_memory.adapters.data_lock import DataLock
lock = DataLock(Path(sys.argv[1]))
lock.acquire({"what": "child"})
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "data"


def test_the_lock_makes_the_directory_and_names_the_holder(data: Path) -> None:
    lock = DataLock(data)
    assert lock.acquire({"what": "test"}) == {}
    assert json.loads((data / LOCK_FILE).read_text()) == {"pid": os.getpid(), "what": "test"}
    lock.write({"what": "test", "port": 8000})
    assert json.loads((data / LOCK_FILE).read_text())["port"] == 8000
    lock.release()


def test_a_second_holder_is_refused_and_told_by_whom(data: Path) -> None:
    first, second = DataLock(data), DataLock(data)
    first.acquire({"what": "first"})
    with pytest.raises(DataInUse) as refused:
        second.acquire({"what": "second"})
    assert refused.value.holder == f"process {os.getpid()}"
    assert json.loads((data / LOCK_FILE).read_text())["what"] == "first"  # the loser wrote nothing
    second.release()  # and lets go of nothing
    with pytest.raises(DataInUse):
        second.acquire({"what": "second"})
    first.release()
    second.acquire({"what": "second"})
    second.release()


def test_letting_go_twice_is_fine_and_leaves_no_name(data: Path) -> None:
    lock = DataLock(data)
    lock.acquire({"what": "test"})
    lock.release()
    lock.release()
    assert (data / LOCK_FILE).read_text() == ""
    lock.write({"what": "too late"})
    assert (data / LOCK_FILE).read_text() == ""


def test_who_dies_lets_go_and_is_remembered(data: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        lock = DataLock(data)
        with pytest.raises(DataInUse) as refused:
            lock.acquire({"what": "test"})
        assert refused.value.holder == f"process {child.pid}"
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    before = lock.acquire({"what": "test"})
    assert before == {"pid": child.pid, "what": "child"}  # so that what it left behind can be found
    lock.release()


@pytest.mark.parametrize("left", ["not json", "[1, 2]", '{"pid": ', "\x00\xff"])
def test_what_a_crash_left_in_the_file_does_not_matter(data: Path, left: str) -> None:
    data.mkdir(parents=True)
    (data / LOCK_FILE).write_bytes(left.encode("latin-1"))
    lock = DataLock(data)
    assert lock.acquire({"what": "test"}) == {}
    assert json.loads((data / LOCK_FILE).read_text())["what"] == "test"
    lock.release()


def test_a_place_that_cannot_be_used_is_a_matter_of_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidConfig):
            DataLock(place).acquire({"what": "test"})


def test_a_forked_child_does_not_keep_the_lock(data: Path) -> None:
    lock = DataLock(data)
    lock.acquire({"what": "test"})
    assert lock._file is not None
    childs = os.dup(lock._file.fileno())  # the same open file, as after a fork
    lock.release()
    other = DataLock(data)
    other.acquire({"what": "other"})
    other.release()
    os.close(childs)


def test_a_program_that_the_holder_starts_does_not_keep_the_lock(data: Path) -> None:
    lock = DataLock(data)
    lock.acquire({"what": "test"})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        other = DataLock(data)
        other.acquire({"what": "other"})
        other.release()
        assert child.stdin is not None
        child.stdin.close()
        child.wait(10)
