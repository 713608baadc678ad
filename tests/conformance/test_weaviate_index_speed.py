"""What each call costs on one user of 1,250 documents × 384; `-s` prints the table of docs/reference/weaviate.md.

The limits are ten times what was measured: they catch a lost index or a wait for a timeout, not a busy machine.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hermes_memory.adapters.weaviate_index import WeaviateIndex
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.index import Document

if TYPE_CHECKING:
    from tests.servers import WeaviateAddress

SIZE, DIMENSION = 1_250, 384
WORDS = [f"w{number}" for number in range(2_000)]
LIMITS_MS = {
    "near": 60,
    "near, archived": 60,
    "match": 40,
    "put 1": 80,
    "put 100": 1_500,
    "ids": 600,
    "count": 30,
    "rest": 1_000,
    "near of a sleeper": 500,
    "drop": 500,
}


def made(rng: np.random.Generator, memory_id: str) -> Document:
    vector = rng.normal(size=DIMENSION).astype(np.float32)
    words = tuple(rng.choice(WORDS, size=12).tolist())
    return Document(memory_id, words, vector / np.linalg.norm(vector), bool(rng.random() < 0.3))


async def timed(times: list[float], answer: Awaitable[object]) -> None:
    begun = time.perf_counter()
    await answer
    times.append((time.perf_counter() - begun) * 1_000)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_what_calls_cost(weaviate_address: WeaviateAddress) -> None:
    rng = np.random.default_rng(8)
    index = WeaviateIndex(
        weaviate_address.url,
        EmbedderInfo("speed", DIMENSION),
        grpc_port=weaviate_address.grpc_port,
        collection=f"Speed_{uuid.uuid4().hex}",
        read_timeout_s=10.0,
    )
    await index.open()
    key = UserKey("speed", uuid.uuid4().hex)
    times: dict[str, list[float]] = {name: [] for name in LIMITS_MS}
    documents = [made(rng, f"m{row}") for row in range(SIZE)]
    for start in range(0, SIZE, 100):
        await timed(times["put 100"], index.put(key, documents[start : start + 100]))
    for row in range(100):
        one = documents[row]
        await timed(times["near"], index.near(key, one.vector, 20))
        await timed(times["near, archived"], index.near(key, one.vector, 20, archived=True))
        await timed(times["match"], index.match(key, one.words, 20))
        await timed(times["count"], index.count(key))
        await timed(times["put 1"], index.put(key, [one]))
    for row in range(20):
        one = documents[row]
        await timed(times["ids"], index.ids(key))
        await timed(times["rest"], index.rest(key))
        await timed(times["near of a sleeper"], index.near(key, one.vector, 20))
    assert await index.count(key) == SIZE
    for row in range(20):
        other = UserKey("speed", f"{key.user_id}-{row}")
        await index.put(other, documents[:100])
        await timed(times["drop"], index.drop(other))
    await index.drop(key)
    await index.close()
    print()
    for name, taken in times.items():
        half, most = np.percentile(taken, (50, 95))
        print(f"{name:18} {half:8.1f} {most:8.1f}  ms p50, p95 of {len(taken)}")
        assert half < LIMITS_MS[name], name
