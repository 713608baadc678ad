"""``hermes remember`` and ``hermes recall``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from hermes_cli.console import fail, readable, show_json, stdout
from hermes_cli.opening import opened
from hermes_cli.options import Config, Data, Json, Key, Scene, Session, Url, User, Zone, moment
from hermes_cli.showing import block, changes_table, hits_table, parts_line
from hermes_memory.core.ids import check_id, digest

FAILED = 1


def remember(
    user: User,
    text: Annotated[str, typer.Argument(help="What the user says.")],
    session: Annotated[
        str | None, typer.Option(help="The conversation it is said in.", show_default="the user's own")
    ] = None,
    scene: Scene = None,
    said_at: Annotated[str | None, typer.Option(help="When it was said (ISO 8601); now if left out.")] = None,
    timezone: Zone = None,
    message_id: Annotated[
        str | None, typer.Option(help="The same id a second time changes nothing.", show_default="a new one")
    ] = None,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Say something as USER, and see what is kept of it and what is refused."""
    said = moment(said_at, "--said-at", timezone)
    with opened(data, config, url, key) as store:
        job = store.remember(
            user, readable(text), session=session or own_session(user), message_id=message_id, said_at=said, timezone=timezone, scene=scene
        )  # fmt: skip
        wanted = {change["memory_id"] for change in job.get("changes", ())} - {None}
        kept = {} if json or not wanted else {record["id"]: record for record in store.memories(user)}
    failed = job.get("status") == "failed"
    if json:
        show_json(job)
    elif job.get("changes"):
        stdout().print(changes_table(job["changes"], kept))
    elif failed:
        fail(f"the message is safe, but could not be read: {job['reason']}")
    elif "status" not in job:
        stdout().print("The message is safe; it was not settled in time and will be.")
    elif not job.get("accepted", 1):
        stdout().print("Nothing changed: this message was sent before.")
    else:
        stdout().print("Nothing in it is kept.")
    if failed:
        raise typer.Exit(FAILED)


def own_session(user: str) -> str:
    """A session for what a user says outside any; a session belongs to one user, so no two may share it."""
    return f"cli-{digest(check_id(user, 'user'))}"


def recall(
    user: User,
    query: Annotated[str, typer.Argument(help="What the conversation is about now.")],
    session: Session = None,
    scene: Scene = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, max=50, help="How many ranked memories at most.")
    ] = None,
    budget_chars: Annotated[int | None, typer.Option(min=200, help="How long the block may be.")] = None,
    as_of: Annotated[str | None, typer.Option(help="As it was at this time (ISO 8601).")] = None,
    timezone: Zone = None,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Show the block that a model would get for QUERY, and why each memory is in it."""
    at = moment(as_of, "--as-of", timezone)
    with opened(data, config, url, key) as store:
        answer = store.recall(
            user,
            readable(query),
            session=session,
            scene=scene,
            top_k=top_k,
            budget_chars=budget_chars,
            as_of=at,
            timezone=timezone,
        )
    if json:
        show_json(answer)
        return
    console = stdout()
    console.print(block(answer))
    hits = answer["memories"]
    if hits:
        console.print(hits_table(hits))
    if hits and hits[0]["score"] is not None:
        console.print(parts_line(hits[0]), soft_wrap=True)
    if answer["ask"]:
        console.print(Text(f"to ask the user: {answer['ask']['question']}", "yellow"))
