"""What jobs leave for later, and alerts about a namespace: all of a namespace in one slot, apart from its users."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger.store import Store
from hermes_memory.ports.ledger import Alert, Note

_MARK_MS = 60_000  # longer than all attempts of a writing


async def put(store: Store, namespace: str, name: str, value: Any, expected: int | None) -> bool:
    """Keep a value, if its revision is the expected one. May be sent twice: the script knows its mark."""
    mark = uuid.uuid4().hex
    keys = [store.layout.space(namespace, part) for part in ("notes", "names", f"written:{mark}")]
    values = [name, "" if expected is None else expected, mark, codec.dump_result(value), _MARK_MS]
    return bool(await store.link.script("put_note", keys, values))


async def one(store: Store, namespace: str, name: str) -> Note | None:
    """The note of that name."""
    known = await store.link.command("HGET", store.layout.space(namespace, "notes"), name)
    if known is None:
        return None
    revision, _, value = known.decode("utf-8").split(" ", 2)
    return Note(codec.load_result(value), int(revision))


async def names(store: Store, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
    """Names that begin with a prefix, in order, after one of them."""
    if limit < 1:
        return []
    low = f"({after}" if after >= prefix and after else (f"[{prefix}" if prefix else "-")
    high = b"(" + prefix.encode() + b"\xff" if prefix else "+"
    found = await store.link.command(
        "ZRANGEBYLEX", store.layout.space(namespace, "names"), low, high, "LIMIT", 0, limit
    )
    return [name.decode("utf-8") for name in found]


async def remove(store: Store, namespace: str, names: Sequence[str]) -> None:
    """Forget notes."""
    if names:
        await store.link.command("ZREM", store.layout.space(namespace, "names"), *names)
        await store.link.command("HDEL", store.layout.space(namespace, "notes"), *names)


async def raise_alert(store: Store, namespace: str, alert: Alert) -> None:
    """Open an alert about the namespace."""
    body = codec.dump(codec.ALERT, alert)
    await store.link.command("HSET", store.layout.space(namespace, "alerts"), alert.id, body)


async def alerts(store: Store, namespace: str) -> list[Alert]:
    """The open alerts about the namespace itself."""
    bodies = await store.link.command("HVALS", store.layout.space(namespace, "alerts"))
    return [codec.ALERT.validate_json(body) for body in bodies]


async def close_alert(store: Store, namespace: str, alert_id: str) -> bool:
    """Close one of them."""
    alerts = store.layout.space(namespace, "alerts")
    return bool(await store.link.command("HDEL", alerts, alert_id, again=False))
