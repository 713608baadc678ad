"""An embedder that keeps what it has embedded, across runs: in a file outside the repository, by text and model."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from hermes_memory.ports.embedder import Embedder, EmbedderInfo, Vector, Vectors

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-bench" / "vectors.sqlite"
BLOCK = 64  # texts between two commits: who stops a first run loses no more


class RememberingEmbedder:
    """Passes on to another embedder what it has not seen yet. May be used from several threads.

    Args:
        inner: The embedder that does the work.
        path: The file; it holds hashes and vectors, no text.
    """

    def __init__(self, inner: Embedder, path: Path = CACHE) -> None:
        self._inner = inner
        self._made_by = f"{inner.info.name} {_version(inner.info.name)}"
        self._held: dict[bytes, Vector] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    @property
    def info(self) -> EmbedderInfo:
        """Name and dimension of the model."""
        return self._inner.info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of search queries."""
        return await self._through("query", texts, self._inner.queries)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts to be found."""
        return await self._through("passage", texts, self._inner.passages)

    async def _through(
        self, kind: str, texts: Sequence[str], make: Callable[[Sequence[str]], Awaitable[Vectors]]
    ) -> Vectors:
        keys = [hashlib.sha256(f"{self._made_by}\n{kind}\n{text}".encode()).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if not self._find(key)}
        names = list(missing)
        for start in range(0, len(names), BLOCK):
            block = names[start : start + BLOCK]
            made = await make([missing[key] for key in block])
            self._keep(dict(zip(block, made, strict=True)))
        rows = [self._held[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.info.dimension), np.float32)

    def _find(self, key: bytes) -> bool:
        if key in self._held:
            return True
        with self._lock:
            row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        if row is not None:
            self._held[key] = np.frombuffer(row[0], np.float32)
        return row is not None

    def _keep(self, made: dict[bytes, Vector]) -> None:
        self._held |= made
        with self._lock, self._file:
            rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in made.items()]
            self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
