"""Callers find a user's host wherever it sits, try again by operation id, and do not pile up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actors import users as users_module
from actors.links import Link, Unreachable
from actors.placement import Dedicated, Pooled, Seat
from actors.users import CallRules, SeatedUsers
from hermes_memory.app.commands import SetConsent, Summarise
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import (
    Fenced,
    InvalidInput,
    LeaseLost,
    LedgerUnavailable,
    OutcomeUnknown,
    Overloaded,
)
from hermes_memory.ports.ledger import HostPool
from hermes_memory.runtime.seating import Moved

RULES = CallRules(call_timeout_s=0.2, deadline_s=0.6, max_in_flight=4)
ONE, TWO = HostPool(1, 1), HostPool(2, 2)
KEYS = [UserKey("app", f"user {number}") for number in range(20)]
GOES = next(key for key in KEYS if Pooled(TWO).seat_of(key).name == "hermes-host-1")
WRITE = SetConsent(cohort=True)

Answer = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_module, "RETRY_S", 0.001)


def at(name: str) -> dict[str, Any]:
    return {"at": name}


class Hosts:
    """Hosts that do in turn what a test says; then they answer their name."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.calls: list[tuple[Any, ...]] = []
        self.connected: list[str] = []
        self.let = asyncio.Event()
        self.let.set()

    async def connect(self, seat: Seat) -> Link:
        self.connected.append(seat.name)
        await asyncio.sleep(0)
        return _Link(self, seat.name)


class _Link:
    def __init__(self, hosts: Hosts, name: str) -> None:
        self.hosts, self.name = hosts, name

    async def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        self.hosts.calls.append((self.name, method, *arguments))
        assert timeout_s > 0
        await self.hosts.let.wait()
        step = self.hosts.script.pop(0) if self.hosts.script else at(self.name)
        if isinstance(step, Exception):
            raise step
        return step


def users(hosts: Hosts, pool: HostPool = ONE, look: Any = None, **rules: Any) -> SeatedUsers:
    return SeatedUsers(Pooled(pool), hosts.connect, replace(RULES, **rules), look)


async def test_a_caller_with_an_old_picture_corrects_itself_by_the_refusal() -> None:
    hosts = Hosts(Moved(2, 2))
    reached = users(hosts)
    assert await reached.execute(GOES, WRITE, "op") == at("hermes-host-1")
    assert [(call[0], call[-1]) for call in hosts.calls] == [
        ("hermes-host-0", False),
        ("hermes-host-1", False),
    ]
    assert reached.pool == TWO
    await reached.execute(GOES, WRITE, "op-2")
    assert hosts.calls[-1][0] == "hermes-host-1"


async def test_a_refusal_that_tells_nothing_new_is_asked_again_until_the_deadline() -> None:
    hosts = Hosts(*[Moved(1, 1)] * 10_000)
    with pytest.raises(OutcomeUnknown):
        await users(hosts).ask(GOES, Summarise())
    assert 1 < len(hosts.calls) < 1_000


@pytest.mark.parametrize(
    "lost",
    [Unreachable("h", True), Unreachable("h", False), Fenced(1, 2), LeaseLost()],
    ids=["silent", "gone", "fenced", "lease"],
)
async def test_what_is_lost_is_repeated_with_the_same_operation_and_says_so(lost: Exception) -> None:
    hosts = Hosts(lost, lost)
    assert await users(hosts).execute(GOES, WRITE, "op") == at("hermes-host-0")
    assert [call[-2:] for call in hosts.calls] == [("op", False), ("op", True), ("op", True)]


async def test_a_host_that_is_gone_is_looked_for_anew_a_silent_one_is_not() -> None:
    hosts = Hosts(Unreachable("h", False), Unreachable("h", True))
    await users(hosts).ask(GOES, Summarise())
    assert hosts.connected == ["hermes-host-0"] * 2


async def test_when_a_host_is_gone_the_ledger_says_whether_the_pool_has_changed() -> None:
    hosts = Hosts(Unreachable("h", False))

    async def look() -> HostPool:
        return TWO

    assert await users(hosts, look=look).ask(GOES, Summarise()) == at("hermes-host-1")
    assert hosts.connected == ["hermes-host-0", "hermes-host-1"], "the one that is gone is not made again"


async def test_without_the_ledger_it_is_tried_again_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async def look() -> HostPool:
        raise LedgerUnavailable("away")

    assert await users(Hosts(LeaseLost()), look=look).ask(GOES, Summarise()) == at("hermes-host-0")
    assert "could not be read" in caplog.text


async def test_the_domain_s_errors_are_nobody_s_to_repeat() -> None:
    hosts = Hosts(InvalidInput("x", "is wrong"))
    with pytest.raises(InvalidInput):
        await users(hosts).execute(GOES, WRITE, "op")
    assert len(hosts.calls) == 1


async def test_no_answer_until_the_deadline_is_an_unknown_outcome() -> None:
    hosts = Hosts(*[Unreachable("h", True)] * 10_000)
    with pytest.raises(OutcomeUnknown):
        await users(hosts).execute(GOES, WRITE, "op")


async def test_a_stuck_host_does_not_pile_up_calls_and_the_others_are_not_touched() -> None:
    """The 429 says when to come again; reads are refused later."""
    hosts = Hosts()
    reached = users(hosts, TWO, call_timeout_s=10.0, deadline_s=10.0)
    stays = next(key for key in KEYS if Pooled(TWO).seat_of(key).name == "hermes-host-0")
    hosts.let.clear()
    writes = [asyncio.create_task(reached.execute(GOES, WRITE, f"op-{n}")) for n in range(200)]
    reads = [asyncio.create_task(reached.ask(GOES, Summarise())) for _ in range(200)]
    async with asyncio.timeout(10.0):
        while len(hosts.calls) < 6 or sum(not task.done() for task in [*writes, *reads]) > 6:  # noqa: ASYNC110  # nothing tells when the last was refused
            await asyncio.sleep(0)
    assert sum(not task.done() for task in writes) == 4
    assert sum(not task.done() for task in reads) == 2
    assert len(hosts.calls) == 6, "no more than that was ever sent"
    for task in [*writes, *reads]:
        if task.done():
            assert isinstance(task.exception(), Overloaded)
    other = asyncio.create_task(reached.execute(stays, WRITE, "op"))
    await asyncio.sleep(0.01)
    assert not other.done()
    hosts.let.set()
    assert await other == at("hermes-host-0")
    await asyncio.gather(*writes, *reads, return_exceptions=True)
    assert await reached.execute(GOES, WRITE, "later") == at("hermes-host-1")


async def test_many_who_look_for_the_same_host_find_it_once() -> None:
    hosts = Hosts()
    reached = users(hosts, max_in_flight=100)
    await asyncio.gather(*(reached.ask(key, Summarise()) for key in KEYS))
    assert hosts.connected == ["hermes-host-0"]


# waiting


async def test_who_waits_for_a_job_follows_the_user_and_survives_losses() -> None:
    record = {"status": "done"}
    hosts = Hosts(Unreachable("h", False), Moved(2, 2), Moved(2, 2), LeaseLost(), record)
    reached = users(hosts)
    assert await reached.wait(GOES, "job", 5) == record
    names = [call[0] for call in hosts.calls]
    assert names == ["hermes-host-0"] * 2 + ["hermes-host-1"] * 3


async def test_waiting_ends_with_its_time() -> None:
    hosts = Hosts(*[LeaseLost()] * 10_000)
    assert await users(hosts).wait(GOES, "job", 0.05) is None


# telling


async def test_hosts_of_one_user_are_known_once_they_were_called() -> None:
    hosts = Hosts()
    reached = SeatedUsers(Dedicated(HostPool()), hosts.connect, RULES)
    assert reached.seats() == []
    await reached.wake(GOES)
    assert [seat.user for seat in reached.seats()] == [GOES]
    assert hosts.calls == [(reached.seats()[0].name, "wake", GOES)]
