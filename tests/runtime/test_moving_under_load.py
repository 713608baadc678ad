"""Users move between hosts while they are written to and read: nothing is lost, doubled, or goes back.

The hosts are those that Ray runs, on one SQLite ledger with a handle each; two ingress replicas call them, each with
a picture of the pool and a supervisor of its own. Only Ray is not there (tests/cluster/test_resharding.py has it).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from actors.host import UserActorHost
from actors.placement import Pooled, Seat
from actors.supervisor import Supervisor, WatchRules
from actors.users import CallRules, SeatedUsers
from hermes_memory.app.commands import Export, Incoming, Ingest, ListMemories, Summarise
from hermes_memory.app.users import operation_id_of
from hermes_memory.config import Settings, document_of, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.errors import HermesError
from hermes_memory.ports.ledger import HostPool, Ledger
from hermes_memory.wiring import build_distiller, build_embedder, build_ledger
from tests.runtime.local_app import WITHOUT_MODEL
from tests.runtime.pool import LocalCrew

USERS = [UserKey("app", f"user {number}") for number in range(6)]
SIZES = (2, 4, 3, 1)
CALLS = CallRules(call_timeout_s=2.0, deadline_s=20.0, probe_s=1.0, max_in_flight=64)
WATCH = WatchRules(ping_s=0.2, stuck_s=1.5, start_s=10.0, retire_s=5.0, max_hosts=8)
OVERRIDES: dict[str, Any] = {
    **WITHOUT_MODEL,
    "actors": {"lease_s": 5.0, "housekeeping_s": 0.5},
    "batch": {"delay_s": 0.02, "backoff_s": 0.02},
}


@dataclass
class Replica:
    """What one ingress has."""

    users: SeatedUsers
    supervisor: Supervisor


@dataclass
class Cluster:
    """Hosts and two replicas on one ledger."""

    crew: LocalCrew
    ledger: Ledger
    replicas: list[Replica] = field(default_factory=list)

    def kill(self, name: str) -> None:
        self.crew.crash(Seat(name))


def _killed(dead: list[UserActorHost], actor: UserActorHost) -> None:
    """As SIGKILL: what the host does by itself ends as it stands, nothing is written down."""
    dead.append(actor)
    host = actor._host
    tasks = [*host._loops, *([host._moving] if host._moving else []), *host._waking.values()]
    for awake in host._awake.values():
        tasks += [task for task in (awake.extraction._task, *awake.user._tasks) if task is not None]
    for task in tasks:
        task.cancel()


@cache
def _settings() -> tuple[Settings, Any, Any]:
    settings = load_settings(None, OVERRIDES)
    embedder = build_embedder(settings)
    return settings, embedder, build_distiller(settings, embedder)


@asynccontextmanager
async def a_cluster(data: Path) -> AsyncIterator[Cluster]:
    settings, embedder, distiller = await asyncio.to_thread(_settings)
    make = partial(UserActorHost, document=document_of(settings), data=str(data), distiller=distiller)
    dead: list[UserActorHost] = []
    crew, ledger = LocalCrew(make, partial(_killed, dead)), build_ledger(settings, data)
    await ledger.open(embedder.info)
    cluster = Cluster(crew, ledger)
    for _ in range(2):
        users = SeatedUsers(Pooled(HostPool()), crew.connect, CALLS, ledger.host_pool)
        cluster.replicas.append(Replica(users, Supervisor(users, crew, ledger, WATCH)))
    for replica in cluster.replicas:
        await replica.supervisor.settle(1)
    running = [asyncio.create_task(replica.supervisor.run()) for replica in cluster.replicas]
    try:
        yield cluster
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for host in crew.hosts.values():
            await host.stop()
        for host in dead:
            await host._host._ledger.close()
        await ledger.close()


class Client:
    """Writes and reads one user through one replica, again and again; never stops at an error."""

    def __init__(self, number: int, key: UserKey, users: SeatedUsers) -> None:
        self.number, self.key, self.users = number, key, users
        self.acknowledged: list[str] = []
        self.seen = [0]
        self.errors: Counter[str] = Counter()

    async def live(self, over: asyncio.Event) -> None:
        turn = 0
        while not over.is_set():
            await self._write(f"m{self.number}x{turn}")
            await self._read()
            turn += 1
            await asyncio.sleep(0.05)

    async def _write(self, word: str) -> None:
        message = Incoming(role=Role.USER, content=f"My favourite book is called {word}.", id=word)
        command = Ingest(session_id=f"s{self.number}", messages=(message,), timezone="UTC")
        for _ in range(2):  # every message is sent twice, as a client would that saw no answer
            try:
                await self.users.execute(self.key, command, operation_id_of(command))
            except HermesError as error:
                self.errors[error.code] += 1
            else:
                self.acknowledged.append(word)

    async def _read(self) -> None:
        try:
            answer = await self.users.ask(self.key, Summarise())
        except HermesError as error:
            self.errors[error.code] += 1
        else:
            self.seen.append(answer["version"])


async def _settled(users: SeatedUsers, key: UserKey) -> dict[str, Any]:
    for _ in range(400):
        exported = await users.ask(key, Export())
        if not any(turn["pending"] for turn in exported["turns"]):
            return exported
        await asyncio.sleep(0.05)
    raise AssertionError("turns are left unread")


async def _records(users: SeatedUsers, key: UserKey) -> list[dict[str, Any]]:
    page = await users.ask(key, ListMemories(filters={}, limit=200))
    records: list[dict[str, Any]] = page["memories"]
    while page["next_cursor"]:
        page = await users.ask(key, ListMemories(filters={}, limit=200, cursor=page["next_cursor"]))
        records += page["memories"]
    return records


async def _check(cluster: Cluster, clients: list[Client]) -> None:
    for key in USERS:
        mine = [client for client in clients if client.key == key]
        users = mine[0].users
        turns = [turn["message_id"] for turn in (await _settled(users, key))["turns"]]
        assert len(turns) == len(set(turns)), "a message was applied twice"
        wanted = {word for client in mine for word in client.acknowledged}
        assert wanted <= set(turns), "an acknowledged message is missing"
        records = await _records(users, key)
        cited = Counter(piece["message_id"] for memory in records for piece in memory["evidence"])
        assert set(cited.values()) <= {1}, "a message was settled twice"
        assert wanted <= set(cited), "an acknowledged message was never settled"
    for client in clients:
        assert client.seen == sorted(client.seen), "a version went back"
        assert not client.errors, client.errors


@asynccontextmanager
async def crowd(cluster: Cluster) -> AsyncIterator[list[Client]]:
    """Two clients for each user, one at each replica."""
    over = asyncio.Event()
    clients = [
        Client(2 * number + side, key, cluster.replicas[side].users)
        for number, key in enumerate(USERS)
        for side in (0, 1)
    ]
    tasks = [asyncio.create_task(client.live(over)) for client in clients]
    try:
        yield clients
    finally:
        over.set()
        await asyncio.gather(*tasks)


async def test_the_pool_grows_and_shrinks_under_load(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        async with crowd(cluster) as clients:
            for turn, hosts in enumerate(SIZES):
                await asyncio.sleep(0.4)
                await cluster.replicas[turn % 2].supervisor.scale(hosts)
                assert {seat.name for seat in cluster.crew.hosts} == {
                    seat.name for seat in Pooled(HostPool(hosts)).standing()
                }
            await asyncio.sleep(0.4)
        await _check(cluster, clients)
        assert all(len(client.acknowledged) > 4 for client in clients)


async def test_hosts_die_and_stand_still_while_the_pool_changes(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        first, second = (replica.supervisor for replica in cluster.replicas)
        async with crowd(cluster) as clients:
            await first.scale(2)
            await asyncio.sleep(0.3)
            scaling = asyncio.create_task(first.scale(4))
            cluster.kill("hermes-host-0")
            await scaling
            await asyncio.sleep(0.3)
            cluster.crew.suspend(Seat("hermes-host-1"))
            await asyncio.sleep(0.2)
            await cluster.ledger.resize_host_pool(3)  # nobody is told: whoever changed it died
            await asyncio.sleep(2.0)
            cluster.kill("hermes-host-2")
            await second.scale(1)
            await asyncio.sleep(0.5)
        await _check(cluster, clients)
        assert ("hermes-host-1", False) in cluster.crew.ended or (
            "hermes-host-1", True,
        ) in cluster.crew.ended, "it stood still"  # fmt: skip


async def test_a_host_that_is_about_to_be_needed_is_not_sent_away(tmp_path: Path) -> None:
    """A change starts the new hosts before it is written down; meanwhile another replica has a look."""
    async with a_cluster(tmp_path) as cluster:
        first, second = cluster.replicas
        await first.supervisor._start(2)
        await second.supervisor.round()
        assert Seat("hermes-host-1") in cluster.crew.hosts
        await first.supervisor.scale(2)
        await first.supervisor.scale(1)
        assert Seat("hermes-host-1") not in cluster.crew.hosts
        await first.supervisor._start(2)
        cluster.crew.hosts[Seat("hermes-host-1")]._may_wait_s = 0.0
        await second.supervisor.round()
        assert Seat("hermes-host-1") not in cluster.crew.hosts, "nobody needed it after all"


async def test_each_replica_corrects_itself_without_a_supervisor(tmp_path: Path) -> None:
    """By the refusals alone."""
    async with a_cluster(tmp_path) as cluster:
        await cluster.replicas[0].supervisor.scale(4)
        users = SeatedUsers(Pooled(HostPool(2, 1)), cluster.crew.connect, CALLS)
        versions = [await users.ask(key, Summarise()) for key in USERS]
        assert {answer["version"] for answer in versions} == {0}
        assert users.pool == HostPool(4, 2)


@pytest.mark.parametrize("hosts", [1, 3])
async def test_a_host_that_comes_back_goes_by_the_ledger(tmp_path: Path, hosts: int) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.replicas[0].supervisor.scale(hosts)
        cluster.kill("hermes-host-0")
        for key in USERS:
            await cluster.replicas[1].users.ask(key, Summarise())
        for host in list(cluster.crew.hosts.values()):
            await host.start()
        assert {host._host.pool.hosts for host in cluster.crew.hosts.values()} == {hosts}
