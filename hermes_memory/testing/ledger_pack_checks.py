"""What every Ledger promises about knowledge packs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hermes_memory.errors import InvalidInput
from hermes_memory.ports.ledger import Ledger, StoredPack
from hermes_memory.testing.builders import (
    EMBEDDER,
    KEY,
    NOW,
    a_commit,
    a_memory,
    a_pack,
    a_stored_pack,
    a_vector,
    an_entry,
)


def _same(left: StoredPack, right: StoredPack) -> bool:
    """Equal but for what half precision costs."""
    near = left.vectors.shape == right.vectors.shape and np.allclose(left.vectors, right.vectors, atol=1e-3)
    plain = [dataclasses.replace(one, vectors=np.zeros(0, np.float32)) for one in (left, right)]
    return near and (plain[0].namespace, plain[0].pack, plain[0].loaded_at) == (
        plain[1].namespace,
        plain[1].pack,
        plain[1].loaded_at,
    )


RICH = a_pack(
    name="rich",
    title="Everything an entry can hold",
    entries=(
        an_entry(),
        an_entry(
            id="mooncake",
            content={"zh": "月饼里常有蛋黄"},
            cues={},
            dimensions=("allergy",),
            limits={"season": frozenset({"autumn"}), "daytime": frozenset({"evening", "night"})},
            scenes=frozenset({"dining", "gifts"}),
        ),
    ),
)


class PackChecks:
    """Packs are shared by a namespace, and replaced and removed whole."""

    async def test_a_pack_comes_back_as_it_was_stored(self, ledger: Ledger, peer: Ledger) -> None:
        stored = a_stored_pack(pack=RICH)
        await ledger.put_pack(stored)
        (found,) = await peer.packs(KEY.namespace)
        assert _same(found, stored)
        assert list(found.pack.entries[0].content) == ["zh", "en"]  # the order of the vectors

    async def test_the_same_name_replaces(self, ledger: Ledger) -> None:
        await ledger.put_pack(a_stored_pack(pack=RICH))
        newer = a_stored_pack(pack=a_pack(name="rich", version="2"))
        for _ in range(2):
            await ledger.put_pack(newer)
            (found,) = await ledger.packs(KEY.namespace)
            assert _same(found, newer)

    async def test_packs_belong_to_their_namespace(self, ledger: Ledger) -> None:
        for namespace, name in (("b", "x"), ("a", "y"), ("a", "x")):
            await ledger.put_pack(a_stored_pack(namespace=namespace, pack=a_pack(name=name)))
        assert [stored.pack.name for stored in await ledger.packs("a")] == ["x", "y"]
        assert await ledger.packs("c") == []
        everywhere = [(stored.namespace, stored.pack.name) for stored in await ledger.packs(None)]
        assert everywhere == [("a", "x"), ("a", "y"), ("b", "x")]

    async def test_a_removed_pack_is_gone(self, ledger: Ledger) -> None:
        await ledger.put_pack(a_stored_pack())
        await ledger.put_pack(a_stored_pack(namespace="other"))
        assert await ledger.remove_pack(KEY.namespace, "everyday")
        assert not await ledger.remove_pack(KEY.namespace, "everyday")
        assert await ledger.packs(KEY.namespace) == []
        assert len(await ledger.packs("other")) == 1

    async def test_the_revision_tells_of_every_change_and_of_nothing_else(
        self, ledger: Ledger, peer: Ledger
    ) -> None:
        seen = [await peer.packs_revision()]
        await ledger.put_pack(a_stored_pack())
        seen.append(await peer.packs_revision())
        await ledger.put_pack(a_stored_pack(pack=a_pack(version="2")))
        seen.append(await peer.packs_revision())
        await ledger.remove_pack(KEY.namespace, "everyday")
        seen.append(await peer.packs_revision())
        assert sorted(set(seen)) == seen
        await ledger.remove_pack(KEY.namespace, "everyday")
        await ledger.commit(a_commit(memories=(a_memory(),)))
        assert await peer.packs_revision() == seen[-1]

    @pytest.mark.parametrize("shape", [(1, EMBEDDER.dimension), (2, EMBEDDER.dimension + 1)])
    async def test_vectors_of_another_shape_change_nothing(
        self, ledger: Ledger, shape: tuple[int, int]
    ) -> None:
        await ledger.put_pack(a_stored_pack())
        before = await ledger.packs_revision()
        with pytest.raises(InvalidInput):
            await ledger.put_pack(a_stored_pack(vectors=np.zeros(shape, np.float32)))
        assert await ledger.packs_revision() == before
        assert len(await ledger.packs(KEY.namespace)) == 1

    async def test_erasing_a_user_leaves_the_packs(self, ledger: Ledger) -> None:
        await ledger.put_pack(a_stored_pack())
        await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
        receipt = await ledger.erase(KEY, 1, 1, "erase-1", NOW)
        assert receipt.remaining == 0
        assert len(await ledger.packs(KEY.namespace)) == 1
