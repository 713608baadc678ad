"""What a memory becomes in the index, and that the index ends as the ledger is, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.indexing import AT_ONCE, Brought, Indexing, document, indexed
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import EvidenceKind, Status
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.index import Document
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector, an_evidence
from hermes_memory.testing.faulty_index import FaultyIndex
from tests.dict_index import DictIndex

ARCHIVED = a_memory(id="old", status=Status.ARCHIVED, archived_at=NOW)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class Interrupted(DictIndex):
    """Something happens just before, or just after, the next write is done."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Callable[[], Awaitable[object]]] = []
        self.after: list[Callable[[], Awaitable[object]]] = []

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        if self.before:
            await self.before.pop()()
        refused = await super().put(key, documents)
        if self.after:
            await self.after.pop()()
        return refused


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    handle = SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL")
    await handle.open(EMBEDDER)
    yield handle
    await handle.close()


@pytest.fixture
def index() -> Interrupted:
    return Interrupted()


@pytest.fixture
def indexing(ledger: SqliteLedger, index: Interrupted) -> Indexing:
    return Indexing(ledger, index, words, 2)


def test_what_lives_or_rests_is_found() -> None:
    found = {status: indexed(a_memory(status=status)) for status in Status}
    assert found == {
        Status.ACTIVE: True,
        Status.REVIEW: True,
        Status.ARCHIVED: True,
        Status.SUPERSEDED: False,
    }


def test_a_document_holds_the_content_and_what_the_user_said_beyond_it() -> None:
    said = [
        an_evidence(quote=quote) for quote in ("too old", "lives in Suzhou", "my home town", "in Suzhou now")
    ]
    memory = a_memory(content="lives in Suzhou", evidence=tuple(said))
    made = document(memory, a_vector(), words)
    assert made.words == ("lives", "in", "Suzhou", "my", "home", "town", "now")
    assert (made.memory_id, made.archived) == (memory.id, False)
    assert np.array_equal(made.vector, a_vector())
    assert document(ARCHIVED, a_vector(), words).archived


def test_an_edited_memory_is_not_found_by_its_old_words() -> None:
    """What the user corrected must not bring it up."""
    edit = an_evidence(quote="moved to Oslo", kind=EvidenceKind.EDIT)
    memory = a_memory(content="lives in Oslo", evidence=(an_evidence(quote="Suzhou"), edit))
    assert document(memory, a_vector(), words).words == ("lives", "in", "Oslo", "moved", "to")


async def test_it_puts_what_is_there_and_removes_the_rest(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    gone = a_memory(id="gone", status=Status.SUPERSEDED)
    await index.put(KEY, [Document(id_, (), a_vector()) for id_ in ("gone", "never", "other")])
    vectors = {memory_id: a_vector() for memory_id in ("mem-1", "old", "gone")}
    memories = (a_memory(), ARCHIVED, gone, a_memory(id="bare"))
    await ledger.commit(a_commit(memories=memories, vectors=vectors))
    ids = ["mem-1", "old", "gone", "never", "bare", "gone"]
    assert await indexing.bring(KEY, ids) == Brought(put=2, removed=3)
    assert await index.ids(KEY) == ["mem-1", "old", "other"]
    assert [index.of[KEY][id_].archived for id_ in ("mem-1", "old")] == [False, True]


async def test_after_a_write_that_broke_off_the_index_is_given_everything_anew(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    removed: list[str] = []
    remove = index.remove

    async def noted(key: UserKey, memory_ids: Sequence[str]) -> None:
        removed.extend(memory_ids)
        await remove(key, memory_ids)

    async def die() -> None:
        raise IndexUnavailable("it went away")

    index.remove = noted  # type: ignore[method-assign]
    await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
    index.after = [die]
    with pytest.raises(IndexUnavailable):
        await indexing.bring(KEY, ["mem-1"])
    assert await index.ids(KEY) == ["mem-1"]  # but who knows by what it is found
    assert await indexing.bring(KEY, ["mem-1"]) == Brought(put=1)
    assert removed == ["mem-1"]
    await indexing.bring(KEY, ["mem-1"])
    assert removed == ["mem-1"]  # once is enough


async def test_what_is_refused_is_named_and_not_found_as_it_was(ledger: SqliteLedger) -> None:
    inner = DictIndex()
    await inner.put(KEY, [Document("b", ("before",), a_vector())])
    faulty = FaultyIndex(inner)
    faulty.refuses = {"b": "too_large", "c": "Sentence about peanuts"}
    memories = tuple(a_memory(id=id_) for id_ in "abc")
    await ledger.commit(a_commit(memories=memories, vectors={id_: a_vector() for id_ in "abc"}))
    brought = await Indexing(ledger, faulty, words, 9).bring(KEY, ["a", "b", "c"])
    assert brought == Brought(put=1, removed=0, refused={"b": "too_large", "c": "refused"})
    assert await inner.ids(KEY) == ["a"]


async def test_what_is_committed_meanwhile_is_written_again(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    """A newer document may have been put between our reading and our writing: ours must not replace it."""
    await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
    archive = a_commit(1, memories=(a_memory(status=Status.ARCHIVED, archived_at=NOW),))
    edit = a_commit(2, memories=(a_memory(content="new words"),))
    turn = a_commit(3, vectors={"mem-1": a_vector(5)})
    index.before = [lambda: ledger.commit(turn), lambda: ledger.commit(edit), lambda: ledger.commit(archive)]
    await indexing.bring(KEY, ["mem-1"])
    kept = index.of[KEY]["mem-1"]
    assert (kept.archived, kept.words[:2]) == (False, ("new", "words"))
    assert np.allclose(kept.vector, a_vector(5), atol=2e-3)


async def test_what_is_deleted_meanwhile_is_removed_again(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
    index.before = [lambda: ledger.commit(a_commit(1, deleted=("mem-1",)))]
    await indexing.bring(KEY, ["mem-1"])
    assert await index.ids(KEY) == []


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_what_was_read_before_an_erasure_does_not_outlive_it(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing, moment: str
) -> None:
    await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))

    async def erase() -> None:
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        await index.drop(KEY)  # the host that owns the user delivers it at once

    setattr(index, moment, [erase])
    assert await indexing.bring(KEY, ["mem-1"]) == Brought()
    assert KEY not in index.of


async def test_who_comes_back_after_an_erasure_has_what_was_said_since(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
    new = [a_memory(id=f"new-{number}") for number in range(3)]

    async def erase_and_return() -> None:
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        vectors = {memory.id: a_vector() for memory in new}
        await ledger.commit(a_commit(2, operation_id="back", memories=tuple(new), vectors=vectors))
        await index.put(KEY, [Document(new[0].id, (), a_vector())])

    index.after = [erase_and_return]
    assert (await indexing.bring(KEY, ["mem-1"])).put == 3
    assert await index.ids(KEY) == ["new-0", "new-1", "new-2"]


async def test_a_drop_is_made_sure_of(ledger: SqliteLedger, indexing: Indexing, index: Interrupted) -> None:
    class Forgetful(DictIndex):
        async def drop(self, key: UserKey) -> None: ...

    forgetful = Forgetful()
    await forgetful.put(KEY, [Document("a", (), a_vector())])
    with pytest.raises(IndexUnavailable, match="1 documents"):
        await Indexing(ledger, forgetful, words, 9).empty(KEY)
    await index.put(KEY, [Document("a", (), a_vector())])
    assert await indexing.empty(KEY) == Brought()
    assert await index.count(KEY) == 0


async def test_a_late_drop_takes_nothing_from_who_came_back(
    ledger: SqliteLedger, index: Interrupted, indexing: Indexing
) -> None:
    """A host that lost the user may deliver the drop of an erasure a second time."""
    memories = tuple(a_memory(id=id_) for id_ in "abcde")
    await ledger.commit(a_commit(memories=memories, vectors={id_: a_vector() for id_ in "abcd"}))
    assert (await indexing.empty(KEY)).put == 4
    assert await index.ids(KEY) == ["a", "b", "c", "d"]


async def test_many_are_filled_in_parts(ledger: SqliteLedger, index: Interrupted) -> None:
    count = 2 * AT_ONCE + 3
    memories = tuple(a_memory(id=f"m{number:03}") for number in range(count))
    await ledger.commit(a_commit(memories=memories, vectors={memory.id: a_vector() for memory in memories}))
    faulty = FaultyIndex(index)
    faulty.refuses = {"m001": "too_large", "m030": "bad_vector"}
    brought = await Indexing(ledger, faulty, words, AT_ONCE + 1).fill(KEY)
    assert brought == Brought(put=count - 2, refused={"m001": "too_large", "m030": "bad_vector"})
    assert len(await index.ids(KEY)) == count - 2
    assert faulty.calls["put"] == 3
