"""Queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic_core import from_json

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger import notes, registry, rows
from hermes_memory.adapters.redis_ledger.layout import message
from hermes_memory.adapters.redis_ledger.store import Store, as_facts
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.ledger import Alert, AuditEntry, Job, OutboxEntry, Receipt

_ALERT_USERS = 200  # looked at in one round


async def activate(store: Store, key: UserKey, epoch: int) -> Sequence[Any]:
    """Take the user over and read it, in one script; not yet decoded."""
    tag = store.layout.tag(key)
    reply: Sequence[Any] = await store.as_owner(
        lambda: store.link.script("activate", store.keys(tag, meta=True), [*store.identity(), epoch])
    )
    return reply


async def operation(store: Store, key: UserKey, operation_id: str) -> Receipt | None:
    """The first answer of an operation."""
    ops = store.layout.of_user(store.layout.tag(key), "ops")
    known = await store.link.command("HGET", ops, store.layout.operation(key, operation_id))
    return None if known is None else rows.receipt(known)[0]


async def session_owner(store: Store, namespace: str, session_id: str) -> str | None:
    """The user id a session is bound to."""
    of = store.layout.session(namespace, session_id)
    owner = await store.link.command("GET", store.layout.pointer("s", of))
    return None if owner is None else owner.decode("utf-8").partition(":")[2]


async def seen_messages(
    store: Store, key: UserKey, session_id: str, message_ids: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """The known ones: id → (content hash, job id)."""
    if not message_ids:
        return {}
    messages = store.layout.of_user(store.layout.tag(key), "messages")
    found = await store.link.command("HMGET", messages, *(message(session_id, id_) for id_ in message_ids))
    known = {
        id_: from_json(value) for id_, value in zip(message_ids, found, strict=True) if value is not None
    }
    return {id_: (content_hash, job_id) for id_, (content_hash, job_id) in known.items()}


async def job(store: Store, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
    """A job by id, inside the namespace; the pointer may name users who never got it."""
    pointer = store.layout.pointer("j", store.layout.job(namespace, job_id))
    for tag, name in sorted(as_facts(await store.link.command("HGETALL", pointer)).items()):
        body = await store.link.command("HGET", store.layout.of_user(tag, "jobs"), job_id)
        if body is not None:
            return UserKey.parse(name), codec.JOB.validate_json(body)
    return None


async def audit(store: Store, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
    """Entries after a sequence number, oldest first."""
    if limit < 1:
        return []
    stream = store.layout.of_user(store.layout.tag(key), "audit")
    found = await store.link.command("XRANGE", stream, f"({after_seq}", "+", "COUNT", limit)
    return [
        dataclasses.replace(codec.AUDIT.validate_json(fields[b"b"]), seq=int(id_.partition(b"-")[0]))
        for id_, fields in found
    ]


async def turns(store: Store, key: UserKey) -> list[Turn]:
    """Every raw turn still kept, oldest first."""
    flat, waiting = await store.of_user("turns", key)
    places = [each.decode("utf-8") for each in flat]
    return rows.load_turns(
        zip(places[::2], places[1::2], strict=True), [each.decode("utf-8") for each in waiting]
    )


async def alerts(store: Store, namespace: str, after: str, limit: int) -> list[Alert]:
    """Open alerts of a namespace, of itself and of its users, after an id."""
    found = [alert for alert in await notes.alerts(store, namespace) if alert.id > after]
    last = ""
    while keys := await registry.listed(store, "alerts", namespace, last, _ALERT_USERS):
        parts = [store.layout.of_user(store.layout.tag(key), "alerts") for key in keys]
        bodies = await store.link.commands([("HVALS", part) for part in parts])
        for key, raised in zip(keys, bodies, strict=True):
            opened = [codec.ALERT.validate_json(body) for body in raised]
            found += [dataclasses.replace(alert, key=key) for alert in opened if alert.id > after]
        last = str(keys[-1])
    return sorted(found, key=lambda alert: (alert.id, str(alert.key)))[:limit]


async def outbox(store: Store, key: UserKey, limit: int, buried: bool) -> list[OutboxEntry]:
    """What waits for the index, or was refused by it, oldest first."""
    part = store.layout.of_user(store.layout.tag(key), "buried" if buried else "outbox")
    found = await store.link.command("ZRANGE", part, 0, limit - 1) if limit > 0 else []
    return [rows.outbox_entry(member, key) for member in found]


async def documents(store: Store, key: UserKey, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
    """Those that exist and have a vector."""
    if not memory_ids:
        return []
    tag = store.layout.tag(key)
    wanted = rows.table((id_,) for id_ in memory_ids)
    _, *found = await store.as_owner(
        lambda: store.link.script("documents", store.keys(tag, meta=True), [*store.identity(), *wanted])
    )
    matrix = codec.load_matrix(b"".join(row[2] for row in found), store.embedder.dimension)
    return [
        (rows.load_memory(body, beside), np.asarray(vector))
        for (body, beside, _), vector in zip(found, matrix, strict=True)
    ]
