"""Opening the file: connection settings, the schema, and what the data says of itself."""

from __future__ import annotations

import secrets
import sqlite3
import time
from importlib import resources
from pathlib import Path
from typing import Literal

from hermes_memory.errors import EmbedderMismatch, InvalidConfig, LedgerUnavailable
from hermes_memory.ports.embedder import EmbedderInfo

Synchronous = Literal["FULL", "NORMAL"]
SCHEMA_VERSION = 4
APPLICATION_ID = 0x48524D53  # "HRMS": tells our files from other people's
_RETRY_S = 0.02
_BUGS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError, sqlite3.DataError)


def translated(error: BaseException) -> BaseException:
    """A failure of the store (busy, full, unreadable …) as LedgerUnavailable; anything else as it is."""
    if not isinstance(error, sqlite3.Error) or isinstance(error, _BUGS):
        return error
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    unavailable = LedgerUnavailable(f"{error} ({name})")
    unavailable.__cause__ = error
    return unavailable


def connect(path: Path, synchronous: Synchronous, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode whose transactions are ours to begin and end."""
    conn = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, cached_statements=256)
    try:
        _into_wal(conn, busy_timeout_s)
        conn.execute(f"PRAGMA synchronous={synchronous}")
        # Erased content is overwritten with zeros, and never spills into a temporary file (SPEC §11).
        conn.execute("PRAGMA secure_delete=ON")
        conn.execute("PRAGMA temp_store=MEMORY")
    except BaseException:
        conn.close()
        raise
    return conn


def _into_wal(conn: sqlite3.Connection, busy_timeout_s: float) -> None:
    # Changing the mode of a file that another process is just creating fails at once instead of waiting.
    deadline_s = time.monotonic() + busy_timeout_s
    while True:
        try:
            (mode,) = conn.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)
            continue
        if mode != "wal":
            raise LedgerUnavailable("the file system does not support SQLite's write-ahead log")
        return


def prepare(conn: sqlite3.Connection, embedder: EmbedderInfo) -> None:
    """Create the schema in an empty file, bring that of an older release up to date, or check it.

    Raises:
        InvalidConfig: the file is not a ledger, or a newer release wrote it.
        EmbedderMismatch: its vectors come from another model or have another dimension.
    """
    prepare_schema(conn, embedder)
    check_embedder(conn, embedder)


def prepare_schema(conn: sqlite3.Connection, embedder: EmbedderInfo) -> None:
    """As ``prepare``, whatever model the vectors come from; an empty file is ``embedder``'s from now on."""
    version = _pragma(conn, "user_version")
    if version > SCHEMA_VERSION:
        raise InvalidConfig("ledger", f"has schema {version}; this release reads up to {SCHEMA_VERSION}")
    if version and _pragma(conn, "application_id") != APPLICATION_ID:
        raise InvalidConfig("ledger", "the file is another program's database")
    if version < SCHEMA_VERSION:
        _create(conn)
    _stamp(conn, embedder)


def _pragma(conn: sqlite3.Connection, name: str) -> int:
    return int(conn.execute(f"PRAGMA {name}").fetchone()[0])


def _create(conn: sqlite3.Connection) -> None:
    # Every statement is IF NOT EXISTS: of two processes that create the file together, the second adds nothing.
    foreign = conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if foreign and _pragma(conn, "application_id") != APPLICATION_ID:
        raise InvalidConfig("ledger", "the file is another program's database")
    if foreign:
        _add_columns(conn)
    schema = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    stamps = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};"
    try:
        conn.executescript(f"BEGIN IMMEDIATE;\n{schema}\n{stamps}\nCOMMIT;")
    except sqlite3.Error:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _add_columns(conn: sqlite3.Connection) -> None:
    """What tables of an older schema lack; the script that follows adds the tables and indexes."""
    conn.execute("BEGIN IMMEDIATE")  # another process may be doing the same
    try:
        if "reason" not in {name for _, name, *_ in conn.execute("PRAGMA table_info(outbox)")}:
            conn.execute("ALTER TABLE outbox ADD COLUMN reason TEXT")
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def _stamp(conn: sqlite3.Connection, embedder: EmbedderInfo) -> None:
    """Write what the store says of itself, unless it is there."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        facts = [
            ("salt", secrets.token_hex(16)),
            ("epoch", 0),
            ("pings", 0),
            ("scrub_due", 0),
            ("packs", 0),
            ("hosts", 0),
            ("hosts_revision", 0),
            ("embedder", embedder.name),
            ("dimension", embedder.dimension),
        ]
        conn.executemany("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", facts)
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def check_embedder(conn: sqlite3.Connection, embedder: EmbedderInfo) -> None:
    """Raises EmbedderMismatch unless the vectors come from ``embedder``."""
    stored = embedder_of(conn, "embedder", "dimension")
    if stored != embedder:
        coming = embedder_of(conn, "next_embedder", "next_dimension")
        raise EmbedderMismatch(str(stored), str(embedder), coming == embedder)


def embedder_of(conn: sqlite3.Connection, name: str, dimension: str) -> EmbedderInfo | None:
    """The model that two facts name together, if they are there."""
    facts = dict(conn.execute("SELECT name, value FROM meta WHERE name IN (?, ?)", (name, dimension)))
    return EmbedderInfo(str(facts[name]), int(facts[dimension])) if len(facts) == 2 else None


def fact(conn: sqlite3.Connection, name: str) -> str | int:
    """One value of the store about itself."""
    value: str | int = conn.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0]
    return value
