"""What consenting users share is a weak default for the new: made by the night, gone with consent (S2 §7.2, SPEC §12)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.app.commands import EraseUser, Export, GetProfile, SetConsent, SetPaused
from hermes_memory.app.night import Night, Pacing
from hermes_memory.app.night_closing import NamespaceClosing
from hermes_memory.core.candidate import Candidate
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Category, Layer, Turn
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.local import LocalUsers
from tests.runtime.world import World, a_world
from tests.small_world import a_candidate, policy, rules

GROUP = 4
LIKED: dict[str, Any] = {"category": Category.PREFERENCE, "layer": Layer.PREFERENCE, "dimension": "drink"}
CATALOGUE = {"drink": {"咖啡": "coffee", "茶": "tea"}}
POLICY = replace(policy(rules(cohorts={"enabled": True, "min_group": GROUP})), cohort_values=CATALOGUE)
PACING = Pacing(page=50, in_flight=2, shards=1, share=1.0, deadline_s=5, backoff_s=0.1, backoff_most_s=1)
NEW = UserKey("app", "new")


def a_drink(turn: Turn) -> tuple[Candidate, ...]:
    return (a_candidate(turn, **LIKED, content=turn.content, object=turn.content[-2:].strip("喝")),)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        made.distiller.propose = a_drink
        yield made


def members(count: int, namespace: str = "app") -> list[UserKey]:
    return [UserKey(namespace, f"{namespace}-{number}") for number in range(count)]


async def consenting(world: World, host: UserHost, keys: list[UserKey], said: str = "我喜欢喝咖啡") -> None:
    for key in keys:
        await world.remember(host, said, key=key, session=f"s-{key}")
        await host.execute(key, SetConsent(cohort=True), f"consent-{key}")


async def night(world: World, host: UserHost, date: str) -> dict[str, Any]:
    ledger: Any = world.ledgers["a"]
    closing = NamespaceClosing(ledger, POLICY.rules.quality, POLICY.rules.cohorts)
    job = Night(ledger, LocalUsers(host), PACING, closing, window_days=7)
    report = await job.run(date, world.clock.now() + timedelta(days=1))
    await host._cohorts.refresh()
    return report


async def defaults(host: UserHost, key: UserKey = NEW) -> Any:
    return (await host.ask(key, GetProfile())).get("defaults")


async def test_a_group_gives_a_new_user_what_it_shares(world: World) -> None:
    host = await world.start(policy=POLICY)
    await consenting(world, host, members(GROUP))
    assert await defaults(host) is None
    report = await night(world, host, "2026-03-02")
    assert report["namespaces"]["app"]["cohort"] == {"members": GROUP, "slots": 1}
    assert await defaults(host) == {"preference": {"drink": [{"value": "coffee", "share": 1.0}]}}
    profile = await host.ask(NEW, GetProfile())
    assert not any(slots for layer, slots in profile.items() if layer != "defaults"), "no slot of the user's"
    export = await host.ask(NEW, Export())
    assert "coffee" not in str(export), "and nobody's memory"
    assert await defaults(host, UserKey("other", "new")) is None


async def test_one_fewer_gives_nothing(world: World) -> None:
    host = await world.start(policy=POLICY)
    await consenting(world, host, members(GROUP - 1))
    await world.remember(
        host, "我喜欢喝咖啡", key=UserKey("app", "silent"), session="s-silent"
    )  # never asked
    report = await night(world, host, "2026-03-02")
    assert report["namespaces"]["app"]["cohort"] == {"members": 0, "slots": 0}
    assert await defaults(host) is None


async def test_what_the_user_says_ends_the_default(world: World) -> None:
    host = await world.start(policy=POLICY)
    await consenting(world, host, members(GROUP))
    await night(world, host, "2026-03-02")
    await world.remember(host, "我喜欢喝茶", key=NEW, session="s-new")
    assert await defaults(host) is None


async def test_a_paused_user_gives_and_gets_nothing(world: World) -> None:
    host = await world.start(policy=POLICY)
    keys = members(GROUP)
    await consenting(world, host, keys)
    await host.execute(keys[0], SetPaused(paused=True), "pause")
    await night(world, host, "2026-03-02")
    assert await defaults(host) is None


@pytest.mark.parametrize("leaving", [SetConsent(cohort=False), EraseUser()], ids=["withdrawn", "erased"])
async def test_who_leaves_is_in_no_figure_of_the_next_night(world: World, leaving: Any) -> None:
    host = await world.start(policy=POLICY)
    keys = members(GROUP)
    await consenting(world, host, keys)
    await night(world, host, "2026-03-02")
    assert await defaults(host) is not None
    await host.execute(keys[0], leaving, "leave")
    await night(world, host, "2026-03-03")
    assert await defaults(host) is None


async def test_it_is_off_unless_an_operator_turns_it_on(world: World) -> None:
    off = replace(POLICY, rules=replace(POLICY.rules, cohorts=replace(POLICY.rules.cohorts, enabled=False)))
    host = await world.start(policy=off)
    await consenting(world, host, members(GROUP))
    ledger: Any = world.ledgers["a"]
    closing = NamespaceClosing(ledger, off.rules.quality, off.rules.cohorts)
    await Night(ledger, LocalUsers(host), PACING, closing, window_days=7).run("2026-03-02", world.clock.now())
    assert await ledger.note("app", "cohorts") is None
    assert await defaults(host) is None


async def test_nothing_is_left_of_a_namespace_whose_users_were_all_erased(world: World) -> None:
    host = await world.start(policy=POLICY)
    keys = members(GROUP)
    await consenting(world, host, keys)
    await night(world, host, "2026-03-02")
    assert await defaults(host) is not None
    for key in keys:
        await host.execute(key, EraseUser(), f"erase-{key}")
    await night(world, host, "2026-03-03")
    note = await world.ledgers["a"].note("app", "cohorts")
    assert note is not None
    assert note.value == {"members": 0, "slots": {}}
    assert await defaults(host) is None


async def test_no_checkpoint_of_a_night_that_is_over_tells_what_few_members_share(world: World) -> None:
    host = await world.start(policy=POLICY)
    await consenting(world, host, members(GROUP - 1))
    report = await night(world, host, "2026-03-02")
    ledger = world.ledgers["a"]
    names = await ledger.notes("", "", "", 100)
    assert "night/2026-03-02/shard-00" in names
    kept = [(await ledger.note("", name)).value for name in names]
    assert "coffee" not in json.dumps([kept, report])
    assert await night(world, host, "2026-03-02") == report
