"""``hermes hosts``: how many hosts carry the users of a running server, and another number of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from hermes_cli.console import show_json, stdout
from hermes_cli.options import Json, Key

PATH = "/v1/admin/hosts"
PATIENCE_S = 180.0  # new hosts have to start first, on new machines perhaps

app = typer.Typer(no_args_is_help=True, help="The processes that carry users, of a running server.")

Server = Annotated[str, typer.Option(envvar="HERMES_URL", help="Where the server answers.")]
DEFAULT_URL = "http://127.0.0.1:8000"


@app.command()
def show(url: Server = DEFAULT_URL, key: Key = None, json: Json = False) -> None:
    """How many hosts there are, and how often that has changed."""
    _say(_asked("GET", url, key), json)


@app.command()
def scale(
    hosts: Annotated[int, typer.Argument(min=1, help="How many hosts shall carry the users.")],
    url: Server = DEFAULT_URL,
    key: Key = None,
    json: Json = False,
) -> None:
    """Let another number of hosts carry the users. Nothing is lost; callers see a delay at most."""
    _say(_asked("POST", url, key, {"hosts": hosts}), json)


def _asked(method: str, url: str, key: str | None, body: dict[str, int] | None = None) -> dict[str, Any]:
    from hermes_memory.client.transport import Transport

    transport = Transport(url, key, PATIENCE_S)
    try:
        return transport.call(method, PATH, body=body)
    finally:
        transport.close()


def _say(pool: dict[str, Any], json: bool) -> None:
    if json:
        show_json(pool)
        return
    hosts = pool["hosts"]
    stdout().print(Text(f"{hosts} {'host carries' if hosts == 1 else 'hosts carry'} the users"))
