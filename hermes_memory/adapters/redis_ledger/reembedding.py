"""Changing the embedding model: new vectors gather in keys of their own until one field gives the data to them.

The keys of vectors name the number of a model; the facts say which number counts. Old vectors go user by user.
Until the change is finished the data is the old model's, so a process that dies in between leaves nothing that
cannot be opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger import packs, registry, rows
from hermes_memory.adapters.redis_ledger.store import Store, as_facts
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory
from hermes_memory.errors import EmbedderMismatch
from hermes_memory.ports.embedder import Vector, Vectors
from hermes_memory.ports.ledger import Reembedding, WaitingPack

_USERS = 200  # looked at in one round
_ROUNDS = 5  # of counting, when the old model keeps writing meanwhile


async def begin(store: Store) -> Reembedding:
    """Note the target, unless the data is its already; what was made for another one is cleared first."""
    while True:
        facts = store.learn(await _meta(store, "begin", store.embedder.name, store.embedder.dimension))
        if "clearing" not in facts:
            return await _progress(store)
        await clear(store)


async def clear(store: Store) -> None:
    """Remove vectors that no model needs, if there are any."""
    facts = await store.refresh()
    if "clearing" not in facts:
        return
    number = int(facts["clearing"])
    async for tags in _tags(store):
        await store.link.commands([("UNLINK", store.layout.vectors(tag, number)) for tag in tags])
    await store.link.command("UNLINK", store.layout.meta(f"packs_vectors:{number}"))
    await _meta(store, "cleared", number)


async def unembedded(store: Store, key: UserKey, after: str, limit: int) -> list[Memory]:
    """Memories that wait for a new vector."""
    found = await store.of_user("unembedded", key, after, limit)
    return [rows.load_memory(*row) for row in found]


async def put(store: Store, key: UserKey, vectors: Mapping[str, Vector]) -> None:
    """Keep new vectors of memories that have an old one."""
    dimension = store.embedder.dimension
    table = rows.table((id_, codec.dump_vector(vector, dimension)) for id_, vector in vectors.items())
    tag = store.layout.tag(key)
    if store.link.cluster:
        await store.refresh()
        if _is_over(store):
            return
    await _until_known(
        store, lambda: ("put_embedded", store.keys(tag, meta=True), [*store.identity(), *table])
    )


async def _until_known(store: Store, call: Any) -> Any:
    """The reply of a script that needs a change to this handle's model; None when it is finished.

    Raises EmbedderMismatch when no such change is under way.
    """
    while True:
        reply = await store.link.script(*call())
        if reply[0] in {b"ok", b"changed"}:
            return reply
        model = store.model
        await store.refresh()
        if _is_over(store):
            return None
        if store.model == model:
            raise AssertionError("the facts refuse a change that is under way")


def _is_over(store: Store) -> bool:
    """Whether the change to this handle's model is finished; raises EmbedderMismatch if there is none."""
    if store.coming == store.embedder:
        return False
    if store.stored != store.embedder:
        raise EmbedderMismatch(str(store.stored), str(store.embedder), False)
    return True


async def unembedded_pack(store: Store) -> WaitingPack | None:
    """The first pack that is not complete; None also when no change to this handle's model is under way."""
    facts, found = await _packs(store)
    if store.coming != store.embedder:
        return None
    for field, old, new in found:
        if new < old:
            body = await store.link.command("HGET", store.layout.meta("packs"), field)
            if body is None:
                return await unembedded_pack(store)  # it was removed in between
            namespace, _ = packs.named_by(field)
            pack = codec.PACK.validate_json(body)
            return WaitingPack(namespace=namespace, pack=pack, done=new, revision=int(facts["packs"]))
    return None


async def put_passages(store: Store, waiting: WaitingPack, vectors: Vectors) -> bool:
    """Keep new vectors of passages in a row, if they are the next of a pack that is still the same."""
    await store.refresh()
    if _is_over(store):
        return False
    dimension = store.embedder.dimension
    count = min(len(vectors), len(waiting.rest))
    blob = codec.dump_vectors(vectors, count, dimension)
    if not count:
        return False
    field = packs.field_of(waiting.namespace, waiting.pack.name)
    values = [field, waiting.revision, waiting.done * codec.vector_bytes(dimension), blob]
    reply = await _until_known(
        store,
        lambda: ("put_passages", store.layout.packs(store.model), [*store.identity(), *values]),
    )
    return reply is not None and bool(reply[1])


async def finish(store: Store) -> Reembedding:
    """Give the data to the new model, if all vectors are there. The old ones are cleared away by ``clear``."""
    for _ in range(_ROUNDS):
        facts = await store.refresh()
        now = await _progress(store)
        if now.finished or now.done < now.total:
            return now
        if not _is_over(store):
            await _switch(store, facts.get("old_writes", "0"), facts["packs"])
    await store.refresh()
    return await _progress(store)


async def _switch(store: Store, writes: str, revision: str) -> None:
    """Give the data away, unless something was written since these numbers were read."""
    await _until_known(
        store,
        lambda: ("switch", store.layout.packs(store.model), [*store.identity(), writes, revision]),
    )


async def _progress(store: Store) -> Reembedding:
    """How far it is. In a Cluster what the old model writes while it counts may be missed."""
    total = ready = 0
    async for tags in _tags(store):
        counts = await store.link.scripts("progress", [(store.keys(tag), ()) for tag in tags])
        total += sum(count[0] for count in counts)
        ready += sum(count[1] for count in counts)
    _, found = await _packs(store)
    total += sum(old for _, old, _ in found)
    ready += sum(new for _, _, new in found)
    if store.stored == store.embedder:
        ready = total
    return Reembedding(store.stored, store.embedder, ready, total)


async def _packs(store: Store) -> tuple[dict[str, str], list[tuple[str, int, int]]]:
    """The facts, and every pack in order with how many passages have an old and a new vector."""
    flat, found = await store.link.script("packs_waiting", store.layout.packs(store.model), [])
    facts = store.learn(flat)
    old = codec.vector_bytes(store.stored.dimension)
    new = codec.vector_bytes((store.coming or store.embedder).dimension)
    counted = [(field.decode("ascii"), before // old, after // new) for field, before, after in found]
    return facts, sorted(counted, key=lambda each: packs.named_by(each[0]))


async def _tags(store: Store) -> AsyncIterator[list[str]]:
    """The tags of all users."""
    after = ""
    while keys := await registry.listed(store, "users", None, after, _USERS):
        yield [store.layout.tag(key) for key in keys]
        after = str(keys[-1])


async def _meta(store: Store, name: str, *values: Any) -> Any:
    reply = await store.link.script(name, [store.layout.meta("facts")], values)
    return as_facts(reply) if isinstance(reply, list) else reply
