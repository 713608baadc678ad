"""A ledger that fails on a plan: what a network, a dying server or an impatient proxy would do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import LedgerUnavailable
from hermes_memory.ports.clock import Clock
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
    Ledger,
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


class Fault(StrEnum):
    """What happens to one call."""

    NONE = "none"
    FAIL_BEFORE = "fail_before"  # refused; nothing was applied
    FAIL_AFTER = "fail_after"  # applied, and the reply is lost
    DELAY = "delay"  # applied after a while
    DUPLICATE = "duplicate"  # delivered twice; the caller sees the first reply


class FaultPlan:
    """Says which fault each call meets, reproducibly.

    Args:
        seed: Of the random choice that follows the script.
        rates: Probability of each fault; the rest is NONE.
        script: Faults of the first calls, in order.
    """

    def __init__(
        self, seed: int = 0, rates: Mapping[Fault, float] | None = None, script: Iterable[Fault] = ()
    ) -> None:
        self._random = random.Random(seed)
        self._rates = dict(rates or {})
        self._script = list(script)

    def draw(self) -> Fault:
        """The fault of the next call."""
        if self._script:
            return self._script.pop(0)
        dice = self._random.random()
        for fault, rate in self._rates.items():
            if dice < rate:
                return fault
            dice -= rate
        return Fault.NONE

    def then(self, *faults: Fault) -> None:
        """Add faults for the next calls."""
        self._script.extend(faults)

    def calm(self) -> None:
        """No more faults."""
        self._rates, self._script = {}, []


class FaultyLedger:
    """Decorates ``inner``. Writes meet every fault; reads and access counts are not repeated or lost after.

    Access counts have no operation id, so a second delivery would be counted: the port promises nothing else.
    A lost reply looks like LedgerUnavailable, as it does from a real server. ``injected`` counts the faults.
    """

    def __init__(self, inner: Ledger, plan: FaultPlan, clock: Clock, delay_s: float = 1.0) -> None:
        self._inner = inner
        self._plan = plan
        self._clock = clock
        self._delay_s = delay_s
        self.injected: Counter[Fault] = Counter()

    async def _write(self, call: Callable[[], Awaitable[_T]], *, repeated: bool = True) -> _T:
        fault = await self._before(self._plan.draw())
        reply = await call()
        if fault is Fault.DUPLICATE and repeated:  # not a note: called again it is another writing
            await call()
        if fault is Fault.FAIL_AFTER:
            raise LedgerUnavailable("injected: the reply was lost")
        return reply

    async def _once(self, call: Callable[[], Awaitable[_T]]) -> _T:
        fault = self._plan.draw()
        await self._before(fault if fault in {Fault.FAIL_BEFORE, Fault.DELAY} else Fault.NONE)
        return await call()

    async def _before(self, fault: Fault) -> Fault:
        self.injected[fault] += 1
        if fault is Fault.FAIL_BEFORE:
            raise LedgerUnavailable("injected: the call was refused")
        if fault is Fault.DELAY:
            await self._clock.sleep(self._delay_s)
        return fault

    async def open(self, embedder: EmbedderInfo) -> None:
        """Never faulted: a test begins with a store."""
        await self._inner.open(embedder)

    async def begin_reembedding(self, embedder: EmbedderInfo) -> Reembedding:
        """See ``Ledger.begin_reembedding``."""
        return await self._write(lambda: self._inner.begin_reembedding(embedder))

    async def unembedded(self, key: UserKey, after: str, limit: int) -> list[Memory]:
        """See ``Ledger.unembedded``."""
        return await self._once(lambda: self._inner.unembedded(key, after, limit))

    async def put_embedded(self, key: UserKey, vectors: Mapping[str, Vector]) -> None:
        """See ``Ledger.put_embedded``."""
        await self._write(lambda: self._inner.put_embedded(key, vectors))

    async def unembedded_pack(self) -> WaitingPack | None:
        """See ``Ledger.unembedded_pack``."""
        return await self._once(self._inner.unembedded_pack)

    async def put_embedded_passages(self, waiting: WaitingPack, vectors: Vectors) -> bool:
        """See ``Ledger.put_embedded_passages``."""
        return await self._write(lambda: self._inner.put_embedded_passages(waiting, vectors))

    async def finish_reembedding(self) -> Reembedding:
        """See ``Ledger.finish_reembedding``."""
        return await self._write(self._inner.finish_reembedding)

    async def close(self) -> None:
        """Never faulted."""
        await self._inner.close()

    async def ping(self) -> None:
        """See ``Ledger.ping``."""
        await self._once(self._inner.ping)

    async def claim_epoch(self, host: str, lease_s: float, now: datetime) -> int:
        """See ``Ledger.claim_epoch``."""
        return await self._once(lambda: self._inner.claim_epoch(host, lease_s, now))

    async def renew_lease(self, epoch: int, lease_s: float, now: datetime) -> None:
        """See ``Ledger.renew_lease``."""
        await self._write(lambda: self._inner.renew_lease(epoch, lease_s, now))

    async def activate(self, key: UserKey, epoch: int) -> Snapshot:
        """See ``Ledger.activate``."""
        return await self._write(lambda: self._inner.activate(key, epoch))

    async def commit(self, commit: Commit) -> Receipt:
        """See ``Ledger.commit``."""
        return await self._write(lambda: self._inner.commit(commit))

    async def operation(self, key: UserKey, operation_id: str) -> Receipt | None:
        """See ``Ledger.operation``."""
        return await self._once(lambda: self._inner.operation(key, operation_id))

    async def touch(
        self, key: UserKey, epoch: int, counts: Mapping[str, AccessCount], tally: Tally = NOTHING_COUNTED
    ) -> None:
        """See ``Ledger.touch``."""
        await self._once(lambda: self._inner.touch(key, epoch, counts, tally))

    async def erase(
        self, key: UserKey, expected_version: int, epoch: int, operation_id: str, at: datetime
    ) -> ErasureReceipt:
        """See ``Ledger.erase``."""
        return await self._write(lambda: self._inner.erase(key, expected_version, epoch, operation_id, at))

    async def bind_session(self, key: UserKey, session_id: str) -> None:
        """See ``Ledger.bind_session``."""
        await self._write(lambda: self._inner.bind_session(key, session_id))

    async def session_owner(self, namespace: str, session_id: str) -> str | None:
        """See ``Ledger.session_owner``."""
        return await self._once(lambda: self._inner.session_owner(namespace, session_id))

    async def seen_messages(
        self, key: UserKey, session_id: str, message_ids: Sequence[str]
    ) -> dict[str, tuple[str, str]]:
        """See ``Ledger.seen_messages``."""
        return await self._once(lambda: self._inner.seen_messages(key, session_id, message_ids))

    async def job(self, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
        """See ``Ledger.job``."""
        return await self._once(lambda: self._inner.job(namespace, job_id))

    async def audit(self, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
        """See ``Ledger.audit``."""
        return await self._once(lambda: self._inner.audit(key, after_seq, limit))

    async def alerts(self, namespace: str, after: str, limit: int) -> list[Alert]:
        """See ``Ledger.alerts``."""
        return await self._once(lambda: self._inner.alerts(namespace, after, limit))

    async def close_alert(self, namespace: str, alert_id: str) -> bool:
        """See ``Ledger.close_alert``."""
        return await self._write(lambda: self._inner.close_alert(namespace, alert_id))

    async def raise_alert(self, namespace: str, alert: Alert) -> None:
        """See ``Ledger.raise_alert``."""
        await self._write(lambda: self._inner.raise_alert(namespace, alert))

    async def put_note(self, namespace: str, name: str, value: Any, expected: int | None = None) -> bool:
        """See ``Ledger.put_note``."""
        return await self._write(
            lambda: self._inner.put_note(namespace, name, value, expected), repeated=False
        )

    async def note(self, namespace: str, name: str) -> Note | None:
        """See ``Ledger.note``."""
        return await self._once(lambda: self._inner.note(namespace, name))

    async def notes(self, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
        """See ``Ledger.notes``."""
        return await self._once(lambda: self._inner.notes(namespace, prefix, after, limit))

    async def remove_notes(self, namespace: str, names: Sequence[str]) -> None:
        """See ``Ledger.remove_notes``."""
        await self._write(lambda: self._inner.remove_notes(namespace, names))

    async def turns(self, key: UserKey) -> list[Turn]:
        """See ``Ledger.turns``."""
        return await self._once(lambda: self._inner.turns(key))

    async def users(
        self, namespace: str | None, after: str, limit: int, shard: tuple[int, int] | None = None
    ) -> list[UserKey]:
        """See ``Ledger.users``."""
        return await self._once(lambda: self._inner.users(namespace, after, limit, shard))

    async def pending_users(self, after: str, limit: int) -> list[UserKey]:
        """See ``Ledger.pending_users``."""
        return await self._once(lambda: self._inner.pending_users(after, limit))

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        """See ``Ledger.outbox_users``."""
        return await self._once(lambda: self._inner.outbox_users(after, limit, buried=buried))

    async def read_outbox(self, key: UserKey, limit: int, *, buried: bool = False) -> list[OutboxEntry]:
        """See ``Ledger.read_outbox``."""
        return await self._once(lambda: self._inner.read_outbox(key, limit, buried=buried))

    async def ack_outbox(self, key: UserKey, seqs: Sequence[int]) -> None:
        """See ``Ledger.ack_outbox``."""
        await self._write(lambda: self._inner.ack_outbox(key, seqs))

    async def bury_outbox(self, key: UserKey, seqs: Sequence[int], reason: str) -> None:
        """See ``Ledger.bury_outbox``."""
        await self._write(lambda: self._inner.bury_outbox(key, seqs, reason))

    async def generation(self, key: UserKey) -> int:
        """See ``Ledger.generation``."""
        return await self._once(lambda: self._inner.generation(key))

    async def documents(self, key: UserKey, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
        """See ``Ledger.documents``."""
        return await self._once(lambda: self._inner.documents(key, memory_ids))

    async def memory_ids(self, key: UserKey) -> list[str]:
        """See ``Ledger.memory_ids``."""
        return await self._once(lambda: self._inner.memory_ids(key))

    async def host_pool(self) -> HostPool:
        """See ``Ledger.host_pool``."""
        return await self._once(self._inner.host_pool)

    async def resize_host_pool(self, hosts: int) -> HostPool:
        """See ``Ledger.resize_host_pool``."""
        return await self._write(lambda: self._inner.resize_host_pool(hosts))

    async def sweep(self, now: datetime, turns_hours: float, operations_hours: float) -> int:
        """See ``Ledger.sweep``."""
        return await self._write(lambda: self._inner.sweep(now, turns_hours, operations_hours))

    async def put_pack(self, stored: StoredPack) -> None:
        """See ``Ledger.put_pack``."""
        await self._write(lambda: self._inner.put_pack(stored))

    async def remove_pack(self, namespace: str, name: str) -> bool:
        """See ``Ledger.remove_pack``."""
        return await self._write(lambda: self._inner.remove_pack(namespace, name))

    async def packs(self, namespace: str | None) -> list[StoredPack]:
        """See ``Ledger.packs``."""
        return await self._once(lambda: self._inner.packs(namespace))

    async def packs_revision(self) -> int:
        """See ``Ledger.packs_revision``."""
        return await self._once(self._inner.packs_revision)
