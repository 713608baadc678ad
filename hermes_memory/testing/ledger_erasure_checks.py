"""Checks of erasure and sweeping: what must be gone, and what a tombstone still knows (ARCHITECTURE §2)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Lock
from hermes_memory.errors import Fenced, VersionConflict
from hermes_memory.ports.ledger import ErasureReceipt, Ledger, OutboxEntry, Settings, Snapshot, Spent
from hermes_memory.testing.builders import (
    KEY,
    NOW,
    a_commit,
    a_job,
    a_memory,
    a_session,
    a_summary,
    a_turn,
    a_vector,
    an_audit,
)

ZEROS = ErasureReceipt(
    memories=0, vectors=0, turns=0, audit=0, jobs=0, profile_slots=0, remaining=0, version=0
)
BOB = UserKey("app", "bob")


async def live(ledger: Ledger, key: UserKey = KEY) -> None:
    """A user with one of everything, at version 1."""
    await ledger.bind_session(key, f"s1-{key.user_id}")
    frozen = a_memory(id="mem-2", user_id=key.user_id, lock=Lock.FROZEN)
    await ledger.commit(
        a_commit(
            key=key,
            memories=(a_memory(user_id=key.user_id), frozen),
            vectors={"mem-1": a_vector(1), "mem-2": a_vector(2)},
            sessions=(a_session(),),
            turns=(a_turn(), a_turn(index=1, pending=False)),
            message_hashes={("s1", "m0"): ("hash", "job-1")},
            jobs=(a_job(id=f"job-{key.user_id}"),),
            audit=(an_audit(), an_audit(op="freeze"), an_audit(op="confirm")),
            outbox=(OutboxEntry(op="put", memory_id="mem-1"),),
            settings=Settings(paused=True, profile={"city": {"value": "苏州"}}, spent=Spent("2026-03-01", 9)),
            result={"said": "苏州"},
        )
    )


class ErasureChecks:
    """Erasing removes everything of one user, revives nobody, and is answered truthfully."""

    async def test_the_receipt_counts_what_went(self, ledger: Ledger) -> None:
        await live(ledger)
        receipt = await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert receipt == ErasureReceipt(
            memories=2, vectors=2, turns=2, audit=3, jobs=1, profile_slots=1, remaining=0, version=2
        )

    async def test_nothing_is_findable_afterwards(self, ledger: Ledger, peer: Ledger) -> None:
        await live(ledger)
        await live(ledger, BOB)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert await peer.activate(KEY, 1) == Snapshot(key=KEY, version=2, generation=1, owner_epoch=1)
        assert await peer.audit(KEY, 0, 10) == []
        assert await peer.turns(KEY) == []
        assert await peer.job("app", "job-ann") is None
        assert await peer.session_owner("app", "s1-ann") is None
        assert await peer.seen_messages(KEY, "s1", ["m0"]) == {}
        assert await peer.users(None, "", 10) == [BOB]
        assert await peer.pending_users("", 10) == [BOB]
        assert [entry.op for entry in await peer.read_outbox(KEY, 10)] == ["drop"]
        assert [entry.op for entry in await peer.read_outbox(BOB, 10)] == ["put"]
        assert await peer.memory_ids(KEY) == []
        assert await peer.documents(KEY, ["mem-1", "mem-2"]) == []

    async def test_other_users_are_untouched(self, ledger: Ledger) -> None:
        await live(ledger)
        await live(ledger, BOB)
        before = await ledger.activate(BOB, 1)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        after = await ledger.activate(BOB, 1)
        assert (after.version, after.memories, after.turns) == (before.version, before.memories, before.turns)
        assert await ledger.session_owner("app", "s1-bob") == "bob"
        assert len(await ledger.audit(BOB, 0, 10)) == 3

    async def test_an_unknown_user_gives_zeros_and_leaves_nothing(self, ledger: Ledger) -> None:
        assert await ledger.erase(KEY, 0, 1, "erase", NOW) == ZEROS
        assert await ledger.activate(KEY, 1) == Snapshot(key=KEY)
        assert await ledger.read_outbox(KEY, 10) == []
        with pytest.raises(VersionConflict):
            await ledger.erase(KEY, 3, 1, "erase-2", NOW)

    async def test_a_session_bound_before_the_first_commit_is_freed(self, ledger: Ledger) -> None:
        await ledger.bind_session(KEY, "s9")
        await ledger.erase(KEY, 0, 1, "erase", NOW)
        await ledger.bind_session(BOB, "s9")
        assert await ledger.session_owner("app", "s9") == "bob"

    async def test_epoch_and_version_are_checked(self, ledger: Ledger) -> None:
        await live(ledger)
        with pytest.raises(Fenced):
            await ledger.erase(KEY, 9, 7, "erase", NOW)
        with pytest.raises(VersionConflict) as caught:
            await ledger.erase(KEY, 9, 1, "erase", NOW)
        assert (caught.value.expected, caught.value.actual) == (9, 1)
        assert len((await ledger.activate(KEY, 1)).memories) == 2

    async def test_a_repeated_erasure_gives_the_first_receipt(self, ledger: Ledger, peer: Ledger) -> None:
        await live(ledger)
        first = await ledger.erase(KEY, 1, 1, "erase", NOW)
        await ledger.activate(KEY, 5)
        assert await peer.erase(KEY, 1, 1, "erase", NOW) == first
        seen = await ledger.activate(KEY, 5)
        assert (seen.version, seen.generation) == (2, 1)
        assert [entry.op for entry in await ledger.read_outbox(KEY, 10)] == ["drop"]

    async def test_a_late_replay_revives_nobody(self, ledger: Ledger, peer: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        late = await peer.commit(a_commit(memories=(a_memory(),)))
        assert (late.version, late.replayed, late.result) == (1, True, None)
        known = await peer.operation(KEY, "op-0")
        assert known is not None
        assert (known.replayed, known.result) == (True, None)
        assert (await ledger.activate(KEY, 1)).memories == ()
        assert await ledger.users(None, "", 10) == []

    async def test_a_late_replay_is_still_known_after_the_user_came_back(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        await ledger.commit(a_commit(2, operation_id="again"))
        late = await ledger.commit(a_commit(3, operation_id="op-0", memories=(a_memory(),)))
        assert (late.version, late.replayed, late.result) == (1, True, None)
        assert (await ledger.activate(KEY, 1)).memories == ()

    async def test_a_commit_based_on_the_erased_state_conflicts(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        for version in (0, 1):
            with pytest.raises(VersionConflict) as caught:
                await ledger.commit(a_commit(version, operation_id=f"late-{version}"))
            assert caught.value.actual == 2

    async def test_version_and_generation_never_go_back(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase-1", NOW)
        assert (await ledger.commit(a_commit(2, memories=(a_memory(),)))).version == 3
        seen = await ledger.activate(KEY, 1)
        assert (seen.version, seen.generation, seen.settings) == (3, 1, Settings())
        assert (await ledger.erase(KEY, 3, 1, "erase-2", NOW)).version == 4
        assert (await ledger.erase(KEY, 4, 1, "erase-3", NOW)).version == 5
        await ledger.sweep(NOW + timedelta(days=365), 24, 72)
        seen = await ledger.activate(KEY, 1)
        assert (seen.version, seen.generation) == (5, 3)

    async def test_the_owner_of_a_tombstone_is_fenced_as_well(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert (await ledger.activate(KEY, 2)).owner_epoch == 2
        with pytest.raises(Fenced):
            await ledger.commit(a_commit(2, epoch=1))
        assert (await ledger.commit(a_commit(2, epoch=2))).version == 3

    async def test_a_freed_session_may_belong_to_another(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        await ledger.bind_session(BOB, "s1-ann")
        assert await ledger.session_owner("app", "s1-ann") == "bob"

    async def test_sweeping_takes_old_turns_that_do_not_wait(self, ledger: Ledger) -> None:
        old = NOW - timedelta(hours=30)
        kept = (
            a_turn(index=0, received_at=old),
            a_turn(index=2, pending=False, created_at=old - timedelta(days=900)),
        )
        gone = a_turn(index=1, received_at=old, pending=False)
        await ledger.commit(a_commit(turns=(*kept, gone)))
        assert await ledger.sweep(NOW, 24, 72) == 1
        assert await ledger.turns(KEY) == list(kept)
        assert await ledger.sweep(NOW, 24, 72) == 0

    async def test_sweeping_takes_the_summary_with_the_last_turn_of_a_conversation(
        self, ledger: Ledger
    ) -> None:
        """SPEC §4.3: nobody ended it, so the sweep sees to it that its words outlive no raw turn."""
        old, new = NOW - timedelta(hours=30), NOW - timedelta(hours=2)
        told = a_session(summary=a_summary(at=old))
        turns = (
            a_turn(received_at=old, pending=False),
            a_turn(index=1, received_at=new, pending=False),
        )
        await ledger.commit(a_commit(turns=turns, sessions=(told, a_session(id="s2"))))
        assert await ledger.sweep(NOW, 24, 72) == 1
        assert set((await ledger.activate(KEY, 1)).sessions) == {told, a_session(id="s2")}
        assert await ledger.sweep(NOW + timedelta(hours=23), 24, 72) == 1
        assert set((await ledger.activate(KEY, 1)).sessions) == {a_session(), a_session(id="s2")}

    async def test_sweeping_takes_old_operation_ids(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(0, at=NOW - timedelta(hours=80)))
        await ledger.commit(a_commit(1))
        assert await ledger.sweep(NOW, 24, 72) == 1
        assert await ledger.operation(KEY, "op-0") is None
        assert await ledger.operation(KEY, "op-1") is not None
        with pytest.raises(VersionConflict):
            await ledger.commit(a_commit(0))

    async def test_sweeping_takes_old_ids_of_tombstones(self, ledger: Ledger) -> None:
        await live(ledger)
        await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert await ledger.sweep(NOW + timedelta(hours=71), 24, 72) == 0
        assert await ledger.sweep(NOW + timedelta(hours=73), 24, 72) == 2
        assert await ledger.operation(KEY, "op-0") is None
        with pytest.raises(VersionConflict):
            await ledger.commit(a_commit(0))
