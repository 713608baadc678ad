"""What the Redis ledger does when replies are lost, connections cut and servers killed: nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hermes_memory.adapters.redis_ledger import Redis, RedisLedger
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import InvalidInput, LedgerUnavailable
from hermes_memory.ports.ledger import AccessCount, Note, OutboxEntry, Receipt
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_commit, a_memory, a_turn, a_vector, an_audit
from tests.conformance.lossy_proxy import Loss, LossyProxy
from tests.conformance.redis_servers import Server, running

MARK = "marked-memory"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[LossyProxy]:
    with server.client() as client:
        client.flushall()
    lossy = LossyProxy(server.port)
    lossy.needle = MARK.encode()
    async with lossy.running():
        yield lossy


@pytest.fixture
async def ledger(proxy: LossyProxy) -> AsyncIterator[RedisLedger]:
    handle = RedisLedger(Redis(url=proxy.url, timeout_s=0.5))
    await handle.open(EMBEDDER)
    warm = UserKey("app", "warm")  # the server knows the scripts from now on: each call is one request
    await handle.commit(a_commit(key=warm))
    await handle.touch(warm, 1, {"none": AccessCount(1, NOW)})
    await handle.erase(warm, 1, 1, "warm", NOW)
    yield handle
    await handle.close()


MARKED = a_commit(
    memories=(a_memory(id=MARK),), audit=(an_audit(),), outbox=(OutboxEntry(op="put", memory_id=MARK),), result=1
)  # fmt: skip


@pytest.mark.parametrize(
    "losses",
    [[Loss.REPLY], [Loss.REQUEST], [Loss.HALF], [Loss.STALL], [Loss.REPLY, Loss.REQUEST], [Loss.REPLY, Loss.STALL]],
    ids="+".join,
)  # fmt: skip
async def test_a_commit_whose_connection_is_lost_is_applied_once(
    ledger: RedisLedger, proxy: LossyProxy, losses: list[Loss]
) -> None:
    proxy.plan = list(losses)
    receipt = await ledger.commit(MARKED)
    assert (receipt.version, receipt.result) == (1, 1)
    assert receipt.replayed is (losses[0] in {Loss.REPLY, Loss.STALL})
    assert proxy.marked == len(losses) + 1
    seen = await ledger.activate(KEY, 1)
    assert (seen.version, [memory.id for memory in seen.memories]) == (1, [MARK])
    assert len(await ledger.audit(KEY, 0, 9)) == len(await ledger.read_outbox(KEY, 9)) == 1


async def test_when_all_attempts_are_lost_the_caller_learns_it_and_may_repeat(
    ledger: RedisLedger, proxy: LossyProxy
) -> None:
    proxy.plan = [Loss.REPLY] * 3
    with pytest.raises(LedgerUnavailable):
        await ledger.commit(MARKED)
    assert (await ledger.commit(MARKED)).replayed is True
    assert (await ledger.activate(KEY, 1)).version == 1


async def test_an_erasure_whose_reply_is_lost_gives_its_receipt(
    ledger: RedisLedger, proxy: LossyProxy
) -> None:
    await ledger.bind_session(KEY, "s1")
    await ledger.commit(MARKED)
    proxy.needle, proxy.plan = b"EVALSHA", [Loss.REPLY]
    receipt = await ledger.erase(KEY, 1, 1, "erase", NOW)
    assert (receipt.memories, receipt.remaining, receipt.version) == (1, 0, 2)
    assert (await ledger.activate(KEY, 1)).generation == 1
    assert await ledger.session_owner("app", "s1") is None


@pytest.mark.parametrize(
    "losses", [[Loss.REPLY], [Loss.REQUEST], [Loss.STALL], [Loss.REPLY, Loss.REPLY]], ids="+".join
)
async def test_a_note_whose_reply_is_lost_is_written_once_and_has_won(
    ledger: RedisLedger, proxy: LossyProxy, losses: list[Loss]
) -> None:
    await ledger.put_note("app", "warm", 0)
    proxy.plan = list(losses)
    assert await ledger.put_note("app", MARK, "mine", 0)
    assert proxy.marked == len(losses) + 1
    assert await ledger.note("app", MARK) == Note("mine", 1)


async def test_a_note_that_another_wrote_over_meanwhile_has_won_all_the_same(
    ledger: RedisLedger, proxy: LossyProxy, server: Server
) -> None:
    """Sent again, it neither says that it lost, nor takes the place of what came after it."""
    other = RedisLedger(Redis(url=server.url))
    await other.open(EMBEDDER)
    await ledger.put_note("app", "warm", 0)
    for expected in (0, None):
        proxy.plan = [Loss.STALL]
        mine = asyncio.create_task(ledger.put_note("app", MARK, "mine", expected))
        seen = None
        while seen is None or seen.value != "mine":
            seen = await other.note("app", MARK)
        assert await other.put_note("app", MARK, "theirs", seen.revision)
        assert await mine
        assert await other.note("app", MARK) == Note("theirs", seen.revision + 1)
    await other.close()


@pytest.mark.parametrize("loss", [Loss.REPLY, Loss.STALL])
async def test_recalls_are_never_counted_twice(ledger: RedisLedger, proxy: LossyProxy, loss: Loss) -> None:
    await ledger.commit(MARKED)
    proxy.plan = [loss]
    before = proxy.marked
    with pytest.raises(LedgerUnavailable):
        await ledger.touch(KEY, 1, {MARK: AccessCount(2, NOW)})
    assert proxy.marked == before + 1
    assert (await ledger.activate(KEY, 1)).memories[0].access_count == 2


async def test_a_cancelled_commit_leaves_no_reply_for_the_next_call(
    ledger: RedisLedger, proxy: LossyProxy
) -> None:
    """On Python 3.11 the client swallows a cancellation while it waits for a reply: ours is felt at once."""
    for number in range(20):
        commit = a_commit(number, memories=(a_memory(id=f"m{number}"),), result=number)
        task = asyncio.create_task(ledger.commit(commit))
        await asyncio.sleep(0.0005 * number)
        task.cancel()
        started_s = time.monotonic()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError | Receipt)
        assert time.monotonic() - started_s < 0.2
        again = await ledger.commit(commit)
        assert (again.version, again.result) == (number + 1, number)
        assert await ledger.session_owner("app", f"nobody-{number}") is None  # not somebody else's answer
    seen = await ledger.activate(KEY, 1)
    assert (seen.version, len(seen.memories)) == (20, 20)


async def test_a_cancelled_call_to_a_server_that_is_silent_ends_at_once(
    ledger: RedisLedger, proxy: LossyProxy
) -> None:
    proxy.plan = [Loss.STALL]
    task = asyncio.create_task(ledger.commit(MARKED))
    await asyncio.sleep(0.05)
    started_s = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started_s < 0.1
    assert (await ledger.commit(MARKED)).version == 1


async def test_what_cannot_be_written_is_refused_before_anything_is_sent(
    ledger: RedisLedger, proxy: LossyProxy
) -> None:
    with pytest.raises(InvalidInput):
        await ledger.commit(a_commit(memories=(a_memory(id=MARK),), vectors={MARK: a_vector(1, 3)}))
    assert proxy.marked == 0


async def test_a_restarted_server_has_no_scripts_and_lost_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "redis") as server:
        ledger = RedisLedger(Redis(url=server.url, timeout_s=0.5))
        await ledger.open(EMBEDDER)
        await ledger.commit(a_commit(memories=(a_memory(),), vectors={"mem-1": a_vector()}))
        await asyncio.to_thread(server.kill)
        with pytest.raises(LedgerUnavailable):
            await ledger.commit(a_commit(1))
        await asyncio.to_thread(server.start)
        with server.client() as client:
            assert not any(client.script_exists("0" * 40))
        seen = await ledger.activate(KEY, 1)
        assert (seen.version, seen.memories, set(seen.vectors)) == (1, (a_memory(),), {"mem-1"})
        assert (await ledger.commit(a_commit(1))).version == 2
        await ledger.close()


async def test_a_killed_server_keeps_whatever_was_acknowledged(tmp_path: Path) -> None:
    with running(tmp_path / "redis") as server:
        ledger = RedisLedger(Redis(url=server.url, timeout_s=0.5, attempts=1))
        await ledger.open(EMBEDDER)
        keys = [UserKey("app", f"user{number}") for number in range(8)]
        acknowledged = dict.fromkeys(keys, 0)

        async def write(key: UserKey) -> None:
            while True:
                version = acknowledged[key]
                memory = a_memory(id=f"m{version}", user_id=key.user_id)
                try:
                    await ledger.commit(
                        a_commit(version, key=key, memories=(memory,), turns=(a_turn(index=version),))
                    )
                except LedgerUnavailable:
                    return
                acknowledged[key] += 1

        writers = [asyncio.create_task(write(key)) for key in keys]
        await asyncio.sleep(0.7)
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*writers)
        await asyncio.to_thread(server.start)
        assert sum(acknowledged.values()) > len(keys)
        for key, version in acknowledged.items():
            seen = await ledger.activate(key, 1)
            assert version <= seen.version <= version + 1  # the last one may have been applied unheard
            assert len(seen.memories) == len(seen.turns) == seen.version
        assert await ledger.users(None, "", 99) == sorted(key for key in keys if acknowledged[key])
        assert set(await ledger.pending_users("", 99)) >= {key for key in keys if acknowledged[key]}
        await ledger.close()


async def test_a_full_server_refuses_writes_and_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "redis") as server:
        ledger = RedisLedger(Redis(url=server.url))
        await ledger.open(EMBEDDER)
        await ledger.commit(a_commit(memories=(a_memory(),)))
        with server.client() as client:
            client.config_set("maxmemory", "1mb")
            with pytest.raises(LedgerUnavailable, match="OutOfMemory"):
                await ledger.commit(a_commit(1, memories=(a_memory(id="m2"),)))
            with pytest.raises(LedgerUnavailable):
                await ledger.ping()
            client.config_set("maxmemory", "0")
        assert (await ledger.activate(KEY, 1)).version == 1
        assert (await ledger.commit(a_commit(1))).replayed is False
        await ledger.close()


async def test_a_replica_refuses_writes(tmp_path: Path) -> None:
    with running(tmp_path / "redis") as server:
        ledger = RedisLedger(Redis(url=server.url))
        await ledger.open(EMBEDDER)
        with server.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(LedgerUnavailable):
            await ledger.ping()
        with pytest.raises(LedgerUnavailable):
            await ledger.commit(a_commit())
        await ledger.close()


async def test_who_waits_too_long_for_a_connection_is_told(server: Server) -> None:
    ledger = RedisLedger(Redis(url=server.url, timeout_s=0.2, max_connections=1, attempts=1), prefix="narrow")
    await ledger.open(EMBEDDER)
    with server.client() as client:
        client.execute_command("CLIENT", "PAUSE", "2000", "ALL")
    started_s = time.monotonic()
    calls = [ledger.claim_epoch(f"h{number}", 1, NOW) for number in range(3)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(answer, LedgerUnavailable) for answer in answers)
    assert time.monotonic() - started_s < 1.0
    with server.client() as client:
        client.execute_command("CLIENT", "UNPAUSE")
    assert await ledger.claim_epoch("h9", 1, NOW + timedelta(seconds=1)) > 0
    await ledger.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    ledger = RedisLedger(Redis(url="redis://127.0.0.1:1/0", timeout_s=0.2, attempts=1))
    with pytest.raises(LedgerUnavailable):
        await ledger.open(EMBEDDER)
    for closed in (ledger.ping(), ledger.activate(KEY, 1)):
        with pytest.raises(LedgerUnavailable, match="not open"):
            await closed
    await ledger.close()
