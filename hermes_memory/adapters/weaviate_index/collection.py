"""The one collection: made by us, with nothing left to a server's defaults."""

from __future__ import annotations

import re

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    StopwordsPreset,
    Tokenization,
    VectorDistances,
)
from weaviate.exceptions import UnexpectedStatusCodeError

from hermes_memory.errors import EmbedderMismatch, InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo

LAYOUT = 1  # raise it with every change of what `_create` makes
K1, B = 1.0, 0.5  # those of core.bm25, so that both indexes order alike

MEMORY_ID, WORDS, ARCHIVED = "memory_id", "words", "archived"

_NOTE = re.compile(r"Hermes Memory, layout (\d+), vectors of (.*)")


async def ensure(client: WeaviateAsyncClient, name: str, embedder: EmbedderInfo) -> None:
    """Make the collection where it is not there; else check that it is ours and of this embedder.

    Raises:
        EmbedderMismatch: Its vectors are of another embedder.
        InvalidConfig: It is not ours, of another layout, or would make tenants by itself.
    """
    if not await client.collections.exists(name):
        try:
            await _create(client, name, embedder)
        except UnexpectedStatusCodeError as error:
            if error.status_code != 422 or "already exists" not in str(error):
                raise  # else another process was quicker: what it made is checked like any other
    await _check(client, name, embedder)


async def _check(client: WeaviateAsyncClient, name: str, embedder: EmbedderInfo) -> None:
    config = await client.collections.use(name).config.get()
    note = _NOTE.fullmatch(config.description or "")
    if note is None or int(note[1]) != LAYOUT:
        raise InvalidConfig(
            "index.collection", f"the collection {name} was not made by this version; name another one"
        )
    if note[2] != str(embedder):
        raise EmbedderMismatch(note[2], str(embedder))
    if config.multi_tenancy_config.auto_tenant_creation:
        raise InvalidConfig(
            "index.collection", f"the collection {name} makes tenants by itself: it would revive the erased"
        )


async def _create(client: WeaviateAsyncClient, name: str, embedder: EmbedderInfo) -> None:
    await client.collections.create(
        name,
        description=f"Hermes Memory, layout {LAYOUT}, vectors of {embedder}",
        # A tenant is made by `put` and woken by us: made by itself, a late write would revive an erased user; woken
        # by itself, a read and a rest at the same moment keep each other waiting for seconds (measured on 1.39).
        multi_tenancy_config=Configure.multi_tenancy(
            enabled=True, auto_tenant_creation=False, auto_tenant_activation=False
        ),
        vector_config=Configure.Vectors.self_provided(
            vector_index_config=Configure.VectorIndex.flat(
                distance_metric=VectorDistances.COSINE,
                quantizer=Configure.VectorIndex.Quantizer.none(),  # exact, whatever the server's default is
            )
        ),
        inverted_index_config=Configure.inverted_index(
            bm25_k1=K1, bm25_b=B, stopwords_preset=StopwordsPreset.NONE
        ),
        properties=[
            Property(
                name=MEMORY_ID,
                data_type=DataType.TEXT,
                tokenization=Tokenization.FIELD,
                index_filterable=False,
                index_searchable=False,
            ),
            Property(
                name=WORDS,
                data_type=DataType.TEXT,
                tokenization=Tokenization.WHITESPACE,  # the one that changes no character
                index_filterable=False,
                index_searchable=True,
            ),
            Property(name=ARCHIVED, data_type=DataType.BOOL, index_filterable=True),
        ],
    )
