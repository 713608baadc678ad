"""Changing the embedding model: new vectors gather beside the old ones and take their place in one transaction.

Until then the file is the old model's, so a process that dies in between leaves nothing that cannot be opened. The
two tables change names, for SQLite keeps in memory what a transaction changes; old vectors go in small steps.
Knowledge packs are few: theirs are written anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.packs import count_change, revision
from hermes_memory.adapters.sqlite_ledger.store import check_embedder, embedder_of
from hermes_memory.adapters.sqlite_ledger.users import uid_of
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import EmbedderInfo, Vector, Vectors
from hermes_memory.ports.ledger import Reembedding, WaitingPack

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
_BYTES = "SELECT coalesce(sum(length(vectors)), 0) FROM packs"
_BYTES_DONE = "SELECT coalesce(sum(length(vectors)), 0) FROM reembedded_packs"
_BYTES_DONE_OF = """
SELECT coalesce(sum(length(vectors)), 0) FROM reembedded_packs WHERE namespace = ? AND name = ?
"""
_PARTS = "SELECT vectors FROM reembedded_packs WHERE namespace = ? AND name = ? ORDER BY start"
_PUT_PACK = "UPDATE packs SET vectors = ? WHERE namespace = ? AND name = ?"
_WAITING_PACK = """
SELECT namespace, body, done FROM (
    SELECT p.namespace, p.name, p.body, length(p.vectors) / ? AS whole,
        (SELECT coalesce(sum(length(r.vectors)), 0) / ? FROM reembedded_packs r
         WHERE r.namespace = p.namespace AND r.name = p.name) AS done
    FROM packs p)
WHERE done < whole ORDER BY namespace, name LIMIT 1
"""
_SWAP = (
    "ALTER TABLE vectors RENAME TO swapping",
    "ALTER TABLE reembedded RENAME TO vectors",
    "ALTER TABLE swapping RENAME TO reembedded",
)
_CLEAR = """
DELETE FROM reembedded WHERE (uid, id) IN (SELECT uid, id FROM reembedded LIMIT ?)
"""
_CLEAR_PACKS = """
DELETE FROM reembedded_packs WHERE rowid IN (SELECT rowid FROM reembedded_packs LIMIT ?)
"""
CLEAR_PARTS = 40  # of packs, each of some dozens of vectors
CLEAR_ROWS = 2_000  # in one transaction, so that other writers wait only briefly
_SET_FACT = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


def abandon(conn: sqlite3.Connection, target: EmbedderInfo) -> None:
    """A change to another model is over; what was made for it is there to be cleared."""
    if _target(conn) != target:
        _forget(conn)


def has_leftovers(conn: sqlite3.Connection) -> bool:
    """Whether vectors are there that no model needs."""
    if _target(conn) is not None:
        return False
    both = "SELECT 1 FROM reembedded UNION ALL SELECT 1 FROM reembedded_packs LIMIT 1"
    return conn.execute(both).fetchone() is not None


def clear(conn: sqlite3.Connection) -> None:
    """Remove some of them."""
    if _target(conn) is None:
        conn.execute(_CLEAR, (CLEAR_ROWS,))
        conn.execute(_CLEAR_PACKS, (CLEAR_PARTS,))


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


def unembedded_pack(conn: sqlite3.Connection, target: EmbedderInfo) -> WaitingPack | None:
    """The first pack that is not complete; None also when no change to ``target`` is under way."""
    if _target(conn) != target:
        return None
    row = _first_waiting_pack(conn, target)
    if row is None:
        return None
    namespace, body, done = row
    pack = codec.PACK.validate_json(body)
    return WaitingPack(namespace=namespace, pack=pack, done=done, revision=revision(conn))


def put_passages(
    conn: sqlite3.Connection, waiting: WaitingPack, vectors: Vectors, target: EmbedderInfo
) -> bool:
    """Keep new vectors of passages in a row, if they are the next of a pack that is still the same."""
    if _target(conn) != target:
        check_embedder(conn, target)
        return False  # finished meanwhile
    rows = min(len(vectors), len(waiting.rest))
    blob = codec.dump_vectors(vectors, rows, target.dimension)
    name = (waiting.namespace, waiting.pack.name)
    done = _count(conn, _BYTES_DONE_OF, *name) // codec.vector_bytes(target.dimension)
    if not rows or revision(conn) != waiting.revision or done != waiting.done:
        return False
    conn.execute("INSERT INTO reembedded_packs VALUES (?, ?, ?, ?)", (*name, done, blob))
    return True


def finish(conn: sqlite3.Connection, target: EmbedderInfo) -> Reembedding:
    """Swap, if all are there."""
    now = _progress(conn, target)
    if now.finished or _something_waits(conn, target):
        return now
    if _target(conn) != target:
        check_embedder(conn, target)
    _swap_packs(conn)
    for statement in _SWAP:
        conn.execute(statement)
    _forget(conn)
    conn.executemany(_SET_FACT, [("embedder", target.name), ("dimension", target.dimension)])
    return _progress(conn, target)


def _first_waiting_pack(conn: sqlite3.Connection, target: EmbedderInfo) -> tuple[str, str, int] | None:
    """Namespace, body, and how many passages are done."""
    sizes = (codec.vector_bytes(_stored(conn).dimension), codec.vector_bytes(target.dimension))
    row: tuple[str, str, int] | None = conn.execute(_WAITING_PACK, sizes).fetchone()
    return row


def _something_waits(conn: sqlite3.Connection, target: EmbedderInfo) -> bool:
    memories = _count(conn, _DONE) < _count(conn, _TOTAL)
    return memories or _first_waiting_pack(conn, target) is not None


def _swap_packs(conn: sqlite3.Connection) -> None:
    """Put the parts of every pack together, in place of its old vectors; the parts are left over."""
    for name in conn.execute("SELECT namespace, name FROM packs").fetchall():
        parts = [part for (part,) in conn.execute(_PARTS, name)]
        conn.execute(_PUT_PACK, (b"".join(parts), *name))
    count_change(conn)


def _progress(conn: sqlite3.Connection, target: EmbedderInfo) -> Reembedding:
    stored = _stored(conn)
    total = _count(conn, _TOTAL) + _count(conn, _BYTES) // codec.vector_bytes(stored.dimension)
    if stored == target:
        return Reembedding(stored, target, total, total)
    done = _count(conn, _DONE) + _count(conn, _BYTES_DONE) // codec.vector_bytes(target.dimension)
    return Reembedding(stored, target, done, total)


def _stored(conn: sqlite3.Connection) -> EmbedderInfo:
    stored = embedder_of(conn, "embedder", "dimension")
    if stored is None:
        raise AssertionError("the store says whose vectors it holds")
    return stored


def _target(conn: sqlite3.Connection) -> EmbedderInfo | None:
    return embedder_of(conn, "next_embedder", "next_dimension")


def _forget(conn: sqlite3.Connection) -> None:
    conn.execute("DELETE FROM meta WHERE name IN ('next_embedder', 'next_dimension')")


def _count(conn: sqlite3.Connection, sql: str, *values: object) -> int:
    return int(conn.execute(sql, values).fetchone()[0])
