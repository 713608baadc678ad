"""Checks of the change of the embedding model where there are knowledge packs (ARCHITECTURE §3, SPEC §7.1.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import numpy as np
import pytest

from hermes_memory.errors import EmbedderMismatch, InvalidInput
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.ports.ledger import Ledger, Reembedding, StoredPack, WaitingPack
from hermes_memory.testing.builders import EMBEDDER, KEY, a_commit, a_memory, a_pack, a_stored_pack, a_vector
from hermes_memory.testing.ledger_reembedding_checks import OTHER, near, new

PACKS = (
    a_stored_pack(namespace="a", pack=a_pack(name="bare", entries=())),
    a_stored_pack(namespace="a", pack=a_pack(name="zoo")),
    a_stored_pack(namespace="b"),
)


def rows(*numbers: int) -> Vectors:
    """Vectors of the other model, a row for each number."""
    return np.stack([new(number) for number in numbers])


def same(found: list[StoredPack], wanted: list[StoredPack]) -> bool:
    """Whether these are the packs, up to how exactly vectors are kept."""
    return [(one.namespace, one.pack) for one in found] == [
        (one.namespace, one.pack) for one in wanted
    ] and all(near(one.vectors, other.vectors) for one, other in zip(found, wanted, strict=True))


async def waiting_pack(ledger: Ledger) -> WaitingPack:
    """The next pack; fails if none waits."""
    found = await ledger.unembedded_pack()
    assert found is not None
    return found


async def put_packs(ledger: Ledger) -> None:
    """New vectors for all passages that wait, one at a time."""
    while (waiting := await ledger.unembedded_pack()) is not None:
        assert await ledger.put_embedded_passages(waiting, rows(waiting.done))


class PackReembeddingChecks:
    """Vectors of knowledge packs change hands with those of the memories."""

    @pytest.fixture
    async def shelved(
        self, ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> AsyncIterator[tuple[Ledger, Reembedding]]:
        """A handle that changes the model of a memory and of PACKS, four passages in all; how far it was at first."""
        for stored in PACKS:
            await ledger.put_pack(stored)
        await ledger.commit(a_commit(memories=(a_memory(id="m1"),), vectors={"m1": a_vector()}))
        handle = make_ledger()
        yield handle, await handle.begin_reembedding(OTHER)
        await handle.close()

    async def test_packs_change_hands_with_the_memories(
        self, shelved: tuple[Ledger, Reembedding], ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        handle, state = shelved
        assert state == Reembedding(EMBEDDER, OTHER, 0, 5)
        for stored in PACKS[1:]:
            waiting = await waiting_pack(handle)
            assert (waiting.namespace, waiting.pack, waiting.done) == (stored.namespace, stored.pack, 0)
            assert await handle.put_embedded_passages(waiting, rows(1, 2))
        assert await handle.unembedded_pack() is None
        assert await handle.finish_reembedding() == Reembedding(
            EMBEDDER, OTHER, 4, 5
        )  # the memory is missing
        assert same(await ledger.packs(None), list(PACKS))
        await handle.put_embedded(KEY, {"m1": new(1)})
        told = await ledger.packs_revision()
        assert await handle.finish_reembedding() == Reembedding(OTHER, OTHER, 5, 5)
        assert await ledger.packs_revision() > told
        empty = np.zeros((0, OTHER.dimension), np.float32)
        made = [replace(one, vectors=rows(1, 2) if one.pack.entries else empty) for one in PACKS]
        assert same(await handle.packs(None), made)
        for late in (ledger.packs(None), ledger.put_pack(PACKS[1])):
            with pytest.raises(EmbedderMismatch):
                await late
        back = make_ledger()
        assert await back.begin_reembedding(EMBEDDER) == Reembedding(OTHER, EMBEDDER, 0, 5)
        assert (await waiting_pack(back)).done == 0
        await back.close()

    async def test_nothing_is_handed_over_while_a_passage_is_missing(
        self, shelved: tuple[Ledger, Reembedding], make_ledger: Callable[[], Ledger]
    ) -> None:
        handle, _ = shelved
        await handle.put_embedded(KEY, {"m1": new(1)})
        assert await handle.put_embedded_passages(await waiting_pack(handle), rows(1))
        assert await handle.finish_reembedding() == Reembedding(EMBEDDER, OTHER, 2, 5)
        with pytest.raises(EmbedderMismatch):
            await handle.packs(None)  # they are still the old model's
        await handle.close()
        again = make_ledger()  # and goes on in the middle of the pack
        assert await again.begin_reembedding(OTHER) == Reembedding(EMBEDDER, OTHER, 2, 5)
        waiting = await waiting_pack(again)
        assert (waiting.pack.name, waiting.done, waiting.rest) == ("zoo", 1, waiting.pack.passages[1:])
        await put_packs(again)
        assert (await again.finish_reembedding()).finished
        assert near((await again.packs("a"))[1].vectors, rows(1, 1))
        await again.close()

    async def test_what_does_not_fit_is_refused_or_not_kept(
        self, shelved: tuple[Ledger, Reembedding]
    ) -> None:
        handle, _ = shelved
        waiting = await waiting_pack(handle)
        for odd in (rows(1, 2, 3), np.stack([a_vector(), a_vector()]), new(1)):
            with pytest.raises(InvalidInput):
                await handle.put_embedded_passages(waiting, odd)
        assert not await handle.put_embedded_passages(waiting, rows(1)[:0])
        assert not await handle.put_embedded_passages(replace(waiting, done=1), rows(1))
        assert not await handle.put_embedded_passages(replace(waiting, namespace="c", done=1), rows(1))
        assert await waiting_pack(handle) == waiting
        assert await handle.put_embedded_passages(waiting, rows(1))
        assert not await handle.put_embedded_passages(waiting, rows(9))  # a late repetition
        await put_packs(handle)
        await handle.put_embedded(KEY, {"m1": new(1)})
        await handle.finish_reembedding()
        assert not await handle.put_embedded_passages(waiting, rows(9))
        assert await handle.unembedded_pack() is None
        assert near((await handle.packs("a"))[1].vectors, rows(1, 1))

    async def test_a_pack_that_is_replaced_meanwhile_is_made_anew(
        self, shelved: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        handle, _ = shelved
        waiting = await waiting_pack(handle)
        assert await handle.put_embedded_passages(waiting, rows(1))
        newer = a_stored_pack(namespace="a", pack=a_pack(name="zoo", version="2"))
        await ledger.put_pack(newer)
        assert not await handle.put_embedded_passages(replace(waiting, done=1), rows(2))
        assert not await handle.put_embedded_passages(waiting, rows(2))
        again = await waiting_pack(handle)
        assert (again.pack.version, again.done) == ("2", 0)
        assert await handle.put_embedded_passages(again, rows(3, 4))
        assert await ledger.remove_pack("b", "everyday")
        await handle.put_embedded(KEY, {"m1": new(1)})
        assert await handle.finish_reembedding() == Reembedding(OTHER, OTHER, 3, 3)
        _, zoo = await handle.packs(None)
        assert (zoo.pack.version, near(zoo.vectors, rows(3, 4))) == ("2", True)

    async def test_a_removed_pack_leaves_no_new_vector(
        self, shelved: tuple[Ledger, Reembedding], ledger: Ledger
    ) -> None:
        handle, _ = shelved
        await put_packs(handle)
        for stored in PACKS:
            assert await ledger.remove_pack(stored.namespace, stored.pack.name)
        assert await handle.finish_reembedding() == Reembedding(EMBEDDER, OTHER, 0, 1)
        await ledger.put_pack(PACKS[1])
        assert (await waiting_pack(handle)).done == 0

    async def test_another_target_begins_packs_anew(
        self, shelved: tuple[Ledger, Reembedding], make_ledger: Callable[[], Ledger]
    ) -> None:
        third = EmbedderInfo("third", 12)
        early = await waiting_pack(shelved[0])
        await put_packs(shelved[0])
        handle = make_ledger()
        assert await handle.begin_reembedding(third) == Reembedding(EMBEDDER, third, 0, 5)
        assert await shelved[0].unembedded_pack() is None
        with pytest.raises(EmbedderMismatch):
            await shelved[0].put_embedded_passages(early, rows(1))
        assert (await waiting_pack(handle)).done == 0
        back = make_ledger()
        assert await back.begin_reembedding(EMBEDDER) == Reembedding(EMBEDDER, EMBEDDER, 5, 5)
        assert await back.unembedded_pack() is None
        assert same(await back.packs(None), list(PACKS))
        await handle.close()
        await back.close()
