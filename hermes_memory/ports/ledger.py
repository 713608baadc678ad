"""The system of record: one user's state, committed by compare-and-set (ARCHITECTURE §2, §3).

A commit names the version it read, the epoch of the host that owns the user and an operation id. The
ledger applies it whole or not at all; the same operation id a second time changes nothing and gives the
first answer back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors
from hermes_memory.ports.ledger_records import (
    NOTHING_COUNTED,
    NOTHING_SPENT,
    AccessCount,
    Alert,
    AuditEntry,
    Commit,
    ErasureReceipt,
    GrantKind,
    HostPool,
    Job,
    JobStatus,
    Note,
    OutboxEntry,
    Receipt,
    Reembedding,
    Session,
    Settings,
    Snapshot,
    Spent,
    StoredPack,
    Tally,
    WaitingPack,
)

# The records are part of the port: whoever names the port names them with it.
__all__ = [
    "NOTHING_COUNTED",
    "NOTHING_SPENT",
    "AccessCount",
    "Alert",
    "AuditEntry",
    "Commit",
    "ErasureReceipt",
    "GrantKind",
    "HostPool",
    "Job",
    "JobStatus",
    "Ledger",
    "Note",
    "OutboxEntry",
    "Receipt",
    "Reembedding",
    "Session",
    "Settings",
    "Snapshot",
    "Spent",
    "StoredPack",
    "Tally",
    "WaitingPack",
]


class Ledger(Protocol):
    """One conformance suite binds every adapter (``hermes_memory.testing.ledger_suite``).

    All methods raise LedgerUnavailable when the store cannot be reached or cannot write.
    """

    async def open(self, embedder: EmbedderInfo) -> None:
        """Create or check the store. Raises EmbedderMismatch when the data was embedded otherwise."""
        ...

    async def begin_reembedding(self, embedder: EmbedderInfo) -> Reembedding:
        """Open the store, instead of ``open``, to embed what it holds with another model.

        Goes on with an unfinished change to the same model, and forgets one to another. New vectors are kept
        beside the old ones: until ``finish_reembedding`` the data belongs to the old model, which opens it as ever,
        and a vector that it writes or removes meanwhile has to be made anew. What takes a model (``activate``,
        ``commit``, ``put_pack``, ``packs``) raises EmbedderMismatch on every handle that was opened with another
        than the data's.
        """
        ...

    async def unembedded(self, key: UserKey, after: str, limit: int) -> list[Memory]:
        """The memories of a user, of every status, that have an old vector and no new one yet.

        In the order of their ids, starting after that id.
        """
        ...

    async def put_embedded(self, key: UserKey, vectors: Mapping[str, Vector]) -> None:
        """Keep new vectors by memory id; durable when it returns. Ignores what has no old vector.

        Nothing else changes: neither a memory, frozen or not, nor a version. Raises InvalidInput on another
        shape than the target's, and EmbedderMismatch when no change to the handle's model is under way.
        """
        ...

    async def unembedded_pack(self) -> WaitingPack | None:
        """The next knowledge pack with a passage that has no new vector yet, or None."""
        ...

    async def put_embedded_passages(self, waiting: WaitingPack, vectors: Vectors) -> bool:
        """Keep new vectors of the first passages of ``waiting.rest``, in their order; durable when it returns.

        False, and nothing is kept, when a pack was changed since ``waiting`` was read, or these have one by now.
        Raises as ``put_embedded``.
        """
        ...

    async def finish_reembedding(self) -> Reembedding:
        """Put all new vectors in the place of the old ones, at once, and give the data to the new model.

        Changes nothing while some are missing, or when it was finished before. A long-term index is not told:
        it is made for one model and has to be built anew.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of every resource. May be called twice."""
        ...

    async def ping(self) -> None:
        """Answer if the store can be read and written now."""
        ...

    async def claim_epoch(self, host: str, lease_s: float, now: datetime) -> int:
        """A new epoch, greater than every one before, leased to ``host`` until now + lease_s."""
        ...

    async def renew_lease(self, epoch: int, lease_s: float, now: datetime) -> None:
        """Extend the lease.

        Raises LeaseLost when it ran out before ``now`` or a newer epoch has the host's name.
        """
        ...

    async def activate(self, key: UserKey, epoch: int) -> Snapshot:
        """Make ``epoch`` the user's owner and read the state, in one transaction.

        Writes nothing for a user never seen, who is then owned at the first commit: for such a user a
        commit of any epoch is accepted as the first. A tombstone gives its generation and version.
        """
        ...

    async def commit(self, commit: Commit) -> Receipt:
        """Apply a commit whole, or change nothing.

        The checks, in this order: the operation id (known → replay of the first answer, also when it was
        erased meanwhile: then the result is None), the epoch (Fenced), the version (VersionConflict), frozen
        rows without a grant (MemoryFrozen).
        """
        ...

    async def operation(self, key: UserKey, operation_id: str) -> Receipt | None:
        """The first answer of an operation, if it was applied."""
        ...

    async def touch(
        self,
        key: UserKey,
        epoch: int,
        counts: Mapping[str, AccessCount],
        tally: Tally = NOTHING_COUNTED,
    ) -> None:
        """Add access counts and what else was counted, outside the version.

        Ignores unknown memories; a fenced epoch writes nothing, nor does anything for a user who is not there: an
        erasure takes the tally with it.
        """
        ...

    async def erase(
        self, key: UserKey, expected_version: int, epoch: int, operation_id: str, at: datetime
    ) -> ErasureReceipt:
        """Remove everything of a user, physically, and leave a tombstone (ARCHITECTURE §2).

        The tombstone holds a salted hash of the key, generation + 1, version + 1 and the salted hashes of the
        operation ids of the last hours. A ``drop`` for the index goes to the outbox, instead of what waits
        there for the user, dead letters included. Checks as for commit; a replay gives the first receipt. Erasing an unknown user
        frees the sessions bound to it, leaves no tombstone and gives zeros. ``remaining`` is not 0 either
        while copies in the store's files cannot be overwritten yet; the same call again tells when they are.
        """
        ...

    async def bind_session(self, key: UserKey, session_id: str) -> None:
        """Bind a session of the namespace to the user, atomically. Raises SessionOwned when another has it."""
        ...

    async def session_owner(self, namespace: str, session_id: str) -> str | None:
        """The user id a session is bound to, or None."""
        ...

    async def seen_messages(
        self, key: UserKey, session_id: str, message_ids: Sequence[str]
    ) -> dict[str, tuple[str, str]]:
        """The known ones among ``message_ids``: id → (content hash, job id)."""
        ...

    async def job(self, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
        """A job by id, inside the namespace."""
        ...

    async def audit(self, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
        """Entries with ``seq > after_seq``, oldest first."""
        ...

    async def turns(self, key: UserKey) -> list[Turn]:
        """Every raw turn still kept, by receipt time, then session, then index."""
        ...

    async def alerts(self, namespace: str, after: str, limit: int) -> list[Alert]:
        """The open alerts of a namespace in the order of their ids, starting after that id."""
        ...

    async def raise_alert(self, namespace: str, alert: Alert) -> None:
        """Open an alert about the namespace itself, or put it in the place of the one of that id."""
        ...

    async def put_note(self, namespace: str, name: str, value: Any, expected: int | None = None) -> bool:
        """Keep a JSON-ready value under a name, in place of what is there; durable when it returns.

        With ``expected`` only if the note has that revision now, 0 where there is none: False, and nothing
        changes, if not. ``namespace`` may be empty: what belongs to the product as a whole.
        """
        ...

    async def note(self, namespace: str, name: str) -> Note | None:
        """The note of that name."""
        ...

    async def notes(self, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
        """Names of notes that begin with ``prefix``, in order, starting after that name."""
        ...

    async def remove_notes(self, namespace: str, names: Sequence[str]) -> None:
        """Forget them. Ignores unknown ones."""
        ...

    async def close_alert(self, namespace: str, alert_id: str) -> bool:
        """An operator has seen to it; False if it is not open. The same thing happening again opens it again."""
        ...

    async def users(
        self, namespace: str | None, after: str, limit: int, shard: tuple[int, int] | None = None
    ) -> list[UserKey]:
        """Known users in the order of ``str(key)``, starting after that text.

        ``shard`` (number, of how many: a power of two up to 16) gives that part of them: the parts are disjoint, of
        about one size, and together everybody; reading one costs no look at the others where the store allows it.
        """
        ...

    async def pending_users(self, after: str, limit: int) -> list[UserKey]:
        """Users with turns that wait for extraction, in the order of ``str(key)``."""
        ...

    async def outbox_users(self, after: str, limit: int, *, buried: bool = False) -> list[UserKey]:
        """Users, erased ones too, with entries for the index, in the order of ``str(key)``, after that text.

        With ``buried`` those with entries that the index refused.
        """
        ...

    async def read_outbox(self, key: UserKey, limit: int, *, buried: bool = False) -> list[OutboxEntry]:
        """What waits for the index, or was refused by it, oldest first, each with its key and seq."""
        ...

    async def ack_outbox(self, key: UserKey, seqs: Sequence[int]) -> None:
        """Forget entries that were delivered, or have been seen to since they were buried. Ignores unknown ones."""
        ...

    async def bury_outbox(self, key: UserKey, seqs: Sequence[int], reason: str) -> None:
        """Set entries aside that the index refuses: a code, never content. They wait no more and are kept."""
        ...

    async def generation(self, key: UserKey) -> int:
        """How often the user has been erased: what was read of an older generation must not be shown any more."""
        ...

    async def documents(self, key: UserKey, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
        """Those of the memories, of every status, that exist and have a vector, in any order.

        Raises EmbedderMismatch when the data has been embedded otherwise since the ledger was opened.
        """
        ...

    async def memory_ids(self, key: UserKey) -> list[str]:
        """The ids of all memories of a user, of every status, in order."""
        ...

    async def host_pool(self) -> HostPool:
        """How many hosts carry the users: cheap to ask for again and again."""
        ...

    async def resize_host_pool(self, hosts: int) -> HostPool:
        """Let so many hosts carry the users; the same number again changes nothing. Durable when it returns."""
        ...

    async def sweep(self, now: datetime, turns_hours: float, operations_hours: float) -> int:
        """Remove what has outlived its time: raw turns that are not pending, operation ids, old tombstone ids.

        With the last raw turn of a conversation goes its summary, if nobody ended the conversation before.
        Returns how many rows went. Receipt time counts (SPEC §2).
        """
        ...

    async def put_pack(self, stored: StoredPack) -> None:
        """Store a knowledge pack, in place of the one of that name in its namespace.

        Raises EmbedderMismatch when the data has been embedded otherwise since the ledger was opened.
        """
        ...

    async def remove_pack(self, namespace: str, name: str) -> bool:
        """Remove a pack; False if there is none of that name."""
        ...

    async def packs(self, namespace: str | None) -> list[StoredPack]:
        """The packs of a namespace, or of all, in the order of namespace and name.

        Raises EmbedderMismatch as ``put_pack``.
        """
        ...

    async def packs_revision(self) -> int:
        """A number that grows with every change of a pack of any namespace: cheap to ask for again and again."""
        ...
