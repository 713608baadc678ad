"""A Weaviate that hangs, dies and comes back, under one index that stays open. It asks for a key as well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from hermes_memory.adapters.weaviate_index import WeaviateIndex
from hermes_memory.adapters.weaviate_index.connection import PROBE_S
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import IndexUnavailable
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.testing.index_suite import DIMENSION, axis, document
from tests.servers import WeaviateServer, start_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = UserKey("outage", "somebody")
SECRET = "key-of-the-test"
READ_S = 1.5
WITH_KEYS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
    "AUTHENTICATION_APIKEY_ENABLED": "true",
    "AUTHENTICATION_APIKEY_ALLOWED_KEYS": SECRET,
    "AUTHENTICATION_APIKEY_USERS": "tests",
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A server of this test alone."""
    server = WeaviateServer(tmp_path_factory.mktemp("outage") / "data", environment=WITH_KEYS)
    try:
        yield start_or_skip(server)
    finally:
        if server.running:
            server.resume()
        server.stop()


def index_of(server: WeaviateServer, key: str | None = SECRET) -> WeaviateIndex:
    return WeaviateIndex(
        server.url,
        EmbedderInfo("suite", DIMENSION),
        grpc_port=server.grpc_port,
        api_key=key,
        read_timeout_s=READ_S,
        write_timeout_s=4.0,
    )


async def failing(ask: Callable[[], Awaitable[Any]]) -> tuple[str, float]:
    """Why it failed, and after how many seconds."""
    begun = time.monotonic()
    with pytest.raises(IndexUnavailable) as caught:
        await ask()
    return caught.value.why, time.monotonic() - begun


async def working(index: WeaviateIndex, within_s: float) -> None:
    """Wait until a search is answered."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            assert [hit.memory_id for hit in await index.match(KEY, ["tea"], 5)] == ["a"]
        except IndexUnavailable:
            assert time.monotonic() < deadline, "it did not come back"
            await asyncio.sleep(0.1)
        else:
            return


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_an_outage_is_survived(server: WeaviateServer) -> None:
    for wrong in (None, "another"):
        assert (await failing(index_of(server, wrong).open))[0] == "unauthorised"
    index = index_of(server)
    await index.open()
    await index.put(KEY, [document("a", ["tea"]), document("b", ["milk"], axis(1))])

    # It hangs: the first call waits as long as it may, the next ones ask first whether it is there.
    server.pause()
    why, took_s = await failing(lambda: index.near(KEY, axis(0), 5))
    assert why == "timeout"
    assert took_s < READ_S + 1
    why, took_s = await failing(lambda: index.put(KEY, [document("c")]))
    assert why == "timeout"
    assert took_s < PROBE_S + 1
    server.resume()
    await working(index, 10)

    # It is gone, and nobody waits for it once that is known.
    server.kill()
    assert (await failing(lambda: index.match(KEY, ["tea"], 5)))[0] in {"unreachable", "timeout"}
    for ask in (
        index.ping,
        lambda: index.near(KEY, axis(0), 5),
        lambda: index.put(KEY, [document("c")]),
        lambda: index.remove(KEY, ["a"]),
        lambda: index.drop(KEY),
        lambda: index.rest(KEY),
        lambda: index.ids(KEY),
        lambda: index.count(KEY),
    ):
        why, took_s = await failing(ask)
        assert why == "unreachable"
        assert took_s < 1.0
    late = index_of(server)
    assert (await failing(late.open))[0] == "unreachable"

    # It is back on the same ports: the same index goes on, and one that could not open now can.
    await asyncio.to_thread(server.start)
    await working(index, 20)
    assert await index.ids(KEY) == ["a", "b"]
    assert await index.put(KEY, [document("c", ["milk"])]) == {}
    await late.open()
    assert await late.count(KEY) == 3
    await late.close()

    # It died with the user asleep.
    await index.rest(KEY)
    server.kill()
    await asyncio.to_thread(server.start)
    await working(index, 20)
    await index.drop(KEY)
    assert await index.ids(KEY) == []
    await index.close()
