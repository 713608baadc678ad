"""Checks of notes, of alerts about a namespace, and of the shards that jobs page through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import Ledger, Note
from hermes_memory.testing.builders import EMBEDDER, KEY, a_commit, an_alert


class NoteChecks:
    """What a job leaves is found again, by name; of two writers who expect the same, one writes."""

    async def test_a_note_is_kept_by_namespace_and_name(self, ledger: Ledger, peer: Ledger) -> None:
        assert await ledger.note("app", "night") is None
        assert await ledger.put_note("app", "night", {"达": [1, None, "a b"]})
        assert await ledger.put_note("", "night", "of all")
        assert await peer.note("app", "night") == Note({"达": [1, None, "a b"]}, 1)
        assert await peer.note("", "night") == Note("of all", 1)
        assert await peer.note("other-app", "night") is None

    async def test_every_writing_is_another_revision(self, ledger: Ledger) -> None:
        for number in range(3):
            assert await ledger.put_note("app", "night", number)
        assert await ledger.note("app", "night") == Note(2, 3)

    async def test_what_is_not_as_expected_is_left(self, ledger: Ledger) -> None:
        assert not await ledger.put_note("app", "night", "new", 1)
        assert await ledger.note("app", "night") is None
        assert await ledger.put_note("app", "night", "first", 0)
        assert not await ledger.put_note("app", "night", "second", 0)
        assert await ledger.put_note("app", "night", "third", 1)
        assert await ledger.note("app", "night") == Note("third", 2)

    async def test_of_two_who_expect_the_same_one_writes(self, ledger: Ledger, peer: Ledger) -> None:
        wrote = await asyncio.gather(
            *((ledger, peer)[i % 2].put_note("app", "night", i, 0) for i in range(8))
        )
        assert sum(wrote) == 1
        assert await ledger.note("app", "night") == Note(wrote.index(True), 1)

    async def test_names_are_listed_by_prefix_page_by_page(self, ledger: Ledger) -> None:
        names = ["night/1", "night/1/a", "night/2", "night0", "nigh", "夜/一"]
        for name in names:
            await ledger.put_note("app", name, 0)
        await ledger.put_note("other-app", "night/9", 0)
        assert await ledger.notes("app", "night/", "", 2) == ["night/1", "night/1/a"]
        assert await ledger.notes("app", "night/", "night/1/a", 2) == ["night/2"]
        assert await ledger.notes("app", "", "", 99) == sorted(names)
        assert await ledger.notes("app", "夜", "", 99) == ["夜/一"]
        assert await ledger.notes("app", "%", "", 99) == []

    async def test_notes_are_forgotten(self, ledger: Ledger) -> None:
        for name in ("a", "b"):
            await ledger.put_note("app", name, 0)
        await ledger.remove_notes("app", ["a", "never"])
        await ledger.remove_notes("app", [])
        assert await ledger.notes("app", "", "", 9) == ["b"]
        assert await ledger.note("app", "a") is None

    async def test_notes_outlive_the_handle(self, ledger: Ledger, make_ledger: Callable[[], Ledger]) -> None:
        await ledger.put_note("app", "night", "kept")
        await ledger.close()
        handle = make_ledger()
        await handle.open(EMBEDDER)
        assert await handle.note("app", "night") == Note("kept", 1)
        await handle.close()

    async def test_a_namespace_has_alerts_of_its_own(self, ledger: Ledger, peer: Ledger) -> None:
        await ledger.commit(a_commit(alerts=(an_alert(id="a1"), an_alert(id="a3"))))
        alarm = an_alert(id="a2", kind="recall_hit_rate", memory_id=None, measured=(0.31, 0.4))
        await ledger.raise_alert("app", alarm)
        await ledger.raise_alert("app", alarm)
        await ledger.raise_alert("other-app", an_alert(id="a9"))
        assert [(one.id, one.key) for one in await peer.alerts("app", "", 9)] == [
            ("a1", KEY), ("a2", None), ("a3", KEY),
        ]  # fmt: skip
        assert await ledger.alerts("app", "a1", 1) == [alarm]
        assert await ledger.close_alert("app", "a2")
        assert not await ledger.close_alert("app", "a2")
        assert [one.id for one in await ledger.alerts("app", "", 9)] == ["a1", "a3"]

    @pytest.mark.parametrize("count", [1, 2, 8, 16])
    async def test_the_shards_are_disjoint_and_together_everybody(self, ledger: Ledger, count: int) -> None:
        keys = [UserKey("app", f"user-{number:02}") for number in range(40)]
        keys += [UserKey("other-app", "ann")]
        for key in keys:
            await ledger.commit(a_commit(key=key))
        shards = [await _all(ledger, (number, count)) for number in range(count)]
        assert sorted(str(key) for shard in shards for key in shard) == sorted(map(str, keys))
        assert all(shard == sorted(shard, key=str) for shard in shards)
        assert max(map(len, shards)) < len(keys) or count == 1
        assert await ledger.users("other-app", "", 9, (0, 1)) == [keys[-1]]


async def _all(ledger: Ledger, shard: tuple[int, int]) -> list[UserKey]:
    found: list[UserKey] = []
    while page := await ledger.users(None, str(found[-1]) if found else "", 3, shard):
        found += page
    return found
