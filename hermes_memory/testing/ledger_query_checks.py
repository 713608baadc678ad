"""Checks of sessions, messages, jobs, turns, audit and listings."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.errors import SessionOwned
from hermes_memory.ports.ledger import JobStatus, Ledger
from hermes_memory.testing.builders import KEY, NOW, a_commit, a_job, a_session, a_turn, an_alert, an_audit

BOB = UserKey("app", "bob")
ELSEWHERE = UserKey("other-app", "ann")


class QueryChecks:
    """What is stored is found by its owner, in order, page by page, and by nobody else."""

    async def test_a_session_belongs_to_its_first_user(self, ledger: Ledger, peer: Ledger) -> None:
        assert await ledger.session_owner("app", "s1") is None
        await ledger.bind_session(KEY, "s1")
        await ledger.bind_session(KEY, "s1")
        with pytest.raises(SessionOwned):
            await peer.bind_session(BOB, "s1")
        await peer.bind_session(ELSEWHERE, "s1")
        assert await peer.session_owner("app", "s1") == "ann"
        assert await ledger.users(None, "", 10) == []

    async def test_of_users_that_race_for_a_session_one_gets_it(self, ledger: Ledger, peer: Ledger) -> None:
        keys = [UserKey("app", f"user{number}") for number in range(8)]
        answers = await asyncio.gather(
            *((ledger, peer)[i % 2].bind_session(key, "s1") for i, key in enumerate(keys)),
            return_exceptions=True,
        )
        winners = [key.user_id for key, answer in zip(keys, answers, strict=True) if answer is None]
        assert winners == [await ledger.session_owner("app", "s1")]
        assert sum(isinstance(answer, SessionOwned) for answer in answers) == len(keys) - 1

    async def test_known_messages_are_found_by_session(self, ledger: Ledger) -> None:
        hashes = {("s1", "m1"): ("h1", "j1"), ("s1", "m2"): ("h2", "j1"), ("s2", "m1"): ("h3", "j2")}
        await ledger.commit(a_commit(message_hashes=hashes))
        assert await ledger.seen_messages(KEY, "s1", ["m1", "m9"]) == {"m1": ("h1", "j1")}
        assert await ledger.seen_messages(KEY, "s2", ["m1", "m2"]) == {"m1": ("h3", "j2")}
        assert await ledger.seen_messages(BOB, "s1", ["m1"]) == {}
        assert await ledger.seen_messages(KEY, "s1", []) == {}

    async def test_a_job_is_found_inside_its_namespace_only(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(jobs=(a_job(),)))
        assert await ledger.job("app", "job-1") == (KEY, a_job())
        assert await ledger.job("other-app", "job-1") is None
        assert await ledger.job("app", "job-9") is None
        other = a_job(attempts=3)
        await ledger.commit(a_commit(key=ELSEWHERE, jobs=(other,)))
        assert await ledger.job("other-app", "job-1") == (ELSEWHERE, other)
        assert await ledger.job("app", "job-1") == (KEY, a_job())

    async def test_open_alerts_are_listed_by_namespace_page_by_page(
        self, ledger: Ledger, peer: Ledger
    ) -> None:
        raised = tuple(an_alert(id=f"a{number}") for number in range(3))
        await ledger.commit(a_commit(alerts=raised))
        await ledger.commit(a_commit(key=ELSEWHERE, alerts=(an_alert(id="a9"),)))
        first = await peer.alerts("app", "", 2)
        assert [(alert.id, alert.key) for alert in first] == [("a0", KEY), ("a1", KEY)]
        assert await ledger.alerts("app", "a1", 2) == [an_alert(id="a2", key=KEY)]
        assert [alert.id for alert in await ledger.alerts("other-app", "", 9)] == ["a9"]
        assert await ledger.alerts("nowhere", "", 9) == []

    async def test_a_closed_alert_opens_again_when_it_is_raised_again(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(alerts=(an_alert(),)))
        assert not await ledger.close_alert("other-app", "alert-1")
        assert await ledger.close_alert("app", "alert-1")
        assert not await ledger.close_alert("app", "alert-1")
        assert await ledger.alerts("app", "", 9) == []
        later = an_alert(at=NOW + timedelta(days=1))
        await ledger.commit(a_commit(expected_version=1, operation_id="op-2", alerts=(later,)))
        (alert,) = await ledger.alerts("app", "", 9)
        assert alert.at == later.at

    async def test_a_commit_closes_alerts_and_those_it_raises_are_open(self, ledger: Ledger) -> None:
        raised = tuple(an_alert(id=f"a{number}") for number in range(3))
        await ledger.commit(a_commit(alerts=raised))
        await ledger.commit(a_commit(key=BOB, alerts=(an_alert(id="a0"),)))
        again = (an_alert(id="a2"), an_alert(id="a3"))
        await ledger.commit(a_commit(1, alerts=again, seen_to=("a0", "a2", "a3", "never raised")))
        left = [(alert.id, alert.key) for alert in await ledger.alerts("app", "", 9)]
        assert left == [("a0", BOB), ("a1", KEY), ("a2", KEY), ("a3", KEY)]
        await ledger.commit(a_commit(2, seen_to=("a1", "a2", "a3")))
        assert [alert.key for alert in await ledger.alerts("app", "", 9)] == [BOB]

    async def test_an_erased_user_has_no_alerts(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(alerts=(an_alert(),)))
        await ledger.erase(KEY, 1, a_commit().epoch, "erase", NOW)
        assert await ledger.alerts("app", "", 9) == []

    async def test_a_job_moves_on(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(jobs=(a_job(),)))
        done = a_job(
            status=JobStatus.DONE, changes=({"op": "add", "content": "苏州"},), version=2, accepted=1
        )
        await ledger.commit(a_commit(1, jobs=(done,)))
        assert await ledger.job("app", "job-1") == (KEY, done)

    async def test_extracted_turns_wait_no_longer(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(turns=(a_turn(index=0), a_turn(index=1))))
        await ledger.commit(a_commit(1, extracted=(("s1", 0), ("s1", 77))))
        assert await ledger.turns(KEY) == [a_turn(index=0, pending=False), a_turn(index=1)]
        assert await ledger.pending_users("", 10) == [KEY]
        await ledger.commit(a_commit(2, extracted=(("s1", 1),)))
        assert await ledger.pending_users("", 10) == []

    async def test_a_rewritten_turn_keeps_its_place_and_creates_none(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(turns=(a_turn(index=0), a_turn(index=1))))
        masked = a_turn(index=0, content="…", pending=False)
        await ledger.commit(a_commit(1, rewritten=(masked, a_turn(index=9))))
        assert await ledger.turns(KEY) == [masked, a_turn(index=1)]

    async def test_turns_come_in_order_of_receipt_then_session_and_place(self, ledger: Ledger) -> None:
        later = NOW + timedelta(minutes=1)
        turns = [
            a_turn(session_id="s2", index=0),
            a_turn(session_id="s2", index=1),
            a_turn(session_id="s1", index=0, received_at=later, created_at=NOW - timedelta(days=9)),
            a_turn(session_id="s1", index=1, received_at=later),
        ]
        await ledger.commit(a_commit(turns=tuple(reversed(turns))))
        assert await ledger.turns(KEY) == turns
        assert list((await ledger.activate(KEY, 1)).turns) == turns

    async def test_the_snapshot_leaves_out_finished_turns_of_ended_sessions(self, ledger: Ledger) -> None:
        finished = a_turn(session_id="old", index=0, pending=False)
        waiting = a_turn(session_id="old", index=1)
        recent = a_turn(session_id="open", index=0, pending=False)
        await ledger.commit(
            a_commit(
                sessions=(a_session(id="old", ended=True), a_session(id="open")),
                turns=(finished, waiting, recent),
            )
        )
        assert (await ledger.activate(KEY, 1)).turns == (waiting, recent)
        assert await ledger.turns(KEY) == [finished, waiting, recent]

    async def test_the_audit_is_read_page_by_page(self, ledger: Ledger) -> None:
        for version in range(3):
            entries = tuple(an_audit(op=f"op{version}{n}", version=version + 1) for n in range(2))
            await ledger.commit(a_commit(version, audit=entries))
        await ledger.commit(a_commit(key=BOB, audit=(an_audit(op="bob"),)))
        first = await ledger.audit(KEY, 0, 4)
        rest = await ledger.audit(KEY, first[-1].seq, 4)
        assert [entry.op for entry in first + rest] == ["op00", "op01", "op10", "op11", "op20", "op21"]
        seqs = [entry.seq for entry in first + rest]
        assert seqs == sorted(set(seqs))
        assert await ledger.audit(KEY, seqs[-1], 4) == []
        assert (first[0].at, first[0].memory_id, first[0].version) == (NOW, "mem-1", 1)

    async def test_users_are_listed_page_by_page(self, ledger: Ledger) -> None:
        ids = ["ann", "bob", "ü", "一", "a/b", "a b", "A", "~", "a%2Fb"]
        keys = [UserKey(namespace, id_) for namespace in ("app", "app2", "a") for id_ in ids]
        for key in keys:
            await ledger.commit(a_commit(key=key))
        for namespace in (None, "app", "a", "nobody"):
            expected = sorted((k for k in keys if namespace in (None, k.namespace)), key=str)
            found: list[UserKey] = []
            while page := await ledger.users(namespace, str(found[-1]) if found else "", 4):
                found += page
            assert found == expected

    async def test_users_with_waiting_turns_are_listed_page_by_page(self, ledger: Ledger) -> None:
        keys = [UserKey("app", f"user{number}") for number in range(7)]
        for number, key in enumerate(keys):
            await ledger.commit(a_commit(key=key, turns=(a_turn(pending=number != 3), a_turn(index=1))))
        await ledger.commit(a_commit(1, key=keys[5], extracted=(("s1", 0), ("s1", 1))))
        await ledger.commit(a_commit(1, key=keys[3], extracted=(("s1", 1),)))
        first = await ledger.pending_users("", 3)
        assert first == keys[:3]
        assert await ledger.pending_users(str(first[-1]), 3) == [keys[4], keys[6]]
