"""Where the engine lies: a venv and the weights in the project's cache, by what the lock says."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from hermes_cli.services.cache import cache_folder

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "constraints-engine.txt"
RECIPE = 1  # of what is made beside the locked packages; one more when it changes


@dataclass(frozen=True, slots=True)
class Place:
    """One installed engine. It counts only with its mark, which is written when all the rest is there."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def mark(self) -> Path:
        return self.folder / "ready"

    @property
    def ready(self) -> bool:
        return self.mark.exists()


def place() -> Place:
    """That of this checkout's lock, this interpreter and this machine; it may not be there yet."""
    pins = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    said = "\n".join([*pins, sys.version, platform.machine(), str(RECIPE)])
    return Place(cache_folder() / "engine" / blake2b(said.encode(), digest_size=6).hexdigest())


def others() -> list[Path]:
    """Engines of other locks and interpreters."""
    own = place().folder
    return sorted(path for path in own.parent.glob("*") if path.is_dir() and path != own)


def running() -> Place:
    """The one whose interpreter runs this; tests of the engine run in it. Its model is the one to load."""
    return Place(Path(sys.prefix).parent)
