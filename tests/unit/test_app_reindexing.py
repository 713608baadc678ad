"""The index is built from the ledger and compared with it, user by user, whatever it held before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app import reindexing
from hermes_memory.app.indexing import Indexing
from hermes_memory.app.reindexing import Compared, Progress, Reindexed, Reindexing
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Status
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.index import Document
from hermes_memory.ports.ledger import OutboxEntry
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector
from hermes_memory.testing.faulty_index import FaultyIndex
from tests.dict_index import DictIndex

USERS = [UserKey("app", f"user{number}") for number in range(5)]
ARCHIVED = {"status": Status.ARCHIVED, "archived_at": NOW}


class Desk:
    """A ledger with five users, an empty index, and what was told."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger, self.inner = ledger, DictIndex()
        self.index = FaultyIndex(self.inner)
        self.told: list[Progress] = []
        self.slept: list[float] = []
        self.wakes: Sequence[object] = ()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def work(self) -> Reindexing:
        indexing = Indexing(self.ledger, self.index, lambda text: tuple(text.split()), 2)
        return Reindexing(self.ledger, self.index, indexing, told=self.told.append, sleep=self.sleep)

    async def live(self, key: UserKey) -> None:
        memories = (
            a_memory(id="a", user_id=key.user_id),
            a_memory(id="b", user_id=key.user_id, **ARCHIVED),
            a_memory(id="c", user_id=key.user_id),
            a_memory(id="d", user_id=key.user_id, status=Status.SUPERSEDED),
            a_memory(id="e", user_id=key.user_id),
        )
        vectors = {id_: a_vector(n) for n, id_ in enumerate("abcd")}
        await self.ledger.commit(a_commit(key=key, memories=memories, vectors=vectors))


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    ledger = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
    await ledger.open(EMBEDDER)
    monkeypatch.setattr(reindexing, "TOGETHER", 2)
    made = Desk(ledger)
    for key in USERS:
        await made.live(key)
    yield made
    await ledger.close()


def strangers(*ids: str) -> list[Document]:
    return [Document(id_, (), a_vector()) for id_ in ids]


async def test_an_empty_index_is_filled_and_then_the_same(desk: Desk) -> None:
    assert await desk.work.rebuild() == Reindexed(users=5, put=15)
    assert await desk.inner.ids(USERS[3]) == ["a", "b", "c"]
    assert await desk.work.compare() == Compared(users=5, documents=15)
    assert desk.slept == []
    assert await desk.work.rebuild() == Reindexed(users=5, put=15)
    assert await desk.work.compare() == Compared(users=5, documents=15)


async def test_it_says_how_far_it_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reindexing, "PAGE", 3)
    await desk.work.rebuild()
    assert [(at.done, at.total, at.last) for at in desk.told] == [
        (0, 5, ""), (2, 5, "app/user1"), (3, 5, "app/user2"), (5, 5, "app/user4"),
    ]  # fmt: skip


async def test_it_goes_on_where_it_stopped(desk: Desk) -> None:
    assert (await desk.work.rebuild(after="app/user2")).users == 2
    assert sorted(desk.inner.of, key=str) == USERS[3:]


async def test_only_those_who_are_named(desk: Desk) -> None:
    assert (await desk.work.rebuild(USERS[1:4])).users == 3
    assert sorted(desk.inner.of, key=str) == USERS[1:4]
    assert [at.total for at in desk.told] == [3, 3, 3]
    assert (await desk.work.compare(USERS[1:4])).same
    assert not (await desk.work.compare()).same


async def test_what_the_ledger_does_not_know_is_removed(desk: Desk) -> None:
    await desk.inner.put(USERS[0], strangers("a", "d", "e", "x", "y"))
    found = await desk.work.compare(USERS[:1])
    assert found == Compared(users=1, documents=3, differing=1, missing=2, strange=4)
    assert await desk.work.rebuild(USERS[:1]) == Reindexed(users=1, put=3, removed=2)
    assert await desk.inner.ids(USERS[0]) == ["a", "b", "c"]


async def test_who_was_erased_is_dropped(desk: Desk) -> None:
    key = USERS[2]
    await desk.work.rebuild()
    await desk.ledger.erase(key, 1, 1, "erase", NOW)
    found = await desk.work.compare()
    assert (found.users, found.differing, found.strange) == (5, 1, 3)
    done = await desk.work.rebuild()
    assert (done.users, done.removed) == (5, 3)
    assert key not in desk.inner.of
    assert (await desk.work.compare()).same
    assert [entry.op for entry in await desk.ledger.read_outbox(key, 9)] == ["drop"]  # the feeder's to settle


async def test_a_memory_in_the_wrong_place_is_a_difference(desk: Desk) -> None:
    await desk.work.rebuild()
    held = desk.inner.of[USERS[0]]
    held["a"] = replace(held["a"], archived=True)
    held["b"] = replace(held["b"], archived=False)
    found = await desk.work.compare()
    assert found == Compared(users=5, documents=15, differing=1, misplaced=2)
    assert not found.same
    await desk.work.rebuild()
    assert (await desk.work.compare()).same


async def test_a_difference_that_goes_away_by_itself_is_none(desk: Desk) -> None:
    await desk.work.rebuild()
    lost = desk.inner.of[KEY] = desk.inner.of.pop(USERS[0])

    async def sleep(seconds: float) -> None:
        desk.inner.of[USERS[0]] = lost

    desk.sleep = sleep  # type: ignore[method-assign]
    assert (await desk.work.compare()).same


async def test_dead_letters_that_are_delivered_after_all_are_forgotten(desk: Desk) -> None:
    entries = tuple(OutboxEntry(op="put", memory_id=id_) for id_ in ("a", "b", "gone"))
    await desk.ledger.commit(a_commit(1, key=USERS[0], outbox=entries))
    seqs = [entry.seq for entry in await desk.ledger.read_outbox(USERS[0], 9)]
    await desk.ledger.bury_outbox(USERS[0], seqs, "too_large")
    desk.index.refuses = {"b": "too_large", "c": "bad_vector"}
    found = await desk.work.rebuild(USERS[:1])
    assert found == Reindexed(users=1, put=1, settled=2, refused={"bad_vector": 1, "too_large": 1})
    (dead,) = await desk.ledger.read_outbox(USERS[0], 9, buried=True)
    assert dead.memory_id == "b"
    compared = await desk.work.compare(USERS[:1])
    assert (compared.missing, compared.dead, compared.same) == (2, 1, False)
    desk.index.refuses.clear()
    assert (await desk.work.rebuild(USERS[:1])).settled == 1
    assert (await desk.work.compare(USERS[:1])).same


async def test_a_dead_letter_alone_is_not_the_same(desk: Desk) -> None:
    await desk.work.rebuild()
    await desk.ledger.commit(a_commit(1, key=USERS[0], outbox=(OutboxEntry(op="put", memory_id="a"),)))
    (entry,) = await desk.ledger.read_outbox(USERS[0], 9)
    await desk.ledger.bury_outbox(USERS[0], [entry.seq], "rejected")
    assert await desk.work.compare() == Compared(users=5, documents=15, dead=1)
    assert not (await desk.work.compare()).same


async def test_it_outlasts_a_short_outage_and_no_long_one(desk: Desk) -> None:
    async def sleep(seconds: float) -> None:
        desk.slept.append(seconds)
        desk.index.down = len(desk.slept) < 4

    desk.sleep = sleep  # type: ignore[method-assign]
    desk.index.down = True
    assert (await desk.work.rebuild(USERS[:1])).put == 3
    assert desk.slept == [1.0, 2.0, 4.0, 8.0]

    async def never(seconds: float) -> None: ...

    desk.sleep = never  # type: ignore[method-assign]
    desk.index.down = True
    with pytest.raises(IndexUnavailable):
        await desk.work.rebuild()
