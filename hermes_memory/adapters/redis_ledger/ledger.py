"""The Ledger port over Redis 6.2 or newer: one server, one that Sentinel watches, or a Cluster."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger import (
    commits,
    erasing,
    notes,
    packs,
    reading,
    reembedding,
    registry,
    rows,
)
from hermes_memory.adapters.redis_ledger.checks import Durability, OnUnsafe, check_server
from hermes_memory.adapters.redis_ledger.connection import Link, Redis, client_of
from hermes_memory.adapters.redis_ledger.scripts import load_scripts
from hermes_memory.adapters.redis_ledger.store import Store, open_store
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import LeaseLost, LedgerUnavailable
from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors
from hermes_memory.ports.ledger import (
    NOTHING_COUNTED,
    AccessCount,
    Alert,
    AuditEntry,
    Commit,
    ErasureReceipt,
    HostPool,
    Job,
    Note,
    OutboxEntry,
    Receipt,
    Reembedding,
    Snapshot,
    StoredPack,
    Tally,
    WaitingPack,
)

MANY_MEMORIES = 40  # take longer to decode than the loop should wait


class RedisLedger:
    """The system of record of a cluster.

    Args:
        redis: How to reach it.
        prefix: Of every key; ledgers of several installations may share a Redis under different ones.
        durability: ``always``: what is acknowledged survives a power cut of the server; ``everysec``: up to a
            second of it may be lost then.
        on_unsafe: Whether to refuse a server that keeps less than that, or to warn.
        turns_hours: When raw turns of a user who never comes back go by themselves; ``sweep`` is exact.
        operations_hours: The same of operation ids.
        outbox: Whether somebody feeds a long-term index from the outbox; without one nothing is put there.
    """

    def __init__(
        self,
        redis: Redis,
        *,
        prefix: str = "hermes",
        durability: Durability = "always",
        on_unsafe: OnUnsafe = "refuse",
        turns_hours: float = 24.0,
        operations_hours: float = 72.0,
        outbox: bool = True,
    ) -> None:
        self._redis = redis
        self._prefix = prefix
        self._durability: Durability = durability
        self._on_unsafe: OnUnsafe = on_unsafe
        self._hours = (operations_hours, turns_hours)
        self._outbox = outbox
        self._opened: Store | None = None

    async def open(self, embedder: EmbedderInfo) -> None:
        """See ``Ledger.open``. Raises InvalidConfig for an unsafe server and for a newer format."""
        if self._opened is not None:
            return
        store = await self._open(embedder)
        try:
            store.check()
        except BaseException:
            await store.link.close()
            raise
        self._opened = store

    async def _open(self, embedder: EmbedderInfo) -> Store:
        await asyncio.to_thread(load_scripts)
        link = Link(self._redis, await asyncio.to_thread(client_of, self._redis))
        try:
            await check_server(link, self._durability, self._on_unsafe)
            return await open_store(link, self._prefix, embedder, self._outbox, self._hours)
        except BaseException:
            await link.close()
            raise

    @property
    def _store(self) -> Store:
        if self._opened is None:
            raise LedgerUnavailable("it is not open")
        return self._opened

    async def close(self) -> None:
        """See ``Ledger.close``."""
        store, self._opened = self._opened, None
        if store is not None:
            await store.link.close()

    async def begin_reembedding(self, embedder: EmbedderInfo) -> Reembedding:
        """See ``Ledger.begin_reembedding``."""
        if self._opened is None:
            self._opened = await self._open(embedder)
        self._opened.embedder = embedder
        return await reembedding.begin(self._opened)

    async def unembedded(self, key: UserKey, after: str, limit: int) -> list[Memory]:
        """See ``Ledger.unembedded``."""
        return await reembedding.unembedded(self._store, key, after, limit)

    async def put_embedded(self, key: UserKey, vectors: Mapping[str, Vector]) -> None:
        """See ``Ledger.put_embedded``."""
        await reembedding.put(self._store, key, vectors)

    async def unembedded_pack(self) -> WaitingPack | None:
        """See ``Ledger.unembedded_pack``."""
        return await reembedding.unembedded_pack(self._store)

    async def put_embedded_passages(self, waiting: WaitingPack, vectors: Vectors) -> bool:
        """See ``Ledger.put_embedded_passages``."""
        return await reembedding.put_passages(self._store, waiting, vectors)

    async def finish_reembedding(self) -> Reembedding:
        """See ``Ledger.finish_reembedding``. Should the process die while the old vectors go, a sweep goes on."""
        done = await reembedding.finish(self._store)
        await reembedding.clear(self._store)
        return done

    async def ping(self) -> None:
        """See ``Ledger.ping``. Writes: a server that is full or read-only shows itself."""
        await self._store.link.command("HINCRBY", self._store.layout.meta("facts"), "pings", 1)

    async def claim_epoch(self, host: str, lease_s: float, now: datetime) -> int:
        """See ``Ledger.claim_epoch``. May be sent twice: that only skips a number."""
        keys = [self._store.layout.meta(part) for part in ("facts", "leases", "lease_ends")]
        return int(await self._store.link.script("claim", keys, [host, rows.until_us(now, lease_s)]))

    async def renew_lease(self, epoch: int, lease_s: float, now: datetime) -> None:
        """See ``Ledger.renew_lease``."""
        values = [epoch, rows.until_us(now, lease_s), codec.micros(now)]
        if not await self._store.link.script("renew", [self._store.layout.meta("lease_ends")], values):
            raise LeaseLost

    async def activate(self, key: UserKey, epoch: int) -> Snapshot:
        """See ``Ledger.activate``. A large user is decoded outside the loop."""
        reply = await reading.activate(self._store, key, epoch)
        dimension = self._store.embedder.dimension
        if rows.count_memories(reply) < MANY_MEMORIES:
            return rows.snapshot(key, reply, dimension)
        return await asyncio.to_thread(rows.snapshot, key, reply, dimension)

    async def commit(self, commit: Commit) -> Receipt:
        """See ``Ledger.commit``. Sent again when the connection is lost: the script knows the operation id."""
        commit = commit if self._outbox else dataclasses.replace(commit, outbox=())
        return await commits.apply(self._store, commit)

    async def operation(self, key: UserKey, operation_id: str) -> Receipt | None:
        """See ``Ledger.operation``."""
        return await reading.operation(self._store, key, operation_id)

    async def touch(
        self, key: UserKey, epoch: int, counts: Mapping[str, AccessCount], tally: Tally = NOTHING_COUNTED
    ) -> None:
        """See ``Ledger.touch``. Never sent twice: it would count twice."""
        if counts or tally:
            table = rows.table((id_, each.count, codec.micros(each.last_at)) for id_, each in counts.items())
            await self._store.of_user("touch", key, epoch, *table, *rows.tally_table(tally), again=False)

    async def erase(
        self, key: UserKey, expected_version: int, epoch: int, operation_id: str, at: datetime
    ) -> ErasureReceipt:
        """See ``Ledger.erase``. May be sent twice, as a commit."""
        return await erasing.erase(self._store, key, expected_version, epoch, operation_id, at)

    async def bind_session(self, key: UserKey, session_id: str) -> None:
        """See ``Ledger.bind_session``."""
        await commits.bind_session(self._store, key, session_id)

    async def session_owner(self, namespace: str, session_id: str) -> str | None:
        """See ``Ledger.session_owner``."""
        return await reading.session_owner(self._store, namespace, session_id)

    async def seen_messages(
        self, key: UserKey, session_id: str, message_ids: Sequence[str]
    ) -> dict[str, tuple[str, str]]:
        """See ``Ledger.seen_messages``."""
        return await reading.seen_messages(self._store, key, session_id, message_ids)

    async def job(self, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
        """See ``Ledger.job``."""
        return await reading.job(self._store, namespace, job_id)

    async def audit(self, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
        """See ``Ledger.audit``."""
        return await reading.audit(self._store, key, after_seq, limit)

    async def turns(self, key: UserKey) -> list[Turn]:
        """See ``Ledger.turns``."""
        return await reading.turns(self._store, key)

    async def alerts(self, namespace: str, after: str, limit: int) -> list[Alert]:
        """See ``Ledger.alerts``."""
        return await reading.alerts(self._store, namespace, after, limit)

    async def close_alert(self, namespace: str, alert_id: str) -> bool:
        """See ``Ledger.close_alert``."""
        own = await notes.close_alert(self._store, namespace, alert_id)
        return await commits.close_alert(self._store, namespace, alert_id) or own

    async def raise_alert(self, namespace: str, alert: Alert) -> None:
        """See ``Ledger.raise_alert``."""
        await notes.raise_alert(self._store, namespace, alert)

    async def put_note(self, namespace: str, name: str, value: Any, expected: int | None = None) -> bool:
        """See ``Ledger.put_note``."""
        return await notes.put(self._store, namespace, name, value, expected)

    async def note(self, namespace: str, name: str) -> Note | None:
        """See ``Ledger.note``."""
        return await notes.one(self._store, namespace, name)

    async def notes(self, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
        """See ``Ledger.notes``."""
        return await notes.names(self._store, namespace, prefix, after, limit)

    async def remove_notes(self, namespace: str, names: Sequence[str]) -> None:
        """See ``Ledger.remove_notes``."""
        await notes.remove(self._store, namespace, names)

    async def users(
        self, namespace: str | None, after: str, limit: int, shard: tuple[int, int] | None = None
    ) -> list[UserKey]:
        """See ``Ledger.users``. A shard is every so manieth registry."""
        return await registry.listed(self._store, "users", namespace, after, limit, shard)

    async def pending_users(self, after: str, limit: int) -> list[UserKey]:
        """See ``Ledger.pending_users``."""
        return await registry.listed(self._store, "pending", None, after, limit)

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        """See ``Ledger.outbox_users``."""
        return await registry.listed(self._store, "buried" if buried else "outbox", None, after, limit)

    async def read_outbox(self, key: UserKey, limit: int, *, buried: bool = False) -> list[OutboxEntry]:
        """See ``Ledger.read_outbox``."""
        return await reading.outbox(self._store, key, limit, buried)

    async def ack_outbox(self, key: UserKey, seqs: Sequence[int]) -> None:
        """See ``Ledger.ack_outbox``."""
        await commits.ack_outbox(self._store, key, seqs)

    async def bury_outbox(self, key: UserKey, seqs: Sequence[int], reason: str) -> None:
        """See ``Ledger.bury_outbox``."""
        await commits.bury_outbox(self._store, key, seqs, reason)

    async def generation(self, key: UserKey) -> int:
        """See ``Ledger.generation``."""
        head = self._store.layout.of_user(self._store.layout.tag(key), "head")
        return int(await self._store.link.command("HGET", head, "generation") or 0)

    async def documents(self, key: UserKey, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
        """See ``Ledger.documents``."""
        return await reading.documents(self._store, key, memory_ids)

    async def memory_ids(self, key: UserKey) -> list[str]:
        """See ``Ledger.memory_ids``."""
        memories = self._store.layout.of_user(self._store.layout.tag(key), "memories")
        return sorted(id_.decode("utf-8") for id_ in await self._store.link.command("HKEYS", memories))

    async def host_pool(self) -> HostPool:
        """See ``Ledger.host_pool``."""
        facts = self._store.layout.meta("facts")
        return _pool(await self._store.link.command("HMGET", facts, "hosts", "hosts_revision"))

    async def resize_host_pool(self, hosts: int) -> HostPool:
        """See ``Ledger.resize_host_pool``."""
        return _pool(await self._store.link.script("resize", [self._store.layout.meta("facts")], [hosts]))

    async def sweep(self, now: datetime, turns_hours: float, operations_hours: float) -> int:
        """See ``Ledger.sweep``. Also takes away what a half-done erasure or change of the model left."""
        await reembedding.clear(self._store)
        return await erasing.sweep(self._store, now, turns_hours, operations_hours)

    async def put_pack(self, stored: StoredPack) -> None:
        """See ``Ledger.put_pack``."""
        await packs.put(self._store, stored)

    async def remove_pack(self, namespace: str, name: str) -> bool:
        """See ``Ledger.remove_pack``."""
        return await packs.remove(self._store, namespace, name)

    async def packs(self, namespace: str | None) -> list[StoredPack]:
        """See ``Ledger.packs``."""
        return await packs.stored(self._store, namespace)

    async def packs_revision(self) -> int:
        """See ``Ledger.packs_revision``."""
        return await packs.revision(self._store)


def _pool(reply: Sequence[Any]) -> HostPool:
    hosts, revision = (int(part or 0) for part in reply)
    return HostPool(hosts, revision)
