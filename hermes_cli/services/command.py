"""``hermes services``: a real Redis and a real Weaviate on this machine, without root and without Docker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from hermes_cli.console import show_json, stdout
from hermes_cli.options import Data, Json
from hermes_cli.services.errors import ServiceError

if TYPE_CHECKING:
    from hermes_cli.services.kinds import Kind
    from hermes_cli.services.running import Services, Standing
    from hermes_cli.services.settings import ServiceSettings
    from hermes_cli.services.state import Address

FOLDER = "services"
CONFIG = "services.toml"
STYLES = {
    "started": "green",
    "running": "green",
    "elsewhere": "green",
    "silent": "bold red",
    "stopped": "dim",
}

app = typer.Typer(
    no_args_is_help=True,
    help="Get, start and stop a Redis and a Weaviate of this machine (no root, no Docker, loopback).",
)


@app.command()
def start(
    data: Data = Path("./data"),
    redis_port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="a free one, the same every time")
    ] = None,
    weaviate_port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="a free one, the same every time")
    ] = None,
    as_json: Json = False,
) -> None:
    """Get what is missing, start what does not run, and write the configuration that uses it.

    Their data is in the folder ``services`` of the data directory. REDIS_URL and WEAVIATE_URL name servers that run
    already; those are used as they are.
    """
    with _telling(as_json) as tell:
        standings = _services(data, tell).start({"redis": redis_port, "weaviate": weaviate_port})
    config = _write_config(data / FOLDER / CONFIG, standings)
    if as_json:
        show_json({"services": [asdict(each) for each in standings], "config": str(config)})
        return
    _show(standings)
    stdout().print(Text.assemble("use them: ", (f"hermes serve --config {config}", "bold")), soft_wrap=True)


@app.command()
def status(data: Data = Path("./data"), as_json: Json = False) -> None:
    """Show how they stand; the exit code is 1 unless both answer."""
    standings = _services(data, lambda line: None).status()
    if as_json:
        show_json({"services": [asdict(each) for each in standings]})
    else:
        _show(standings)
    if not all(each.usable for each in standings):
        raise typer.Exit(1)


@app.command()
def stop(data: Data = Path("./data")) -> None:
    """Stop them; their data stays."""
    with _telling(False) as tell:
        standings = _services(data, tell).stop()
    _show(standings)


@app.command()
def install() -> None:
    """Only get the programs, into the project's cache ($HERMES_CACHE_DIR, else ~/.cache/hermes-memory)."""
    console = stdout()
    with _telling(False) as tell:
        for kind in _kinds()[1]:
            program = kind.get(tell)
            console.print(f"{kind.name}: {program.path} ({program.origin})", soft_wrap=True)


def _kinds() -> tuple[ServiceSettings, tuple[Kind, ...]]:
    from hermes_cli.services.kinds import kinds  # httpx, pydantic, psutil: other commands do without
    from hermes_cli.services.settings import service_settings

    settings = service_settings()
    return settings, kinds(settings)


def _services(data: Path, tell: Callable[[str], None]) -> Services:
    from hermes_cli.services.running import Services

    settings, known = _kinds()
    return Services(data / FOLDER, known, settings.ports.attempts, tell)


@contextmanager
def _telling(quiet: bool) -> Iterator[Callable[[str], None]]:
    """What is going on: a line each, and a spinner while it lasts on a terminal; with ``quiet`` all of it on stderr."""
    console = Console(stderr=True, highlight=False, emoji=False) if quiet else stdout()

    def tell(line: str) -> None:
        console.print(Text(line, "dim"), soft_wrap=True)
        console.file.flush()

    if console.is_terminal:
        with console.status("services"):
            yield tell
    else:
        yield tell


def _show(standings: list[Standing]) -> None:
    console = stdout()
    for each in standings:
        console.print(Text(each.name.ljust(10)), Text(each.state.ljust(10), STYLES[each.state]), _details(each), sep="", soft_wrap=True)  # fmt: skip


def _details(standing: Standing) -> str:
    parts = []
    if standing.address is not None:
        grpc = f" (gRPC {standing.address.grpc_port})" if standing.address.grpc_port else ""
        parts.append(f"{standing.address.url}{grpc}")
    if standing.pid is not None:
        parts.append(f"process {standing.pid}, {standing.memory_bytes / 1e6:.0f} MB")
    if standing.took_s:
        parts.append(f"ready after {standing.took_s:.1f} s")
    return ", ".join(parts)


def _address(standings: list[Standing], name: str) -> Address:
    found = next((each.address for each in standings if each.name == name), None)
    if found is None:
        raise ServiceError(name, "ended right after its start")
    return found


def _write_config(path: Path, standings: list[Standing]) -> Path:
    """The sections that make ``hermes serve`` use these servers."""
    redis, weaviate = (_address(standings, name) for name in ("redis", "weaviate"))
    text = (
        "# Written by `hermes services start`, anew each time. Copy what you want to keep.\n\n"
        f'[ledger]\nkind = "redis"\nurl = {json.dumps(redis.url)}\n\n'
        f'[index]\nkind = "weaviate"\nurl = {json.dumps(weaviate.url)}\ngrpc_port = {weaviate.grpc_port}\n'
    ) + (f'key_env = "{weaviate.key_env}"\n' if weaviate.key_env else "")
    if not (path.exists() and path.read_text(encoding="utf-8") == text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # an address of REDIS_URL may hold a password
        path.write_text(text, encoding="utf-8")
    return path
