"""Documents into a tenant, and what becomes of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weaviate.classes.data import DataObject
from weaviate.collections import CollectionAsync
from weaviate.exceptions import WeaviateInsertManyAllFailedError

from hermes_memory.adapters.weaviate_index import collection as layout
from hermes_memory.adapters.weaviate_index.connection import translated
from hermes_memory.adapters.weaviate_index.faults import Fault, Refusal, TenantError, fault_in, is_refusal
from hermes_memory.adapters.weaviate_index.naming import object_id, written
from hermes_memory.ports.index import Document

Tenant = CollectionAsync[Any, Any]
_OF_THE_TENANT = {Fault.MISSING, Fault.ASLEEP}


async def store(tenant: Tenant, batch: Sequence[Document]) -> dict[str, str]:
    """Add or replace the documents of one batch; why some were refused, by memory id.

    Raises:
        TenantError: the tenant cannot take them now; some may have been taken.
        IndexUnavailable: the server cannot be reached.
    """
    failed = await _insert(tenant, batch)
    refused: dict[str, str] = {}
    odd: list[Document] = []
    for document, sentence in failed:
        if is_refusal(sentence):
            refused[document.memory_id] = Refusal.BAD_VECTOR
        elif (fault := fault_in(sentence)) in _OF_THE_TENANT:
            raise TenantError(fault)
        else:
            odd.append(document)
    if odd and len(failed) == len(batch):
        raise TenantError(Fault.MOVING)  # not one was taken: it is the tenant, and not a document
    for document in odd:
        if await _insert(tenant, [document]):
            refused[document.memory_id] = Refusal.REJECTED
    return refused


async def _insert(tenant: Tenant, batch: Sequence[Document]) -> list[tuple[Document, str]]:
    """Those that failed, with what the server says of each."""
    with translated():
        try:
            done = await tenant.data.insert_many([_object(document) for document in batch])
        except WeaviateInsertManyAllFailedError as error:
            sentences = str(error)
        else:
            return [(batch[row], failure.message) for row, failure in done.errors.items()]
    if len(batch) == 1 or not is_refusal(sentences):
        return [(document, sentences) for document in batch]
    # The client gives the sentences of a wholly failed batch without saying which is whose.
    half = len(batch) // 2
    return await _insert(tenant, batch[:half]) + await _insert(tenant, batch[half:])


def _object(document: Document) -> DataObject[Any, None]:
    properties = {
        layout.MEMORY_ID: document.memory_id,
        layout.WORDS: written(document.words),
        layout.ARCHIVED: document.archived,
    }
    return DataObject(properties, uuid=object_id(document.memory_id), vector=document.vector.tolist())
