"""A redis-server out of the distribution's packages, unpacked into the cache: no root, nothing is installed.

The package lists of the machine are used if they are there; else own ones are fetched into a folder that the user may
write, and thrown away. Libraries that the server needs and the machine lacks are unpacked beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from hermes_cli.services.cache import Tell
from hermes_cli.services.errors import NotToBeHad
from hermes_cli.services.finding import REDIS, redis_version
from hermes_cli.services.installing import install, install_tree, staging
from hermes_cli.services.trying import WayFailed, run

TREE = "redis"
LISTS_S = 300.0
PACKAGES_S = 300.0
LOOK_S = 60.0
WRAPPER = """\
#!/bin/sh
# The server of the unpacked packages, with the libraries that came along.
root=${{0%/*}}/../{tree}
{libraries}exec "$root/{program}" "$@"
"""
LIBRARIES = """\
LD_LIBRARY_PATH="{places}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export LD_LIBRARY_PATH
"""


def redis_from_packages(packages: Sequence[str], tell: Tell) -> Path:
    """Get it, try it, put it into the cache.

    Raises:
        WayFailed: no apt here, no such package, or what came does not run.
    """
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise WayFailed(f"no {tool} here")
    with staging() as folder:
        tell("redis: unpacking the distribution's package into the cache (some seconds)")
        root = folder / TREE
        root.mkdir()
        for package in _download(packages, folder, tell):
            run(["dpkg-deb", "-x", package, root], folder=folder, limit_s=LOOK_S)
        program = root / "usr" / "bin" / REDIS
        if not program.exists():
            raise WayFailed(f"the packages {', '.join(packages)} hold no {REDIS}")
        wrapper = folder / "bin" / REDIS  # it finds the packages beside its folder, here as in the cache
        wrapper.parent.mkdir()
        wrapper.write_text(_wrapper(root), encoding="utf-8")
        wrapper.chmod(0o755)
        try:
            redis_version(wrapper)
        except NotToBeHad as error:
            raise WayFailed(error.problem) from None
        install_tree(root, TREE)
        return install(wrapper, REDIS)


def _wrapper(root: Path) -> str:
    folders = sorted({path.parent.relative_to(root) for path in root.rglob("*.so*")})
    places = ":".join(f"$root/{folder}" for folder in folders)
    libraries = (
        LIBRARIES.format(places=places) if folders else ""
    )  # an empty place would be the current folder
    return WRAPPER.format(tree=TREE, libraries=libraries, program=f"usr/bin/{REDIS}")


def _download(packages: Sequence[str], folder: Path, tell: Tell) -> list[Path]:
    """The package files; with the machine's lists, or with own ones where those know nothing or are out of date."""
    try:
        return _fetch(packages, folder, [])
    except WayFailed:
        # No lists, or older than what the archive holds now; half of it may have come.
        for left in folder.glob("*.deb"):
            left.unlink()
    own = []
    for option, place in (("Dir::State::lists", "lists"), ("Dir::Cache", "cache")):
        (folder / "apt" / place / "partial").mkdir(parents=True)
        own += ["-o", f"{option}={folder / 'apt' / place}"]
    own += ["-o", "APT::Sandbox::User="]  # root fetches as root: nobody else may write into the cache
    tell("redis: fetching the distribution's package lists (some seconds)")
    run(["apt-get", "-q", "update", *own], folder=folder, limit_s=LISTS_S)
    return _fetch(packages, folder, own)


def _fetch(packages: Sequence[str], folder: Path, options: Sequence[str]) -> list[Path]:
    planned = run(
        ["apt-get", "-q", "-s", "install", "--no-install-recommends", *options, *packages],
        folder=folder, limit_s=LOOK_S,
    )  # fmt: skip
    missing = {line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")}
    # What is installed already would not be planned, and is wanted all the same.
    wanted = sorted(missing | set(packages))
    run(["apt-get", "-q", "download", *options, *wanted], folder=folder, limit_s=PACKAGES_S)
    return sorted(folder.glob("*.deb"))
