"""The Ledger port over one SQLite file; several processes may open it at once."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger import (
    commits,
    erasure,
    feeding,
    leases,
    notes,
    packs,
    reading,
    reembedding,
    scrub,
    store,
)
from hermes_memory.adapters.sqlite_ledger.scrub import Scrub
from hermes_memory.adapters.sqlite_ledger.worker import Reader, Writer
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import LedgerUnavailable, SessionOwned
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

_T = TypeVar("_T")


class SqliteLedger:
    """The system of record of an embedded installation.

    Args:
        path: The database file; its folder must exist. ``-wal`` and ``-shm`` files appear beside it.
        synchronous: FULL survives a loss of power; NORMAL may then lose the newest commits, never more.
        busy_timeout_s: How long to wait for another process's write before LedgerUnavailable.
        outbox: Whether somebody feeds a long-term index from the outbox; without one nothing is put there, or
            it would grow for ever and go on naming the erased.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: store.Synchronous = "FULL",
        busy_timeout_s: float = 5.0,
        outbox: bool = True,
    ) -> None:
        self._outbox = outbox
        self._connect = partial(store.connect, Path(path), synchronous, busy_timeout_s)
        self._embedder = EmbedderInfo("", 0)
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def open(self, embedder: EmbedderInfo) -> None:
        """See ``Ledger.open``. Raises InvalidConfig for a newer schema or another program's file."""
        if self._writer is None:
            await self._open(embedder, store.prepare)

    async def begin_reembedding(self, embedder: EmbedderInfo) -> Reembedding:
        """See ``Ledger.begin_reembedding``."""
        if self._writer is None:
            await self._open(embedder, store.prepare_schema)
        self._embedder = embedder
        await self._write(reembedding.abandon, embedder)
        await self._clear_old_vectors()
        return await self._write(reembedding.begin, embedder)

    async def unembedded(self, key: UserKey, after: str, limit: int) -> list[Memory]:
        """See ``Ledger.unembedded``."""
        return await self._read(
            lambda conn: [codec.load_memory(*row) for row in reembedding.unembedded(conn, key, after, limit)]
        )

    async def put_embedded(self, key: UserKey, vectors: Mapping[str, Vector]) -> None:
        """See ``Ledger.put_embedded``."""
        await self._write(reembedding.put, key, dict(vectors), self._embedder)

    async def unembedded_pack(self) -> WaitingPack | None:
        """See ``Ledger.unembedded_pack``."""
        return await self._read(reembedding.unembedded_pack, self._embedder)

    async def put_embedded_passages(self, waiting: WaitingPack, vectors: Vectors) -> bool:
        """See ``Ledger.put_embedded_passages``."""
        return await self._write(reembedding.put_passages, waiting, vectors, self._embedder)

    async def finish_reembedding(self) -> Reembedding:
        """See ``Ledger.finish_reembedding``. Should the process die while the old vectors go, a sweep goes on."""
        done = await self._write(reembedding.finish, self._embedder)
        await self._clear_old_vectors()
        return done

    async def _clear_old_vectors(self) -> None:
        while await self._read(reembedding.has_leftovers):
            await self._write(reembedding.clear)

    async def _open(
        self, embedder: EmbedderInfo, prepare: Callable[[sqlite3.Connection, EmbedderInfo], None]
    ) -> None:
        def connect() -> sqlite3.Connection:
            conn = self._connect()
            try:
                prepare(conn, embedder)
            except BaseException:
                conn.close()
                raise
            return conn

        writer = Writer(connect, "ledger-writer")
        try:
            await writer.run(leases.ping)
        except BaseException:
            await writer.stop()
            raise
        self._embedder = embedder
        self._reader = Reader(self._connect, "ledger-reader")
        self._writer = writer

    async def close(self) -> None:
        """See ``Ledger.close``."""
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if reader is not None:
            await reader.stop()
        if writer is not None:
            await writer.stop()

    async def _write(self, work: Callable[..., _T], *values: object) -> _T:
        if self._writer is None:
            raise LedgerUnavailable("it is not open")
        return await self._writer.run(lambda conn: work(conn, *values))

    async def _write_scrubbed(
        self, level: Scrub, work: Callable[..., _T], *values: object
    ) -> tuple[_T, bool]:
        if self._writer is None:
            raise LedgerUnavailable("it is not open")
        return await self._writer.run_scrubbed(level, lambda conn: work(conn, *values))

    async def _read(self, work: Callable[..., _T], *values: object) -> _T:
        if self._reader is None:
            raise LedgerUnavailable("it is not open")
        return await self._reader.run(lambda conn: work(conn, *values))

    async def ping(self) -> None:
        """See ``Ledger.ping``."""
        await self._write(leases.ping)
        await self._read(reading.users, None, "", 1)

    async def claim_epoch(self, host: str, lease_s: float, now: datetime) -> int:
        """See ``Ledger.claim_epoch``."""
        return await self._write(leases.claim_epoch, host, lease_s, now)

    async def renew_lease(self, epoch: int, lease_s: float, now: datetime) -> None:
        """See ``Ledger.renew_lease``."""
        await self._write(leases.renew_lease, epoch, lease_s, now)

    async def activate(self, key: UserKey, epoch: int) -> Snapshot:
        """See ``Ledger.activate``."""
        raw = await self._write(self._ours(reading.activate), key, epoch)
        # Decoding a full user takes tens of milliseconds: neither the loop nor the write lock waits for it.
        dimension = self._embedder.dimension
        return await self._read(lambda _conn: reading.decode(key, raw, dimension))

    async def commit(self, commit: Commit) -> Receipt:
        """See ``Ledger.commit``. What it deletes or rewrites is overwritten; the next sweep rewrites the file."""
        commit = commit if self._outbox else dataclasses.replace(commit, outbox=())
        apply = self._ours(commits.apply)
        if commit.deleted or commit.rewritten:
            receipt, _ = await self._write_scrubbed(Scrub.LOG, apply, commit, self._embedder.dimension)
            return receipt
        return await self._write(apply, commit, self._embedder.dimension)

    def _ours(self, work: Callable[..., _T]) -> Callable[..., _T]:
        """``work`` if the vectors are still those of the model that this handle was opened with.

        A process that a killed server left behind may live on while the data is given to another model.
        """
        embedder = self._embedder

        def checked(conn: sqlite3.Connection, *values: object) -> _T:
            store.check_embedder(conn, embedder)
            return work(conn, *values)

        return checked

    async def operation(self, key: UserKey, operation_id: str) -> Receipt | None:
        """See ``Ledger.operation``."""
        return await self._read(reading.operation, key, operation_id)

    async def touch(
        self, key: UserKey, epoch: int, counts: Mapping[str, AccessCount], tally: Tally = NOTHING_COUNTED
    ) -> None:
        """See ``Ledger.touch``."""
        if counts or tally:
            await self._write(commits.touch, key, epoch, dict(counts), dict(tally))

    async def erase(
        self, key: UserKey, expected_version: int, epoch: int, operation_id: str, at: datetime
    ) -> ErasureReceipt:
        """See ``Ledger.erase``. Rewrites the file; while that is held up, one thing counts as remaining."""
        receipt, clean = await self._write_scrubbed(
            Scrub.FILE,
            partial(erasure.erase, outbox=self._outbox),
            key,
            expected_version,
            epoch,
            operation_id,
            at,
        )
        return receipt if clean else dataclasses.replace(receipt, remaining=receipt.remaining + 1)

    async def bind_session(self, key: UserKey, session_id: str) -> None:
        """See ``Ledger.bind_session``."""
        owner = await self.session_owner(key.namespace, session_id)
        if owner is None:
            await self._write(leases.bind_session, key, session_id)
        elif owner != key.user_id:
            raise SessionOwned

    async def session_owner(self, namespace: str, session_id: str) -> str | None:
        """See ``Ledger.session_owner``."""
        return await self._read(reading.session_owner, namespace, session_id)

    async def seen_messages(
        self, key: UserKey, session_id: str, message_ids: Sequence[str]
    ) -> dict[str, tuple[str, str]]:
        """See ``Ledger.seen_messages``."""
        return await self._read(reading.seen_messages, key, session_id, message_ids)

    async def job(self, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
        """See ``Ledger.job``."""
        return await self._read(reading.job, namespace, job_id)

    async def audit(self, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
        """See ``Ledger.audit``."""
        return await self._read(reading.audit, key, after_seq, limit)

    async def alerts(self, namespace: str, after: str, limit: int) -> list[Alert]:
        """See ``Ledger.alerts``."""
        return await self._read(reading.alerts, namespace, after, limit)

    async def close_alert(self, namespace: str, alert_id: str) -> bool:
        """See ``Ledger.close_alert``."""
        return await self._write(commits.close_alert, namespace, alert_id)

    async def raise_alert(self, namespace: str, alert: Alert) -> None:
        """See ``Ledger.raise_alert``."""
        await self._write(notes.raise_alert, namespace, alert)

    async def put_note(self, namespace: str, name: str, value: Any, expected: int | None = None) -> bool:
        """See ``Ledger.put_note``."""
        return await self._write(notes.put, namespace, name, value, expected)

    async def note(self, namespace: str, name: str) -> Note | None:
        """See ``Ledger.note``."""
        return await self._read(notes.one, namespace, name)

    async def notes(self, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
        """See ``Ledger.notes``."""
        return await self._read(notes.names, namespace, prefix, after, limit)

    async def remove_notes(self, namespace: str, names: Sequence[str]) -> None:
        """See ``Ledger.remove_notes``."""
        await self._write(notes.remove, namespace, names)

    async def turns(self, key: UserKey) -> list[Turn]:
        """See ``Ledger.turns``."""
        return await self._read(reading.turns, key)

    async def users(
        self, namespace: str | None, after: str, limit: int, shard: tuple[int, int] | None = None
    ) -> list[UserKey]:
        """See ``Ledger.users``. A shard is told by the number of the user's row."""
        return await self._read(reading.users, namespace, after, limit, shard)

    async def pending_users(self, after: str, limit: int) -> list[UserKey]:
        """See ``Ledger.pending_users``."""
        return await self._read(reading.pending_users, after, limit)

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        """See ``Ledger.outbox_users``."""
        return await self._read(feeding.outbox_users, after, limit, buried)

    async def read_outbox(self, key: UserKey, limit: int, *, buried: bool = False) -> list[OutboxEntry]:
        """See ``Ledger.read_outbox``."""
        return await self._read(feeding.read_outbox, key, limit, buried)

    async def ack_outbox(self, key: UserKey, seqs: Sequence[int]) -> None:
        """See ``Ledger.ack_outbox``."""
        if await self._read(feeding.acks_a_drop, key, seqs):
            await self._write_scrubbed(Scrub.LOG, feeding.ack_outbox, key, seqs)
        else:
            await self._write(feeding.ack_outbox, key, seqs)

    async def bury_outbox(self, key: UserKey, seqs: Sequence[int], reason: str) -> None:
        """See ``Ledger.bury_outbox``."""
        await self._write(feeding.bury_outbox, key, seqs, reason)

    async def generation(self, key: UserKey) -> int:
        """See ``Ledger.generation``."""
        return await self._read(feeding.generation, key)

    async def documents(self, key: UserKey, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
        """See ``Ledger.documents``."""
        return await self._read(feeding.documents, key, memory_ids, self._embedder)

    async def memory_ids(self, key: UserKey) -> list[str]:
        """See ``Ledger.memory_ids``."""
        return await self._read(feeding.memory_ids, key)

    async def host_pool(self) -> HostPool:
        """See ``Ledger.host_pool``."""
        return await self._read(leases.host_pool)

    async def resize_host_pool(self, hosts: int) -> HostPool:
        """See ``Ledger.resize_host_pool``."""
        return await self._write(leases.resize_host_pool, hosts)

    async def sweep(self, now: datetime, turns_hours: float, operations_hours: float) -> int:
        """See ``Ledger.sweep``. Also rewrites the file if content was deleted since the last time."""
        await self._clear_old_vectors()
        total = 0
        removed = erasure.SWEEP_ROWS
        while removed >= erasure.SWEEP_ROWS:
            removed = await self._write(erasure.sweep, now, turns_hours, operations_hours)
            total += removed
        level = Scrub.FILE if await self._read(scrub.is_due) else Scrub.LOG
        await self._write_scrubbed(level, reading.users, None, "", 1)
        return total

    async def put_pack(self, stored: StoredPack) -> None:
        """See ``Ledger.put_pack``."""
        await self._write(packs.put, stored, self._embedder)

    async def remove_pack(self, namespace: str, name: str) -> bool:
        """See ``Ledger.remove_pack``."""
        return await self._write(packs.remove, namespace, name)

    async def packs(self, namespace: str | None) -> list[StoredPack]:
        """See ``Ledger.packs``."""
        return await self._read(packs.stored, namespace, self._embedder)

    async def packs_revision(self) -> int:
        """See ``Ledger.packs_revision``."""
        return await self._read(packs.revision)
