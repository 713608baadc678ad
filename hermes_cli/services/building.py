"""A Weaviate server built from its published Go module, once."""

from __future__ import annotations

import shutil
from pathlib import Path

from hermes_cli.services.cache import Tell, cache_folder
from hermes_cli.services.finding import WEAVIATE
from hermes_cli.services.installing import install, staging
from hermes_cli.services.settings import WeaviateSettings
from hermes_cli.services.trying import WayFailed, run, run_long

USUAL_GO = "/usr/local/go/bin"  # where Go's own archive is unpacked to; seldom on a PATH
LOOK_S = 60.0


def weaviate_from_source(settings: WeaviateSettings, tell: Tell) -> Path:
    """Build it into the cache. The Go caches it fills lie there too, and are removed after a build that worked.

    After one that failed they stay, so that the next try goes on where it ended.

    Raises:
        WayFailed: no Go here, too little room, or the build failed.
    """
    go = shutil.which("go") or shutil.which("go", path=USUAL_GO)
    if go is None:
        raise WayFailed("no Go here")
    with staging() as folder:
        version = run([go, "env", "GOVERSION"], folder=folder, limit_s=LOOK_S).strip()
        caches = _caches(go, folder)
        _room(settings.build_disk_bytes)
        tell(
            f"weaviate: building {settings.version} with {version}, once:"
            f" about {settings.build_minutes} minutes on two cores"
        )
        run_long(
            [go, "install", "-v", "-modcacherw", "-ldflags", "-s -w", f"{settings.module}@v{settings.version}"],
            log=cache_folder() / "weaviate-build.log", limit_s=settings.build_limit_s,
            environment={"GOBIN": str(folder / "bin"), **caches}, tell=tell, what="weaviate: the build",
        )  # fmt: skip
        built = folder / "bin" / settings.module.rpartition("/")[2]
        if not built.exists():
            raise WayFailed(f"the build left no {built.name}")
        installed = install(built, WEAVIATE)
    shutil.rmtree(cache_folder() / "go", ignore_errors=True)
    return installed


def _caches(go: str, folder: Path) -> dict[str, str]:
    """Go's caches inside of ours. One that somebody set, or that holds Go code already, is used and stays."""
    own = cache_folder() / "go"
    chosen = {}
    for name, place in (("GOMODCACHE", "mod"), ("GOCACHE", "build")):
        theirs = run([go, "env", name], folder=folder, limit_s=LOOK_S).strip()
        if not (theirs and Path(theirs).is_dir()):
            chosen[name] = str(own / place)
    return chosen


def _room(wanted: int) -> None:
    free = shutil.disk_usage(cache_folder()).free
    if free < wanted:
        raise WayFailed(
            f"{free / 1e9:.1f} GB free in {cache_folder()}, the build wants {wanted / 1e9:.0f} GB"
        )
