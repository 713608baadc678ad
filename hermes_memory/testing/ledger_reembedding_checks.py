"""Checks of the change of the embedding model: at every moment one model opens the data (ARCHITECTURE §3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import numpy as np
import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Lock, Status, Tier
from hermes_memory.errors import EmbedderMismatch, InvalidInput
from hermes_memory.ports.embedder import EmbedderInfo, Vector
from hermes_memory.ports.ledger import Ledger, Reembedding
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector, an_audit

OTHER = EmbedderInfo("other-embedder", 12)
BOB = UserKey("app", "bob")
MEMORIES = (
    a_memory(id="m1"),
    a_memory(id="m2", lock=Lock.FROZEN, tier=Tier.CORE, freeze_reason="said twice"),
    a_memory(id="m3", status=Status.ARCHIVED, archived_at=NOW),
    a_memory(id="m4", status=Status.SUPERSEDED),
    a_memory(id="m5", status=Status.ARCHIVED, merged_into="m1", archived_at=NOW),
)


def near(one: Vector, other: Vector) -> bool:
    """The same vector, up to how exactly it is kept."""
    return one.shape == other.shape and bool(np.allclose(one, other, atol=2e-3))


def new(number: int) -> Vector:
    """A vector of the other model."""
    return a_vector(100 + number, OTHER.dimension)


async def live(ledger: Ledger) -> None:
    """Two users: one with a memory of every kind and one without a vector, one with a single memory."""
    bare = a_memory(id="m9")
    vectors = {memory.id: a_vector(number) for number, memory in enumerate(MEMORIES)}
    await ledger.commit(a_commit(memories=(*MEMORIES, bare), vectors=vectors, audit=(an_audit(),)))
    his = a_memory(id="m1", user_id="bob")
    await ledger.commit(a_commit(key=BOB, memories=(his,), vectors={"m1": a_vector(7)}))


async def put_all(ledger: Ledger) -> None:
    """A new vector for everything that waits."""
    for key in (KEY, BOB):
        waiting = await ledger.unembedded(key, "", 99)
        await ledger.put_embedded(key, {memory.id: new(int(memory.id[1:])) for memory in waiting})


class ReembeddingChecks:
    """New vectors gather beside the old ones and take their place at once."""

    @pytest.fixture
    async def other(
        self, ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> AsyncIterator[tuple[Ledger, Reembedding]]:
        """A handle that changes the model of what ``live`` wrote, and how far it was when it began."""
        await live(ledger)
        handle = make_ledger()
        yield handle, await handle.begin_reembedding(OTHER)
        await handle.close()

    async def test_until_it_is_finished_the_old_model_opens_the_data(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        assert other[1] == Reembedding(EMBEDDER, OTHER, 0, 6)
        assert not other[1].finished
        await other[0].put_embedded(KEY, {"m1": new(1)})
        seen = await ledger.activate(KEY, 1)
        assert near(seen.vectors["m1"], a_vector(0))
        fresh = make_ledger()
        await fresh.open(EMBEDDER)
        await fresh.close()
        for wanted, unfinished in ((OTHER, True), (EmbedderInfo("third", 12), False)):
            handle = make_ledger()
            with pytest.raises(EmbedderMismatch) as caught:
                await handle.open(wanted)
            assert caught.value.unfinished is unfinished
            await handle.close()

    async def test_what_waits_is_listed_page_by_page(self, other: tuple[Ledger, Reembedding]) -> None:
        handle, _ = other
        assert await handle.users(None, "", 9) == [KEY, BOB]
        first = await handle.unembedded(KEY, "", 3)
        rest = await handle.unembedded(KEY, first[-1].id, 3)
        assert (*first, *rest) == MEMORIES
        await handle.put_embedded(KEY, {"m2": new(2), "m4": new(4)})
        assert [memory.id for memory in await handle.unembedded(KEY, "", 99)] == ["m1", "m3", "m5"]
        assert [memory.id for memory in await handle.unembedded(BOB, "", 99)] == ["m1"]
        assert await handle.unembedded(UserKey("app", "nobody"), "", 99) == []

    async def test_in_the_end_everything_is_the_new_models(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        before = await ledger.activate(KEY, 1)
        await put_all(other[0])
        assert await other[0].finish_reembedding() == Reembedding(OTHER, OTHER, 6, 6)
        assert (await other[0].finish_reembedding()).finished
        old = make_ledger()
        with pytest.raises(EmbedderMismatch) as caught:
            await old.open(EMBEDDER)
        assert not caught.value.unfinished
        await old.close()
        fresh = make_ledger()
        await fresh.open(OTHER)
        seen = await fresh.activate(KEY, 1)
        assert replace(seen, vectors={}) == replace(before, vectors={})  # not a version, not a word
        assert set(seen.vectors) == set(before.vectors)
        assert all(near(vector, new(int(id_[1:]))) for id_, vector in seen.vectors.items())
        assert near((await fresh.activate(BOB, 1)).vectors["m1"], new(1))
        await fresh.commit(a_commit(1, memories=(a_memory(id="m7"),), vectors={"m7": new(7)}))
        await fresh.close()

    async def test_nothing_changes_while_something_is_missing(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        await other[0].put_embedded(KEY, {memory.id: new(1) for memory in MEMORIES})
        assert await other[0].finish_reembedding() == Reembedding(EMBEDDER, OTHER, 5, 6)
        assert near((await ledger.activate(KEY, 1)).vectors["m1"], a_vector(0))

    async def test_it_goes_on_where_it_stopped(
        self, other: tuple[Ledger, Reembedding], make_ledger: Callable[[], Ledger]
    ) -> None:
        await other[0].put_embedded(KEY, {"m1": new(1), "m3": new(3)})
        await other[0].close()
        again = make_ledger()
        assert await again.begin_reembedding(OTHER) == Reembedding(EMBEDDER, OTHER, 2, 6)
        await put_all(again)
        assert (await again.finish_reembedding()).finished
        await again.close()
        later = make_ledger()
        assert await later.begin_reembedding(OTHER) == Reembedding(OTHER, OTHER, 6, 6)
        await later.close()

    async def test_strange_vectors_are_refused_or_ignored(self, other: tuple[Ledger, Reembedding]) -> None:
        handle, _ = other
        with pytest.raises(InvalidInput):
            await handle.put_embedded(KEY, {"m1": a_vector(1)})
        await handle.put_embedded(KEY, {"m9": new(9), "unknown": new(0)})
        await handle.put_embedded(UserKey("app", "nobody"), {"m1": new(0)})
        assert await handle.finish_reembedding() == Reembedding(EMBEDDER, OTHER, 0, 6)
        await put_all(handle)
        assert (await handle.finish_reembedding()).finished
        await handle.put_embedded(KEY, {"m1": new(99)})  # a late repetition
        assert near((await handle.activate(KEY, 1)).vectors["m1"], new(1))

    async def test_what_the_old_model_writes_meanwhile_is_made_anew(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        handle, _ = other
        await put_all(handle)
        edited = a_memory(id="m1", content="用户住在南京")
        await ledger.commit(
            a_commit(1, memories=(edited, a_memory(id="m6")), vectors={"m1": a_vector(50), "m6": a_vector(51)},
                     deleted=("m4",))
        )  # fmt: skip
        assert [memory.id for memory in await handle.unembedded(KEY, "", 99)] == ["m1", "m6"]
        assert await handle.finish_reembedding() == Reembedding(EMBEDDER, OTHER, 4, 6)
        await put_all(handle)
        assert (await handle.finish_reembedding()).finished
        seen = await handle.activate(KEY, 1)
        assert set(seen.vectors) == {"m1", "m2", "m3", "m5", "m6"}

    async def test_an_erased_user_leaves_no_new_vector(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        handle, _ = other
        await put_all(handle)
        assert (await ledger.erase(KEY, 1, 1, "erase", NOW)).remaining == 0
        assert await handle.finish_reembedding() == Reembedding(OTHER, OTHER, 1, 1)
        assert dict((await handle.activate(KEY, 1)).vectors) == {}

    async def test_another_target_begins_anew_and_the_old_model_ends_it(
        self, other: tuple[Ledger, Reembedding], make_ledger: Callable[[], Ledger]
    ) -> None:
        third = EmbedderInfo("third", 12)
        await put_all(other[0])
        handle = make_ledger()
        assert await handle.begin_reembedding(third) == Reembedding(EMBEDDER, third, 0, 6)
        with pytest.raises(EmbedderMismatch):
            await other[0].put_embedded(KEY, {"m1": new(1)})
        await put_all(handle)
        with pytest.raises(EmbedderMismatch):
            await other[0].finish_reembedding()
        back = make_ledger()
        assert await back.begin_reembedding(EMBEDDER) == Reembedding(EMBEDDER, EMBEDDER, 6, 6)
        assert near((await back.activate(KEY, 1)).vectors["m1"], a_vector(0))
        assert await handle.begin_reembedding(third) == Reembedding(EMBEDDER, third, 0, 6)
        await handle.close()
        await back.close()

    async def test_a_handle_of_another_model_reads_and_writes_no_vectors(
        self, other: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        handle, _ = other
        for early in (handle.activate(KEY, 1), handle.commit(a_commit(1))):
            with pytest.raises(EmbedderMismatch):
                await early
        await put_all(handle)
        await handle.finish_reembedding()
        for late in (ledger.activate(KEY, 1), ledger.commit(a_commit(1))):
            with pytest.raises(EmbedderMismatch):
                await late
        assert (await handle.commit(a_commit(1))).version == 2

    async def test_an_empty_store_is_the_new_models_at_once(self, make_ledger: Callable[[], Ledger]) -> None:
        handle = make_ledger()
        assert await handle.begin_reembedding(OTHER) == Reembedding(OTHER, OTHER, 0, 0)
        await handle.close()
        await handle.open(OTHER)
        await handle.close()
