"""Taking away: everything of a user, and what has outlived its time."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.sqlite_ledger.scrub import mark_due
from hermes_memory.adapters.sqlite_ledger.users import (
    Standing,
    known_operation,
    operation_hash,
    standing,
    user_hash,
)
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import ErasureReceipt

_OF_USER = (
    "memories", "vectors", "reembedded", "turns", "audit", "alerts", "jobs", "sessions", "messages", "operations", "tallies",
    "users",
)  # fmt: skip
_HOUR_US = 3_600_000_000
SWEEP_ROWS = 2_000  # in one transaction, so that other writers wait only briefly


def erase(
    conn: sqlite3.Connection,
    key: UserKey,
    expected_version: int,
    epoch: int,
    operation_id: str,
    at: datetime,
    *,
    outbox: bool = True,
) -> ErasureReceipt:
    """Remove the user's rows and leave the tombstone; the caller scrubs the files."""
    now = standing(conn, key)
    known = known_operation(conn, key, now.uid, operation_id)
    if known is not None:
        return codec.ERASURE.validate_json(known.erasure) if known.erasure else _receipt({}, 0, known.version)
    now.check(epoch, expected_version)
    conn.execute("DELETE FROM bindings WHERE namespace = ? AND user_id = ?", (key.namespace, key.user_id))
    if now.owner_epoch is None:
        return _receipt({}, 0, 0)
    counts = _remove_rows(conn, key, now)
    counts["profile_slots"] = _profile_slots(now)
    _write_tombstone(conn, key, now, epoch)
    conn.execute("DELETE FROM outbox WHERE name = ?", (str(key),))
    if outbox:
        conn.execute("INSERT INTO outbox (name, op, memory_id) VALUES (?, 'drop', '')", (str(key),))
    mark_due(conn)
    receipt = _receipt(counts, _remaining(conn, key, now.uid), now.version + 1)
    conn.execute(
        "INSERT INTO erased_operations VALUES (?, ?, ?, ?)",
        (
            operation_hash(conn, key, operation_id),
            codec.micros(at),
            receipt.version,
            codec.dump(codec.ERASURE, receipt),
        ),
    )
    return receipt


def _receipt(counts: dict[str, int], remaining: int, version: int) -> ErasureReceipt:
    return ErasureReceipt(
        memories=counts.get("memories", 0),
        vectors=counts.get("vectors", 0),
        turns=counts.get("turns", 0),
        audit=counts.get("audit", 0),
        jobs=counts.get("jobs", 0),
        profile_slots=counts.get("profile_slots", 0),
        remaining=remaining,
        version=version,
    )


def _profile_slots(now: Standing) -> int:
    return len(codec.SETTINGS.validate_json(now.settings).profile) if now.settings else 0


def _remove_rows(conn: sqlite3.Connection, key: UserKey, now: Standing) -> dict[str, int]:
    if now.uid is None:
        return {}
    _hash_operations(conn, key, now.uid)
    # The user's own erasure always passes, also over frozen rows (SPEC §5).
    conn.execute(
        "INSERT INTO grants SELECT uid, id, 'erase' FROM memories WHERE uid = ? AND lock = 'frozen'",
        (now.uid,),
    )
    counts: dict[str, int] = {}
    for table in _OF_USER:  # names of our own, never input
        counts[table] = conn.execute(f"DELETE FROM {table} WHERE uid = ?", (now.uid,)).rowcount  # noqa: S608
    conn.execute("DELETE FROM grants")
    return counts


def _hash_operations(conn: sqlite3.Connection, key: UserKey, uid: int) -> None:
    rows = conn.execute("SELECT id, at_us, version FROM operations WHERE uid = ?", (uid,)).fetchall()
    conn.executemany(
        "INSERT INTO erased_operations VALUES (?, ?, ?, NULL)",
        [(operation_hash(conn, key, id_), at_us, version) for id_, at_us, version in rows],
    )


def _write_tombstone(conn: sqlite3.Connection, key: UserKey, now: Standing, epoch: int) -> None:
    conn.execute(
        "INSERT OR REPLACE INTO tombstones (user_hash, version, generation, owner_epoch) VALUES (?, ?, ?, ?)",
        (user_hash(conn, key), now.version + 1, now.generation + 1, epoch),
    )


def _remaining(conn: sqlite3.Connection, key: UserKey, uid: int | None) -> int:
    found = 0
    for table in _OF_USER:
        found += conn.execute(f"SELECT count(*) FROM {table} WHERE uid = ?", (uid,)).fetchone()[0]  # noqa: S608
    bound = conn.execute(
        "SELECT count(*) FROM bindings WHERE namespace = ? AND user_id = ?", (key.namespace, key.user_id)
    ).fetchone()
    return int(found + bound[0])


def sweep(conn: sqlite3.Connection, now: datetime, turns_hours: float, operations_hours: float) -> int:
    """Remove up to SWEEP_ROWS of each kind; returns how many rows went.

    With the last raw turn of a conversation goes what was left of its summary: nobody ended it in time.
    """
    now_us = codec.micros(now)
    turns_us = now_us - round(turns_hours * _HOUR_US)
    operations_us = now_us - round(operations_hours * _HOUR_US)
    turns = """DELETE FROM turns WHERE number IN (
        SELECT number FROM turns WHERE pending = 0 AND received_us < ? LIMIT ?) RETURNING uid, session_id"""
    summaries = """UPDATE sessions SET body = json_remove(body, '$.summary') WHERE uid = ?1 AND id = ?2
        AND json_array_length(body, '$.summary.pieces') > 0
        AND NOT EXISTS (SELECT 1 FROM turns WHERE uid = ?1 AND session_id = ?2)"""
    operations = """DELETE FROM operations WHERE (uid, id) IN (
        SELECT uid, id FROM operations WHERE at_us < ? LIMIT ?)"""
    erased = """DELETE FROM erased_operations WHERE operation_hash IN (
        SELECT operation_hash FROM erased_operations WHERE at_us < ? LIMIT ?)"""
    swept = conn.execute(turns, (turns_us, SWEEP_ROWS)).fetchall()
    conn.executemany(summaries, set(swept))
    return len(swept) + sum(
        conn.execute(sql, (operations_us, SWEEP_ROWS)).rowcount for sql in (operations, erased)
    )
