"""What writes: commits, bindings of sessions, alerts seen to, entries of the outbox delivered or buried."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters.redis_ledger import registry, rows
from hermes_memory.adapters.redis_ledger.layout import KINDS
from hermes_memory.adapters.redis_ledger.store import Store
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, MemoryFrozen, SessionOwned, VersionConflict
from hermes_memory.ports.ledger import Commit, Receipt

_ALERT_USERS = 200  # looked at in one round


async def apply(store: Store, commit: Commit) -> Receipt:
    """Apply a commit: in one script where one server has all keys, else announced first."""
    values = rows.commit_values(commit, store.layout, store.identity(), store.ttls_ms)
    vectors = bool(commit.vectors or commit.deleted)
    reply = await store.as_owner(lambda: _send(store, commit, values), vectors=vectors)
    kind = reply[0]
    if kind == b"ok":
        return Receipt(int(reply[1]), False, commit.result)
    if kind == b"known":
        return rows.receipt(reply[1])[0]
    if kind == b"fenced":
        raise Fenced(commit.epoch, int(reply[1]))
    if kind == b"conflict":
        raise VersionConflict(commit.expected_version, int(reply[1]))
    raise MemoryFrozen(reply[1].decode("utf-8"))


async def _send(store: Store, commit: Commit, values: list[Any]) -> Any:
    values[_NUMBER] = store.model
    layout = store.layout
    said = rows.announcement(commit, layout)
    tag, name, *_ = said
    shard = layout.shard(layout.shard_of(tag))
    pointers = [layout.pointer("j", of) for of in rows.job_digests(commit, layout)]
    keys = store.keys(tag, meta=True)
    if not store.link.cluster:
        return await store.link.script("commit", [*keys, *shard, *pointers], [*values, *said, name, tag])
    await asyncio.gather(
        store.link.script("announce", shard, said),
        store.link.commands([("HSET", pointer, tag, name) for pointer in pointers]),
    )
    return await store.link.script("commit", keys, values)


_NUMBER = 8  # where the values of a commit name the model's number


async def bind_session(store: Store, key: UserKey, session_id: str) -> None:
    """Bind the session, unless it has an owner; raises SessionOwned when that is another user.

    The user's list of what points to it is written before the binding, and again after: an erasure in between has
    emptied it. One that an unfinished erasure is about to take away is bound anew, though it is the user's.
    """
    layout = store.layout
    tag = layout.tag(key)
    of = layout.session(key.namespace, session_id)
    binding, entry = layout.pointer("s", of), f"s:{of}"
    mine = f"{tag}:{key.user_id}".encode()
    freeing = layout.of_user(tag, "freeing")
    owner, leaving = await store.link.in_order([("GET", binding), ("SISMEMBER", freeing, entry)])
    if owner is None or leaving:
        note = ("SADD", layout.of_user(tag, "outside"), entry)
        replies = await store.link.in_order(
            [
                ("SREM", freeing, entry),
                note,
                ("SET", binding, mine, "NX"),
                ("GET", binding),
                note,
            ]
        )
        owner = replies[3]
    if owner != mine:
        raise SessionOwned


async def close_alert(store: Store, namespace: str, alert_id: str) -> bool:
    """Close an open alert of the namespace, whoever's it is."""
    closed, after = False, ""
    while keys := await registry.listed(store, "alerts", namespace, after, _ALERT_USERS):
        parts = [store.layout.of_user(store.layout.tag(key), "alerts") for key in keys]
        gone = await store.link.commands([("HDEL", part, alert_id) for part in parts], again=False)
        for key, was_open in zip(keys, gone, strict=True):
            if was_open:
                closed = True
                await registry.unlist(store, key, ["alerts"])
        after = str(keys[-1])
    return closed


async def ack_outbox(store: Store, key: UserKey, seqs: Sequence[int]) -> None:
    """Forget delivered entries; with the last one the name leaves the list."""
    if not seqs:
        return
    left = await store.of_user("ack", key, *seqs)
    empty = [kind for kind, count in zip(("outbox", "buried"), left, strict=True) if not count]
    await registry.unlist(store, key, empty)


async def bury_outbox(store: Store, key: UserKey, seqs: Sequence[int], reason: str) -> None:
    """Set entries aside; the list of those who have some is written first."""
    if not seqs:
        return
    tag = store.layout.tag(key)
    shard = store.layout.shard(store.layout.shard_of(tag))
    said = [tag, str(key), KINDS["buried"], "", ""]
    values = [reason, *rows.table((seq,) for seq in seqs)]
    keys = store.keys(tag, meta=True)
    if store.link.cluster:
        await store.link.script("announce", shard, said)
        await store.link.script("bury", keys, values)
    else:
        await store.link.script("bury", [*keys, *shard], [*values, *said])
    await registry.unlist(store, key, ["outbox", "buried"])
