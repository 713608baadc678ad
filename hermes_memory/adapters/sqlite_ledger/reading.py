"""Queries. Those for a whole user give raw rows, decoded outside the transaction."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.users import Standing, known_operation, take_over, uid_of
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Turn
from hermes_memory.ports.ledger import Alert, AuditEntry, Job, Receipt, Settings, Snapshot

_OPEN_TURNS = """
SELECT t.body FROM turns t LEFT JOIN sessions s ON s.uid = t.uid AND s.id = t.session_id
WHERE t.uid = ? AND (t.pending = 1 OR coalesce(s.ended, 0) = 0)
ORDER BY t.received_us, t.session_id, t.position
"""


@dataclass(frozen=True, slots=True)
class RawUser:
    """The rows of a snapshot, not yet decoded."""

    standing: Standing
    memories: Sequence[tuple[str, int, int]] = ()
    vectors: Sequence[tuple[str, bytes]] = ()
    sessions: Sequence[tuple[str]] = ()
    turns: Sequence[tuple[str]] = ()
    jobs: Sequence[tuple[str]] = ()
    tally: Sequence[tuple[str, str, int]] = ()


def activate(conn: sqlite3.Connection, key: UserKey, epoch: int) -> RawUser:
    """Take the user over and read its rows, both in the running transaction."""
    now = take_over(conn, key, epoch)
    if now.uid is None:
        return RawUser(now)

    def rows(sql: str) -> Sequence[tuple[str]]:
        return conn.execute(sql, (now.uid,)).fetchall()

    memories = "SELECT body, accesses, accessed_us FROM memories WHERE uid = ? ORDER BY number"
    return RawUser(
        now,
        memories=conn.execute(memories, (now.uid,)).fetchall(),
        vectors=conn.execute("SELECT id, vector FROM vectors WHERE uid = ?", (now.uid,)).fetchall(),
        sessions=rows("SELECT body FROM sessions WHERE uid = ? ORDER BY id"),
        turns=rows(_OPEN_TURNS),
        jobs=rows("SELECT body FROM jobs WHERE uid = ? AND done = 0 ORDER BY number"),
        tally=conn.execute("SELECT day, name, number FROM tallies WHERE uid = ?", (now.uid,)).fetchall(),
    )


def decode(key: UserKey, raw: RawUser, dimension: int) -> Snapshot:
    """The snapshot that the rows stand for."""
    now = raw.standing
    return Snapshot(
        key=key,
        version=now.version,
        generation=now.generation,
        owner_epoch=now.owner_epoch or 0,
        memories=tuple(codec.load_memory(*row) for row in raw.memories),
        vectors=codec.load_vectors(raw.vectors, dimension),
        sessions=tuple(codec.SESSION.validate_json(body) for (body,) in raw.sessions),
        turns=tuple(codec.TURN.validate_json(body) for (body,) in raw.turns),
        jobs=tuple(codec.JOB.validate_json(body) for (body,) in raw.jobs),
        settings=codec.SETTINGS.validate_json(now.settings) if now.settings else Settings(),
        tally=codec.load_tally(raw.tally),
    )


def operation(conn: sqlite3.Connection, key: UserKey, operation_id: str) -> Receipt | None:
    """The first answer of an operation."""
    known = known_operation(conn, key, uid_of(conn, key), operation_id)
    return None if known is None else Receipt(known.version, True, known.result)


def session_owner(conn: sqlite3.Connection, namespace: str, session_id: str) -> str | None:
    """The user id a session is bound to."""
    sql = "SELECT user_id FROM bindings WHERE namespace = ? AND session_id = ?"
    row = conn.execute(sql, (namespace, session_id)).fetchone()
    return None if row is None else str(row[0])


def seen_messages(
    conn: sqlite3.Connection, key: UserKey, session_id: str, message_ids: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """The known ones: id → (content hash, job id)."""
    rows = conn.execute(
        """SELECT message_id, content_hash, job_id FROM messages
        WHERE uid = ? AND session_id = ? AND message_id IN (SELECT value FROM json_each(?))""",
        (uid_of(conn, key), session_id, json.dumps(list(message_ids))),
    )
    return {message_id: (content_hash, job_id) for message_id, content_hash, job_id in rows}


def job(conn: sqlite3.Connection, namespace: str, job_id: str) -> tuple[UserKey, Job] | None:
    """A job by id, inside the namespace."""
    rows = conn.execute(
        "SELECT u.name, j.body FROM jobs j JOIN users u ON u.uid = j.uid WHERE j.id = ?", (job_id,)
    )
    for name, body in rows:
        key = UserKey.parse(name)
        if key.namespace == namespace:
            return key, codec.JOB.validate_json(body)
    return None


def audit(conn: sqlite3.Connection, key: UserKey, after_seq: int, limit: int) -> list[AuditEntry]:
    """Entries after a sequence number, oldest first."""
    rows = conn.execute(
        "SELECT seq, body FROM audit WHERE uid = ? AND seq > ? ORDER BY seq LIMIT ?",
        (uid_of(conn, key), after_seq, limit),
    )
    return [dataclasses.replace(codec.AUDIT.validate_json(body), seq=seq) for seq, body in rows]


def alerts(conn: sqlite3.Connection, namespace: str, after: str, limit: int) -> list[Alert]:
    """Open alerts of a namespace, of its users and of itself, after an id."""
    first = quote(namespace, safe="")
    rows = conn.execute(
        """SELECT * FROM (
            SELECT a.id AS id, u.name, a.body FROM alerts a JOIN users u ON u.uid = a.uid
            WHERE a.open = 1 AND a.id > ?1 AND u.name > ?2 AND u.name < ?3
            UNION ALL SELECT id, NULL, body FROM namespace_alerts WHERE namespace = ?4 AND id > ?1
        ) ORDER BY id LIMIT ?5""",
        (after, f"{first}/", f"{first}0", namespace, limit),
    )
    return [
        dataclasses.replace(codec.ALERT.validate_json(body), key=UserKey.parse(name) if name else None)
        for _, name, body in rows
    ]


def turns(conn: sqlite3.Connection, key: UserKey) -> list[Turn]:
    """Every raw turn still kept, oldest first."""
    rows = conn.execute(
        "SELECT body FROM turns WHERE uid = ? ORDER BY received_us, session_id, position",
        (uid_of(conn, key),),
    )
    return [codec.TURN.validate_json(body) for (body,) in rows]


def users(
    conn: sqlite3.Connection,
    namespace: str | None,
    after: str,
    limit: int,
    shard: tuple[int, int] | None = None,
) -> list[UserKey]:
    """Known users after a name, in the order of names (ASCII, so SQLite's order is Python's)."""
    first, end = ("", "\x7f") if namespace is None else bounds(namespace)
    number, of = (0, 1) if shard is None else shard
    rows = conn.execute(
        "SELECT name FROM users WHERE name > ? AND name > ? AND name < ? AND uid % ? = ? ORDER BY name LIMIT ?",
        (after, first, end, of, number, limit),
    )
    return [UserKey.parse(name) for (name,) in rows]


def bounds(namespace: str) -> tuple[str, str]:
    """What the names of a namespace's users lie between."""
    start = quote(namespace, safe="")
    return f"{start}/", f"{start}0"  # "0" is the character after "/"


def pending_users(conn: sqlite3.Connection, after: str, limit: int) -> list[UserKey]:
    """Users with turns that wait for extraction."""
    rows = conn.execute(
        """SELECT name FROM users WHERE uid IN (SELECT uid FROM turns WHERE pending = 1) AND name > ?
        ORDER BY name LIMIT ?""",
        (after, limit),
    )
    return [UserKey.parse(name) for (name,) in rows]
