"""The ``VectorIndex`` on Weaviate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from weaviate import WeaviateAsyncClient
from weaviate.classes.query import Filter, MetadataQuery

from hermes_memory.adapters.weaviate_index import collection as layout
from hermes_memory.adapters.weaviate_index.connection import Connection, translated
from hermes_memory.adapters.weaviate_index.faults import Fault, TenantError
from hermes_memory.adapters.weaviate_index.naming import (
    batches,
    checked_collection,
    object_id,
    tenant_name,
    unfit,
    written,
)
from hermes_memory.adapters.weaviate_index.storing import Tenant, store
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import IndexUnavailable, InvalidInput
from hermes_memory.ports.embedder import EmbedderInfo, Vector
from hermes_memory.ports.index import Document, Hit

PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # between two tries while a tenant changes
MAX_HITS = 10_000  # the server gives no more at once
MAX_QUERY_WORDS = 256
PAGE = 1_000
NOBODY = UserKey("ping", "ping")

T = TypeVar("T")


class WeaviateIndex:
    """One collection for all, one tenant for each user. Open, use and close it in one event loop.

    Args:
        url: ``http(s)://host[:port]`` of the server.
        embedder: Whose vectors it holds; those of another one are refused.
        grpc_port: Where it answers gRPC.
        grpc_host: Where that is another host than the URL's.
        grpc_secure: TLS for gRPC; None: as the URL says.
        api_key: What the server asks for, if it does.
        collection: The collection's name.
        read_timeout_s: For a search, waking the user's tenant included.
        write_timeout_s: For a batch of documents, a removal, a listing, and to connect.

    Raises:
        InvalidConfig: the URL, a port or the collection's name cannot be.
    """

    def __init__(
        self,
        url: str,
        embedder: EmbedderInfo,
        *,
        grpc_port: int = 50051,
        grpc_host: str | None = None,
        grpc_secure: bool | None = None,
        api_key: str | None = None,
        collection: str = "HermesMemory",
        read_timeout_s: float = 2.0,
        write_timeout_s: float = 10.0,
    ) -> None:
        self._connection = Connection(
            url,
            grpc_port=grpc_port,
            grpc_host=grpc_host,
            grpc_secure=grpc_secure,
            api_key=api_key,
            timeout_s=max(read_timeout_s, write_timeout_s),
        )
        self._embedder, self._name = embedder, checked_collection(collection)
        self._read_s, self._write_s = read_timeout_s, write_timeout_s

    async def open(self) -> None:
        """Connect, and make the collection where there is none.

        Raises:
            EmbedderMismatch: the collection holds vectors of another embedder; ``recreate`` empties it.
            InvalidConfig: the collection is none of ours.
            IndexUnavailable: the server cannot be reached.
        """
        is_new = await self._connection.open(self._write_s)
        try:
            await self._administer(lambda client: layout.ensure(client, self._name, self._embedder))
        except BaseException:
            if is_new:
                await self.close()
            raise

    async def recreate(self) -> None:
        """Empty the index, for everybody, and make it anew for this embedder; feed it from the ledger then."""
        is_new = await self._connection.open(self._write_s)
        try:
            await self._administer(lambda client: client.collections.delete(self._name))
            await self.open()
        except BaseException:
            if is_new:
                await self.close()
            raise

    async def close(self) -> None:
        """Let go of the connection. May be called twice; ``open`` opens it again."""
        await self._connection.close()

    async def ping(self) -> None:
        """Answer if a search would be answered now."""
        await self._count(NOBODY, self._read_s)

    async def put(self, key: UserKey, documents: Sequence[Document]) -> dict[str, str]:
        """Add or replace documents by memory id; of two with one id the later counts.

        Returns:
            Why some will never be taken, by memory id: ``bad_id``, ``bad_vector``, ``too_large``, ``rejected``.
        """
        refused: dict[str, str] = {}
        fit: dict[str, Document] = {}
        for document in documents:
            fit.pop(document.memory_id, None)
            refused.pop(document.memory_id, None)
            if reason := unfit(document, self._embedder.dimension):
                refused[document.memory_id] = reason
            else:
                fit[document.memory_id] = document
        if fit:
            await self._make(key)
        for batch in batches(fit.values()):
            refused |= await self._put(key, batch)
        return refused

    async def remove(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        for start in range(0, len(memory_ids), PAGE):
            objects = [object_id(memory_id) for memory_id in memory_ids[start : start + PAGE]]

            async def work(tenant: Tenant, chosen: list[Any] = objects) -> None:
                done = await tenant.data.delete_many(Filter.by_id().contains_any(chosen))
                if done.failed:
                    raise TenantError(Fault.MOVING)

            await self._with(key, work, None, self._write_s)

    async def drop(self, key: UserKey) -> None:
        """Remove the user's tenant, and see that it is gone."""

        async def work(tenant: Tenant) -> None:
            name = tenant_name(key)
            await tenant.tenants.remove(name)
            if await tenant.tenants.exists(name):
                raise TenantError(Fault.MOVING)

        await self._with(key, work, None, self._write_s)

    async def rest(self, key: UserKey) -> None:
        """Put the user's tenant to sleep; the next use of any kind wakes it."""

        async def work(tenant: Tenant) -> None:
            await tenant.tenants.deactivate(tenant_name(key))

        await self._with(key, work, None, self._write_s)

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` nearest by cosine, best first; at most ``MAX_HITS``.

        Raises:
            InvalidInput: the vector is of another length than the index's, or not finite.
        """
        if vector.shape != (self._embedder.dimension,) or not np.isfinite(vector).all():
            raise InvalidInput("vector", f"must hold {self._embedder.dimension} finite numbers")
        if limit <= 0:
            return []

        async def work(tenant: Tenant) -> list[Hit]:
            found = await tenant.query.near_vector(
                vector.tolist(),
                limit=min(limit, MAX_HITS),
                filters=_keeping(archived),
                return_metadata=MetadataQuery(distance=True),
                return_properties=[layout.MEMORY_ID],
            )
            return _ordered((one.properties, 1.0 - (one.metadata.distance or 0.0)) for one in found.objects)

        return await self._with(key, work, [], self._read_s)

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        """The ``limit`` best by BM25, best first; at most ``MAX_HITS``.

        The first ``MAX_QUERY_WORDS`` words count, each once.
        """
        query = written(list(dict.fromkeys(words))[:MAX_QUERY_WORDS])
        if not query or limit <= 0:
            return []

        async def work(tenant: Tenant) -> list[Hit]:
            found = await tenant.query.bm25(
                query,
                query_properties=[layout.WORDS],
                limit=min(limit, MAX_HITS),
                filters=_keeping(archived),
                return_metadata=MetadataQuery(score=True),
                return_properties=[layout.MEMORY_ID],
            )
            # The server leaves out the constant factor of BM25; with it the scores are on the core's scale.
            scores = (
                (one.properties, (layout.K1 + 1) * (one.metadata.score or 0.0)) for one in found.objects
            )
            return [hit for hit in _ordered(scores) if hit.score > 0]

        return await self._with(key, work, [], self._read_s)

    async def ids(self, key: UserKey) -> list[str]:
        """The ids of all documents of a user, in order."""

        async def work(tenant: Tenant) -> list[str]:
            found: list[str] = []
            after = None
            while True:
                page = await tenant.query.fetch_objects(
                    limit=PAGE, after=after, return_properties=[layout.MEMORY_ID]
                )
                found += [str(one.properties[layout.MEMORY_ID]) for one in page.objects]
                if len(page.objects) < PAGE:
                    return sorted(found)
                after = page.objects[-1].uuid

        return await self._with(key, work, [], self._write_s)

    async def count(self, key: UserKey) -> int:
        """How many documents of the user it holds."""
        return await self._count(key, self._write_s)

    async def _count(self, key: UserKey, timeout_s: float) -> int:
        async def work(tenant: Tenant) -> int:
            return (await tenant.aggregate.over_all(total_count=True)).total_count or 0

        return await self._with(key, work, 0, timeout_s)

    async def _put(self, key: UserKey, batch: Sequence[Document]) -> dict[str, str]:
        async def work(tenant: Tenant) -> dict[str, str]:
            return await store(tenant, batch)

        refused = await self._with(key, work, None, self._write_s)
        if refused is None:  # dropped while we put: the drop has the last word, and the feeder looks again
            raise IndexUnavailable(Fault.MOVING)
        return refused

    async def _make(self, key: UserKey) -> None:
        """Make the user's tenant where there is none.

        Looking first also keeps a put into a collection that is gone from making one: a server with its automatic
        schema on would, and without tenants.
        """
        name = tenant_name(key)

        async def work(tenant: Tenant) -> None:
            if not await tenant.tenants.exists(name):
                await tenant.tenants.create(name)

        await self._with(key, work, None, self._write_s)

    async def _with(
        self, key: UserKey, work: Callable[[Tenant], Awaitable[T]], absent: T, timeout_s: float
    ) -> T:
        """Work in the user's tenant: ``absent`` where there is none; woken where it sleeps.

        While a tenant is put to sleep, woken or dropped the server refuses with all sorts of sentences, so work is
        tried again a bounded number of times.
        """
        async with self._connection.guarded(timeout_s) as client:
            tenant = client.collections.use(self._name).with_tenant(tenant_name(key))
            fault: Fault | None
            for pause_s in PAUSES_S:
                try:
                    with translated():
                        return await work(tenant)
                except TenantError as error:
                    fault = error.fault
                if fault is Fault.ASLEEP:
                    fault = await _wake(tenant, tenant_name(key))
                if fault is Fault.MISSING:
                    return absent
                if fault is not None:
                    await asyncio.sleep(pause_s)
        raise IndexUnavailable(Fault.MOVING)

    async def _administer(self, work: Callable[[WeaviateAsyncClient], Awaitable[None]]) -> None:
        """Do something that is of no tenant."""
        try:
            async with self._connection.guarded(self._write_s) as client:
                await work(client)
        except TenantError as error:
            raise IndexUnavailable(error.fault) from None


async def _wake(tenant: Tenant, name: str) -> Fault | None:
    """Wake a tenant; what stood in the way, or None."""
    try:
        with translated():
            await tenant.tenants.activate(name)
    except TenantError as error:
        return error.fault
    return None


def _keeping(archived: bool | None) -> Any:
    return None if archived is None else Filter.by_property(layout.ARCHIVED).equal(archived)


def _ordered(found: Iterable[tuple[Mapping[str, Any], float]]) -> list[Hit]:
    """Hits, best first, equal ones by id."""
    hits = [Hit(str(properties[layout.MEMORY_ID]), score) for properties, score in found]
    return sorted(hits, key=lambda hit: (-hit.score, hit.memory_id))
