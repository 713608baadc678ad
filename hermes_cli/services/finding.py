"""Server programs that are there already: on the PATH, else in the project's cache."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hermes_cli.services.cache import cached_program
from hermes_cli.services.errors import NotToBeHad

REDIS = "redis-server"
WEAVIATE = "weaviate-server"
WEAVIATE_NAMES = (WEAVIATE, "weaviate")
TRIAL_S = 20.0


@dataclass(frozen=True, slots=True)
class Program:
    """A server program and where it is from, in words."""

    path: Path
    origin: str


def find_redis(oldest: str) -> Program | None:
    """A redis-server that runs; None where there is none.

    Raises:
        NotToBeHad: the one that was found does not run, or is older than ``oldest``.
    """
    program = _find("redis", (REDIS,))
    if program is not None:
        version = redis_version(program.path)
        if _numbers(version) < _numbers(oldest):
            raise NotToBeHad("redis", f"{program.path} ({program.origin}) is {version}; {oldest} is wanted")
    return program


def find_weaviate() -> Program | None:
    """A Weaviate server; None where there is none. It has no way to ask it for its version without starting it."""
    return _find("weaviate", WEAVIATE_NAMES)


def _find(name: str, names: tuple[str, ...]) -> Program | None:
    for candidate in names:
        if found := shutil.which(candidate):
            return Program(Path(found).absolute(), "on the PATH")
    cached = cached_program(names[0])
    return Program(cached, "in the cache") if cached.exists() else None


def redis_version(path: Path) -> str:
    """The version that the server says it is.

    Raises:
        NotToBeHad: it cannot be run, or says nothing of the kind.
    """
    advice = "remove it, or put one that works first on the PATH"
    try:
        trial = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRIAL_S,
            check=False,
        )
    except OSError as error:
        raise NotToBeHad("redis", f"{path} cannot be run: {error.strerror or error}; {advice}") from None
    except subprocess.TimeoutExpired:
        raise NotToBeHad("redis", f"{path} --version does not end; {advice}") from None
    found = re.search(r"\bv=(\d+(?:\.\d+)+)", trial.stdout)
    if trial.returncode or not found:
        said = (trial.stderr or trial.stdout).strip()[:300] or f"status {trial.returncode}"
        raise NotToBeHad("redis", f"{path} does not work: {said}; {advice}")
    return found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
