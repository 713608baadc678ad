"""Between the domain's values and what the ledgers keep of them: JSON bodies and half-precision vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from hermes_memory.core.knowledge import Pack
from hermes_memory.core.model import Memory, Turn
from hermes_memory.core.window import EMPTY, Summary
from hermes_memory.errors import InvalidInput
from hermes_memory.ports.embedder import Vector, Vectors
from hermes_memory.ports.ledger import Alert, AuditEntry, ErasureReceipt, Job, Session, Settings

_T = TypeVar("_T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STORED_VECTOR = np.dtype("<f2")  # half precision: 768 bytes at 384 dimensions (ARCHITECTURE §3)
_KEPT_BESIDE = {"access_count", "last_access_at"}

_MEMORY: TypeAdapter[Memory] = TypeAdapter(Memory)
TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
SESSION: TypeAdapter[Session] = TypeAdapter(Session)
_SUMMARY: TypeAdapter[Summary] = TypeAdapter(Summary)
JOB: TypeAdapter[Job] = TypeAdapter(Job)
AUDIT: TypeAdapter[AuditEntry] = TypeAdapter(AuditEntry)
ALERT: TypeAdapter[Alert] = TypeAdapter(Alert)
SETTINGS: TypeAdapter[Settings] = TypeAdapter(Settings)
ERASURE: TypeAdapter[ErasureReceipt] = TypeAdapter(ErasureReceipt)
PACK: TypeAdapter[Pack] = TypeAdapter(Pack)


def dump(adapter: TypeAdapter[_T], value: _T) -> str:
    """The JSON body of ``value``."""
    return adapter.dump_json(value).decode("utf-8")


def micros(moment: datetime | None) -> int:
    """Microseconds since 1970 UTC; 0 for None."""
    return 0 if moment is None else (moment - _EPOCH) // _MICROSECOND


def moment(micros_: int) -> datetime:
    """The inverse of ``micros`` for a time after 1970."""
    return _EPOCH + micros_ * _MICROSECOND


def dump_memory(memory: Memory) -> tuple[str, int, int]:
    """Body, access count and time of last access: the last two are columns of their own."""
    body = _MEMORY.dump_json(memory, exclude=_KEPT_BESIDE).decode("utf-8")
    return body, memory.access_count, micros(memory.last_access_at)


def load_memory(body: str, accesses: int, accessed_us: int) -> Memory:
    """The inverse of ``dump_memory``. The columns are spliced into the JSON: one validation, no copy."""
    last = "null"
    if accessed_us:
        last = f'"{moment(accessed_us).isoformat()}"'
    return _MEMORY.validate_json(f'{body[:-1]},"access_count":{accesses},"last_access_at":{last}}}')


def dump_turn(turn: Turn) -> str:
    """The body without ``pending``, for a store that keeps beside it which turns wait."""
    return TURN.dump_json(turn, exclude={"pending"}).decode("utf-8")


def load_turn(body: str, pending: bool) -> Turn:
    """The inverse of ``dump_turn``."""
    return TURN.validate_json(f'{body[:-1]},"pending":{"true" if pending else "false"}}}')


def dump_session(session: Session) -> tuple[str, str]:
    """The body without its summary, and the summary, empty where there is none."""
    body = SESSION.dump_json(session, exclude={"summary"}).decode("utf-8")
    return body, dump(_SUMMARY, session.summary) if session.summary != EMPTY else ""


def load_session(body: str, summary: str) -> Session:
    """The inverse of ``dump_session``."""
    return SESSION.validate_json(f'{body[:-1]},"summary":{summary}}}' if summary else body)


def load_tally(rows: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    """Day → name → number, of rows of these."""
    tally: dict[str, dict[str, int]] = {}
    for day, name, number in rows:
        tally.setdefault(day, {})[name] = number
    return tally


def dump_result(result: Any) -> str:
    """JSON of an operation's answer."""
    return to_json(result).decode("utf-8")


def load_result(text: str) -> Any:
    """The inverse of ``dump_result``."""
    return from_json(text)


def dump_vector(vector: Vector, dimension: int) -> bytes:
    """fp16 bytes. Raises InvalidInput on another shape than (dimension,)."""
    if vector.shape != (dimension,):
        raise InvalidInput("vector", f"must have {dimension} dimensions")
    return vector.astype(_STORED_VECTOR).tobytes()


def load_vectors(rows: Iterable[tuple[str, bytes]], dimension: int) -> Mapping[str, Vector]:
    """float32 vectors by memory id, all views of one array of shape (n, dimension)."""
    ids, blobs = [], []
    for memory_id, blob in rows:
        ids.append(memory_id)
        blobs.append(blob)
    matrix = np.frombuffer(b"".join(blobs), dtype=_STORED_VECTOR).astype(np.float32)
    return dict(zip(ids, matrix.reshape(len(ids), dimension), strict=True))


def vector_bytes(dimension: int) -> int:
    """How long one vector is as it is stored."""
    return dimension * _STORED_VECTOR.itemsize


def dump_vectors(vectors: Vectors, rows: int, dimension: int) -> bytes:
    """fp16 bytes of all rows. Raises InvalidInput on another shape than (rows, dimension)."""
    if vectors.shape != (rows, dimension):
        raise InvalidInput("vectors", f"must have {rows} rows of {dimension} dimensions")
    return vectors.astype(_STORED_VECTOR).tobytes()


def load_matrix(blob: bytes, dimension: int) -> Vectors:
    """The inverse of ``dump_vectors``: float32, shape (n, dimension)."""
    return np.frombuffer(blob, dtype=_STORED_VECTOR).astype(np.float32).reshape(-1, dimension)
