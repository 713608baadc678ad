"""What feeds a long-term index: the outbox of each user, its dead letters, and the documents to read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.scrub import mark_due
from hermes_memory.adapters.sqlite_ledger.store import check_embedder
from hermes_memory.adapters.sqlite_ledger.users import standing, uid_of
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory
from hermes_memory.ports.embedder import EmbedderInfo, Vector
from hermes_memory.ports.ledger import OutboxEntry

_WAITING_USERS = """
SELECT DISTINCT name FROM outbox WHERE reason IS NULL AND name > ? ORDER BY name LIMIT ?
"""
_BURIED_USERS = """
SELECT DISTINCT name FROM outbox WHERE reason IS NOT NULL AND name > ? ORDER BY name LIMIT ?
"""
_ENTRIES = """
SELECT seq, op, memory_id, reason FROM outbox WHERE name = ? AND (reason IS NOT NULL) = ? ORDER BY seq LIMIT ?
"""
_DOCUMENTS = """
SELECT m.body, m.accesses, m.accessed_us, v.vector
FROM memories m JOIN vectors v ON v.uid = m.uid AND v.id = m.id
WHERE m.uid = ? AND m.id IN (SELECT value FROM json_each(?))
"""


def outbox_users(conn: sqlite3.Connection, after: str, limit: int, buried: bool) -> list[UserKey]:
    """Users with entries that wait, or were refused, in the order of names."""
    rows = conn.execute(_BURIED_USERS if buried else _WAITING_USERS, (after, limit))
    return [UserKey.parse(name) for (name,) in rows]


def read_outbox(conn: sqlite3.Connection, key: UserKey, limit: int, buried: bool) -> list[OutboxEntry]:
    """Entries of a user, oldest first."""
    rows = conn.execute(_ENTRIES, (str(key), buried, limit))
    return [
        OutboxEntry(op=op, memory_id=memory_id, seq=seq, key=key, reason=reason)
        for seq, op, memory_id, reason in rows
    ]


def ack_outbox(conn: sqlite3.Connection, key: UserKey, seqs: Sequence[int]) -> None:
    """Forget entries of a user."""
    if acks_a_drop(conn, key, seqs):
        mark_due(conn)
    conn.execute(
        "DELETE FROM outbox WHERE name = ? AND seq IN (SELECT value FROM json_each(?))",
        (str(key), json.dumps(list(seqs))),
    )


def acks_a_drop(conn: sqlite3.Connection, key: UserKey, seqs: Sequence[int]) -> bool:
    """Whether one of the entries names an erased user, and is the last to do so."""
    sql = "SELECT 1 FROM outbox WHERE op = 'drop' AND name = ? AND seq IN (SELECT value FROM json_each(?))"
    return conn.execute(sql, (str(key), json.dumps(list(seqs)))).fetchone() is not None


def bury_outbox(conn: sqlite3.Connection, key: UserKey, seqs: Sequence[int], reason: str) -> None:
    """Set entries of a user aside."""
    conn.execute(
        "UPDATE outbox SET reason = ? WHERE name = ? AND seq IN (SELECT value FROM json_each(?))",
        (reason, str(key), json.dumps(list(seqs))),
    )


def generation(conn: sqlite3.Connection, key: UserKey) -> int:
    """How often the user has been erased."""
    return standing(conn, key).generation


def documents(
    conn: sqlite3.Connection, key: UserKey, memory_ids: Sequence[str], embedder: EmbedderInfo
) -> list[tuple[Memory, Vector]]:
    """Those of the memories that exist and have a vector; raises EmbedderMismatch for another model's."""
    check_embedder(conn, embedder)
    rows = conn.execute(_DOCUMENTS, (uid_of(conn, key), json.dumps(list(memory_ids))))
    return [
        (codec.load_memory(*memory), codec.load_matrix(vector, embedder.dimension)[0])
        for *memory, vector in rows
    ]


def memory_ids(conn: sqlite3.Connection, key: UserKey) -> list[str]:
    """The ids of all memories of a user, in order."""
    rows = conn.execute("SELECT id FROM memories WHERE uid = ? ORDER BY id", (uid_of(conn, key),))
    return [str(id_) for (id_,) in rows]
