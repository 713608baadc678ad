"""Changing the embedding model: new vectors gather beside the old ones and take their place in one transaction.

Until then the file is the old model's, so a process that dies in between leaves nothing that cannot be opened. The
two tables change names, for SQLite keeps in memory what a transaction changes; old vectors go in small steps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hermes_memory.adapters.sqlite_ledger import codec
from hermes_memory.adapters.sqlite_ledger.store import check_embedder, embedder_of
from hermes_memory.adapters.sqlite_ledger.users import uid_of
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo, Vector
from hermes_memory.ports.ledger import Reembedding

# Of a vector without a memory nothing can be embedded; it goes when the change is finished.
_TOTAL = "SELECT count(*) FROM vectors JOIN memories USING (uid, id)"
_DONE = "SELECT count(*) FROM vectors JOIN memories USING (uid, id) JOIN reembedded USING (uid, id)"
_WAITING = """
SELECT m.body, m.accesses, m.accessed_us FROM vectors v JOIN memories m ON m.uid = v.uid AND m.id = v.id
WHERE v.uid = ? AND v.id > ? AND NOT EXISTS (SELECT 1 FROM reembedded r WHERE r.uid = v.uid AND r.id = v.id)
ORDER BY v.id LIMIT ?
"""
_PUT = """
INSERT INTO reembedded (uid, id, vector) SELECT uid, id, ? FROM vectors WHERE uid = ? AND id = ?
ON CONFLICT (uid, id) DO UPDATE SET vector = excluded.vector
"""
_SWAP = (
    "ALTER TABLE vectors RENAME TO swapping",
    "ALTER TABLE reembedded RENAME TO vectors",
    "ALTER TABLE swapping RENAME TO reembedded",
)
_CLEAR = """
DELETE FROM reembedded WHERE (uid, id) IN (SELECT uid, id FROM reembedded LIMIT ?)
"""
CLEAR_ROWS = 2_000  # in one transaction, so that other writers wait only briefly
_SET_FACT = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def abandon(conn: sqlite3.Connection, target: EmbedderInfo) -> None:
    """A change to another model is over; what was made for it is there to be cleared."""
    if _target(conn) != target:
        _forget(conn)


def has_leftovers(conn: sqlite3.Connection) -> bool:
    """Whether vectors are there that no model needs."""
    return _target(conn) is None and conn.execute("SELECT 1 FROM reembedded").fetchone() is not None


def clear(conn: sqlite3.Connection) -> None:
    """Remove up to CLEAR_ROWS of them."""
    if _target(conn) is None:
        conn.execute(_CLEAR, (CLEAR_ROWS,))


def begin(conn: sqlite3.Connection, target: EmbedderInfo) -> Reembedding:
    """Note the target, unless the data is its already; to be called with nothing left over."""
    if _stored(conn) != target:
        facts = [("next_embedder", target.name), ("next_dimension", target.dimension)]
        conn.executemany(_SET_FACT, facts)
    return _progress(conn, target)


def unembedded(
    conn: sqlite3.Connection, key: UserKey, after: str, limit: int
) -> Sequence[tuple[str, int, int]]:
    """Rows of memories that wait for a new vector; decoded outside the transaction."""
    return conn.execute(_WAITING, (uid_of(conn, key), after, limit)).fetchall()


def put(conn: sqlite3.Connection, key: UserKey, vectors: Mapping[str, Vector], target: EmbedderInfo) -> None:
    """Keep new vectors of memories that have an old one."""
    if _target(conn) != target:
        check_embedder(conn, target)
        return  # finished meanwhile: they are all there
    uid = uid_of(conn, key)
    rows = [(codec.dump_vector(vector, target.dimension), uid, id_) for id_, vector in vectors.items()]
    conn.executemany(_PUT, rows)


def finish(conn: sqlite3.Connection, target: EmbedderInfo) -> Reembedding:
    """Swap, if all are there."""
    now = _progress(conn, target)
    if now.finished or now.done < now.total:
        return now
    if _target(conn) != target:
        check_embedder(conn, target)
    for statement in _SWAP:
        conn.execute(statement)
    _forget(conn)
    conn.executemany(_SET_FACT, [("embedder", target.name), ("dimension", target.dimension)])
    return _progress(conn, target)


def _progress(conn: sqlite3.Connection, target: EmbedderInfo) -> Reembedding:
    stored, total = _stored(conn), _count(conn, _TOTAL)
    return Reembedding(stored, target, total if stored == target else _count(conn, _DONE), total)


def _stored(conn: sqlite3.Connection) -> EmbedderInfo:
    stored = embedder_of(conn, "embedder", "dimension")
    if stored is None:
        raise AssertionError("the store says whose vectors it holds")
    return stored


def _target(conn: sqlite3.Connection) -> EmbedderInfo | None:
    return embedder_of(conn, "next_embedder", "next_dimension")


def _forget(conn: sqlite3.Connection) -> None:
    conn.execute("DELETE FROM meta WHERE name IN ('next_embedder', 'next_dimension')")


def _count(conn: sqlite3.Connection, sql: str) -> int:
    return int(conn.execute(sql).fetchone()[0])
