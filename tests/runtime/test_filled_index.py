"""An index without a disk has of each user what the ledger has, once it is asked about the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Status
from hermes_memory.ports.index import Document
from hermes_memory.runtime.filled_index import FilledIndex
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector

BOB = UserKey("app", "bob")


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    handle = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
    await handle.open(EMBEDDER)
    archived = a_memory(id="b", content="a dog", status=Status.ARCHIVED, archived_at=NOW)
    await handle.commit(
        a_commit(memories=(a_memory(id="a", content="a cat"), archived), vectors={"a": a_vector(1), "b": a_vector(2)})
    )  # fmt: skip
    yield handle
    await handle.close()


@pytest.fixture
def index(ledger: SqliteLedger) -> FilledIndex:
    return FilledIndex(ExactIndex(EMBEDDER.dimension), ledger, words, 9)


async def test_it_answers_for_a_user_of_whom_it_was_never_told(index: FilledIndex) -> None:
    await index.open()
    await index.ping()
    asked = await asyncio.gather(*(index.near(KEY, a_vector(2), 9, archived=True) for _ in range(5)))
    assert [[hit.memory_id for hit in hits] for hits in asked] == [["b"]] * 5
    assert [hit.memory_id for hit in await index.match(KEY, ["cat"], 9)] == ["a"]
    assert await index.ids(KEY) == ["a", "b"]
    assert await index.count(BOB) == 0
    await index.close()


async def test_what_it_is_told_later_counts(index: FilledIndex) -> None:
    assert await index.count(KEY) == 2
    assert await index.put(KEY, [Document("c", ("bird",), a_vector(3))]) == {}
    await index.remove(KEY, ["a"])
    assert await index.ids(KEY) == ["b", "c"]


async def test_who_sleeps_is_forgotten_and_read_again(index: FilledIndex, ledger: SqliteLedger) -> None:
    assert await index.count(KEY) == 2
    await index.rest(KEY)
    await ledger.commit(a_commit(1, deleted=("a",)))  # by another host, which has an index of its own
    assert await index.ids(KEY) == ["b"]


async def test_who_is_dropped_is_gone(index: FilledIndex, ledger: SqliteLedger) -> None:
    assert await index.count(KEY) == 2
    await ledger.erase(KEY, 1, 1, "erase", NOW)
    await index.drop(KEY)
    assert await index.count(KEY) == 0
