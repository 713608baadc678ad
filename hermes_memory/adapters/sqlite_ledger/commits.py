"""One commit: the checks in their order, then every part of it (ARCHITECTURE §2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from urllib.parse import quote

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.scrub import mark_due
from hermes_memory.adapters.sqlite_ledger.users import known_operation, standing
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Turn
from hermes_memory.errors import MemoryFrozen
from hermes_memory.ports.ledger import AccessCount, Commit, JobStatus, Receipt, Tally

_PUT_MEMORY = """
INSERT INTO memories (uid, id, body, accesses, accessed_us) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (uid, id) DO UPDATE SET body = excluded.body,
    accesses = max(accesses, excluded.accesses), accessed_us = max(accessed_us, excluded.accessed_us)
"""
_PUT_VECTOR = """
INSERT INTO vectors (uid, id, vector) VALUES (?, ?, ?)
ON CONFLICT (uid, id) DO UPDATE SET vector = excluded.vector
"""
_FORGET_ANSWERS = "UPDATE operations SET result = 'null' WHERE uid = ? AND instr(result, ?)"
_PUT_SESSION = """
INSERT INTO sessions (uid, id, ended, body) VALUES (?, ?, ?, ?)
ON CONFLICT (uid, id) DO UPDATE SET ended = excluded.ended, body = excluded.body
"""
_PUT_TURN = """
INSERT INTO turns (pending, received_us, body, uid, session_id, position) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (uid, session_id, position) DO UPDATE SET
    pending = excluded.pending, received_us = excluded.received_us, body = excluded.body
"""
_REWRITE_TURN = """
UPDATE turns SET pending = ?, received_us = ?, body = ? WHERE uid = ? AND session_id = ? AND position = ?
"""
_MARK_EXTRACTED = """
UPDATE turns SET pending = 0, body = json_set(body, '$.pending', json('false'))
WHERE uid = ? AND session_id = ? AND position = ?
"""
_PUT_JOB = """
INSERT INTO jobs (uid, id, done, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id, uid) DO UPDATE SET done = excluded.done, body = excluded.body
"""
_PUT_MESSAGE = """
INSERT INTO messages (uid, session_id, message_id, content_hash, job_id) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET content_hash = excluded.content_hash, job_id = excluded.job_id
"""
_PUT_OPERATION = "INSERT INTO operations (uid, id, at_us, version, result) VALUES (?, ?, ?, ?, ?)"
_COUNT = """
INSERT INTO tallies (uid, day, name, number) VALUES (?, ?, ?, ?)
ON CONFLICT (uid, day, name) DO UPDATE SET number = number + excluded.number
"""
_COUNT_ACCESS = """
UPDATE memories SET accesses = accesses + ?, accessed_us = max(accessed_us, ?) WHERE uid = ? AND id = ?
"""


def apply(conn: sqlite3.Connection, commit: Commit, dimension: int) -> Receipt:
    """Apply ``commit`` inside the running transaction; on an error the caller rolls its part back."""
    now = standing(conn, commit.key)
    known = known_operation(conn, commit.key, now.uid, commit.operation_id)
    if known is not None:
        return Receipt(known.version, True, known.result)
    now.check(commit.epoch, commit.expected_version)
    version = now.version + 1
    settings = None if commit.settings is None else codec.dump(codec.SETTINGS, commit.settings)
    if now.uid is None:
        cursor = conn.execute(
            "INSERT INTO users (name, version, generation, owner_epoch, settings) VALUES (?, ?, ?, ?, ?)",
            (str(commit.key), version, now.generation, commit.epoch, settings),
        )
        uid = int(cursor.lastrowid or 0)
    else:
        uid = now.uid
        conn.execute(
            "UPDATE users SET version = ?, settings = coalesce(?, settings) WHERE uid = ?",
            (version, settings, uid),
        )
    _write_memories(conn, uid, commit, dimension)
    _write_conversation(conn, uid, commit)
    _write_records(conn, uid, commit, version)
    if commit.deleted or commit.rewritten:
        mark_due(conn)
    return Receipt(version, False, commit.result)


def _write_memories(conn: sqlite3.Connection, uid: int, commit: Commit, dimension: int) -> None:
    conn.executemany(
        "INSERT INTO grants (uid, id, kind) VALUES (?, ?, ?)",
        [(uid, memory_id, kind.value) for memory_id, kind in commit.grants.items()],
    )
    for memory in commit.memories:  # one by one: the trigger cannot name the row it refuses
        _guarded(conn, _PUT_MEMORY, (uid, memory.id, *codec.dump_memory(memory)), memory.id)
    conn.executemany(
        _PUT_VECTOR,
        [(uid, id_, codec.dump_vector(vector, dimension)) for id_, vector in commit.vectors.items()],
    )
    # A model that is on its way in has to read again what the present one writes or removes.
    again = [(uid, id_) for id_ in (*commit.vectors, *commit.deleted)]
    conn.executemany("DELETE FROM reembedded WHERE uid = ? AND id = ?", again)
    for memory_id in commit.deleted:  # after the writes: what a commit deletes, it does not also keep
        _guarded(conn, "DELETE FROM memories WHERE uid = ? AND id = ?", (uid, memory_id), memory_id)
        conn.execute("DELETE FROM vectors WHERE uid = ? AND id = ?", (uid, memory_id))
        # An earlier answer may hold its words; a replay of that operation is decided anew.
        conn.execute(_FORGET_ANSWERS, (uid, memory_id))
    conn.execute("DELETE FROM grants")


def _guarded(conn: sqlite3.Connection, sql: str, values: tuple[object, ...], memory_id: str) -> None:
    try:
        conn.execute(sql, values)
    except sqlite3.IntegrityError as error:
        if "memory_frozen" in str(error):
            raise MemoryFrozen(memory_id) from error
        raise


def _write_conversation(conn: sqlite3.Connection, uid: int, commit: Commit) -> None:
    conn.executemany(
        _PUT_SESSION, [(uid, s.id, s.ended, codec.dump(codec.SESSION, s)) for s in commit.sessions]
    )
    conn.executemany(_PUT_TURN, [_turn_row(uid, turn) for turn in commit.turns])
    conn.executemany(_REWRITE_TURN, [_turn_row(uid, turn) for turn in commit.rewritten])
    conn.executemany(_MARK_EXTRACTED, [(uid, *place) for place in commit.extracted])
    conn.executemany(
        _PUT_MESSAGE, [(uid, *place, *content) for place, content in commit.message_hashes.items()]
    )


def _turn_row(uid: int, turn: Turn) -> tuple[object, ...]:
    received_us = codec.micros(turn.received_at)
    return turn.pending, received_us, codec.dump(codec.TURN, turn), uid, turn.session_id, turn.index


def _write_records(conn: sqlite3.Connection, uid: int, commit: Commit, version: int) -> None:
    conn.executemany(
        _PUT_JOB,
        [(uid, job.id, job.status is JobStatus.DONE, codec.dump(codec.JOB, job)) for job in commit.jobs],
    )
    conn.executemany(
        "INSERT INTO audit (uid, body) VALUES (?, ?)",
        [(uid, codec.dump(codec.AUDIT, entry)) for entry in commit.audit],
    )
    conn.executemany(
        "UPDATE alerts SET open = 0 WHERE uid = ? AND id = ?", [(uid, id_) for id_ in commit.seen_to]
    )
    conn.executemany(
        """INSERT INTO alerts (uid, id, body) VALUES (?, ?, ?)
        ON CONFLICT (uid, id) DO UPDATE SET open = 1, body = excluded.body""",
        [(uid, alert.id, codec.dump(codec.ALERT, alert)) for alert in commit.alerts],
    )
    conn.executemany(
        "INSERT INTO outbox (name, op, memory_id) VALUES (?, ?, ?)",
        [(str(commit.key), entry.op, entry.memory_id) for entry in commit.outbox],
    )
    if commit.tally_from is not None:
        conn.execute("DELETE FROM tallies WHERE uid = ? AND day < ?", (uid, commit.tally_from))
    result = codec.dump_result(commit.result)
    conn.execute(_PUT_OPERATION, (uid, commit.operation_id, codec.micros(commit.at), version, result))


def touch(
    conn: sqlite3.Connection, key: UserKey, epoch: int, counts: Mapping[str, AccessCount], tally: Tally
) -> None:
    """Add access counts and what else was counted; nothing for an unknown user or another owner."""
    now = standing(conn, key)
    if now.uid is None or now.owner_epoch != epoch:
        return
    rows = [(count.count, codec.micros(count.last_at), now.uid, id_) for id_, count in counts.items()]
    conn.executemany(_COUNT_ACCESS, rows)
    conn.executemany(
        _COUNT, [(now.uid, day, name, number) for day, of in tally.items() for name, number in of.items()]
    )


def close_alert(conn: sqlite3.Connection, namespace: str, alert_id: str) -> bool:
    """Close an open alert of the namespace, of a user or of itself."""
    own = conn.execute(
        "DELETE FROM namespace_alerts WHERE namespace = ? AND id = ?", (namespace, alert_id)
    ).rowcount
    first = quote(namespace, safe="")
    closed = conn.execute(
        """UPDATE alerts SET open = 0 WHERE id = ? AND open = 1
        AND uid IN (SELECT uid FROM users WHERE name > ? AND name < ?)""",
        (alert_id, f"{first}/", f"{first}0"),
    )
    return own + closed.rowcount > 0
