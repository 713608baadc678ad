"""Putting a program into the cache: whole or not at all, whatever happens in between."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_cli.services.cache import cache_folder, cached_program


@contextmanager
def staging() -> Iterator[Path]:
    """An empty folder in the cache, gone afterwards: what is ready is renamed out of it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".staging-", dir=cache_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install(program: Path, name: str) -> Path:
    """Make ``program``, a file in a staging folder, the cached program ``name``."""
    target = cached_program(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    program.chmod(0o755)
    program.replace(target)
    return target


def install_tree(tree: Path, name: str) -> Path:
    """Make ``tree``, a folder in a staging folder, the folder ``name`` of the cache."""
    target = cache_folder() / name
    if target.exists():
        shutil.rmtree(target)
    tree.replace(target)
    return target
