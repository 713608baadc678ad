"""Knowledge packs: a row for each, replaced and removed whole, and a number that tells of any change."""

from __future__ import annotations

import sqlite3

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.store import check_embedder, fact
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import StoredPack


def put(conn: sqlite3.Connection, stored: StoredPack, embedder: EmbedderInfo) -> None:
    """Store a pack in place of the one of its name."""
    check_embedder(conn, embedder)
    pack = stored.pack
    vectors = codec.dump_vectors(stored.vectors, len(pack.passages), embedder.dimension)
    conn.execute(
        "INSERT OR REPLACE INTO packs VALUES (?, ?, ?, ?, ?)",
        (stored.namespace, pack.name, codec.micros(stored.loaded_at), codec.dump(codec.PACK, pack), vectors),
    )
    _changed(conn, stored.namespace, pack.name)


def remove(conn: sqlite3.Connection, namespace: str, name: str) -> bool:
    """Remove a pack, if there is one of that name."""
    gone = conn.execute("DELETE FROM packs WHERE namespace = ? AND name = ?", (namespace, name)).rowcount > 0
    if gone:
        _changed(conn, namespace, name)
    return gone


def stored(conn: sqlite3.Connection, namespace: str | None, embedder: EmbedderInfo) -> list[StoredPack]:
    """The packs of a namespace, or of all."""
    check_embedder(conn, embedder)
    rows = conn.execute(
        """SELECT namespace, loaded_us, body, vectors FROM packs WHERE ?1 IS NULL OR namespace = ?1
        ORDER BY namespace, name""",
        (namespace,),
    )
    return [
        StoredPack(
            namespace=space,
            pack=codec.PACK.validate_json(body),
            vectors=codec.load_matrix(vectors, embedder.dimension),
            loaded_at=codec.moment(loaded_us),
        )
        for space, loaded_us, body, vectors in rows
    ]


def revision(conn: sqlite3.Connection) -> int:
    """How often a pack was changed."""
    return int(fact(conn, "packs"))


def count_change(conn: sqlite3.Connection) -> None:
    """Tell those who hold packs that they are others now."""
    conn.execute("UPDATE meta SET value = value + 1 WHERE name = 'packs'")


def _changed(conn: sqlite3.Connection, namespace: str, name: str) -> None:
    # A model that is on its way in has to read the pack again.
    conn.execute("DELETE FROM reembedded_packs WHERE namespace = ? AND name = ?", (namespace, name))
    count_change(conn)
