"""Where a user stands: the live row, the tombstone of an erased one, and what operations did before."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from hermes_memory.adapters.ledger_codec import load_result
from hermes_memory.adapters.sqlite_ledger.store import fact
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.errors import Fenced, VersionConflict

_HASH_BYTES = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """A user's row, or what its tombstone keeps; ``uid`` is None without a row."""

    uid: int | None = None
    version: int = 0
    generation: int = 0
    owner_epoch: int | None = None
    settings: str | None = None

    def check(self, epoch: int, expected_version: int) -> None:
        """Raises Fenced, then VersionConflict; a user never seen accepts every epoch."""
        if self.owner_epoch is not None and epoch != self.owner_epoch:
            raise Fenced(epoch, self.owner_epoch)
        if expected_version != self.version:
            raise VersionConflict(expected_version, self.version)


@dataclass(frozen=True, slots=True)
class Known:
    """An operation that was applied. ``erasure``: the JSON counts if it was one."""

    version: int
    result: Any = None
    erasure: str | None = None


def user_hash(conn: sqlite3.Connection, key: UserKey) -> str:
    """The salted hash that stands for an erased user."""
    return digest(str(fact(conn, "salt")), "user", key.namespace, key.user_id, size=_HASH_BYTES)


def operation_hash(conn: sqlite3.Connection, key: UserKey, operation_id: str) -> str:
    """The salted hash that stands for an operation of an erased user."""
    salt = str(fact(conn, "salt"))
    return digest(salt, "operation", key.namespace, key.user_id, operation_id, size=_HASH_BYTES)


def standing(conn: sqlite3.Connection, key: UserKey) -> Standing:
    """Where the user stands now."""
    row = conn.execute(
        "SELECT uid, version, generation, owner_epoch, settings FROM users WHERE name = ?", (str(key),)
    ).fetchone()
    if row is not None:
        return Standing(*row)
    row = conn.execute(
        "SELECT NULL, version, generation, owner_epoch FROM tombstones WHERE user_hash = ?",
        (user_hash(conn, key),),
    ).fetchone()
    return Standing() if row is None else Standing(*row)


def uid_of(conn: sqlite3.Connection, key: UserKey) -> int | None:
    """The number of the user's row."""
    row = conn.execute("SELECT uid FROM users WHERE name = ?", (str(key),)).fetchone()
    return None if row is None else int(row[0])


def known_operation(
    conn: sqlite3.Connection, key: UserKey, uid: int | None, operation_id: str
) -> Known | None:
    """What the operation answered, if it was applied; nothing but the version if it was erased since."""
    row = conn.execute(
        "SELECT version, result FROM operations WHERE uid = ? AND id = ?", (uid, operation_id)
    ).fetchone()
    if row is not None:
        return Known(row[0], load_result(row[1]))
    row = conn.execute(
        "SELECT version, erasure FROM erased_operations WHERE operation_hash = ?",
        (operation_hash(conn, key, operation_id),),
    ).fetchone()
    if row is None:
        return None
    return Known(row[0], None, row[1])


def take_over(conn: sqlite3.Connection, key: UserKey, epoch: int) -> Standing:
    """Make ``epoch`` the owner of the user's row or tombstone, and return where the user stands."""
    now = standing(conn, key)
    if now.owner_epoch is None or now.owner_epoch == epoch:
        return now
    if now.uid is not None:
        conn.execute("UPDATE users SET owner_epoch = ? WHERE uid = ?", (epoch, now.uid))
    else:
        conn.execute(
            "UPDATE tombstones SET owner_epoch = ? WHERE user_hash = ?", (epoch, user_hash(conn, key))
        )
    return Standing(now.uid, now.version, now.generation, epoch, now.settings)
