"""The project's cache in the user's folder: programs that were got once, and the lock of who gets them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from hermes_cli.services.locks import held

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


def only_one(name: str, tell: Tell) -> AbstractContextManager[None]:
    """Held by one process at a time while it gets the program ``name``; another one waits, and says so."""
    path = cache_folder() / "locks" / f"{name}.lock"
    return held(path, lambda: tell(f"{name}: another process is getting it; waiting for that"))
