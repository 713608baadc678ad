"""Which servers the Redis ledger trusts, and how its keys lie in them."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger import Redis, RedisLedger, checks, commits, erasing, registry, rows
from hermes_memory.adapters.redis_ledger.layout import USER_PARTS, Layout
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import MEANING_FIELDS, Lock, Memory
from hermes_memory.errors import InvalidConfig, LedgerUnavailable, MemoryFrozen, SessionOwned
from hermes_memory.ports.ledger import Ledger, OutboxEntry, Settings
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
    an_alert,
    an_audit,
)
from hermes_memory.testing.ledger_suite import LedgerSuite
from hermes_memory.wiring import build_ledger
from tests.conformance.redis_servers import Server, free_port, in_memory, running

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BOB = UserKey("app", "bob")
PREFIXES = (f"test{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with in_memory() as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with server.client() as connected:
        connected.flushall()
        for name, value in (
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("maxmemory-policy", "noeviction"),
        ):
            connected.config_set(name, value)
        yield connected


@pytest.fixture
async def ledger(server: Server, client: Any) -> Any:
    handle = RedisLedger(Redis(url=server.url))
    await handle.open(EMBEDDER)
    yield handle
    await handle.close()


def texts(client: Any) -> list[str]:
    """Every key and value of the server, as text."""
    found: list[str] = []
    for key in client.scan_iter():
        reads: dict[bytes, Callable[[], Any]] = {
            b"hash": partial(client.hgetall, key),
            b"zset": partial(client.zrange, key, 0, -1),
            b"set": partial(client.smembers, key),
            b"stream": partial(client.xrange, key),
            b"string": partial(client.get, key),
        }
        found += [key.decode(), repr(reads[client.type(key)]())]
    return found


async def live(ledger: Ledger, key: UserKey = KEY, **over: Any) -> None:
    """A user with one of everything, at version 1."""
    await ledger.bind_session(key, "s1")
    values: dict[str, Any] = {
        "memories": (a_memory(user_id=key.user_id), a_memory(id="m2", user_id=key.user_id, lock=Lock.FROZEN)),
        "vectors": {"mem-1": a_vector(1), "m2": a_vector(2)},
        "sessions": (a_session(summary=a_summary()),),
        "turns": (a_turn(), a_turn(index=1, pending=False)),
        "message_hashes": {("s1", "m0"): ("hash", "job-1")},
        "jobs": (a_job(),),
        "audit": (an_audit(),),
        "alerts": (an_alert(),),
        "outbox": (OutboxEntry(op="put", memory_id="mem-1"), OutboxEntry(op="put", memory_id="m2")),
        "settings": Settings(profile={"city": {"value": "苏州"}}),
        "result": {"said": "苏州"},
    }
    await ledger.commit(a_commit(key=key, **(values | over)))


# ------------------------------------------------------------------------------------------- what is trusted


UNSAFE = [
    ("appendonly", "no", "appendonly yes"),
    ("appendfsync", "everysec", "appendfsync always"),
    ("appendfsync", "no", "appendfsync always"),
    ("maxmemory-policy", "allkeys-lru", "maxmemory-policy noeviction"),
    ("maxmemory-policy", "volatile-ttl", "maxmemory-policy noeviction"),
]


@pytest.mark.parametrize(("name", "value", "cure"), UNSAFE, ids=[f"{n}={v}" for n, v, _ in UNSAFE])
async def test_an_unsafe_server_is_refused_with_the_cure(
    server: Server, client: Any, caplog: pytest.LogCaptureFixture, name: str, value: str, cure: str
) -> None:
    client.config_set(name, value)
    with pytest.raises(InvalidConfig, match=f"run CONFIG SET {cure}"):
        await RedisLedger(Redis(url=server.url)).open(EMBEDDER)
    assert client.dbsize() == 0
    warned = RedisLedger(Redis(url=server.url), on_unsafe="warn")
    with caplog.at_level(logging.WARNING):
        await warned.open(EMBEDDER)
    assert f"CONFIG SET {cure}" in caplog.text
    await warned.close()


@pytest.mark.parametrize("kept", ["always", "everysec"])
async def test_an_operator_may_be_content_with_every_second(server: Server, client: Any, kept: str) -> None:
    client.config_set("appendfsync", kept)
    handle = RedisLedger(Redis(url=server.url), durability="everysec")
    await handle.open(EMBEDDER)
    await handle.close()
    client.config_set("appendfsync", "no")
    with pytest.raises(InvalidConfig, match="appendfsync everysec"):
        await RedisLedger(Redis(url=server.url), durability="everysec").open(EMBEDDER)


async def test_a_server_that_hides_its_configuration_is_refused_unless_told(
    server: Server, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-config")
    to = Redis(url=f"redis://app@127.0.0.1:{server.port}/0", password="secret")
    with pytest.raises(InvalidConfig, match="on_unsafe"):
        await RedisLedger(to).open(EMBEDDER)
    handle = RedisLedger(to, on_unsafe="warn")
    await handle.open(EMBEDDER)
    assert "forbids CONFIG GET" in caplog.text
    await live(handle)
    assert (await handle.activate(KEY, 1)).version == 1
    await handle.close()
    wrong = Redis(url=to.url, password="wrong")
    with pytest.raises(LedgerUnavailable):
        await RedisLedger(wrong).open(EMBEDDER)
    client.execute_command("ACL", "DELUSER", "app")


async def test_an_old_server_is_refused(server: Server, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MIN_VERSION", (99, 1))
    with pytest.raises(InvalidConfig, match=r"version 99\.1 is the least"):
        await RedisLedger(Redis(url=server.url)).open(EMBEDDER)


async def test_data_of_a_newer_release_is_refused(server: Server, client: Any, ledger: RedisLedger) -> None:
    client.hset("hermes:{meta}:facts", "format", 2)
    with pytest.raises(InvalidConfig, match="format 2"):
        await RedisLedger(Redis(url=server.url)).open(EMBEDDER)


@pytest.mark.parametrize(
    ("to", "match"),
    [
        (Redis(url="redis://h:1/0", cluster=True, sentinels=("a:1",), master="m"), "sentinels"),
        (Redis(url="redis://h:1/0", sentinels=("a:1",)), "master"),
        (Redis(url="redis://h:1/0", master="m"), "master"),
        (Redis(url="http://h:1/0"), "Redis URL"),
    ],
)
async def test_settings_that_contradict_each_other_are_refused(to: Redis, match: str) -> None:
    with pytest.raises(InvalidConfig, match=match):
        await RedisLedger(to).open(EMBEDDER)


async def test_the_configuration_chooses_it(
    server: Server, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"kind": "redis", "url": server.url, "prefix": "mine"}
    handle = build_ledger(await asyncio.to_thread(load_settings, None, {"ledger": chosen}), tmp_path)
    await handle.open(EMBEDDER)
    await live(handle)
    assert await handle.read_outbox(KEY, 9) == []  # no index is fed
    assert all(key.startswith(b"mine:") for key in client.scan_iter())
    await handle.close()
    secret = chosen | {"password_env": "REDIS_SECRET"}
    settings = await asyncio.to_thread(load_settings, None, {"ledger": secret})
    with pytest.raises(InvalidConfig, match="REDIS_SECRET"):
        build_ledger(settings, tmp_path)
    monkeypatch.setenv("REDIS_SECRET", "no such password")
    with pytest.raises(LedgerUnavailable):
        await build_ledger(settings, tmp_path).open(EMBEDDER)


@pytest.mark.parametrize("prefix", ["", "a{b}"])
async def test_a_prefix_with_a_hash_tag_of_its_own_is_refused(server: Server, prefix: str) -> None:
    with pytest.raises(InvalidConfig, match="prefix"):
        await RedisLedger(Redis(url=server.url), prefix=prefix).open(EMBEDDER)


# --------------------------------------------------------------------------------------------- how keys lie


async def test_all_keys_of_a_user_have_one_hash_tag(ledger: RedisLedger, client: Any) -> None:
    await live(ledger)
    await ledger.bury_outbox(KEY, [2], "too_long")
    await ledger.touch(KEY, 1, {}, {"2026-03-02": {"recalls": 1}})
    layout = Layout("hermes", client.hget("hermes:{meta}:facts", "salt").decode())
    names = layout.user(layout.tag(KEY), 1)
    there = {name for name in names if client.exists(name)}
    absent = {part for part, name in zip(USER_PARTS, names, strict=True) if name not in there}
    assert absent == {"coming", "freeing"}
    tags = {name[name.index("{") : name.index("}")] for name in names}
    assert len(tags) == 1
    assert not any("ann" in name for name in names)


async def test_what_an_erasure_leaves_names_nobody(ledger: RedisLedger, client: Any) -> None:
    key = UserKey("app", "somebody-known")
    await live(ledger, key)
    await ledger.bury_outbox(key, [2], "too_long")
    assert any("somebody-known" in text for text in texts(client))
    receipt = await ledger.erase(key, 1, 1, "erase-me", NOW)
    assert receipt.remaining == 0
    (drop,) = await ledger.read_outbox(key, 9)
    await ledger.ack_outbox(key, [drop.seq])
    left = texts(client)
    for word in ("somebody-known", "苏州", "\\xe8\\x8b\\x8f", "s1", "job-1", "op-0", "erase-me"):
        assert not any(word in text for text in left), word
    assert sum("head" in text for text in left) == 1


async def test_turns_and_operations_go_by_themselves(ledger: RedisLedger, client: Any) -> None:
    await live(ledger)
    layout = Layout("hermes", client.hget("hermes:{meta}:facts", "salt").decode())

    def ttl(part: str) -> int:
        return int(client.pttl(layout.of_user(layout.tag(KEY), part)))

    for part in ("ops", "op_times"):
        assert 3 * DAY_MS < ttl(part) <= 3 * DAY_MS + HOUR_MS
    for part in ("turns", "pending", "done", "summaries"):
        assert ttl(part) == -1  # a turn waits
    await ledger.commit(a_commit(1, extracted=(("s1", 0),)))
    for part in ("turns", "done", "summaries"):
        assert DAY_MS < ttl(part) <= DAY_MS + HOUR_MS
    for part in ("head", "memories", "access", "sessions", "jobs", "audit", "messages"):
        assert ttl(part) == -1
    await ledger.commit(a_commit(2, turns=(a_turn(index=2),)))
    assert ttl("turns") == ttl("done") == -1
    await ledger.erase(KEY, 3, 1, "erase", NOW)
    assert 3 * DAY_MS < ttl("ops") <= 3 * DAY_MS + HOUR_MS


async def test_shorter_times_may_be_chosen(server: Server, client: Any) -> None:
    handle = RedisLedger(Redis(url=server.url), turns_hours=1, operations_hours=2)
    await handle.open(EMBEDDER)
    await handle.commit(a_commit(turns=(a_turn(pending=False),)))
    layout = Layout("hermes", client.hget("hermes:{meta}:facts", "salt").decode())
    assert HOUR_MS < client.pttl(layout.of_user(layout.tag(KEY), "turns")) <= 2 * HOUR_MS
    assert 2 * HOUR_MS < client.pttl(layout.of_user(layout.tag(KEY), "ops")) <= 3 * HOUR_MS
    await handle.close()


@pytest.mark.parametrize("finish", ["replay", "sweep"])
async def test_an_erasure_that_was_interrupted_is_finished(
    ledger: RedisLedger, client: Any, monkeypatch: pytest.MonkeyPatch, finish: str
) -> None:
    await live(ledger)

    async def dies(*_: object) -> int:
        raise LedgerUnavailable("the host died")

    with monkeypatch.context() as patched:
        patched.setattr("hermes_memory.adapters.redis_ledger.erasing.free", dies)
        with pytest.raises(LedgerUnavailable):
            await ledger.erase(KEY, 1, 1, "erase", NOW)
    assert (await ledger.activate(KEY, 1)).memories == ()
    assert await ledger.session_owner("app", "s1") == "ann"  # not yet
    if finish == "replay":
        receipt = await ledger.erase(KEY, 1, 1, "erase", NOW)
        assert (receipt.memories, receipt.remaining) == (2, 0)
    else:
        assert await ledger.sweep(NOW + timedelta(hours=1), 24, 72) == 0
    assert await ledger.session_owner("app", "s1") is None
    await ledger.bind_session(BOB, "s1")
    assert not list(client.scan_iter("*freeing"))
    assert await ledger.outbox_users("", 9) == [KEY]
    with pytest.raises(SessionOwned):
        await ledger.bind_session(KEY, "s1")


async def test_a_session_that_is_bound_again_is_not_freed_by_the_rest_of_an_erasure(
    ledger: RedisLedger, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live(ledger)

    async def dies(*_: object) -> int:
        raise LedgerUnavailable("the host died")

    with monkeypatch.context() as patched:
        patched.setattr("hermes_memory.adapters.redis_ledger.erasing.free", dies)
        with pytest.raises(LedgerUnavailable):
            await ledger.erase(KEY, 1, 1, "erase", NOW)
    await ledger.bind_session(KEY, "s1")  # it looks as if it were bound
    assert await ledger.sweep(NOW + timedelta(hours=1), 24, 72) == 0
    assert await ledger.session_owner("app", "s1") == "ann"
    with pytest.raises(SessionOwned):
        await ledger.bind_session(BOB, "s1")


async def test_a_turn_that_waited_goes_as_soon_as_its_time_is_over(ledger: RedisLedger) -> None:
    waits = a_turn(index=0, received_at=NOW)
    read = a_turn(index=1, message_id="m2", received_at=NOW + timedelta(hours=10), pending=False)
    await ledger.commit(a_commit(turns=(waits, read)))
    assert await ledger.sweep(NOW + timedelta(hours=11), 24, 72) == 0
    await ledger.commit(a_commit(1, extracted=((waits.session_id, 0),)))
    assert await ledger.sweep(NOW + timedelta(hours=25), 24, 720) == 1
    assert [turn.index for turn in await ledger.turns(KEY)] == [1]


async def test_lists_may_name_too_many_and_mend_themselves(ledger: RedisLedger, client: Any) -> None:
    """Announced, and then the host died before the commit (as it may in a Cluster)."""
    await live(ledger, BOB)
    store = ledger._store
    said = rows.announcement(a_commit(turns=(a_turn(),), alerts=(an_alert(),), outbox=(OutboxEntry(op="put", memory_id="x"),)), store.layout)  # fmt: skip
    tag = store.layout.tag(KEY)
    await store.link.script("announce", store.layout.shard(store.layout.shard_of(tag)), said)
    assert any("app/ann" in text for text in texts(client))
    assert await ledger.users(None, "", 9) == await ledger.pending_users("", 9) == [BOB]
    assert await ledger.outbox_users("", 9) == [BOB]
    assert [alert.key for alert in await ledger.alerts("app", "", 9)] == [BOB]
    await ledger.sweep(NOW + timedelta(days=9), 24, 72)
    assert not any("app/ann" in text or tag in text for text in texts(client))


async def test_a_name_announced_since_it_was_found_stale_stays(
    ledger: RedisLedger,
) -> None:
    store = ledger._store
    tag = store.layout.tag(KEY)
    shard = store.layout.shard(store.layout.shard_of(tag))
    said = rows.announcement(a_commit(turns=(a_turn(),)), store.layout)
    await store.link.script("announce", shard, said)
    seen = await store.link.command("HGET", shard[0], tag)
    await store.link.script("announce", shard, said)
    assert not await store.link.script("unlist", shard, [tag, seen, str(KEY), 0, 0])
    seen = await store.link.command("HGET", shard[0], tag)
    assert not await store.link.script(
        "unlist", shard, [tag, seen, str(KEY), 60, 0]
    )  # too fresh for a Cluster
    assert await store.link.script("unlist", shard, [tag, seen, str(KEY), 0, 0])


async def test_users_beyond_one_page_of_every_shard_are_listed_in_order(
    ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_LEAST_PAGE", 2)
    keys = [UserKey("app", f"u{number:04}") for number in range(100)]
    store = ledger._store
    steps: list[tuple[Any, ...]] = []
    for key in keys:
        tag = store.layout.tag(key)
        steps.append(("ZADD", store.layout.of_shard(store.layout.shard_of(tag), "users"), 0, str(key)))
        if key.user_id[-1] in "0357":
            steps.append(("HSET", store.layout.of_user(tag, "head"), "live", "1"))
    await store.link.commands(steps)
    expected = [key for key in keys if key.user_id[-1] in "0357"]
    found: list[UserKey] = []
    while page := await ledger.users("app", str(found[-1]) if found else "", 13):
        assert len(page) == 13 or len(found) + len(page) == len(expected)
        found += page
    assert found == expected


async def test_a_sweep_finds_all_who_are_due(ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "DUE_PAGE", 1)
    monkeypatch.setattr(erasing, "SWEEP_ROWS", 2)
    monkeypatch.setattr(erasing, "SWEEP_USERS", 3)
    keys = [UserKey("app", f"u{number}") for number in range(8)]
    old = tuple(a_turn(index=index, pending=False) for index in range(5))
    for key in keys:
        await ledger.commit(a_commit(key=key, turns=(*old, a_turn(index=9))))
    assert await ledger.sweep(NOW + timedelta(hours=23), 24, 72) == 0
    assert await ledger.sweep(NOW + timedelta(hours=25), 24, 72) == 40
    assert await ledger.sweep(NOW + timedelta(hours=73), 24, 72) == 8  # operation ids; what waits stays
    assert await ledger.turns(keys[3]) == [a_turn(index=9)]
    await ledger.commit(a_commit(1, key=keys[3], extracted=(("s1", 9),), at=NOW + timedelta(hours=74)))
    assert await ledger.sweep(NOW + timedelta(hours=75), 24, 72) == 1


# ----------------------------------------------------------------------------------------- the frozen gate


FORGERIES: dict[str, Callable[[str], str]] = {
    "changed": lambda body: body.replace("苏州", "杭州"),
    "twice": lambda body: body[:-1] + ',"content":"x"}',
    "escaped": lambda body: body[:-1] + ',"con\\u0074ent":"x"}',
    "unlocked": lambda body: body.replace('"lock":"frozen"', '"lock":"unfrozen"'),
    "without": lambda body: body.replace('"object":"苏州",', ""),
    "empty": lambda body: "{}",
    "list": lambda body: "[]",
    "no JSON": lambda body: "no",
    "null": lambda body: body.replace('"polarity":"+"', '"polarity":null'),
    "structure": lambda body: body.replace('"polarity":"+"', '"polarity":["+"]'),
    "another's": lambda body: body.replace('"user_id":"ann"', '"user_id":"bob"'),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_no_body_however_written_changes_a_frozen_memory(
    ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch, forgery: str
) -> None:
    frozen = a_memory(lock=Lock.FROZEN)
    await ledger.commit(a_commit(memories=(frozen,)))
    dump = codec.dump_memory

    def forged(memory: Memory) -> tuple[str, int, int]:
        body, count, last_us = dump(memory)
        other = FORGERIES[forgery](body)
        assert other != body
        return other, count, last_us

    monkeypatch.setattr(codec, "dump_memory", forged)
    with pytest.raises(MemoryFrozen):
        await ledger.commit(a_commit(1, memories=(frozen,)))
    monkeypatch.undo()
    assert (await ledger.activate(KEY, 1)).memories == (frozen,)


async def test_a_memory_frozen_with_an_escape_is_frozen(ledger: RedisLedger, client: Any) -> None:
    await ledger.commit(a_commit(memories=(a_memory(lock=Lock.FROZEN),)))
    layout = ledger._store.layout
    memories = layout.of_user(layout.tag(KEY), "memories")
    body = client.hget(memories, "mem-1").decode()
    client.hset(memories, "mem-1", body.replace('"frozen"', '"fro\\u007aen"'))
    with pytest.raises(MemoryFrozen):
        await ledger.commit(a_commit(1, deleted=("mem-1",)))


async def test_a_commit_cannot_free_what_it_freezes_itself(ledger: RedisLedger) -> None:
    twice = (a_memory(lock=Lock.FROZEN), a_memory(content="x"))
    with pytest.raises(MemoryFrozen):
        await ledger.commit(a_commit(memories=twice))
    with pytest.raises(MemoryFrozen):
        await ledger.commit(a_commit(memories=twice[:1], deleted=("mem-1",)))
    assert (await ledger.activate(KEY, 1)).version == 0


def test_the_script_guards_every_field_of_meaning() -> None:
    from hermes_memory.adapters.redis_ledger.scripts import script

    assert all(f"'{field}'" in script("commit").source for field in MEANING_FIELDS)


def test_the_number_of_the_model_is_where_a_commit_expects_it() -> None:
    values = rows.commit_values(a_commit(), Layout("p", "salt"), ("name", 8, 41), (1, 2))
    assert values[commits._NUMBER] == 41


# ------------------------------------------------------------------------------------ a Cluster, a Sentinel


@pytest.fixture(scope="module")
def cluster() -> Iterator[Server]:
    with in_memory(cluster_enabled="yes") as started:
        with started.client() as connected:
            connected.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            while "cluster_state:ok" not in str(connected.execute_command("CLUSTER", "INFO")):
                pass
        yield started


class TestInACluster(LedgerSuite):
    """The promises in a Cluster, where no script sees two slots."""

    @pytest.fixture
    def make_ledger(self, cluster: Server) -> Callable[[], Ledger]:
        prefix = next(PREFIXES)
        return lambda: RedisLedger(Redis(url=cluster.url, cluster=True), prefix=prefix)


async def test_in_a_cluster_all_keys_of_a_user_are_in_one_slot(cluster: Server) -> None:
    handle = RedisLedger(Redis(url=cluster.url, cluster=True), prefix="slots")
    await handle.open(EMBEDDER)
    await live(handle)
    layout = handle._store.layout
    with cluster.client() as connected:
        slots = {
            connected.execute_command("CLUSTER", "KEYSLOT", key)
            for key in connected.scan_iter("slots:*")
            if layout.tag(KEY).encode() in key
        }
        count = sum(1 for _ in connected.scan_iter(f"slots:{{{layout.tag(KEY)}}}*"))
    assert len(slots) == 1
    assert count > 15
    await handle.close()


async def test_a_master_is_found_by_sentinel(tmp_path: Path) -> None:
    with running(tmp_path / "redis") as master:
        sentinel = Server(
            tmp_path / "sentinel",
            {f"sentinel monitor mymaster 127.0.0.1 {master.port}": "1"},
            free_port(),
            ("redis-server", "--sentinel"),
        )
        sentinel.start()
        try:
            to = Redis(
                url="redis://ignored:1/0", sentinels=(f"127.0.0.1:{sentinel.port}",), master="mymaster"
            )
            handle = RedisLedger(to)
            await handle.open(EMBEDDER)
            await live(handle)
            assert (await handle.activate(KEY, 1)).version == 1
            await handle.close()
            lost = RedisLedger(Redis(url=to.url, sentinels=to.sentinels, master="other", attempts=1))
            with pytest.raises(LedgerUnavailable):
                await lost.open(EMBEDDER)
        finally:
            sentinel.kill()
