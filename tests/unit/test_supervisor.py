"""The supervisor: as many hosts as the ledger says, all of them answering, whoever began a change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from actors.edition import UNKNOWN, Edition, edition_of
from actors.links import Unreachable
from actors.placement import Dedicated, Pooled, Seat, is_pooled
from actors.supervisor import Supervisor, WatchRules
from actors.users import CallRules, SeatedUsers
from hermes_memory.app.commands import Summarise
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import InvalidInput, LedgerUnavailable, StartupFailed
from hermes_memory.ports.ledger import HostPool
from tests.runtime.pool import LocalCrew

CALLS = CallRules(call_timeout_s=0.2, deadline_s=1.0, max_in_flight=100)
RULES = WatchRules(ping_s=0.02, stuck_s=10.0, start_s=60.0, retire_s=0.05, max_hosts=8)


class Ledger:
    """Only the pool."""

    def __init__(self) -> None:
        self.pool, self.away = HostPool(), False

    async def host_pool(self) -> HostPool:
        if self.away:
            raise LedgerUnavailable("away")
        return self.pool

    async def resize_host_pool(self, hosts: int) -> HostPool:
        if hosts != self.pool.hosts:
            self.pool = HostPool(hosts, self.pool.revision + 1)
        return self.pool


class Host:
    """What a supervisor asks of a host."""

    def __init__(self, seat: Seat, ledger: Ledger) -> None:
        self.seat, self.ledger = seat, ledger
        self.asked: list[str] = []
        self.stopped = False
        self.edition = UNKNOWN

    async def start(self) -> None:
        self.asked.append("start")

    async def ping(self) -> Edition:
        self.asked.append("ping")
        return self.edition

    async def stop(self) -> None:
        self.asked.append("stop")

    async def reseat(self) -> HostPool:
        self.asked.append("reseat")
        return await self.ledger.host_pool()

    async def retire(self) -> bool:
        pool = await self.ledger.host_pool()
        self.stopped = self.seat not in Pooled(pool).standing()
        return self.stopped

    async def ask(self, key: UserKey, query: Any) -> dict[str, Any]:
        return {"at": self.seat.name}


class Office:
    """Supervisors, as in several ingress replicas, over one crew and one ledger; time passes when told."""

    def __init__(self) -> None:
        self.ledger, self.now = Ledger(), 0.0
        self.edition = UNKNOWN  # of the hosts that are made from now on
        self.made: list[Host] = []
        self.crew = LocalCrew(self._make)

    def _make(self, seat: Seat) -> Host:
        self.made.append(Host(seat, self.ledger))
        self.made[-1].edition = self.edition
        return self.made[-1]

    def supervisor(self, edition: Edition = UNKNOWN, **rules: Any) -> tuple[Supervisor, SeatedUsers]:
        users = SeatedUsers(Pooled(HostPool()), self.crew.connect, CALLS, self.ledger.host_pool)
        ledger: Any = self.ledger
        changed = replace(RULES, **rules)
        return Supervisor(users, self.crew, ledger, changed, lambda: self.now, edition), users

    @property
    def there(self) -> set[str]:
        return {seat.name for seat in self.crew.hosts}


def named(*numbers: int) -> set[str]:
    return {f"hermes-host-{number}" for number in numbers}


@pytest.fixture
def office() -> Office:
    return Office()


async def test_the_configured_number_counts_only_until_the_ledger_has_one(office: Office) -> None:
    supervisor, _ = office.supervisor()
    assert await supervisor.settle(2) == HostPool(2, 1)
    await supervisor.scale(3)
    again, users = office.supervisor()
    assert await again.settle(2) == HostPool(3, 2)
    assert users.pool == again.pool == HostPool(3, 2)


async def test_a_round_makes_the_hosts_that_should_be_there(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(2)
    await supervisor.round()
    assert office.there == named(0, 1)
    office.crew.crash(Seat("hermes-host-0"))
    await supervisor.round()
    await supervisor.round()
    assert office.there == named(0, 1)
    assert office.crew.ended == []


async def test_scaling_starts_the_new_before_anybody_moves_and_tells_all(office: Office) -> None:
    supervisor, users = office.supervisor()
    await supervisor.settle(1)
    await supervisor.round()
    assert await supervisor.scale(3) == HostPool(3, 2)
    assert office.there == named(0, 1, 2)
    assert [host.asked[0] for host in office.made[1:]] == ["start", "start"]
    assert all(host.asked[-1] == "reseat" for host in office.made)
    assert users.pool.hosts == 3


async def test_scaling_down_puts_the_others_to_sleep_and_ends_them_for_good(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(4)
    await supervisor.round()
    await supervisor.scale(2)
    assert office.there == named(0, 1)
    assert sorted(office.crew.ended) == [("hermes-host-2", True), ("hermes-host-3", True)]
    assert {host.seat.name for host in office.made if host.stopped} == named(2, 3)


async def test_another_replica_learns_of_it_in_its_next_round(office: Office) -> None:
    first, _ = office.supervisor()
    second, users = office.supervisor()
    for supervisor in (first, second):
        await supervisor.settle(2)
        await supervisor.round()
    await first.scale(3)
    assert users.pool.hosts == 2
    await second.round()
    assert users.pool.hosts == 3
    assert office.crew.ended == []


async def test_what_one_began_and_did_not_end_another_ends(office: Office) -> None:
    """The one that changed the number died before it told anybody."""
    supervisor, _ = office.supervisor()
    await supervisor.settle(3)
    await supervisor.round()
    await office.ledger.resize_host_pool(2)
    await supervisor.round()
    assert office.there == named(0, 1)
    await office.ledger.resize_host_pool(4)
    await supervisor.round()
    await supervisor.round()  # the way to the one that was ended is looked for anew
    assert office.there == named(0, 1, 2, 3)


async def test_a_host_that_the_pool_has_a_place_for_again_does_not_agree_to_go(office: Office) -> None:
    supervisor, users = office.supervisor()
    await supervisor.settle(3)
    await supervisor.round()
    pool = await office.ledger.resize_host_pool(2)
    users.reseat(pool)
    await office.ledger.resize_host_pool(3)  # meanwhile, somewhere else
    await supervisor._retire()
    assert office.there == named(0, 1, 2)


@pytest.mark.parametrize("hosts", [0, -1, 9])
async def test_impossible_numbers_are_refused(office: Office, hosts: int) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(2)
    with pytest.raises(InvalidInput):
        await supervisor.scale(hosts)
    assert office.ledger.pool == HostPool(2, 1)


async def test_a_new_host_that_does_not_start_changes_nothing(office: Office) -> None:
    supervisor, _ = office.supervisor(start_s=0.02)
    await supervisor.settle(1)
    await supervisor.round()
    office.crew.suspend(Seat("hermes-host-1"))
    with pytest.raises(StartupFailed):
        await supervisor.scale(2)
    assert office.ledger.pool == HostPool(1, 1)
    office.now += 61  # it is left over, silent, and out of the pool
    await supervisor.round()
    office.now += 61
    await supervisor.round()
    assert office.there == named(0)


async def test_a_host_that_was_sent_away_comes_again(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(1)
    await supervisor.round()
    for hosts in (3, 1, 2, 1, 3):
        await supervisor.scale(hosts)
        assert office.there == named(*range(hosts))


async def test_a_new_host_that_ends_again_and_again_changes_nothing(office: Office) -> None:
    supervisor, _ = office.supervisor(start_s=0.02)
    await supervisor.settle(1)
    await supervisor.round()

    async def gone(seat: Seat) -> Any:
        office.now += 0.015
        raise Unreachable(seat.name, False)

    users = SeatedUsers(Pooled(office.ledger.pool), gone, CALLS)
    ledger: Any = office.ledger
    another = Supervisor(users, office.crew, ledger, replace(RULES, start_s=0.02), lambda: office.now)
    with pytest.raises(StartupFailed):
        await another.scale(2)
    assert office.ledger.pool == HostPool(1, 1)


async def test_a_host_that_cannot_be_told_does_not_keep_the_others_from_it(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(2)
    await supervisor.round()
    office.crew.suspend(Seat("hermes-host-0"))
    assert (await supervisor.scale(3)).hosts == 3
    assert "could not be told" in caplog.text
    assert office.made[1].asked[-1] == "reseat"


async def test_two_changes_at_once_are_made_one_after_the_other(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(1)
    await asyncio.gather(supervisor.scale(4), supervisor.scale(2))
    assert office.there == named(*range(office.ledger.pool.hosts))


# silence


async def test_a_silent_host_is_ended_after_its_time_and_comes_back(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, users = office.supervisor()
    await supervisor.settle(2)
    await supervisor.round()
    office.crew.suspend(Seat("hermes-host-1"))
    office.now = 30.0  # the supervisor was away itself: nobody asked the host meanwhile
    await supervisor.round()
    office.now = 39.9
    await supervisor.round()
    assert office.crew.ended == []
    office.now = 40.1
    await supervisor.round()
    assert office.crew.ended == [("hermes-host-1", False)]
    assert "has not answered for 10 s" in caplog.text
    office.now = 41.0
    await supervisor.round()
    assert office.there == named(0, 1)
    key = next(
        k for n in range(50) if Pooled(HostPool(2)).seat_of(k := UserKey("a", f"u{n}")).name[-1] == "1"
    )
    assert await users.ask(key, Summarise()) == {"at": "hermes-host-1"}
    assert len(office.crew.ended) == 1


async def test_a_host_that_starts_has_more_time(office: Office) -> None:
    office.crew.suspend(Seat("hermes-host-0"))
    supervisor, _ = office.supervisor()
    await supervisor.settle(1)
    for now in (0.0, 30.0, 59.0):
        office.now = now
        await supervisor.round()
        assert office.crew.ended == []
    office.now = 61.0
    await supervisor.round()
    assert office.crew.ended == [("hermes-host-0", False)]


async def test_a_host_that_ended_by_itself_is_not_ended_again(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(1)
    await supervisor.round()
    for _ in range(5):
        office.now += 9.0
        office.crew.crash(Seat("hermes-host-0"))
        await supervisor.round()
    assert office.crew.ended == []


async def test_without_the_ledger_the_silent_are_ended_and_nobody_is_sent_away(office: Office) -> None:
    supervisor, _ = office.supervisor()
    await supervisor.settle(3)
    await supervisor.round()
    office.ledger.pool, office.ledger.away = HostPool(1, 2), True
    office.crew.suspend(Seat("hermes-host-2"))
    for office.now in (0.0, 10.1):
        with pytest.raises(LedgerUnavailable):
            await supervisor.round()
    assert office.crew.ended == [("hermes-host-2", False)]
    assert office.there == named(0, 1, 2)


async def test_a_host_that_cannot_read_the_ledger_is_sent_away_later(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor, users = office.supervisor()
    await supervisor.settle(2)
    await supervisor.round()
    users.reseat(await office.ledger.resize_host_pool(1))
    office.ledger.away = True
    await supervisor._retire()
    assert office.there == named(0, 1)
    assert "could not be sent away yet" in caplog.text
    office.ledger.away = False
    await supervisor.round()
    assert office.there == named(0)


async def test_a_host_that_takes_long_to_go_is_not_ended_while_it_lives(office: Office) -> None:
    supervisor, users = office.supervisor()
    await supervisor.settle(2)
    await supervisor.round()
    host, asleep = office.made[1], asyncio.Event()

    async def slow() -> bool:
        await asleep.wait()
        return True

    host.retire = slow  # type: ignore[method-assign]
    users.reseat(await office.ledger.resize_host_pool(1))
    for _ in range(3):
        office.now += 9.0
        await supervisor.round()
    assert office.there == named(0, 1)
    asleep.set()
    await supervisor.round()
    assert office.crew.ended == [("hermes-host-1", True)]


async def test_hosts_of_one_user_are_watched_once_they_were_called(office: Office) -> None:
    users = SeatedUsers(Dedicated(HostPool()), office.crew.connect, CALLS)
    ledger: Any = office.ledger
    supervisor = Supervisor(users, office.crew, ledger, RULES, lambda: office.now)
    seat = Dedicated(HostPool()).seat_of(UserKey("app", "ann"))
    await users.ask(UserKey("app", "ann"), Summarise())
    await supervisor.round()
    office.crew.suspend(seat)
    for office.now in (0.0, 10.1):
        await supervisor.round()
    assert office.crew.ended == [(seat.name, False)]
    assert not is_pooled(seat.name)


# another deployment

OLD, NEW = Edition("old", 1), Edition("new", 2)


@pytest.mark.parametrize(
    ("mine", "its", "goes"),
    [(NEW, OLD, True), (OLD, NEW, False), (Edition("new", 3), NEW, False), (NEW, NEW, False)],
)
def test_the_later_of_two_deployments_counts_if_they_differ(mine: Edition, its: Edition, goes: bool) -> None:
    assert mine.replaces(its) is goes


def test_an_edition_tells_configurations_and_data_apart() -> None:
    first = edition_of({"actors": {"hosts": 2}, "serve": {}}, "/data", 1)
    assert edition_of({"serve": {}, "actors": {"hosts": 2}}, "/data", 2).digest == first.digest
    assert edition_of({"actors": {"hosts": 3}, "serve": {}}, "/data", 1).digest != first.digest
    assert edition_of({"actors": {"hosts": 2}, "serve": {}}, "/other", 1).digest != first.digest


async def _of_an_earlier_deployment(office: Office, hosts: int) -> tuple[Supervisor, Supervisor]:
    office.edition = OLD
    before, _ = office.supervisor(OLD)
    await before.settle(hosts)
    await before.round()
    office.edition = NEW
    after, _ = office.supervisor(NEW)
    await after.settle(hosts)
    return before, after


async def test_hosts_of_an_earlier_deployment_are_put_to_sleep_and_replaced_one_by_one(
    office: Office,
) -> None:
    _, after = await _of_an_earlier_deployment(office, 2)
    await after.round()
    assert office.crew.ended == [("hermes-host-0", True)]
    assert [host.asked[-1:] for host in office.made] == [["stop"], ["ping"], []], "the third is the new one"
    for _ in range(6):
        await after.round()
    assert [edition for edition, _ in office.crew.ended] == ["hermes-host-0", "hermes-host-1"]
    assert office.there == named(0, 1)
    assert {host.edition for host in office.crew.hosts.values()} == {NEW}


async def test_no_host_is_replaced_while_another_one_is_away(office: Office) -> None:
    _, after = await _of_an_earlier_deployment(office, 2)
    office.crew.suspend(Seat("hermes-host-1"))
    await after.round()
    assert office.crew.ended == []


async def test_a_replica_of_the_earlier_deployment_leaves_the_new_hosts_alone(office: Office) -> None:
    before, after = await _of_an_earlier_deployment(office, 1)
    for _ in range(3):
        await after.round()
    for _ in range(3):
        await before.round()
    assert office.crew.ended == [("hermes-host-0", True)]
    assert {host.edition for host in office.crew.hosts.values()} == {NEW}


async def test_what_another_replica_has_replaced_is_not_ended(office: Office) -> None:
    _, after = await _of_an_earlier_deployment(office, 1)
    seat = Seat("hermes-host-0")

    async def replaced() -> None:
        await office.crew.end(seat, for_good=True)

    office.made[0].stop = replaced  # type: ignore[method-assign]
    for _ in range(3):
        await after.round()
    assert office.crew.ended == [(seat.name, True)]
    assert office.crew.hosts[seat].edition == NEW


async def test_a_host_that_cannot_be_put_to_sleep_is_replaced_all_the_same(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    _, after = await _of_an_earlier_deployment(office, 1)

    async def never() -> None:
        await asyncio.sleep(60)

    office.made[0].stop = never  # type: ignore[method-assign]
    await after.round()
    assert office.crew.ended == [("hermes-host-0", True)]
    assert "did not say that its users sleep" in caplog.text


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[None]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def test_it_goes_on_whatever_goes_wrong(
    office: Office, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, _ = office.supervisor(ping_s=0.001)
    office.ledger.away = True
    with caplog.at_level(logging.WARNING):
        async with running(supervisor):
            await _until(lambda: "failed: ledger_unavailable" in caplog.text)
            monkeypatch.setattr(office.crew, "pooled", lambda: 1 / 0)
            office.ledger.away = False
            await _until(lambda: "ZeroDivisionError" in caplog.text)
            monkeypatch.undo()
            await office.ledger.resize_host_pool(2)
            await _until(lambda: office.there == named(0, 1))
