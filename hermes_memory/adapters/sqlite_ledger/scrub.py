"""Making removed content unreadable in the files, not only unreachable (SPEC §11).

``secure_delete`` overwrites a deleted cell, but two places still hold copies: the write-ahead log keeps old
pages until it is truncated, and a page that SQLite rebuilt while balancing its tree keeps, in its free gap, cells
that have moved elsewhere. Only VACUUM, which writes the live rows anew, rids the file of the latter.
"""

from __future__ import annotations

import logging
import sqlite3
from enum import IntEnum

from hermes_memory.adapters.sqlite_ledger.store import fact

_FIRST_RETRY_S = 0.5
_LAST_RETRY_S = 60.0
_log = logging.getLogger(__name__)


class Scrub(IntEnum):
    """How thoroughly; each includes the ones before."""

    NONE = 0
    LOG = 1  # empty the write-ahead log: a few milliseconds
    FILE = 2  # rewrite the file as well: its size decides


def mark_due(conn: sqlite3.Connection) -> None:
    """Remember, in the transaction that removes content, that the file must be rewritten some time."""
    conn.execute("UPDATE meta SET value = 1 WHERE name = 'scrub_due' AND value = 0")


def is_due(conn: sqlite3.Connection) -> bool:
    """Whether content was removed since the file was last rewritten."""
    return bool(fact(conn, "scrub_due"))


class Scrubber:
    """What the writer still has to scrub; tries again, ever more rarely, until it succeeds."""

    def __init__(self) -> None:
        self._owed = Scrub.NONE
        self._delay_s = _FIRST_RETRY_S

    @property
    def retry_s(self) -> float | None:
        """When to try again; None with nothing owed."""
        return self._delay_s if self._owed else None

    def owe(self, level: Scrub) -> None:
        """A transaction was committed that asks for this."""
        self._owed = max(self._owed, level)

    def run(self, conn: sqlite3.Connection) -> bool:
        """Do what is owed. False if something held it up: another process's reader, or a full disk."""
        if not self._owed:
            return True
        try:
            self._settle(conn)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", type(error).__name__)
            _log.warning("removed content could not be scrubbed from the files yet: %s", code)
        if self._owed:
            self._delay_s = min(_LAST_RETRY_S, self._delay_s * 2)
        else:
            self._delay_s = _FIRST_RETRY_S
        return not self._owed

    def _settle(self, conn: sqlite3.Connection) -> None:
        if self._owed is Scrub.FILE:
            _vacuum(conn)
            self._owed = Scrub.LOG
        busy, _, _ = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            self._owed = Scrub.NONE


def _vacuum(conn: sqlite3.Connection) -> None:
    # The copy may be as large as the file: it goes to a temporary file. It holds live rows only.
    conn.execute("PRAGMA temp_store=FILE")
    try:
        conn.execute("VACUUM")
    finally:
        conn.execute("PRAGMA temp_store=MEMORY")
    conn.execute("UPDATE meta SET value = 0 WHERE name = 'scrub_due'")
