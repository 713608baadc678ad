"""The instruments of the fault campaign: what they break, and that they would see it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.checks import Account, check_user
from tests.chaos.faults import FAULTS, plan
from tests.chaos.journal import Journal
from tests.chaos.proxy import Fate, FaultyProxy

USER = "chaos-t-1"


class Echo:
    """Answers every request with itself, and remembers what arrived."""

    def __init__(self) -> None:
        self.got = bytearray()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(4096):
                    self.got += data
                    connection.sendall(data)
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[FaultyProxy]:
    relay = FaultyProxy("127.0.0.1", echo.port)
    relay.start()
    yield relay
    relay.stop()


def ask(proxy: FaultyProxy, request: bytes, within_s: float = 2.0) -> bytes:
    """The answer; empty when the connection is cut."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=within_s) as connection:
        connection.sendall(request)
        try:
            return connection.recv(4096)
        except ConnectionResetError:
            return b""


def test_the_relay_relays(proxy: FaultyProxy) -> None:
    assert ask(proxy, b"PING") == b"PING"
    assert proxy.struck == 0


def test_half_a_request_arrives(proxy: FaultyProxy, echo: Echo) -> None:
    proxy.doom(b"COMMIT", Fate.CUT_MIDWAY)
    assert ask(proxy, b"PING") == b"PING"
    assert ask(proxy, b"COMMIT 1234567") == b""
    for _ in range(100):  # the other side reads in its own time
        if len(echo.got) > len(b"PING"):
            break
        time.sleep(0.01)
    assert bytes(echo.got) == b"PINGCOMMIT "
    assert ask(proxy, b"COMMIT again") == b"COMMIT again"
    assert proxy.struck == 1


def test_a_request_arrives_and_its_answer_is_lost(proxy: FaultyProxy, echo: Echo) -> None:
    proxy.doom(b"COMMIT", Fate.LOSE_REPLY)
    assert ask(proxy, b"COMMIT 1") == b""
    assert bytes(echo.got) == b"COMMIT 1"


def test_the_relay_stalls_and_refuses_until_it_spares(proxy: FaultyProxy) -> None:
    proxy.stall()
    with pytest.raises(TimeoutError):
        ask(proxy, b"PING", within_s=0.2)
    proxy.spare()
    assert ask(proxy, b"PING") == b"PING"
    proxy.refuse()
    assert ask(proxy, b"PING") == b""
    proxy.spare()
    assert ask(proxy, b"PING") == b"PING"


def test_cutting_ends_what_is_open(proxy: FaultyProxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=2) as connection:
        connection.sendall(b"PING")
        assert connection.recv(4096) == b"PING"
        assert proxy.cut() == 1
        with pytest.raises(ConnectionResetError):
            while connection.recv(4096) == b"":
                raise ConnectionResetError


@pytest.mark.parametrize("number", [24, 300])
def test_a_plan_has_what_was_asked_for(number: int) -> None:
    chosen = plan(number, 3)
    assert len(chosen) == number
    assert plan(number, 3) == chosen
    assert {fault.kind for fault in chosen} == {fault.kind for fault in FAULTS}
    if number >= 100:
        assert sum(fault.on_process for fault in chosen) >= 60


# The account: each promise, broken on purpose, is seen.


def a_journal() -> Journal:
    journal = Journal()
    journal.acknowledge(USER, "m-1", f"{USER}x1")
    journal.frozen[USER] = ("mem-f", "allergic to peanuts")
    journal.versions[USER] = 4
    return journal


def a_memory(memory_id: str, content: str, message_id: str, lock: str = "pending") -> dict[str, object]:
    return {"id": memory_id, "content": content, "lock": lock, "evidence": [{"message_id": message_id}]}


FROZEN = a_memory("mem-f", "allergic to peanuts", "m-0", "frozen")
SAW = a_memory("mem-1", f"a heron beside {USER}x1", "m-1")


def account(memories: list[dict[str, object]], turns: list[str], version: int, journal: Journal) -> list[str]:
    found = Account()
    exported = {"memories": memories, "turns": [{"message_id": one} for one in turns], "version": version}
    check_user(USER, exported, journal, found)
    return sorted(found.broken)


def test_a_kept_account_is_clean() -> None:
    assert account([FROZEN, SAW], ["m-1"], 4, a_journal()) == []


@pytest.mark.parametrize(
    ("memories", "turns", "version", "broken"),
    [
        ([FROZEN], ["m-1"], 4, ["acknowledged writes lost"]),
        ([FROZEN, SAW], [], 4, ["acknowledged writes lost"]),
        ([FROZEN, SAW], ["m-1", "m-1"], 4, ["applied twice"]),
        ([FROZEN, SAW, {**SAW, "id": "mem-2"}], ["m-1"], 4, ["applied twice"]),
        ([{**FROZEN, "content": "likes peanuts"}, SAW], ["m-1"], 4, ["frozen changed"]),
        ([{**FROZEN, "lock": "confirmed"}, SAW], ["m-1"], 4, ["frozen changed"]),
        ([SAW], ["m-1"], 4, ["frozen changed"]),
        ([FROZEN, SAW], ["m-1"], 3, ["version regressions"]),
        ([FROZEN, SAW, a_memory("mem-3", "beside chaos-t-2x9", "m-9")], ["m-1"], 4, ["cross-user"]),
    ],
)
def test_a_broken_promise_is_seen(
    memories: list[dict[str, object]], turns: list[str], version: int, broken: list[str]
) -> None:
    assert account(memories, turns, version, a_journal()) == broken


def test_what_was_erased_or_deleted_is_missed_by_nobody_and_seen_when_it_comes_back() -> None:
    journal = a_journal()
    journal.deleted.add((USER, "mem-1"))
    journal.released.add((USER, "m-1"))
    assert account([FROZEN], [], 4, journal) == []
    assert account([FROZEN, SAW], ["m-1"], 4, journal) == ["erased or deleted came back"]
    journal = a_journal()
    journal.rounds[USER] += 1
    journal.frozen.clear()
    assert account([], [], 4, journal) == []
    assert account([SAW], ["m-1"], 4, journal) == ["erased or deleted came back"]


def test_versions_and_foreign_words_are_seen_while_the_load_runs() -> None:
    journal = Journal()
    for version in (1, 3, 3, 2):
        journal.see_version(USER, version)
    journal.see_texts(USER, [f"beside {USER}x4.", "beside chaos-t-2x4."])
    assert journal.violations == [
        f"version regression: {USER} from 3 to 2",
        f"cross-user: {USER} was shown chaos-t-2x4",
    ]


async def test_the_relay_outlives_a_server_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    relay = FaultyProxy("127.0.0.1", port)
    await asyncio.to_thread(relay.start)
    assert await asyncio.to_thread(ask, relay, b"PING") == b""
    await asyncio.to_thread(relay.stop)
