"""The index on a real Weaviate passes the suite of every index."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING

import pytest
import weaviate
from weaviate.classes.config import Configure

from hermes_memory.adapters.weaviate_index import WeaviateIndex, collection, faults, naming
from hermes_memory.adapters.weaviate_index.storing import Tenant, store
from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import EmbedderMismatch, IndexUnavailable, InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.index import Document
from hermes_memory.testing.index_suite import DIMENSION, IndexSuite, axis, document

if TYPE_CHECKING:
    from tests.servers import WeaviateAddress

EMBEDDER = EmbedderInfo("suite", DIMENSION)


def index_at(address: WeaviateAddress, name: str, embedder: EmbedderInfo = EMBEDDER) -> WeaviateIndex:
    return WeaviateIndex(address.url, embedder, grpc_port=address.grpc_port, collection=name)


def client_at(address: WeaviateAddress) -> weaviate.WeaviateAsyncClient:
    """A plain client, to look and to meddle from outside."""
    return weaviate.use_async_with_local(
        host=address.host, port=address.port, grpc_port=address.grpc_port, skip_init_checks=True
    )


@pytest.fixture(scope="session")
def shared_name() -> str:
    return f"Suite_{uuid.uuid4().hex}"


@pytest.fixture
async def name(weaviate_address: WeaviateAddress) -> AsyncIterator[str]:
    """The name of a collection for one test."""
    name = f"Test_{uuid.uuid4().hex}"
    yield name
    async with client_at(weaviate_address) as client:
        await client.collections.delete(name)


class TestWeaviateIndex(IndexSuite):
    """The suite, and what only this one promises."""

    @pytest.fixture
    async def index(
        self, weaviate_address: WeaviateAddress, shared_name: str
    ) -> AsyncIterator[WeaviateIndex]:
        """An open index; its collection is that of all tests."""
        index = index_at(weaviate_address, shared_name)
        await index.open()
        yield index
        await index.close()

    async def test_a_put_with_other_things_than_documents(self, index: WeaviateIndex, key: UserKey) -> None:
        refused = await index.put(
            key,
            [
                document("", ["tea"]),
                document("\ud800", ["tea"]),
                document("huge", ["x" * 300_000]),
                document("fits", ["tea"]),
            ],
        )
        assert refused == {"": "bad_id", "\ud800": "bad_id", "huge": "too_large"}
        assert await index.ids(key) == ["fits"]

    async def test_a_user_is_a_hashed_tenant(
        self, index: WeaviateIndex, key: UserKey, weaviate_address: WeaviateAddress, shared_name: str
    ) -> None:
        await index.put(key, [document("a")])
        async with client_at(weaviate_address) as client:
            tenants = client.collections.use(shared_name).tenants
            found = await tenants.get()
            assert naming.tenant_name(key) in found
            assert not any(key.user_id in name for name in found)
            await index.rest(key)
            resting = await tenants.get_by_name(naming.tenant_name(key))
            assert resting is not None
            assert resting.activity_status.value == "INACTIVE"
            await index.drop(key)
            assert not await tenants.exists(naming.tenant_name(key))
            # and looking for the user makes none
            await index.near(key, axis(0), 5)
            await index.remove(key, ["a"])
            assert not await tenants.exists(naming.tenant_name(key))

    async def test_a_put_that_a_drop_overtakes_revives_nobody(
        self, index: WeaviateIndex, key: UserKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The tenant is made once for each put: what comes after a drop is for the feeder to look at again."""
        monkeypatch.setattr(naming, "MAX_BATCH", 1)

        async def store_then_drop(tenant: Tenant, batch: Sequence[Document]) -> dict[str, str]:
            refused = await store(tenant, batch)
            await index.drop(key)
            return refused

        monkeypatch.setattr("hermes_memory.adapters.weaviate_index.index.store", store_then_drop)
        with pytest.raises(IndexUnavailable, match="busy"):
            await index.put(key, [document("a"), document("b")])
        assert await index.count(key) == 0

    async def test_many_pages(
        self, index: WeaviateIndex, key: UserKey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """More documents than a page holds, and exactly a page's worth."""
        monkeypatch.setattr("hermes_memory.adapters.weaviate_index.index.PAGE", 10)
        await index.put(key, [document(f"m{row:02}") for row in range(25)])
        assert await index.ids(key) == [f"m{row:02}" for row in range(25)]
        await index.remove(key, [f"m{row:02}" for row in range(5, 25)] + [f"none{row}" for row in range(15)])
        assert await index.ids(key) == [f"m{row:02}" for row in range(5)]
        await index.put(key, [document(f"m{row:02}") for row in range(10)])
        assert await index.ids(key) == [f"m{row:02}" for row in range(10)]

    async def test_long_queries_are_bounded(self, index: WeaviateIndex, key: UserKey) -> None:
        await index.put(key, [document("a", ["w3"]), document("b", ["w20000"])])
        hits = await index.match(key, [f"w{number}" for number in range(30_000)], 5)
        assert [hit.memory_id for hit in hits] == ["a"]

    async def test_a_closed_index_says_so(self, weaviate_address: WeaviateAddress, shared_name: str) -> None:
        index = index_at(weaviate_address, shared_name)
        with pytest.raises(IndexUnavailable, match="closed"):
            await index.ping()
        await index.open()
        await index.ping()
        await index.close()
        with pytest.raises(IndexUnavailable, match="closed"):
            await index.count(UserKey("a", "b"))

    async def test_rest_use_put_and_drop_in_disorder(
        self, weaviate_address: WeaviateAddress, shared_name: str, key: UserKey
    ) -> None:
        """Two processes' worth of indexes on one user: every call ends well or as IndexUnavailable, and the last
        put after all of it is found.
        """
        one, two = index_at(weaviate_address, shared_name), index_at(weaviate_address, shared_name)
        await asyncio.gather(one.open(), two.open())
        failed = 0

        async def round_of(index: WeaviateIndex, number: int) -> None:
            nonlocal failed
            for step in range(4):
                try:
                    await index.put(key, [document(f"m{number}", ["tea"])])
                    await index.near(key, axis(0), 3)
                    await index.rest(key)
                    if step % 2 and not number:
                        await index.drop(key)
                    await index.match(key, ["tea"], 3)
                except IndexUnavailable as error:
                    assert error.why in {"busy", "timeout"}
                    failed += 1

        await asyncio.gather(*(round_of(index, number) for number in range(2) for index in (one, two)))
        assert failed < 16
        await one.drop(key)
        assert await two.ids(key) == []
        assert await two.put(key, [document("last", ["tea"])]) == {}
        assert [hit.memory_id for hit in await one.match(key, ["tea"], 5)] == ["last"]
        await one.drop(key)
        await asyncio.gather(one.close(), two.close())


async def test_another_embedder_is_refused(weaviate_address: WeaviateAddress, name: str) -> None:
    key = UserKey("a", "b")
    first = index_at(weaviate_address, name)
    await first.open()
    await first.put(key, [document("a")])
    other = index_at(weaviate_address, name, EmbedderInfo("suite", 4))
    with pytest.raises(EmbedderMismatch, match=r"8 dimensions.*4 dimensions"):
        await other.open()
    with pytest.raises(EmbedderMismatch):
        await index_at(weaviate_address, name, EmbedderInfo("another", DIMENSION)).open()
    await other.recreate()
    assert await other.count(key) == 0
    assert await other.put(key, [document("a", [], axis(0)[:4])]) == {}
    with pytest.raises(EmbedderMismatch):
        await first.open()
    await other.close()
    await first.close()


async def test_a_collection_of_others_is_left_alone(weaviate_address: WeaviateAddress, name: str) -> None:
    async with client_at(weaviate_address) as client:
        await client.collections.create(name)
    index = index_at(weaviate_address, name)
    with pytest.raises(InvalidConfig, match="not made by this version"):
        await index.open()
    await index.close()


async def test_a_collection_that_makes_tenants_is_refused(
    weaviate_address: WeaviateAddress, name: str
) -> None:
    async with client_at(weaviate_address) as client:
        await client.collections.create(
            name,
            description=f"Hermes Memory, layout {collection.LAYOUT}, vectors of {EMBEDDER}",
            multi_tenancy_config=Configure.multi_tenancy(enabled=True, auto_tenant_creation=True),
        )
    index = index_at(weaviate_address, name)
    with pytest.raises(InvalidConfig, match="revive"):
        await index.open()
    await index.close()


async def test_two_open_at_once(weaviate_address: WeaviateAddress, name: str) -> None:
    indexes = [index_at(weaviate_address, name) for _ in range(4)]
    await asyncio.gather(*(index.open() for index in indexes))
    await asyncio.gather(*(index.ping() for index in indexes))
    await asyncio.gather(*(index.close() for index in indexes))


async def test_a_collection_that_went_away_is_missed(weaviate_address: WeaviateAddress, name: str) -> None:
    """Not an empty answer: somebody must notice, and opening again makes it."""
    key = UserKey("a", "b")
    index = index_at(weaviate_address, name)
    await index.open()
    async with client_at(weaviate_address) as client:
        await client.collections.delete(name)
    calls = {
        "ping": index.ping,
        "near": lambda: index.near(key, axis(0), 3),
        "match": lambda: index.match(key, ["tea"], 3),
        "put": lambda: index.put(key, [document("a")]),
        "ids": lambda: index.ids(key),
        "remove": lambda: index.remove(key, ["a"]),
        "drop": lambda: index.drop(key),
        "rest": lambda: index.rest(key),
    }
    whys: dict[str, str] = {}
    for call, ask in calls.items():
        try:
            await ask()
        except IndexUnavailable as error:
            whys[call] = error.why
    assert whys == dict.fromkeys(calls, "no_collection")
    await index.open()
    await index.ping()
    await index.close()


async def test_what_the_client_logs_holds_no_content(
    weaviate_address: WeaviateAddress,
    name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client logs whole documents when some of a batch fail; ours drops them."""
    monkeypatch.setattr("hermes_memory.adapters.weaviate_index.index.unfit", lambda *_: None)
    index = index_at(weaviate_address, name)
    await index.open()
    key = UserKey("a", "b")
    await index.put(key, [document("first", ["tea"])])
    with caplog.at_level(logging.DEBUG):
        refused = await index.put(
            key, [document("bad", ["secret"], axis(0)[:4]), document("good", ["secret"])]
        )
        assert refused == {"bad": "bad_vector"}
        both = [document(name, ["secret"], axis(0)[:4]) for name in ("bad", "worse", "worst")]
        assert sorted(await index.put(key, both)) == ["bad", "worse", "worst"]
    await index.close()
    assert "Failed to send 1 objects" in caplog.text
    assert "secret" not in caplog.text


def test_the_order_is_that_of_the_core() -> None:
    defaults = signature(WordIndex).parameters
    assert (defaults["k1"].default, defaults["b"].default) == (collection.K1, collection.B)


def test_names() -> None:
    key = UserKey("ns", "用户")
    assert naming.tenant_name(key) == naming.tenant_name(UserKey("ns", "用户"))
    assert naming.tenant_name(key) != naming.tenant_name(UserKey("ns2", "用户"))
    assert naming._TENANT.fullmatch(naming.tenant_name(key))
    for bad in ("", "lower", "Has-dash", "9", "A" * 200):
        with pytest.raises(InvalidConfig):
            naming.checked_collection(bad)


def test_words_are_written_apart() -> None:
    words = [
        "a",
        "b",
        "a b",
        "",
        " ",
        "\\",
        "\\;",
        "\\20;",
        "\\5c;",
        "x" * 300,
        "x" * 301,
        "\ud800",
        "é",
        "e\u0301",
    ]
    text = naming.written(words)
    assert len(text.split()) == len(words)
    assert len(set(text.split())) == len(words)
    text.encode()


def test_batches_are_bounded() -> None:
    many = [document(f"m{row}") for row in range(450)]
    assert [len(batch) for batch in naming.batches(many)] == [200, 200, 50]
    heavy = [document(f"m{row}", ["y" * 200_000]) for row in range(6)]
    assert [len(batch) for batch in naming.batches(heavy)] == [2, 2, 2]
    assert list(naming.batches([])) == []


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://host:1", "http://", "http://host:99999", "http://host/path"]
)
def test_urls(url: str) -> None:
    with pytest.raises(InvalidConfig):
        WeaviateIndex(url, EMBEDDER)


def test_ports() -> None:
    with pytest.raises(InvalidConfig):
        WeaviateIndex("http://host:1", EMBEDDER, grpc_port=1)
    WeaviateIndex("https://host", EMBEDDER, grpc_host="other", grpc_secure=True, api_key="k")


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ('tenant not found: "u1"', faults.Fault.MISSING),
        ("tenant not active: 'u1'", faults.Fault.ASLEEP),
        (
            "implicit activation: updating schema: TYPE_UPDATE_TENANT: shard not found: u1",
            faults.Fault.MISSING,
        ),
        ("could not find class X in schema", faults.Fault.NO_COLLECTION),
        ("panic occurred: nil pointer dereference", faults.Fault.MOVING),
    ],
)
def test_sentences(sentence: str, fault: faults.Fault) -> None:
    assert faults.fault_in(sentence) is fault
