"""The same promise on a real Weaviate: after an outage of any kind the index has what the ledger has.

Measures: python -m pytest -q tests/runtime/test_feeding_weaviate.py -s
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes_memory.adapters.clock import SystemClock
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.adapters.weaviate_index import WeaviateIndex
from hermes_memory.app.indexing import Indexing
from hermes_memory.app.reindexing import Compared, Reindexing
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Status
from hermes_memory.ports.ledger import OutboxEntry
from hermes_memory.runtime.feeding import Feeder, FeedRules
from hermes_memory.testing.builders import EMBEDDER, NOW, a_commit, a_memory, a_vector
from tests.runtime.world import Counts
from tests.servers import WeaviateServer, start_or_skip

USERS = [UserKey("app", f"user{number}") for number in range(12)]
RULES = FeedRules(
    batch=50, together=4, linger_s=0.02, pause_s=0.5, attempts=5, backoff_s=0.1, backoff_max_s=1.0
)
PATIENCE_S = 60.0


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A server of its own: it is killed."""
    made = start_or_skip(WeaviateServer(tmp_path_factory.mktemp("weaviate-fed")))
    yield made
    made.stop()


class Lives:
    """Users who say, change and forget things, and are erased."""

    def __init__(self, ledger: SqliteLedger, feeder: Feeder) -> None:
        self._ledger, self._feeder = ledger, feeder
        self._random, self._numbers = random.Random(7), itertools.count()
        self.versions = dict.fromkeys(USERS, 0)
        self.commits = 0

    async def go_on(self, steps: int) -> None:
        for _ in range(steps):
            key = self._random.choice(USERS)
            if self._random.random() < 0.05:
                await self._erase(key)
            else:
                await self._commit(key)
            self._feeder.nudge(key)
            self.commits += 1

    async def _erase(self, key: UserKey) -> None:
        operation = f"erase-{next(self._numbers)}"
        receipt = await self._ledger.erase(key, self.versions[key], 1, operation, NOW)
        self.versions[key] = receipt.version

    async def _commit(self, key: UserKey) -> None:
        ids = [f"m{self._random.randrange(20)}" for _ in range(self._random.randint(1, 4))]
        gone = tuple({f"m{self._random.randrange(20)}"} - set(ids))
        status = self._random.choice([Status.ACTIVE, Status.ACTIVE, Status.ARCHIVED, Status.SUPERSEDED])
        archived = NOW if status is Status.ARCHIVED else None
        number = next(self._numbers)
        memories = tuple(
            a_memory(
                id=id_, user_id=key.user_id, status=status, archived_at=archived, content=f"thing {number}"
            )
            for id_ in dict.fromkeys(ids)
        )
        entries = [OutboxEntry(op="put", memory_id=memory.id) for memory in memories]
        entries += [OutboxEntry(op="remove", memory_id=id_) for id_ in gone]
        await self._ledger.commit(
            a_commit(
                self.versions[key], key=key, operation_id=f"op-{number}", memories=memories, deleted=gone,
                vectors={memory.id: a_vector(number) for memory in memories}, outbox=tuple(entries),
            )
        )  # fmt: skip
        self.versions[key] += 1


class Fed:
    """A ledger, a Weaviate, a feeder at work and the users' lives."""

    def __init__(self, ledger: SqliteLedger, index: WeaviateIndex) -> None:
        self.ledger, self.index, self.counts = ledger, index, Counts()
        self.feeder = Feeder(ledger, index, words, RULES, SystemClock(), self.counts)
        self.lives = Lives(ledger, self.feeder)

    async def catch_up(self) -> float:
        """Wait until nothing waits; how long that took, in seconds."""
        began = time.monotonic()
        while await self.ledger.outbox_users("", 1):
            assert time.monotonic() - began < PATIENCE_S, "it does not catch up"
            await asyncio.sleep(0.02)
        return time.monotonic() - began

    async def compare(self) -> Compared:
        indexing = Indexing(self.ledger, self.index, words, 50)
        return await Reindexing(self.ledger, self.index, indexing).compare(USERS)


@pytest.fixture
async def fed(tmp_path: Path, server: WeaviateServer, request: pytest.FixtureRequest) -> AsyncIterator[Fed]:
    ledger = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
    await ledger.open(EMBEDDER)
    name = "Fed" + "".join(filter(str.isalnum, request.node.name)).capitalize()
    index = WeaviateIndex(
        server.url, EMBEDDER, grpc_port=server.grpc_port, collection=name, write_timeout_s=2.0
    )
    made = Fed(ledger, index)
    task = asyncio.create_task(made.feeder.run())
    yield made
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await index.close()
    await ledger.close()


async def test_the_index_follows_the_ledger(fed: Fed) -> None:
    began = time.monotonic()
    await fed.lives.go_on(300)
    took_s, behind_s = time.monotonic() - began, await fed.catch_up()
    print(f"\n300 commits in {took_s:.1f} s, caught up {behind_s:.2f} s later")
    found = await fed.compare()
    assert found.same, found
    assert found.documents
    assert fed.counts.of["hermes_outbox_delivered_total"] > 300
    assert not fed.counts.of["hermes_outbox_buried_total"]


@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_an_outage_is_made_up_for(fed: Fed, server: WeaviateServer, how: str) -> None:
    await fed.lives.go_on(60)
    await asyncio.to_thread(server.kill if how == "killed" else server.pause)
    began = time.monotonic()
    try:
        await fed.lives.go_on(120)  # nobody waits for the index
        took_s = time.monotonic() - began
        await asyncio.sleep(5)
        assert fed.feeder.down
    finally:
        await asyncio.to_thread(server.restart if how == "killed" else server.resume)
    behind_s = await fed.catch_up()
    print(f"\n{how}: 120 commits in {took_s:.1f} s without it, caught up {behind_s:.2f} s after it was back")
    found = await fed.compare()
    assert found.same, found
    assert not fed.counts.of["hermes_outbox_buried_total"]
    await fed.lives.go_on(30)
    await fed.catch_up()
    assert (await fed.compare()).same


async def test_an_index_that_lost_its_disk_is_built_again(fed: Fed) -> None:
    await fed.lives.go_on(60)
    await fed.catch_up()
    for key in USERS[:6]:
        await fed.index.drop(key)
    work = Reindexing(fed.ledger, fed.index, Indexing(fed.ledger, fed.index, words, 50))
    began = time.monotonic()
    done = await work.rebuild()
    print(f"\n{done.put} documents of {done.users} users in {time.monotonic() - began:.2f} s")
    assert (await fed.compare()).same
