"""The project's cache in the user's folder: programs that were got once, and the lock of who gets them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

OWN = "HERMES_CACHE_DIR"
SHARED = "XDG_CACHE_HOME"
NAME = "hermes-memory"

Tell = Callable[[str], None]
"""Takes a line about what is going on."""


def cache_folder() -> Path:
    """``$HERMES_CACHE_DIR``, else ``hermes-memory`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``; may not exist yet."""
    if own := os.environ.get(OWN):
        return Path(own).expanduser().absolute()
    shared = os.environ.get(SHARED)
    # The base directory specification: a relative path is to be ignored.
    base = Path(shared) if shared and Path(shared).is_absolute() else Path.home() / ".cache"
    return base / NAME


def cached_program(name: str) -> Path:
    """Where the program ``name`` is, or would be."""
    return cache_folder() / "bin" / name


@contextmanager
def only_one(name: str, tell: Tell) -> Iterator[None]:
    """Held by one process at a time; another one waits, and says so."""
    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"{name}: another process is getting it; waiting for that")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
