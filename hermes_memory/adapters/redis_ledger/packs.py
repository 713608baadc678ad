"""Knowledge packs: replaced and removed whole, in the slot of the store's facts, with a number that tells of any change."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger.store import Store
from hermes_memory.ports.ledger import StoredPack


def field_of(namespace: str, name: str) -> str:
    """The name of a pack among all packs."""
    return f"{quote(namespace, safe='')}/{quote(name, safe='')}"


def named_by(field: str) -> tuple[str, str]:
    """Namespace and name: the inverse of ``field_of``."""
    namespace, _, name = field.partition("/")
    return unquote(namespace), unquote(name)


async def put(store: Store, stored: StoredPack) -> None:
    """Store a pack in place of the one of its name."""
    pack = stored.pack
    field = field_of(stored.namespace, pack.name)
    blob = codec.dump_vectors(stored.vectors, len(pack.passages), store.embedder.dimension)
    values = [field, codec.dump(codec.PACK, pack), codec.micros(stored.loaded_at), blob]
    await _ours(store, "put_pack", values, again=False)


async def remove(store: Store, namespace: str, name: str) -> bool:
    """Remove a pack, if there is one of that name."""
    keys = store.layout.packs(store.model)
    gone = await store.link.script("remove_pack", keys, [field_of(namespace, name)], again=False)
    return bool(gone)


async def stored(store: Store, namespace: str | None) -> list[StoredPack]:
    """The packs of a namespace, or of all."""
    _, bodies, loaded, vectors = await _ours(store, "packs", [], again=True)
    times, blobs = _by_field(loaded), _by_field(vectors)
    found = [
        StoredPack(
            namespace=space,
            pack=codec.PACK.validate_json(body),
            vectors=codec.load_matrix(blobs.get(field, b""), store.embedder.dimension),
            loaded_at=codec.moment(int(times[field])),
        )
        for field, body in _by_field(bodies).items()
        if (space := named_by(field)[0]) == namespace or namespace is None
    ]
    return sorted(found, key=lambda each: (each.namespace, each.pack.name))


async def _ours(store: Store, name: str, values: list[Any], *, again: bool) -> Any:
    """As ``Store.as_owner``; these scripts see the facts in a Cluster too."""
    return await store.as_owner(
        lambda: store.link.script(
            name, store.layout.packs(store.model), [*store.identity(), *values], again=again
        )
    )


def _by_field(flat: list[bytes]) -> dict[str, bytes]:
    return {field.decode("ascii"): value for field, value in zip(flat[::2], flat[1::2], strict=True)}


async def revision(store: Store) -> int:
    """How often a pack was changed."""
    return int(await store.link.command("HGET", store.layout.meta("facts"), "packs"))
