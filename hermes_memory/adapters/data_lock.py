"""One server for one data directory: an advisory lock that the kernel takes back when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from hermes_memory.errors import DataInUse, InvalidConfig

LOCK_FILE = "hermes.lock"


class DataLock:
    """Holds ``directory`` for this process. The file names the holder; the lock, not the file, is what counts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: IO[str] | None = None

    def acquire(self, holder: dict[str, Any]) -> dict[str, Any]:
        """Take the lock and write ``holder`` down; returns what the previous holder had written.

        Raises:
            DataInUse: another living process holds it.
            InvalidConfig: the directory cannot be made or written.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            handle = (self._directory / LOCK_FILE).open("a+", encoding="utf-8", errors="replace")
        except OSError as error:
            raise InvalidConfig("data", f"{self._directory} cannot be used: {error.strerror}") from None
        os.set_inheritable(handle.fileno(), False)
        handle.seek(0)
        before = _parse(handle.read())
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            raise DataInUse(str(self._directory), f"process {before.get('pid', 'unknown')}") from None
        self._file = handle
        self.write(holder)
        return before

    def write(self, holder: dict[str, Any]) -> None:
        """Replace what the file says about the holder."""
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
            json.dump({"pid": os.getpid(), **holder}, self._file)
            self._file.flush()

    def release(self) -> None:
        """Let go; may be called twice."""
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
            fcntl.flock(self._file, fcntl.LOCK_UN)  # closing alone does not, while a forked child lives
            self._file.close()
            self._file = None


def _parse(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
