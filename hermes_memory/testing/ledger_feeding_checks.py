"""Checks of what feeds a long-term index: the outbox of each user, dead letters, documents, generations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Status
from hermes_memory.errors import EmbedderMismatch
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import AccessCount, Ledger, OutboxEntry
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_vector, an_audit

BOB = UserKey("app", "bob")
NOBODY = UserKey("app", "nobody")


def puts(*memory_ids: str) -> tuple[OutboxEntry, ...]:
    """Entries that announce memories."""
    return tuple(OutboxEntry(op="put", memory_id=memory_id) for memory_id in memory_ids)


async def waiting(ledger: Ledger, key: UserKey = KEY, *, buried: bool = False) -> list[tuple[str, str]]:
    """What waits for the index, or was refused by it: op and memory id."""
    return [(entry.op, entry.memory_id) for entry in await ledger.read_outbox(key, 99, buried=buried)]


class FeedingChecks:
    """Nothing that the index must learn is lost, and what it refuses stands in nobody's way."""

    async def test_the_outbox_of_a_user_keeps_its_order_until_acknowledged(
        self, ledger: Ledger, peer: Ledger
    ) -> None:
        await ledger.commit(a_commit(outbox=puts("a", "b")))
        await peer.commit(a_commit(key=BOB, outbox=puts("c")))
        await ledger.commit(a_commit(1, outbox=(OutboxEntry(op="remove", memory_id="a"),)))
        entries = await peer.read_outbox(KEY, 10)
        assert [(entry.op, entry.memory_id, entry.key, entry.reason) for entry in entries] == [
            ("put", "a", KEY, None),
            ("put", "b", KEY, None),
            ("remove", "a", KEY, None),
        ]
        assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})
        assert await ledger.read_outbox(KEY, 2) == entries[:2]
        await peer.ack_outbox(KEY, [entries[0].seq, entries[2].seq])
        await peer.ack_outbox(KEY, [entries[0].seq, 10**9])
        await peer.ack_outbox(KEY, [])
        assert await ledger.read_outbox(KEY, 10) == [entries[1]]
        assert await waiting(ledger, BOB) == [("put", "c")]
        assert await waiting(ledger, NOBODY) == []

    async def test_one_user_acknowledges_nothing_of_another(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(outbox=puts("a")))
        (entry,) = await ledger.read_outbox(KEY, 10)
        await ledger.ack_outbox(BOB, [entry.seq])
        await ledger.bury_outbox(BOB, [entry.seq], "refused")
        assert await ledger.read_outbox(KEY, 10) == [entry]

    async def test_seqs_grow_whatever_went_before(self, ledger: Ledger) -> None:
        """Or what acknowledges old entries late would take the drop of an erasure along."""
        await ledger.commit(a_commit(outbox=puts("a", "b")))
        seqs = [entry.seq for entry in await ledger.read_outbox(KEY, 10)]
        await ledger.ack_outbox(KEY, seqs)
        await ledger.commit(a_commit(1, outbox=puts("c")))
        seqs += [entry.seq for entry in await ledger.read_outbox(KEY, 10)]
        await ledger.erase(KEY, 2, 1, "erase", NOW)
        seqs += [entry.seq for entry in await ledger.read_outbox(KEY, 10)]
        await ledger.ack_outbox(KEY, seqs)
        await ledger.commit(a_commit(3, operation_id="back", outbox=puts("d")))
        seqs += [entry.seq for entry in await ledger.read_outbox(KEY, 10)]
        assert len(seqs) == 5
        assert seqs == sorted(set(seqs))

    async def test_users_with_entries_are_listed_page_by_page(self, ledger: Ledger, peer: Ledger) -> None:
        keys = [UserKey("app", f"user{number}") for number in range(7)] + [UserKey("a/b", "苏 州")]
        for number, key in enumerate(keys):
            await ledger.commit(a_commit(key=key, outbox=puts("a", "b") if number != 3 else ()))
        expected = sorted((key for key in keys if key != keys[3]), key=str)
        found: list[UserKey] = []
        while page := await peer.outbox_users(str(found[-1]) if found else "", 3):
            found += page
        assert found == expected
        for entry in await ledger.read_outbox(keys[0], 10):
            await ledger.ack_outbox(keys[0], [entry.seq])
        assert keys[0] not in await peer.outbox_users("", 99)
        assert await peer.outbox_users("", 99, buried=True) == []

    async def test_an_erased_user_is_listed_until_the_index_has_dropped_it(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(outbox=puts("a", "b")))
        seqs = [entry.seq for entry in await ledger.read_outbox(KEY, 10)]
        await ledger.bury_outbox(KEY, seqs[:1], "refused")
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert await ledger.outbox_users("", 99) == [KEY]
        assert await ledger.outbox_users("", 99, buried=True) == []
        (drop,) = await ledger.read_outbox(KEY, 10)
        assert (drop.op, drop.memory_id, drop.key) == ("drop", "", KEY)
        await ledger.bury_outbox(KEY, seqs, "refused")
        await ledger.ack_outbox(KEY, seqs)
        assert await ledger.read_outbox(KEY, 10) == [drop]
        await ledger.sweep(NOW + timedelta(days=99), 24, 72)
        assert await ledger.read_outbox(KEY, 10) == [drop]
        await ledger.ack_outbox(KEY, [drop.seq])
        assert await ledger.outbox_users("", 99) == []

    async def test_what_comes_after_an_erasure_stands_behind_the_drop(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(outbox=puts("a")))
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        await ledger.commit(a_commit(2, operation_id="back", outbox=puts("b")))
        assert await waiting(ledger) == [("drop", ""), ("put", "b")]

    async def test_a_buried_entry_waits_no_more_and_is_kept(self, ledger: Ledger, peer: Ledger) -> None:
        await ledger.commit(a_commit(outbox=puts("a", "b", "c")))
        await ledger.commit(a_commit(key=BOB, outbox=puts("a")))
        first, second, _ = await ledger.read_outbox(KEY, 10)
        await peer.bury_outbox(KEY, [second.seq, 10**9], "too_large")
        await peer.bury_outbox(KEY, [], "too_large")
        assert await waiting(ledger) == [("put", "a"), ("put", "c")]
        (dead,) = await ledger.read_outbox(KEY, 10, buried=True)
        assert (dead.op, dead.memory_id, dead.seq, dead.key) == ("put", "b", second.seq, KEY)
        assert dead.reason == "too_large"
        await peer.bury_outbox(KEY, [first.seq], "refused")
        buried = await ledger.read_outbox(KEY, 10, buried=True)
        assert [entry.reason for entry in buried] == ["refused", "too_large"]
        assert await ledger.read_outbox(KEY, 1, buried=True) == buried[:1]
        assert await ledger.outbox_users("", 99, buried=True) == [KEY]
        assert await ledger.outbox_users(str(KEY), 99, buried=True) == []
        assert await ledger.outbox_users("", 99) == [KEY, BOB]

    async def test_a_user_whose_entries_are_all_buried_waits_for_nothing(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(outbox=puts("a")))
        (entry,) = await ledger.read_outbox(KEY, 10)
        await ledger.bury_outbox(KEY, [entry.seq], "refused")
        assert await ledger.outbox_users("", 99) == []
        await ledger.ack_outbox(KEY, [entry.seq])
        assert await ledger.outbox_users("", 99, buried=True) == []
        assert await waiting(ledger, buried=True) == []

    async def test_a_replayed_commit_adds_nothing_to_outbox_or_audit(self, ledger: Ledger) -> None:
        commit = a_commit(outbox=puts("a"), audit=(an_audit(),))
        await ledger.commit(commit)
        await ledger.commit(commit)
        assert len(await ledger.read_outbox(KEY, 10)) == len(await ledger.audit(KEY, 0, 10)) == 1

    async def test_a_generation_counts_erasures(self, ledger: Ledger, peer: Ledger) -> None:
        assert await ledger.generation(KEY) == 0
        await ledger.commit(a_commit())
        assert await peer.generation(KEY) == 0
        await ledger.erase(KEY, 1, 1, "erase-1", NOW)
        assert await peer.generation(KEY) == 1
        await ledger.commit(a_commit(2, operation_id="back"))
        assert await peer.generation(KEY) == 1
        await ledger.erase(KEY, 3, 1, "erase-2", NOW)
        assert await peer.generation(KEY) == 2
        assert await peer.generation(BOB) == 0

    async def test_documents_are_memories_with_their_vectors(self, ledger: Ledger, peer: Ledger) -> None:
        archived = a_memory(id="mem-2", status=Status.ARCHIVED, archived_at=NOW)
        settled = a_memory(id="mem-3", status=Status.SUPERSEDED)
        bare = a_memory(id="mem-4")
        vectors = {f"mem-{number}": a_vector(number) for number in (1, 2, 3)}
        memories = (a_memory(), archived, settled, bare)
        await ledger.commit(a_commit(memories=memories, vectors=vectors))
        await ledger.commit(
            a_commit(key=BOB, memories=(a_memory(user_id="bob"),), vectors={"mem-1": a_vector(9)})
        )
        await ledger.touch(KEY, 1, {"mem-1": AccessCount(2, NOW)})
        wanted = ["mem-3", "mem-1", "mem-1", "mem-2", "mem-4", "mem-9"]
        found = {memory.id: (memory, vector) for memory, vector in await peer.documents(KEY, wanted)}
        touched = a_memory(access_count=2, last_access_at=NOW)
        assert [found[id_][0] for id_ in sorted(found)] == [touched, archived, settled]
        for id_, (_, vector) in found.items():
            assert vector.dtype == np.float32
            assert np.allclose(vector, vectors[id_], atol=2e-3)
        assert len(await peer.documents(KEY, ["mem-1"])) == 1
        assert await peer.documents(KEY, []) == []
        assert await peer.documents(NOBODY, wanted) == []
        assert await peer.memory_ids(KEY) == ["mem-1", "mem-2", "mem-3", "mem-4"]
        assert await peer.memory_ids(NOBODY) == []

    async def test_a_deleted_memory_is_no_document(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
        await ledger.commit(a_commit(1, deleted=("mem-1",)))
        assert await ledger.documents(KEY, ["mem-1"]) == []
        assert await ledger.memory_ids(KEY) == []

    async def test_documents_of_another_model_are_not_given(
        self, ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        """A process that an old server left behind must not feed an index with what it cannot read."""
        await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
        other, target = make_ledger(), EmbedderInfo("other-embedder", EMBEDDER.dimension)
        await other.begin_reembedding(target)
        await other.put_embedded(KEY, {"mem-1": a_vector(1)})
        assert (await other.finish_reembedding()).finished
        with pytest.raises(EmbedderMismatch):
            await ledger.documents(KEY, ["mem-1"])
        ((_, vector),) = await other.documents(KEY, ["mem-1"])
        assert np.allclose(vector, a_vector(1), atol=2e-3)
        await other.close()
