"""Gets the real engine into the project's cache: `make engine-install`. No root; minutes once, then a moment.

What it gets is constraints-engine.txt and nothing else, so that a run of next year tests what this one tests. A run
that is killed leaves nothing that counts; of two at once one waits for the other.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_cli.services.cache import Tell, cache_folder, only_one
from hermes_cli.services.trying import WayFailed, run, run_long
from hermes_memory.errors import HermesError
from tests.engine.place import LOCK, ROOT, Place, others, place

WANTED_BYTES = 10_000_000_000  # the venv is 7 GB; uv, on the same file system, keeps no copy of it
VENV_S, PACKAGES_S, WEIGHTS_S = 120.0, 2400.0, 600.0
GIVEN_UP = (
    "error sending request",
    "dns error",
    "failed to fetch",
    "connection",
    "timed out",
    "no solution found",
)


class EngineNotToBeHad(HermesError):
    """The engine cannot be installed here; the text says why and what to do."""

    code = "engine_not_to_be_had"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"engine: {self.why}"


def install(tell: Tell) -> Place:
    """The engine of this checkout's lock, got if it is not there.

    Raises:
        EngineNotToBeHad: no uv, no room, no index, or what came does not work.
    """
    found = place()
    if found.ready:
        return found
    with only_one("engine", tell):
        if not found.ready:
            _get(found, tell)
    return found


def _get(wanted: Place, tell: Tell) -> None:
    _check_room()
    shutil.rmtree(wanted.folder, ignore_errors=True)  # what a killed run has left
    wanted.folder.mkdir(parents=True)
    began = time.monotonic()
    with _told():
        _packages(wanted, tell)
        _weights(wanted, tell)
    seconds = time.monotonic() - began
    wanted.mark.write_text(f"{seconds:.0f} s\n", encoding="utf-8")
    tell(f"engine: ready after {seconds:.0f} s, in {wanted.folder}")


def _packages(wanted: Place, tell: Tell) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise EngineNotToBeHad("no uv beside this Python: run `make install` first")
    packages = sum("==" in line for line in LOCK.read_text(encoding="utf-8").splitlines())
    tell(f"engine: {packages} packages of {LOCK.name}, several GB the first time (minutes)")
    run(
        [uv, "venv", "--quiet", "--python", sys.executable, wanted.python.parents[1]],
        folder=ROOT,
        limit_s=VENV_S,
    )
    run_long(
        [uv, "pip", "install", "--python", wanted.python, "--no-deps", "--compile-bytecode", "-r", LOCK],
        log=wanted.folder / "packages.log", limit_s=PACKAGES_S, environment={}, tell=tell, what="engine: the packages",
    )  # fmt: skip


def _weights(wanted: Place, tell: Tell) -> None:
    tell("engine: unpacking the model's weights, once (under a minute)")
    part = wanted.folder / "model.part"
    run(
        [wanted.python, ROOT / "tests" / "engine" / "weights.py", part],
        folder=wanted.folder,
        limit_s=WEIGHTS_S,
    )
    part.rename(wanted.model)


@contextmanager
def _told() -> Iterator[None]:
    """What went wrong, and what may help."""
    try:
        yield
    except WayFailed as failed:
        said = str(failed)
        network = any(word in said.lower() for word in GIVEN_UP)
        advice = "the package index cannot be reached, or lacks a package: " if network else ""
        raise EngineNotToBeHad(f"{advice}{said}") from None


def _check_room() -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache_folder()).free
    if free < WANTED_BYTES:
        raise EngineNotToBeHad(
            f"{free / 1e9:.1f} GB free in {cache_folder()}, {WANTED_BYTES / 1e9:.0f} GB are wanted"
        )


def main(say: Callable[[str], None] = print) -> int:
    """``python -m tests.engine.install [--python]``: the second prints the interpreter alone, for scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", action="store_true", help="print the interpreter of the engine, which must be there"
    )
    only_name = parser.parse_args().python
    if only_name:
        found = place()
        if not found.ready:
            print("the engine is not installed: make engine-install", file=sys.stderr)
            return 1
        say(str(found.python))
        return 0
    try:
        found = install(lambda line: print(line, flush=True))
    except EngineNotToBeHad as error:
        print(error.detail, file=sys.stderr)
        return 1
    say(f"engine: {found.folder}")
    for other in others():
        say(f"engine: {other} is of another lock or interpreter; remove it when nobody needs it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
