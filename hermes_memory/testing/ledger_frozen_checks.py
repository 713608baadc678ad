"""Checks of the last line of the frozen gate: the store itself refuses (SPEC §5)."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from hermes_memory.core.model import (
    MEANING_FIELDS,
    Affirmed,
    Category,
    Layer,
    Lock,
    Polarity,
    Scope,
    Status,
    Tier,
)
from hermes_memory.errors import MemoryFrozen, VersionConflict
from hermes_memory.ports.ledger import AccessCount, GrantKind, Ledger
from hermes_memory.testing.builders import KEY, NOW, a_commit, a_memory, a_vector, an_evidence

FROZEN = a_memory(lock=Lock.FROZEN, tier=Tier.CORE, freeze_reason="confirmed twice")
OTHER_VALUES: dict[str, Any] = {
    "category": Category.STATE,
    "layer": Layer.CONTEXT,
    "subject": "妈妈",
    "predicate": "works_in",
    "object": "杭州",
    "dimension": "workplace",
    "polarity": Polarity.NEGATIVE,
    "content": "用户住在杭州",
    "scope": Scope.SCENE,
    "scene": "travel",
    "tier": Tier.LONGTERM,
    "lock": Lock.UNFROZEN,
    "status": Status.ARCHIVED,
    "safety": True,
    "valid_from": NOW,
    "valid_to": NOW + timedelta(days=1),
}


class FrozenChecks:
    """A frozen row keeps its meaning whatever the application believes."""

    def test_the_suite_knows_every_field_of_meaning(self) -> None:
        assert set(OTHER_VALUES) == set(MEANING_FIELDS)

    @pytest.mark.parametrize("field", MEANING_FIELDS)
    async def test_no_field_of_meaning_changes_without_a_grant(self, ledger: Ledger, field: str) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        changed = dataclasses.replace(FROZEN, **{field: OTHER_VALUES[field]})
        bystander = a_memory(id="bystander")
        with pytest.raises(MemoryFrozen) as caught:
            await ledger.commit(a_commit(1, memories=(bystander, changed)))
        assert caught.value.memory_id == FROZEN.id
        seen = await ledger.activate(KEY, 1)
        assert (seen.version, seen.memories) == (1, (FROZEN,))
        await ledger.commit(a_commit(1, memories=(changed,), grants={FROZEN.id: GrantKind.UNFREEZE}))
        assert (await ledger.activate(KEY, 1)).memories == (changed,)

    async def test_evidence_and_counters_are_free(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,), vectors={FROZEN.id: a_vector(1)}))
        richer = FROZEN.with_(
            version=2,
            confidence=0.98,
            contradictions=2,
            evidence=(an_evidence(), an_evidence(session_id="s2")),
            confirmations=(Affirmed(session_id="s2", message_id="m1", at=NOW),),
            updated_at=NOW + timedelta(days=1),
        )
        await ledger.commit(a_commit(1, memories=(richer,), vectors={FROZEN.id: a_vector(1)}))
        await ledger.touch(KEY, 1, {FROZEN.id: AccessCount(1, NOW)})
        expected = richer.with_(access_count=1, last_access_at=NOW)
        assert (await ledger.activate(KEY, 1)).memories == (expected,)

    async def test_deleting_needs_the_erase_grant(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        for grants in ({}, {FROZEN.id: GrantKind.UNFREEZE}, {"other": GrantKind.ERASE}):
            with pytest.raises(MemoryFrozen):
                await ledger.commit(a_commit(1, deleted=(FROZEN.id,), grants=grants))
        assert (await ledger.activate(KEY, 1)).memories == (FROZEN,)
        await ledger.commit(a_commit(1, deleted=(FROZEN.id,), grants={FROZEN.id: GrantKind.ERASE}))
        assert (await ledger.activate(KEY, 1)).memories == ()

    async def test_the_erase_grant_lets_nothing_be_rewritten(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        changed = FROZEN.with_(content="用户住在杭州")
        with pytest.raises(MemoryFrozen):
            await ledger.commit(a_commit(1, memories=(changed,), grants={FROZEN.id: GrantKind.ERASE}))

    async def test_a_grant_ends_with_its_commit(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        await ledger.commit(a_commit(1, grants={FROZEN.id: GrantKind.UNFREEZE}))
        with pytest.raises(MemoryFrozen):
            await ledger.commit(a_commit(2, memories=(FROZEN.with_(content="x"),)))

    async def test_a_grant_of_one_user_opens_nothing_of_another(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        bob = type(KEY)("app", "bob")
        await ledger.commit(a_commit(key=bob, memories=(FROZEN.with_(user_id="bob"),)))
        await ledger.commit(a_commit(1, key=bob, grants={FROZEN.id: GrantKind.UNFREEZE}))
        with pytest.raises(MemoryFrozen):
            await ledger.commit(a_commit(1, memories=(FROZEN.with_(content="x"),)))

    async def test_the_version_is_checked_before_the_lock(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN,)))
        with pytest.raises(VersionConflict):
            await ledger.commit(a_commit(9, memories=(FROZEN.with_(content="x"),)))

    async def test_freezing_needs_no_grant(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(a_memory(lock=Lock.CONFIRMED),)))
        await ledger.commit(a_commit(1, memories=(FROZEN,)))
        assert (await ledger.activate(KEY, 1)).memories == (FROZEN,)

    async def test_unfrozen_rows_change_freely(self, ledger: Ledger) -> None:
        await ledger.commit(a_commit(memories=(FROZEN.with_(lock=Lock.UNFROZEN),)))
        await ledger.commit(a_commit(1, memories=(FROZEN.with_(content="用户住在杭州"),)))
        assert (await ledger.activate(KEY, 1)).memories[0].content == "用户住在杭州"
