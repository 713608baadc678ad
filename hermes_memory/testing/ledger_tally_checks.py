"""Checks of what is counted of a user by day, beside the version."""

from __future__ import annotations

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import AccessCount, Ledger, Snapshot
from hermes_memory.testing.builders import KEY, NOW, a_commit, a_memory

BOB = UserKey("app", "bob")


class TallyChecks:
    """Counts add up, change no version, and go with the user."""

    async def test_counts_add_up_by_day_and_name(self, ledger: Ledger, peer: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(),)))
        await ledger.commit(a_commit(key=BOB))
        await ledger.touch(KEY, 1, {}, {"2026-03-02": {"recalls": 2, "shown": 5}})
        counted = {"2026-03-02": {"recalls": 1}, "2026-03-03": {"recalls": 4}}
        await ledger.touch(KEY, 1, {"mem-1": AccessCount(1, NOW)}, counted)
        seen = await peer.activate(KEY, 1)
        assert seen.tally == {"2026-03-02": {"recalls": 3, "shown": 5}, "2026-03-03": {"recalls": 4}}
        assert (seen.version, seen.memories[0].access_count) == (1, 1)
        assert (await peer.activate(BOB, 1)).tally == {}

    async def test_another_epoch_and_an_unknown_user_count_nothing(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit())
        await ledger.touch(KEY, 99, {}, {"2026-03-02": {"recalls": 1}})
        await ledger.touch(BOB, 1, {}, {"2026-03-02": {"recalls": 1}})
        assert (await ledger.activate(KEY, 1)).tally == {}
        assert await ledger.activate(BOB, 1) == Snapshot(key=BOB)
        assert await ledger.users(None, "", 9) == [KEY]

    async def test_a_commit_forgets_the_days_before_one(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit())
        await ledger.touch(KEY, 1, {}, {day: {"recalls": 1} for day in ("2026-03-01", "2026-03-02")})
        await ledger.commit(a_commit(1))
        assert len((await ledger.activate(KEY, 1)).tally) == 2
        await ledger.commit(a_commit(2, tally_from="2026-03-02"))
        assert (await ledger.activate(KEY, 1)).tally == {"2026-03-02": {"recalls": 1}}

    async def test_an_erasure_takes_the_counts_with_it(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit())
        await ledger.touch(KEY, 1, {}, {"2026-03-02": {"recalls": 1}})
        receipt = await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert receipt.remaining == 0
        await ledger.touch(KEY, 1, {}, {"2026-03-02": {"recalls": 7}})
        assert (await ledger.activate(KEY, 1)).tally == {}
        await ledger.commit(a_commit(2, operation_id="back"))
        assert (await ledger.activate(KEY, 1)).tally == {}
