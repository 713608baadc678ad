"""Knowledge packs in running hosts: shared, held once, seen without a restart, below what is known of the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_memory import Memory
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.knowledge import load
from hermes_memory.app.reembedding import reembed
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.knowledge import Pack
from hermes_memory.errors import LedgerUnavailable
from hermes_memory.runtime.host import UserHost
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_pack, a_stored_pack, an_entry
from hermes_memory.testing.faulty_ledger import Fault
from hermes_memory.wiring import build_embedder, build_ledger
from tests.runtime.local_app import WITHOUT_MODEL
from tests.runtime.world import POLICY, World, a_world, about
from tests.small_world import vectors
from tests.unit.test_daytime import DAYTIMES

BEN = UserKey(KEY.namespace, "ben")
STRANGER = UserKey("elsewhere", "ann")
SATAY = "沙嗲酱里通常有花生"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def shelve(world: World, pack: Pack, namespace: str = KEY.namespace) -> None:
    """What ``hermes knowledge load`` does beside a running server."""
    ledger = SqliteLedger(world.path, synchronous="NORMAL")
    await ledger.open(EMBEDDER)
    stored = a_stored_pack(namespace=namespace, pack=pack, vectors=vectors(pack.passages))
    await ledger.put_pack(stored)
    await ledger.close()


async def known(host: UserHost, query: str = "沙嗲好吃吗", key: UserKey = KEY, **over: Any) -> list[str]:
    answer = await host.ask(key, replace(about(query), **over))
    return [entry["content"] for entry in answer.get("knowledge", [])]


async def test_spec_7_1_4_a_fresh_user_is_shown_what_the_pack_holds(world: World) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    answer = await host.ask(KEY, about("沙嗲好吃吗"))
    assert [entry["id"] for entry in answer["knowledge"]] == ["satay"]
    assert answer["memories"] == []
    _, heading, line, _ = answer["context"].splitlines()
    assert "不是用户说的" in heading
    assert line == f"- {SATAY}"
    assert "knowledge" not in await host.ask(KEY, about("今天星期几"))
    assert "knowledge" not in await host.ask(STRANGER, about("沙嗲好吃吗"))


async def test_spec_7_1_4_what_is_known_of_the_user_comes_first(world: World) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    await world.remember(host, "沙嗲好吃吗")  # a memory that the query finds, and that calls for the entry
    answer = await host.ask(KEY, about("沙嗲好吃吗"))
    (memory,) = answer["memories"]
    lines = answer["context"].splitlines()
    said, general = (
        next(n for n, line in enumerate(lines) if text in line) for text in (memory["content"], SATAY)
    )
    assert said < general
    assert "关于用户的资料" in lines[0]
    assert [entry["id"] for entry in answer["knowledge"]] == ["satay"]


async def test_a_host_holds_a_namespaces_packs_once(world: World) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    assert await known(host) == await known(host, key=BEN) == [SATAY]
    assert world.ledgers["a"].calls["packs"] == 1
    await asyncio.gather(*(known(host, key=UserKey("busy", f"u{n}")) for n in range(5)))
    assert world.ledgers["a"].calls["packs"] == 2


async def test_a_pack_that_is_loaded_replaced_or_removed_is_seen_without_a_restart(world: World) -> None:
    host = await world.start()
    assert await known(host) == []
    await shelve(world, a_pack())
    await world.pass_time(11)
    assert await known(host) == [SATAY]
    await shelve(
        world,
        a_pack(
            version="2", entries=(an_entry(content={"zh": "沙嗲是东南亚的烤串"}, cues={"zh": ("沙嗲",)}),)
        ),
    )
    await world.pass_time(11)
    assert await known(host) == ["沙嗲是东南亚的烤串"]
    assert await world.ledgers["a"].store.remove_pack(KEY.namespace, "everyday")
    await world.pass_time(11)
    assert await known(host) == []


async def test_looking_for_news_reads_no_pack(world: World) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    await known(host)
    await world.pass_time(11)
    before = world.ledgers["a"].calls["packs"]
    await world.pass_time(100)
    assert world.ledgers["a"].calls["packs"] == before
    assert world.ledgers["a"].calls["packs_revision"] >= 10


async def test_it_is_the_users_time_of_day_that_counts(world: World) -> None:
    night = an_entry(limits={"daytime": frozenset({"night"})})
    await shelve(world, a_pack(entries=(night,)))
    host = await world.start(policy=replace(POLICY, daytimes=DAYTIMES))
    evening = datetime(2026, 1, 1, 14, 0, tzinfo=UTC)
    assert await known(host, timezone="Asia/Shanghai", as_of=evening) == [SATAY]
    assert await known(host, timezone="Europe/Oslo", as_of=evening) == []
    assert await known(host, as_of=evening) == []
    assert await known(host, timezone="Mars/Olympus", as_of=evening) == []


@pytest.mark.parametrize(
    "damage", ["UPDATE packs SET body = '{}'", "UPDATE packs SET vectors = zeroblob(16)"]
)
async def test_packs_that_nobody_can_read_keep_no_user_asleep(
    world: World, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    store = world.ledgers["a"].store
    await store._write(lambda conn: conn.execute(damage).rowcount)
    assert await known(host) == []
    assert "cannot be read" in caplog.text


async def test_packs_that_were_given_to_another_model_are_left_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    assert await known(host) == [SATAY]
    ledger = SqliteLedger(world.path, synchronous="NORMAL")
    assert (await reembed(ledger, HashEmbedder(EMBEDDER.dimension), lambda _: None)).finished
    await ledger.close()
    await host._packs.refresh()
    assert await known(host) == []
    assert "cannot be read" in caplog.text


async def test_an_unavailable_ledger_is_asked_again(world: World) -> None:
    await shelve(world, a_pack())
    host = await world.start()
    world.plan.then(Fault.FAIL_BEFORE)
    with pytest.raises(LedgerUnavailable):
        await known(host)
    assert await known(host) == [SATAY]


def test_the_whole_of_it_in_one_process(tmp_path: Path) -> None:
    settings = load_settings(overrides=WITHOUT_MODEL)

    async def load_it() -> None:
        ledger, embedder = build_ledger(settings, tmp_path), build_embedder(settings)
        await ledger.open(embedder.info)
        assert await load(ledger, embedder, "default", a_pack(), NOW) is None
        before = await load(ledger, embedder, "default", a_pack(version="2"), NOW)
        assert before is not None
        assert before.pack.version == "1"
        await ledger.close()

    asyncio.run(load_it())
    with Memory.open(tmp_path, **WITHOUT_MODEL) as memory:
        fresh = memory.recall("ana", "Is satay spicy?", timezone="Asia/Shanghai")
        assert [(one["id"], one["pack_version"]) for one in fresh["knowledge"]] == [("satay", "2")]
        assert "nothing here is about the user" in fresh["context"]
        memory.remember("ana", "I'm allergic to peanuts.")
        context = memory.recall("ana", "Is satay spicy?")["context"]
        assert context.index("peanuts") < context.index("General knowledge") < context.index("Satay sauce")
        assert all(record["dimension"] == "allergy" for record in memory.memories("ana"))


def test_after_reembedding_packs_are_found_with_the_new_model(tmp_path: Path) -> None:
    settings, old = load_settings(overrides=WITHOUT_MODEL), HashEmbedder(24)

    async def live() -> None:
        ledger = build_ledger(settings, tmp_path)
        await ledger.open(old.info)
        await load(ledger, old, "default", a_pack(entries=(an_entry(cues={}),)), NOW)
        await ledger.close()
        ledger = build_ledger(settings, tmp_path)
        assert (await reembed(ledger, build_embedder(settings), lambda _: None)).total == 2
        await ledger.close()

    asyncio.run(live())
    with Memory.open(tmp_path, **WITHOUT_MODEL) as memory:
        answer = memory.recall("ana", "Satay sauce usually contains peanuts")
        assert [one["id"] for one in answer["knowledge"]] == ["satay"]
