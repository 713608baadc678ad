"""Checks of commits: compare-and-set, fencing, replay, atomicity, the snapshot."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Affirmed, Lock, Revision, Status
from hermes_memory.errors import EmbedderMismatch, Fenced, HermesError, LeaseLost, VersionConflict
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import AccessCount, JobStatus, Ledger, OutboxEntry, Settings, Snapshot, Spent
from hermes_memory.testing.builders import (
    EMBEDDER,
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
    an_evidence,
)

VECTOR_TOLERANCE = 1e-3  # vectors are kept in half precision
UNICODE = "我不吃香菜 🌶️ — naïve “ಠ_ಠ” \u2028 \x00 \\ \" 'DROP; 👨‍👩‍👧 اَلْعَرَبِيَّةُ"


class CommitChecks:
    """One user's state changes whole, in order, by its owner only."""

    async def test_a_user_never_seen_is_version_0_and_leaves_no_trace(self, ledger: Ledger) -> None:
        assert await ledger.activate(KEY, 7) == Snapshot(key=KEY)
        assert await ledger.users(None, "", 10) == []

    async def test_a_first_commit_of_any_epoch_is_accepted_and_owns(self, ledger: Ledger) -> None:
        await ledger.activate(KEY, 1)
        assert (await ledger.commit(a_commit(epoch=9))).version == 1
        with pytest.raises(Fenced) as caught:
            await ledger.commit(a_commit(1, epoch=1))
        assert (caught.value.epoch, caught.value.owner_epoch) == (1, 9)

    async def test_everything_committed_comes_back(self, ledger: Ledger, peer: Ledger) -> None:
        memory = a_memory(
            lock=Lock.CONFIRMED,
            valid_from=NOW - timedelta(days=400),
            last_access_at=NOW,
            access_count=2,
            entities=("苏州", "园区"),
            evidence=(an_evidence(), an_evidence(turn_index=3, quote=UNICODE)),
            confirmations=(Affirmed(session_id="s2", message_id="m9", at=NOW),),
            attributes={"parts": [{"id": "x", "n": 1, "deep": {"ok": None}}]},
        )
        memory = memory.with_(
            history=(
                Revision(
                    at=NOW,
                    version=1,
                    reason="correction",
                    message_id="m1",
                    content="用户住在上海",
                    object="上海",
                    polarity=memory.polarity,
                    lock=Lock.PENDING,
                    status=Status.SUPERSEDED,
                ),
            )
        )
        settings = Settings(
            consent={"cohort": True}, profile={"city": {"value": "苏州"}}, spent=Spent("2026-03-01", 1234)
        )
        told = a_session(scene="travel", summary=a_summary(text=UNICODE))
        await ledger.commit(
            a_commit(
                memories=(memory, a_memory(id="old", status=Status.ARCHIVED)),
                vectors={"mem-1": a_vector(1), "old": a_vector(2)},
                sessions=(told, a_session(id="s0", ended=True)),
                turns=(a_turn(index=0), a_turn(index=1, pending=False)),
                jobs=(a_job(changes=({"op": "add", "id": "mem-1"},)),),
                settings=settings,
            )
        )
        seen = await peer.activate(KEY, 1)
        assert (seen.version, seen.generation, seen.owner_epoch) == (1, 0, 1)
        assert {m.id: m for m in seen.memories} == {
            "mem-1": memory,
            "old": a_memory(id="old", status=Status.ARCHIVED),
        }
        assert set(seen.vectors) == {"mem-1", "old"}
        assert seen.vectors["old"].dtype == np.float32
        np.testing.assert_allclose(seen.vectors["mem-1"], a_vector(1), atol=VECTOR_TOLERANCE)
        assert {s.id: s for s in seen.sessions} == {
            "s1": told,
            "s0": a_session(id="s0", ended=True),
        }
        assert seen.turns == (a_turn(index=0), a_turn(index=1, pending=False))
        assert seen.jobs == (a_job(changes=({"op": "add", "id": "mem-1"},)),)
        assert seen.settings == settings

    async def test_text_and_ids_in_any_script_survive(self, ledger: Ledger, peer: Ledger) -> None:
        key = UserKey("app/一 %2F", "用户 🌶️/ü")
        memory = a_memory(id=UNICODE[:9], content=UNICODE, object=UNICODE, attributes={UNICODE: UNICODE})
        turn = a_turn(session_id="会话/1", content=UNICODE)
        await ledger.commit(a_commit(key=key, memories=(memory,), turns=(turn,), result={"text": UNICODE}))
        seen = await peer.activate(key, 1)
        assert (seen.memories, seen.turns) == ((memory,), (turn,))
        assert await peer.users(None, "", 10) == [key]
        again = await peer.commit(a_commit(key=key))
        assert again.result == {"text": UNICODE}

    async def test_settings_of_none_stay_as_they_are(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(settings=Settings(paused=True)))
        await ledger.commit(a_commit(1))
        assert (await ledger.activate(KEY, 1)).settings == Settings(paused=True)

    async def test_a_stale_version_conflicts_and_changes_nothing(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit())
        with pytest.raises(VersionConflict) as caught:
            await ledger.commit(a_commit(5, memories=(a_memory(),), audit=(an_audit(),)))
        assert (caught.value.expected, caught.value.actual) == (5, 1)
        seen = await ledger.activate(KEY, 1)
        assert (seen.version, seen.memories) == (1, ())
        assert await ledger.audit(KEY, 0, 10) == []
        assert await ledger.operation(KEY, "op-5") is None

    async def test_of_two_writers_that_race_exactly_one_wins(self, ledger: Ledger, peer: Ledger) -> None:
        await ledger.commit(a_commit())
        answers = await asyncio.gather(
            ledger.commit(a_commit(1, operation_id="left", memories=(a_memory(id="left"),))),
            peer.commit(a_commit(1, operation_id="right", memories=(a_memory(id="right"),))),
            return_exceptions=True,
        )
        conflicts = [answer for answer in answers if isinstance(answer, VersionConflict)]
        assert [(conflict.expected, conflict.actual) for conflict in conflicts] == [(1, 2)]
        seen = await ledger.activate(KEY, 1)
        winner = "left" if isinstance(answers[1], VersionConflict) else "right"
        assert (seen.version, [memory.id for memory in seen.memories]) == (2, [winner])

    async def test_two_first_commits_that_race_make_one_user(self, ledger: Ledger, peer: Ledger) -> None:
        answers = await asyncio.gather(
            ledger.commit(a_commit(operation_id="left")),
            peer.commit(a_commit(operation_id="right")),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, VersionConflict) for answer in answers) == 1
        assert (await ledger.activate(KEY, 1)).version == 1

    async def test_writers_who_reload_on_conflict_lose_nothing(self, ledger: Ledger, peer: Ledger) -> None:
        async def add(handle: Ledger, name: str) -> None:
            while True:
                version = (await handle.activate(KEY, 1)).version
                try:
                    await handle.commit(a_commit(version, operation_id=name, memories=(a_memory(id=name),)))
                except VersionConflict:
                    continue
                return

        names = [f"w{number}" for number in range(12)]
        await asyncio.gather(*(add((ledger, peer)[i % 2], name) for i, name in enumerate(names)))
        seen = await ledger.activate(KEY, 1)
        assert seen.version == len(names)
        assert sorted(memory.id for memory in seen.memories) == sorted(names)

    async def test_many_users_commit_at_once_and_stay_apart(self, ledger: Ledger) -> None:
        keys = [UserKey("app", f"user{number}") for number in range(24)]

        async def live(key: UserKey) -> None:
            for version in range(4):
                memory = a_memory(id=f"{key.user_id}-{version}", user_id=key.user_id)
                assert (
                    await ledger.commit(a_commit(version, key=key, memories=(memory,)))
                ).version == version + 1

        await asyncio.gather(*map(live, keys))
        for key in keys:
            seen = await ledger.activate(key, 1)
            assert {memory.user_id for memory in seen.memories} == {key.user_id}
            assert (seen.version, len(seen.memories)) == (4, 4)

    async def test_commits_that_wait_together_fail_alone(self, ledger: Ledger) -> None:
        keys = [UserKey("app", f"user{number}") for number in range(10)]
        commits = [a_commit(3 if i % 2 else 0, key=key) for i, key in enumerate(keys)]
        answers = await asyncio.gather(*map(ledger.commit, commits), return_exceptions=True)
        assert [isinstance(answer, VersionConflict) for answer in answers] == [bool(i % 2) for i in range(10)]
        assert await ledger.users(None, "", 99) == sorted(keys[::2])

    async def test_activation_fences_the_former_owner(self, ledger: Ledger, peer: Ledger) -> None:
        await ledger.commit(a_commit(epoch=1))
        assert (await peer.activate(KEY, 2)).owner_epoch == 2
        with pytest.raises(Fenced) as caught:
            await ledger.commit(a_commit(1, epoch=1))
        assert (caught.value.epoch, caught.value.owner_epoch) == (1, 2)
        assert (await peer.commit(a_commit(1, epoch=2))).version == 2

    async def test_the_epoch_is_checked_before_the_version(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(epoch=1))
        await ledger.activate(KEY, 2)
        with pytest.raises(Fenced):
            await ledger.commit(a_commit(77, epoch=1))

    async def test_a_replay_gives_the_first_answer_before_any_other_check(self, ledger: Ledger) -> None:
        first = a_commit(operation_id="op", result={"ids": ["mem-1"], "n": 1}, memories=(a_memory(),))
        fresh = await ledger.commit(first)
        assert (fresh.version, fresh.replayed, fresh.result) == (1, False, {"ids": ["mem-1"], "n": 1})
        await ledger.commit(a_commit(1, operation_id="later"))
        await ledger.activate(KEY, 2)
        replay = await ledger.commit(
            dataclasses.replace(first, memories=(a_memory(id="other"),), result="another answer")
        )
        assert (replay.version, replay.replayed, replay.result) == (1, True, {"ids": ["mem-1"], "n": 1})
        seen = await ledger.activate(KEY, 2)
        assert (seen.version, [memory.id for memory in seen.memories]) == (2, ["mem-1"])

    async def test_the_same_operation_delivered_twice_at_once_applies_once(
        self, ledger: Ledger, peer: Ledger
    ) -> None:
        commit = a_commit(memories=(a_memory(),), audit=(an_audit(),), result=1)
        receipts = await asyncio.gather(ledger.commit(commit), peer.commit(commit))
        assert sorted(receipt.replayed for receipt in receipts) == [False, True]
        assert {(receipt.version, receipt.result) for receipt in receipts} == {(1, 1)}
        assert len(await ledger.audit(KEY, 0, 10)) == 1

    async def test_operations_are_found_again_per_user(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(operation_id="op", result=[1]))
        known = await ledger.operation(KEY, "op")
        assert known is not None
        assert (known.version, known.replayed, known.result) == (1, True, [1])
        assert await ledger.operation(KEY, "never") is None
        assert await ledger.operation(UserKey("app", "bob"), "op") is None

    async def test_a_commit_that_cannot_be_written_whole_is_not_written(self, ledger: Ledger) -> None:
        wrong = {"mem-1": a_vector(1, EMBEDDER.dimension + 1)}
        with pytest.raises(HermesError):
            await ledger.commit(a_commit(memories=(a_memory(),), vectors=wrong, turns=(a_turn(),)))
        assert await ledger.activate(KEY, 1) == Snapshot(key=KEY)
        assert (await ledger.commit(a_commit())).replayed is False

    async def test_deleting_removes_memory_and_vector(self, ledger: Ledger) -> None:
        two = (a_memory(), a_memory(id="mem-2"))
        await ledger.commit(a_commit(memories=two, vectors={"mem-1": a_vector(1), "mem-2": a_vector(2)}))
        await ledger.commit(a_commit(1, deleted=("mem-1", "never-there")))
        seen = await ledger.activate(KEY, 1)
        assert [memory.id for memory in seen.memories] == ["mem-2"]
        assert set(seen.vectors) == {"mem-2"}

    async def test_answers_that_hold_what_was_deleted_are_forgotten(self, ledger: Ledger) -> None:
        told = {"id": "mem-1", "content": "I live in Oslo"}
        await ledger.commit(a_commit(operation_id="edit", memories=(a_memory(),), result=told))
        await ledger.commit(a_commit(1, operation_id="other", result={"id": "mem-2"}))
        await ledger.commit(a_commit(2, operation_id="delete", deleted=("mem-1",), result={"erased": 1}))
        answers = [await ledger.operation(KEY, name) for name in ("edit", "other", "delete")]
        assert [receipt.result for receipt in answers if receipt] == [None, {"id": "mem-2"}, {"erased": 1}]

    async def test_a_new_memory_value_replaces_the_old(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector(1)}))
        changed = a_memory(version=2, content="用户住在杭州", object="杭州")
        await ledger.commit(a_commit(1, memories=(changed,), vectors={"mem-1": a_vector(5)}))
        seen = await ledger.activate(KEY, 1)
        assert seen.memories == (changed,)
        np.testing.assert_allclose(seen.vectors["mem-1"], a_vector(5), atol=VECTOR_TOLERANCE)

    async def test_access_counts_stay_outside_the_version(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),)))
        later = NOW + timedelta(days=1)
        await ledger.touch(KEY, 1, {"mem-1": AccessCount(2, later), "gone": AccessCount(1, later)})
        await ledger.touch(KEY, 1, {"mem-1": AccessCount(3, NOW)})
        await ledger.touch(KEY, 99, {"mem-1": AccessCount(50, later)})
        await ledger.touch(UserKey("app", "never"), 1, {"mem-1": AccessCount(50, later)})
        seen = await ledger.activate(KEY, 1)
        assert seen.version == 1
        assert seen.memories == (a_memory(access_count=5, last_access_at=later),)
        assert await ledger.users(None, "", 10) == [KEY]

    async def test_a_commit_lowers_no_access_count(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),)))
        await ledger.touch(KEY, 1, {"mem-1": AccessCount(4, NOW)})
        await ledger.commit(a_commit(1, memories=(a_memory(importance=0.9),)))
        (memory,) = (await ledger.activate(KEY, 1)).memories
        assert (memory.importance, memory.access_count, memory.last_access_at) == (0.9, 4, NOW)

    async def test_epochs_only_grow_over_hosts_and_handles(self, ledger: Ledger, peer: Ledger) -> None:
        claims = [handle.claim_epoch(f"h{i}", 10, NOW) for i, handle in enumerate([ledger, peer] * 4)]
        epochs = await asyncio.gather(*claims)
        assert len(set(epochs)) == len(epochs)
        assert await peer.claim_epoch("h0", 10, NOW) > max(epochs)

    async def test_a_lease_is_renewed_until_it_runs_out(self, ledger: Ledger) -> None:
        epoch = await ledger.claim_epoch("host", 10, NOW)
        await ledger.renew_lease(epoch, 10, NOW + timedelta(seconds=9))
        await ledger.renew_lease(epoch, 10, NOW + timedelta(seconds=18))
        with pytest.raises(LeaseLost):
            await ledger.renew_lease(epoch, 10, NOW + timedelta(seconds=29))

    async def test_a_newer_epoch_of_the_host_ends_the_lease(self, ledger: Ledger, peer: Ledger) -> None:
        old = await ledger.claim_epoch("host", 10, NOW)
        other = await ledger.claim_epoch("other", 10, NOW)
        new = await peer.claim_epoch("host", 10, NOW)
        with pytest.raises(LeaseLost):
            await ledger.renew_lease(old, 10, NOW)
        with pytest.raises(LeaseLost):
            await ledger.renew_lease(new + 100, 10, NOW)
        await ledger.renew_lease(new, 10, NOW)
        await ledger.renew_lease(other, 10, NOW)

    async def test_the_embedder_belongs_to_the_data(
        self, ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        for other in (EmbedderInfo("other", EMBEDDER.dimension), EmbedderInfo(EMBEDDER.name, 9)):
            handle = make_ledger()
            with pytest.raises(EmbedderMismatch) as caught:
                await handle.open(other)
            assert (caught.value.stored, caught.value.configured) == (str(EMBEDDER), str(other))
            await handle.close()

    async def test_state_outlives_the_handle(self, ledger: Ledger, make_ledger: Callable[[], Ledger]) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),), outbox=(OutboxEntry(op="put", memory_id="x"),)))
        await ledger.close()
        await ledger.close()
        handle = make_ledger()
        await handle.open(EMBEDDER)
        await handle.ping()
        assert (await handle.activate(KEY, 1)).memories == (a_memory(),)
        assert len(await handle.read_outbox(KEY, 10)) == 1
        await handle.close()

    async def test_finished_jobs_leave_the_snapshot(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(jobs=(a_job(), a_job(id="job-2"), a_job(id="job-3"))))
        done, failed = a_job(status=JobStatus.DONE), a_job(id="job-2", status=JobStatus.FAILED)
        await ledger.commit(a_commit(1, jobs=(done, failed)))
        seen = await ledger.activate(KEY, 1)
        assert {job.id: job for job in seen.jobs} == {"job-2": failed, "job-3": a_job(id="job-3")}
