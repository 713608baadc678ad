"""What the ledgers cost on one disk, both fsynced: SQLite with ``synchronous=FULL``, Redis with ``appendfsync always``.

The commit is that of one extracted memory: body, vector, audit, job, operation. The two take turns, so that what else the
machine does meanwhile hits both.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import redis

from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.redis_ledger import Redis, RedisLedger
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Commit, JobStatus, Ledger
from hermes_memory.testing.builders import NOW, a_commit, a_job, a_memory, a_turn, a_vector, an_audit

LIMITS = (
    Limit("commit_ratio", 2.0, "durable commit, p50: Redis over SQLite"),
    Limit("activation_ratio", 2.0, "activation of a user at full tiers, p50: Redis over SQLite"),
)
EMBEDDER = EmbedderInfo("bench", 384)
FULL = 1250  # memories of a user at full tiers
AT_ONCE = 32
ROUNDS, QUICK_ROUNDS = 400, 60
START_S = 20.0


def run(*, quick: bool, say: Say) -> Report:
    """Measure both ledgers in folders beside each other."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder, _server(Path(folder) / "redis") as port:
        return asyncio.run(_measure(Path(folder), port, QUICK_ROUNDS if quick else ROUNDS, say))


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[int]:
    program = shutil.which("redis-server")
    assert program, "redis-server is not installed"
    folder.mkdir()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])
    options = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "yes"}
    options |= {"appendfsync": "always", "maxmemory-policy": "noeviction"}
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + START_S
        with redis.Redis(host="127.0.0.1", port=port) as client:
            while True:
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    break
                assert time.monotonic() < deadline_s, "redis-server did not start"
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


async def _measure(folder: Path, port: int, rounds: int, say: Say) -> Report:
    handles: dict[str, Ledger] = {
        "SQLite": SqliteLedger(folder / "ledger.db", synchronous="FULL"),
        "Redis": RedisLedger(Redis(url=f"redis://127.0.0.1:{port}/0")),
    }
    for handle in handles.values():
        await handle.open(EMBEDDER)
    say("commits, one after the other")
    single = {name: list[float]() for name in handles}
    for number in range(rounds):
        for name, handle in handles.items():
            started_s = time.perf_counter()
            await handle.commit(_commit(UserKey("bench", "single"), number))
            single[name].append((time.perf_counter() - started_s) * 1e3)
    say(f"commits, {AT_ONCE} at once")
    rates = {name: await _rate(handle, rounds) for name, handle in handles.items()}
    say("activation at full tiers")
    before = _used(port)
    woken = {name: await _activation(handle) for name, handle in handles.items()}
    bytes_each = (_used(port) - before) / FULL
    for handle in handles.values():
        await handle.close()
    return _report(single, rates, woken, bytes_each)


def _commit(key: UserKey, version: int) -> Commit:
    id_ = f"mem-{version:05}-0123456789"
    return a_commit(
        version,
        key=key,
        memories=(a_memory(id=id_, user_id=key.user_id),),
        vectors={id_: a_vector(version % 7, EMBEDDER.dimension)},
        turns=(a_turn(index=version, pending=False),),
        jobs=(a_job(id=f"job-{version}", status=JobStatus.DONE),),
        audit=(an_audit(memory_id=id_),),
        result={"ids": [id_]},
        at=NOW,
    )


async def _rate(handle: Ledger, rounds: int) -> float:
    """Commits a second of AT_ONCE users at once."""
    each = max(4, rounds // 8)

    async def live(number: int) -> None:
        for version in range(each):
            await handle.commit(_commit(UserKey("bench", f"many-{number}"), version))

    started_s = time.perf_counter()
    await asyncio.gather(*map(live, range(AT_ONCE)))
    return AT_ONCE * each / (time.perf_counter() - started_s)


async def _activation(handle: Ledger) -> float:
    """Milliseconds until a user at full tiers is there, decoded."""
    key = UserKey("bench", "full")
    vectors = {f"mem-{n:05}-0123456789": a_vector(n % 50, EMBEDDER.dimension) for n in range(FULL)}
    memories = tuple(a_memory(id=id_, user_id=key.user_id) for id_ in vectors)
    await handle.commit(a_commit(key=key, memories=memories, vectors=vectors))
    times = []
    for epoch in range(2, 13):
        started_s = time.perf_counter()
        snapshot = await handle.activate(key, epoch)
        times.append((time.perf_counter() - started_s) * 1e3)
        assert len(snapshot.memories) == len(snapshot.vectors) == FULL
    return median(times)


def _used(port: int) -> int:
    """Bytes of all memories and vectors, with what lies beside them."""
    with redis.Redis(host="127.0.0.1", port=port) as client:
        keys = [key for part in ("memories", "access", "vectors:*") for key in client.scan_iter(f"*:{part}")]
        return sum(int(client.memory_usage(key, samples=0) or 0) for key in keys)


def _report(
    single: dict[str, list[float]], rates: dict[str, float], woken: dict[str, float], bytes_each: float
) -> Report:
    report = Report("ledgers")
    p50 = {name: median(times) for name, times in single.items()}
    p95 = {name: sorted(times)[int(len(times) * 0.95)] for name, times in single.items()}
    report.figures = {
        "commit_ratio": p50["Redis"] / p50["SQLite"],
        "activation_ratio": woken["Redis"] / woken["SQLite"],
        "bytes_per_memory": bytes_each,
    }
    rows = [(name, p50[name], p95[name], rates[name], woken[name]) for name in single]
    columns = (
        "ledger",
        "commit p50 ms",
        "p95 ms",
        f"commits/s, {AT_ONCE} at once",
        f"activation of {FULL} ms",
    )
    report.tables = [
        table("Durable commits on one disk", columns, rows),
        table("In Redis", ("what", "bytes"), [("a memory with its vector", bytes_each)]),
    ]
    report.data = {"p50_ms": p50, "p95_ms": p95, "commits_per_s": rates, "activation_ms": woken}
    return report
