"""Where it would run: the parts and their places, the data directory, the port, disk and memory."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import psutil

from hermes_cli.doctor.findings import Finding, Level
from hermes_memory.adapters.data_lock import LOCK_FILE
from hermes_memory.adapters.sqlite_ledger.store import APPLICATION_ID, SCHEMA_VERSION
from hermes_memory.config import Settings
from hermes_memory.errors import HermesError
from hermes_memory.ports.index import VectorIndex
from hermes_memory.wiring import build_index, build_ledger

DATABASE = "hermes.db"
LITTLE_DISK_BYTES = 1_000_000_000
LITTLE_MEMORY_BYTES = 1_500_000_000  # Ray, two hosts, and the model twice


def look_at_plan(settings: Settings, data: Path) -> list[Finding]:
    """What would run where with this configuration."""
    actors, serve = settings.actors, settings.serve
    rows = {
        "ledger": f"{settings.ledger.kind}, {data / DATABASE}, synchronous {settings.ledger.synchronous}",
        "index": _index(settings),
        "embedder": f"{_embedder(settings)}, {_embeds_where(settings)}",
        "extractor": f"{settings.extractor.told}; in {serve.distiller_replicas} distiller(s)",
        "users": f"{actors.placement} placement, {actors.hosts} host(s) of {actors.memory_budget_mb} MB",
        "app": f"Ray Serve at http://{serve.host}:{serve.port}",
    }
    return [Finding("would run", name, Level.OK, detail) for name, detail in rows.items()]


def _embeds_where(settings: Settings) -> str:
    chosen = settings.embedder
    if not chosen.served:
        return "in the app and in the distiller"
    most = f" to {chosen.max_replicas}" if chosen.max_replicas > chosen.replicas else ""
    return f"on GPU nodes, for all: {chosen.replicas}{most} replica(s) with {chosen.num_gpus:g} GPU(s) each"


def _index(settings: Settings) -> str:
    chosen = settings.index
    if chosen.kind == "none":
        return "none: exact, in the memory of each user's actor"
    return f"{chosen.kind} at {chosen.url}" if chosen.kind == "weaviate" else f"{chosen.kind}, in each host"


def look_at_index(settings: Settings) -> list[Finding]:
    """Whether a long-term index that is a server of its own can be used; it makes its collection on first use."""
    if settings.index.kind != "weaviate":
        return []
    try:
        index = build_index(settings, build_ledger(settings, Path()))
        asyncio.run(_answers(index))
    except (HermesError, ImportError) as error:
        return [Finding("machine", "index", Level.PROBLEM, str(error))]
    return [Finding("machine", "index", Level.OK, f"{settings.index.url} answers")]


async def _answers(index: VectorIndex | None) -> None:
    if index is not None:
        try:
            await index.open()
            await index.ping()
        finally:
            await index.close()


def look_at_data(settings: Settings, data: Path) -> list[Finding]:
    """The data directory; nothing is created or changed."""
    part = "data"
    if not data.exists():
        parent = next(above for above in data.resolve().parents if above.exists())
        good = os.access(parent, os.W_OK | os.X_OK)
        detail = f"{data} does not exist yet" + ("" if good else f", and {parent} is not writable")
        return [Finding(part, "directory", Level.OK if good else Level.PROBLEM, detail)]
    if not (data.is_dir() and os.access(data, os.R_OK | os.W_OK | os.X_OK)):
        return [Finding(part, "directory", Level.PROBLEM, f"{data} is not a directory that can be written")]
    found = [Finding(part, "directory", Level.OK, str(data)), _holder(data)]
    database = data / DATABASE
    if not database.exists():
        return [*found, Finding(part, "ledger", Level.OK, "none yet")]
    return [*found, _ledger(database, settings), *_dead_letters(database)]


def _holder(data: Path) -> Finding:
    free = Finding("data", "lock", Level.OK, "free")
    try:
        with (data / LOCK_FILE).open(encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                said = _said(handle.read())
                detail = f"held by process {said.get('pid', 'unknown')} ({said.get('what', 'unknown')})"
                return Finding("data", "lock", Level.NOTE, detail)
    except FileNotFoundError:
        return free
    except OSError as error:
        return Finding("data", "lock", Level.PROBLEM, f"cannot be read: {error.strerror}")
    return free


def _said(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _ledger(database: Path, settings: Settings) -> Finding:
    size = sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*"))
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=2)) as conn:
            schema = int(conn.execute("PRAGMA user_version").fetchone()[0])
            owner = int(conn.execute("PRAGMA application_id").fetchone()[0])
            tables = int(conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
            facts = dict(conn.execute("SELECT name, value FROM meta")) if owner == APPLICATION_ID else {}
    except sqlite3.Error as error:
        return Finding("data", "ledger", Level.PROBLEM, f"{database} cannot be read: {error}")
    if not tables:
        return Finding("data", "ledger", Level.OK, "empty")
    about = f"{megabytes(size)}, schema {schema}, embedded with {facts.get('embedder')}"
    if owner != APPLICATION_ID:
        return Finding("data", "ledger", Level.PROBLEM, f"{database} is another program's database")
    if schema > SCHEMA_VERSION:
        detail = f"{about}; this release reads up to schema {SCHEMA_VERSION}"
        return Finding("data", "ledger", Level.PROBLEM, detail)
    if facts.get("embedder") != _embedder(settings):
        detail = f"{about}; the configuration names {_embedder(settings)}: `hermes reembed` converts it"
        return Finding("data", "ledger", Level.PROBLEM, detail)
    return Finding("data", "ledger", Level.OK, about)


def _dead_letters(database: Path) -> list[Finding]:
    """What a long-term index refused; none where the file cannot tell, of which ``_ledger`` tells."""
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, timeout=2)) as conn:
            count = int(conn.execute("SELECT count(*) FROM outbox WHERE reason IS NOT NULL").fetchone()[0])
    except sqlite3.Error:
        return []
    detail = (
        f"{count} that the index refused: GET /v1/admin/dead-letters shows them, `hermes reindex` tries again"
    )
    return [Finding("data", "dead letters", Level.NOTE, detail)] if count else []


def _embedder(settings: Settings) -> str:
    """The name that data is stored with; a kind with one model only is called as that is."""
    return settings.embedder.model or settings.embedder.kind


def look_at_machine(settings: Settings, data: Path) -> list[Finding]:
    """The port, and what room there is."""
    place = next(path for path in (data.resolve(), *data.resolve().parents) if path.exists())
    disk, memory = shutil.disk_usage(place).free, psutil.virtual_memory().available
    return [
        _port(settings.serve.host, settings.serve.port),
        _room("disk", disk, LITTLE_DISK_BYTES),
        _room("memory", memory, LITTLE_MEMORY_BYTES),
    ]


def _port(host: str, port: int) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return Finding("machine", "port", Level.NOTE, f"{host}:{port} is not free: {error.strerror}")
    return Finding("machine", "port", Level.OK, f"{host}:{port} is free")


def _room(name: str, free: int, little: int) -> Finding:
    scarce = free < little
    detail = f"{megabytes(free)} free" + (f"; {megabytes(little)} are wanted" if scarce else "")
    return Finding("machine", name, Level.NOTE if scarce else Level.OK, detail)


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
