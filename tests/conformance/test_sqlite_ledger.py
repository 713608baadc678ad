"""The SQLite ledger keeps the port's promises, and those that only a file can make."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from hermes_memory.adapters.sqlite_ledger import SqliteLedger, reembedding
from hermes_memory.adapters.sqlite_ledger.store import SCHEMA_VERSION
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import MEANING_FIELDS, Lock
from hermes_memory.errors import EmbedderMismatch, InvalidConfig, LedgerUnavailable
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Commit, HostPool, Ledger, OutboxEntry, Settings
from hermes_memory.testing.builders import (
    EMBEDDER,
    KEY,
    NOW,
    a_commit,
    a_job,
    a_memory,
    a_session,
    a_stored_pack,
    a_turn,
    a_vector,
    an_alert,
    an_audit,
    an_evidence,
)
from hermes_memory.testing.ledger_suite import LedgerSuite

FROZEN = a_memory(lock=Lock.FROZEN)
WRITER = """
import asyncio, sys
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.core.ids import UserKey
from hermes_memory.testing.builders import EMBEDDER, a_commit, a_memory

async def main(path, user_id, commits):
    ledger = SqliteLedger(path, busy_timeout_s=30.0)
    await ledger.open(EMBEDDER)
    for version in range(commits):
        memory = a_memory(id=f"{user_id}-{version}")
        await ledger.commit(a_commit(version, key=UserKey("app", user_id), memories=(memory,)))
        print(version + 1, flush=True)
    await ledger.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


class TestSqliteLedger(LedgerSuite):
    """All promises of the port."""

    @pytest.fixture
    def make_ledger(self, path: Path) -> Callable[[], Ledger]:
        return lambda: SqliteLedger(path, synchronous="NORMAL")


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[SqliteLedger]:
    handle = SqliteLedger(path)
    await handle.open(EMBEDDER)
    yield handle
    await handle.close()


def with_our_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def start_writer(path: Path, user_id: str, commits: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), user_id, str(commits)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=with_our_path())


def by_hand(path: Path, sql: str, *values: object) -> None:
    """What a hurried operator would type."""
    conn = sqlite3.connect(path, timeout=10)
    try:
        with conn:
            conn.execute(sql, values)
    finally:
        conn.close()


async def test_a_killed_process_loses_nothing_acknowledged(path: Path, ledger: SqliteLedger) -> None:
    process = start_writer(path, "ann", 100_000)
    assert process.stdout is not None
    acknowledged = 0
    while acknowledged < 40:
        acknowledged = int(await asyncio.to_thread(process.stdout.readline))
    os.kill(process.pid, signal.SIGKILL)
    rest = await asyncio.to_thread(process.stdout.read)
    process.stdout.close()
    process.wait()
    whole_lines = rest[: rest.rfind("\n") + 1].split()  # the kill may have cut the last line
    acknowledged = max([acknowledged, *map(int, whole_lines)])
    seen = await ledger.activate(KEY, 1)
    assert acknowledged <= seen.version <= acknowledged + 1
    assert len(seen.memories) == seen.version
    assert (await ledger.commit(a_commit(seen.version))).version == seen.version + 1


async def test_two_processes_write_at_once(path: Path, ledger: SqliteLedger) -> None:
    processes = [start_writer(path, user_id, 60) for user_id in ("bob", "cid")]
    for version in range(60):
        await ledger.commit(a_commit(version, memories=(a_memory(id=f"ann-{version}"),)))
    for process in processes:
        output, _ = await asyncio.to_thread(process.communicate)
        assert (process.returncode, output.split()[-1]) == (0, "60")
    for user_id in ("ann", "bob", "cid"):
        seen = await ledger.activate(UserKey("app", user_id), 1)
        assert (seen.version, len(seen.memories)) == (60, 60)


async def test_two_handles_may_create_the_file_together(path: Path) -> None:
    handles = [SqliteLedger(path) for _ in range(6)]
    await asyncio.gather(*(handle.open(EMBEDDER) for handle in handles))
    await asyncio.gather(*(handle.ping() for handle in handles))
    await asyncio.gather(*(handle.close() for handle in handles))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memories SET body = json_set(body, '$.content', 'x')",
        "UPDATE memories SET body = json_set(body, '$.lock', 'unfrozen')",
        "UPDATE memories SET body = json_remove(body, '$.object')",
        "UPDATE memories SET body = '{}'",
        "UPDATE memories SET body = NULL",
        "UPDATE memories SET body = 'not json'",
        'UPDATE memories SET body = substr(body, 1, length(body) - 1) || \',"content":"x"}\'',
        'UPDATE memories SET body = substr(body, 1, length(body) - 1) || \',"con\\u0074ent":"x"}\'',
        "UPDATE memories SET lock = 'unfrozen'",
        "UPDATE memories SET content = 'x'",
        "UPDATE memories SET id = 'other'",
        "UPDATE memories SET uid = 77",
        "UPDATE OR REPLACE memories SET id = 'mem-1' WHERE id = 'mem-2'",
        "UPDATE OR REPLACE memories SET number = 1 WHERE id = 'mem-2'",
        "DELETE FROM memories",
        "INSERT OR REPLACE INTO memories (uid, id, body) VALUES (1, 'mem-1', '{}')",
        "INSERT OR REPLACE INTO memories (number, uid, id, body) VALUES (1, 1, 'mem-9', '{}')",
        "INSERT INTO memories (uid, id, body) VALUES (1, 'mem-1', '{}') "
        "ON CONFLICT DO UPDATE SET body = excluded.body",
    ],
)
async def test_a_frozen_row_resists_hand_written_sql(path: Path, ledger: SqliteLedger, sql: str) -> None:
    other = a_memory(id="mem-2")
    await ledger.commit(a_commit(memories=(FROZEN, other)))
    with pytest.raises(sqlite3.Error):
        by_hand(path, sql)
    assert (await ledger.activate(KEY, 1)).memories == (FROZEN, other)


async def test_free_fields_may_change_by_hand(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,)))
    by_hand(path, "UPDATE memories SET accesses = 3, body = json_set(body, '$.importance', 0.5)")
    (memory,) = (await ledger.activate(KEY, 1)).memories
    assert memory == FROZEN.with_(access_count=3, importance=0.5)


def test_the_schema_guards_exactly_the_fields_of_meaning(path: Path) -> None:
    package = resources.files("hermes_memory.adapters.sqlite_ledger")
    schema = package.joinpath("schema.sql").read_text("utf-8")
    expression = schema.split("meaning TEXT GENERATED ALWAYS AS (json_extract(body,")[1].split("))")[0]
    fields = [part.strip(" '\n$.") for part in expression.split(",")]
    assert sorted(fields) == sorted([*MEANING_FIELDS, "id", "namespace", "user_id"])


async def test_a_full_disk_refuses_and_leaves_the_state(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,)))
    assert ledger._writer is not None

    def limit(conn: sqlite3.Connection) -> int:
        pages = int(conn.execute("PRAGMA page_count").fetchone()[0])
        return int(conn.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()[0])

    await ledger._writer.run(limit)
    big = a_memory(id="big", attributes={"text": "x" * 200_000})
    answers = await asyncio.gather(
        ledger.commit(a_commit(1, memories=(big,))),
        ledger.commit(a_commit(key=UserKey("app", "bob"), operation_id="small")),
        return_exceptions=True,
    )
    assert isinstance(answers[0], LedgerUnavailable)
    assert "FULL" in answers[0].why
    assert not isinstance(answers[1], BaseException)  # a neighbour in the same group is not harmed
    seen = await ledger.activate(KEY, 1)
    assert (seen.version, seen.memories) == (1, (FROZEN,))
    await ledger._writer.run(lambda conn: conn.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert (await ledger.commit(a_commit(1, memories=(big,)))).version == 2


def test_a_file_size_limit_refuses_and_loses_nothing(path: Path) -> None:
    script = """
import asyncio, resource, signal, sys
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.errors import LedgerUnavailable
from hermes_memory.testing.builders import EMBEDDER, KEY, a_commit, a_memory

async def main(path):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = SqliteLedger(path)
    await ledger.open(EMBEDDER)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    version, refused = 0, 0
    while refused < 3:
        memory = a_memory(id=f"mem-{version}", attributes={"text": "x" * 20_000})
        try:
            await ledger.commit(a_commit(version, memories=(memory,)))
            version += 1
        except LedgerUnavailable:
            refused += 1
        assert version < 200
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seen = await ledger.activate(KEY, 1)
    assert (seen.version, len(seen.memories)) == (version, version), (seen.version, version)
    await ledger.commit(a_commit(version))
    await ledger.close()
    print(version)

asyncio.run(main(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=with_our_path(),
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


async def test_a_foreign_write_lock_is_unavailable_not_a_hang(path: Path) -> None:
    handle = SqliteLedger(path, busy_timeout_s=0.1)
    await handle.open(EMBEDDER)
    await handle.commit(a_commit())
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable):
        await handle.commit(a_commit(1))
    with pytest.raises(LedgerUnavailable):
        await handle.ping()
    assert await handle.users(None, "", 10) == [KEY]  # reads do not wait for writers
    blocker.execute("ROLLBACK")
    blocker.close()
    assert (await handle.commit(a_commit(1))).version == 2
    await handle.close()


async def test_a_cancelled_caller_breaks_nothing(ledger: SqliteLedger) -> None:
    for version in range(60):
        current = (await ledger.activate(KEY, 1)).version
        task = asyncio.create_task(
            ledger.commit(a_commit(current, operation_id=f"op{version}", memories=(a_memory(),)))
        )
        for _ in range(version % 5):
            await asyncio.sleep(0)
        if version % 3:
            await asyncio.sleep(version % 7 / 5_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    seen = await ledger.activate(KEY, 1)
    applied = [await ledger.operation(KEY, f"op{version}") for version in range(60)]
    assert seen.version == sum(receipt is not None for receipt in applied)
    assert (await ledger.commit(a_commit(seen.version))).version == seen.version + 1


async def test_calls_before_opening_and_after_closing_are_refused(path: Path) -> None:
    handle = SqliteLedger(path)
    with pytest.raises(LedgerUnavailable):
        await handle.ping()
    await handle.open(EMBEDDER)
    await handle.open(EMBEDDER)
    await handle.close()
    with pytest.raises(LedgerUnavailable):
        await handle.commit(a_commit())
    with pytest.raises(LedgerUnavailable):
        await handle.users(None, "", 1)


async def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_bytes(b"this is not a database, it only lies in its place" * 100)
    with pytest.raises(LedgerUnavailable):
        await SqliteLedger(text).open(EMBEDDER)
    with pytest.raises(LedgerUnavailable):
        await SqliteLedger(tmp_path / "no folder" / "x.db").open(EMBEDDER)
    foreign = tmp_path / "foreign.db"
    by_hand(foreign, "CREATE TABLE theirs (x)")
    with pytest.raises(InvalidConfig):
        await SqliteLedger(foreign).open(EMBEDDER)


async def test_a_newer_schema_is_refused(path: Path, ledger: SqliteLedger) -> None:
    await ledger.close()
    by_hand(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(InvalidConfig):
        await SqliteLedger(path).open(EMBEDDER)


async def test_a_pack_of_another_model_than_the_data_now_has_is_refused(
    path: Path, ledger: SqliteLedger
) -> None:
    by_hand(path, "UPDATE meta SET value = 'another' WHERE name = 'embedder'")  # as re-embedding would
    with pytest.raises(EmbedderMismatch):
        await ledger.put_pack(a_stored_pack())
    with pytest.raises(EmbedderMismatch):
        await ledger.packs(None)


def found_in_files(path: Path, *words: str) -> list[str]:
    """Which of the words stand in any file of the database, byte for byte."""
    data = b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()) if file.is_file())
    return [word for word in words if word.encode() in data]


async def crowd(ledger: SqliteLedger, names: list[str], rounds: int) -> None:
    """Users grow interleaved, so that the trees' pages split and rows move between them."""
    for version in range(rounds):
        for name in names:
            await ledger.commit(full_commit(UserKey("app", name), version))
            if version == 0:
                await ledger.bind_session(UserKey("app", name), f"bound-{name}")


async def test_erased_text_is_in_no_file(path: Path, ledger: SqliteLedger) -> None:
    names = [f"wiped-person-{number:02}" for number in range(8)]
    await crowd(ledger, names, rounds=25)
    assert found_in_files(path, *names) == names
    for number, name in enumerate(names):
        key = UserKey("app", name)
        seqs = [entry.seq for entry in await ledger.read_outbox(key, 9999)]
        await ledger.ack_outbox(key, seqs[:9])
        await ledger.bury_outbox(key, seqs[9:18], "refused")
        receipt = await ledger.erase(key, 25, 1, "erase", NOW)
        assert receipt.remaining == 0
        (drop,) = await ledger.read_outbox(key, 9999)
        assert found_in_files(path, f"{name} likes", f"{name} said", f"I am {name}", f"bound-{name}") == []
        await ledger.ack_outbox(key, [drop.seq])
        assert found_in_files(path, *names) == names[number + 1 :]


async def test_deleted_memories_are_in_no_file_after_a_sweep(path: Path, ledger: SqliteLedger) -> None:
    await crowd(ledger, ["ann", "bob", "cid"], rounds=25)
    ids = tuple(memory.id for memory in (await ledger.activate(KEY, 1)).memories)
    await ledger.commit(a_commit(25, deleted=ids))
    await ledger.sweep(NOW, 24, 72)
    assert found_in_files(path, "ann likes", "I am ann") == []
    assert found_in_files(path, "bob likes", "I am bob") == ["bob likes", "I am bob"]


def full_commit(key: UserKey, version: int) -> Commit:
    who = key.user_id
    memories = tuple(
        a_memory(
            id=f"{who}-{version}-{n}",
            user_id=who,
            content=f"{who} likes {version} {n}" + "y" * (37 * version % 200),
            evidence=(an_evidence(quote=f"I am {who} " + "z" * (version * 61 % 900)),),
        )
        for n in range(3)
    )
    return a_commit(
        version,
        key=key,
        operation_id=f"{who}-op-{version}",
        memories=memories,
        vectors={memory.id: a_vector(version) for memory in memories},
        sessions=(a_session(id=f"{who}-s{version}"),),
        turns=(
            a_turn(
                session_id=f"{who}-s{version}", index=version, content=f"{who} said " + "w" * version * 30
            ),
        ),
        message_hashes={(f"{who}-s{version}", f"{who}-m{version}"): ("h", f"{who}-j")},
        jobs=(a_job(id=f"{who}-j{version}", changes=({"content": who},)),),
        audit=(an_audit(memory_id=f"{who}-{version}-0"),),
        outbox=(OutboxEntry(op="put", memory_id=f"{who}-{version}-0"),),
        settings=Settings(profile={"name": who}),
        result={"content": who},
    )


async def test_a_deleted_memory_and_a_rewritten_turn_are_in_no_file(path: Path, ledger: SqliteLedger) -> None:
    secret = a_memory(id="mem-2", content="deleted-words", evidence=(an_evidence(quote="deleted-quote"),))
    turn = a_turn(content="rewritten-words")
    await ledger.commit(a_commit(memories=(a_memory(), secret), turns=(turn,)))
    await ledger.commit(a_commit(1, deleted=("mem-2",), rewritten=(a_turn(content="…"),)))
    assert found_in_files(path, "deleted-words", "deleted-quote", "rewritten-words") == []


async def test_an_erasure_held_up_by_a_reader_says_so_and_is_finished_later(path: Path) -> None:
    handle = SqliteLedger(path, busy_timeout_s=0.1)
    await handle.open(EMBEDDER)
    await handle.commit(a_commit(memories=(a_memory(content="held-words"),)))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    assert (await handle.erase(KEY, 1, 1, "erase", NOW)).remaining == 1
    reader.execute("ROLLBACK")
    reader.close()
    assert (await handle.erase(KEY, 1, 1, "erase", NOW)).remaining == 0
    assert found_in_files(path, "held-words") == []
    await handle.close()


async def test_a_session_of_a_release_without_summaries_still_loads(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(sessions=(a_session(),)))
    by_hand(path, "UPDATE sessions SET body = json_remove(body, '$.summary')")
    assert (await ledger.activate(KEY, 1)).sessions == (a_session(),)


def without_burials(path: Path) -> None:
    """The file as schema 2 had it, as far as schema 3 differs."""
    by_hand(path, "DROP INDEX outbox_waiting")
    by_hand(path, "DROP INDEX outbox_buried")
    by_hand(path, "ALTER TABLE outbox DROP COLUMN reason")
    by_hand(path, "DELETE FROM meta WHERE name IN ('hosts', 'hosts_revision')")


async def test_a_file_of_the_second_schema_keeps_what_waits(path: Path, ledger: SqliteLedger) -> None:
    entries = (OutboxEntry(op="put", memory_id="a"), OutboxEntry(op="put", memory_id="b"))
    await ledger.commit(a_commit(outbox=entries))
    await ledger.close()
    without_burials(path)
    by_hand(path, "PRAGMA user_version = 2")
    again = [SqliteLedger(path) for _ in range(4)]  # as several processes may after an update
    await asyncio.gather(*(handle.open(EMBEDDER) for handle in again))
    first, second = await again[0].read_outbox(KEY, 9)
    assert (first.memory_id, second.memory_id) == ("a", "b")
    await again[1].bury_outbox(KEY, [first.seq], "refused")
    assert await again[2].read_outbox(KEY, 9) == [second]
    assert await again[3].resize_host_pool(2) == HostPool(2, 1)
    for handle in again:
        await handle.close()


async def test_a_file_of_the_third_schema_has_counted_nothing_yet(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,), alerts=(an_alert(),)))
    await ledger.close()
    for table in ("tallies", "notes", "namespace_alerts"):
        by_hand(path, f"DROP TABLE {table}")
    by_hand(path, "PRAGMA user_version = 3")
    again = [SqliteLedger(path) for _ in range(2)]
    await asyncio.gather(*(handle.open(EMBEDDER) for handle in again))
    seen = await again[0].activate(KEY, 1)
    assert (seen.memories, seen.tally) == ((FROZEN,), {})
    assert await again[1].notes("app", "", "", 9) == []
    assert [alert.key for alert in await again[1].alerts("app", "", 9)] == [KEY]
    await again[0].touch(KEY, 1, {}, {"2026-03-02": {"recalls": 1}})
    assert await again[1].put_note("app", "night", 1, 0)
    assert (await again[1].activate(KEY, 1)).tally == {"2026-03-02": {"recalls": 1}}
    for handle in again:
        await handle.close()


async def test_a_file_of_the_first_schema_is_brought_up_to_date(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,), vectors={FROZEN.id: a_vector()}))
    await ledger.close()
    by_hand(path, "DROP TABLE reembedded")
    by_hand(path, "DROP TABLE reembedded_packs")
    by_hand(path, "DROP TABLE packs")
    by_hand(path, "DELETE FROM meta WHERE name = 'packs'")
    without_burials(path)
    by_hand(path, "PRAGMA user_version = 1")
    again = SqliteLedger(path)
    await again.open(EMBEDDER)
    assert (await again.activate(KEY, 1)).memories == (FROZEN,)
    assert await again.packs_revision() == 0
    await again.put_pack(a_stored_pack())
    assert len(await again.packs(KEY.namespace)) == 1
    assert (await again.erase(KEY, 1, 1, "erase", NOW)).remaining == 0
    await again.close()


async def test_a_vector_without_a_memory_is_not_waited_for(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,), vectors={FROZEN.id: a_vector(), "lost": a_vector()}))
    await ledger.close()
    other = SqliteLedger(path)
    assert (await other.begin_reembedding(EmbedderInfo("other", 4))).total == 1
    await other.put_embedded(KEY, {FROZEN.id: a_vector(1, 4)})
    assert (await other.finish_reembedding()).finished
    assert set((await other.activate(KEY, 1)).vectors) == {FROZEN.id}
    await other.close()


async def test_old_vectors_that_a_dying_process_left_go_with_the_next_sweep(
    path: Path, ledger: SqliteLedger
) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,), vectors={FROZEN.id: a_vector()}))
    assert ledger._writer is not None
    target = EmbedderInfo("other", 4)
    other = SqliteLedger(path)
    await other.begin_reembedding(target)
    await other.put_embedded(KEY, {FROZEN.id: a_vector(1, 4)})
    assert (await ledger._writer.run(lambda conn: reembedding.finish(conn, target))).finished  # and no more
    assert await ledger._writer.run(reembedding.has_leftovers)
    assert set((await other.activate(KEY, 1)).vectors) == {FROZEN.id}
    await other.sweep(NOW, 24, 72)
    assert not await ledger._writer.run(reembedding.has_leftovers)
    assert np.allclose((await other.activate(KEY, 1)).vectors[FROZEN.id], a_vector(1, 4), atol=1e-3)
    await other.close()


async def test_clearing_touches_no_change_that_is_under_way(path: Path, ledger: SqliteLedger) -> None:
    await ledger.commit(a_commit(memories=(FROZEN,), vectors={FROZEN.id: a_vector()}))
    other = SqliteLedger(path)
    await other.begin_reembedding(EmbedderInfo("other", 4))
    await other.put_embedded(KEY, {FROZEN.id: a_vector(1, 4)})
    await ledger.sweep(NOW, 24, 72)
    assert ledger._writer is not None
    await ledger._writer.run(reembedding.clear)
    assert (await other.finish_reembedding()).finished
    await other.close()
