"""What jobs leave for later: notes by namespace and name; and alerts about a namespace as a whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.ports.ledger import Alert, Note

_PUT = """
INSERT INTO notes (namespace, name, revision, value) VALUES (?1, ?2, 1, ?3)
ON CONFLICT (namespace, name) DO UPDATE SET revision = revision + 1, value = excluded.value
"""


def put(conn: sqlite3.Connection, namespace: str, name: str, value: Any, expected: int | None) -> bool:
    """Keep a value, if its revision is the expected one; the running transaction is the only writer."""
    if expected is not None:
        known = _row(conn, namespace, name)
        if (known[0] if known else 0) != expected:
            return False
    conn.execute(_PUT, (namespace, name, codec.dump_result(value)))
    return True


def one(conn: sqlite3.Connection, namespace: str, name: str) -> Note | None:
    """The note of that name."""
    known = _row(conn, namespace, name)
    return Note(codec.load_result(known[1]), known[0]) if known else None


def _row(conn: sqlite3.Connection, namespace: str, name: str) -> tuple[int, str] | None:
    found: tuple[int, str] | None = conn.execute(
        "SELECT revision, value FROM notes WHERE namespace = ? AND name = ?", (namespace, name)
    ).fetchone()
    return found


def names(conn: sqlite3.Connection, namespace: str, prefix: str, after: str, limit: int) -> list[str]:
    """Names that begin with a prefix, in order, after one of them."""
    rows = conn.execute(
        """SELECT name FROM notes WHERE namespace = ?1 AND name >= ?2 AND name > ?3
        AND substr(name, 1, length(?2)) = ?2 ORDER BY name LIMIT ?4""",
        (namespace, prefix, after, limit),
    )
    return [name for (name,) in rows]


def remove(conn: sqlite3.Connection, namespace: str, names: Sequence[str]) -> None:
    """Forget notes."""
    conn.execute(
        "DELETE FROM notes WHERE namespace = ? AND name IN (SELECT value FROM json_each(?))",
        (namespace, json.dumps(list(names))),
    )


def raise_alert(conn: sqlite3.Connection, namespace: str, alert: Alert) -> None:
    """Open an alert about the namespace."""
    conn.execute(
        "INSERT OR REPLACE INTO namespace_alerts VALUES (?, ?, ?)",
        (namespace, alert.id, codec.dump(codec.ALERT, alert)),
    )
