"""Epochs and leases of hosts, how many they are, and the binding of sessions to users."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from hermes_memory.adapters.ledger_codec import micros
from hermes_memory.adapters.sqlite_ledger.reading import session_owner
from hermes_memory.adapters.sqlite_ledger.store import fact
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import LeaseLost, SessionOwned
from hermes_memory.ports.ledger import HostPool

_SECOND_US = 1_000_000


def claim_epoch(conn: sqlite3.Connection, host: str, lease_s: float, now: datetime) -> int:
    """The next epoch; an older lease of the same host ends."""
    sql = "UPDATE meta SET value = value + 1 WHERE name = 'epoch' RETURNING value"
    epoch = int(conn.execute(sql).fetchall()[0][0])
    conn.execute("DELETE FROM leases WHERE host = ?", (host,))
    conn.execute("INSERT INTO leases VALUES (?, ?, ?)", (epoch, host, _until_us(now, lease_s)))
    return epoch


def renew_lease(conn: sqlite3.Connection, epoch: int, lease_s: float, now: datetime) -> None:
    """Extend a lease that still holds; raises LeaseLost otherwise."""
    extended = conn.execute(
        "UPDATE leases SET until_us = ? WHERE epoch = ? AND until_us >= ?",
        (_until_us(now, lease_s), epoch, micros(now)),
    )
    if extended.rowcount == 0:
        raise LeaseLost


def _until_us(now: datetime, lease_s: float) -> int:
    return micros(now) + round(lease_s * _SECOND_US)


def host_pool(conn: sqlite3.Connection) -> HostPool:
    """How many hosts carry the users."""
    return HostPool(int(fact(conn, "hosts")), int(fact(conn, "hosts_revision")))


def resize_host_pool(conn: sqlite3.Connection, hosts: int) -> HostPool:
    """Let so many hosts carry the users; the same number again changes nothing."""
    sql = "UPDATE meta SET value = ? WHERE name = 'hosts' AND value <> ?"
    if conn.execute(sql, (hosts, hosts)).rowcount:
        conn.execute("UPDATE meta SET value = value + 1 WHERE name = 'hosts_revision'")
    return host_pool(conn)


def bind_session(conn: sqlite3.Connection, key: UserKey, session_id: str) -> None:
    """Bind the session, unless it has an owner; raises SessionOwned when that is another user."""
    conn.execute(
        "INSERT INTO bindings VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (key.namespace, session_id, key.user_id),
    )
    if session_owner(conn, key.namespace, session_id) != key.user_id:
        raise SessionOwned


def ping(conn: sqlite3.Connection) -> None:
    """Write something small: a full disk or a read-only file shows itself."""
    conn.execute("UPDATE meta SET value = value + 1 WHERE name = 'pings'")
