"""``hermes import``: conversations of other products, sent through the front door with their own times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from hermes_cli.console import fail, show_json, stderr
from hermes_cli.opening import Store, opened
from hermes_cli.options import Config, Data, Key, Url, Zone, moment
from hermes_memory.adapters.conversation_files import FORMATS, read_text
from hermes_memory.app.importing import Conversation, Counts
from hermes_memory.errors import InvalidInput, MessageIdReused, Overloaded, SessionOwned

INCOMPLETE = 1
MAX_FILE_BYTES = 512 * 1024 * 1024  # a file is read whole
TRIES = 10


def import_files(
    files: Annotated[list[Path], typer.Argument(help="Files or folders of .jsonl and .json.", exists=True)],
    user: Annotated[str | None, typer.Option(help="Whose conversations all of them are.")] = None,
    user_field: Annotated[str, typer.Option(help="The field of a record that names its user.")] = "user",
    form: Annotated[str, typer.Option("--format", help="auto, openai or sharegpt.")] = "auto",
    at: Annotated[
        str | None, typer.Option(help="When messages without a time were said (ISO 8601); now if left out.")
    ] = None,
    timezone: Zone = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; write nothing.")] = False,
    data: Data = Path("./data"),
    config: Config = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Import conversations of other products. The same file a second time changes nothing."""
    if form not in FORMATS:
        raise typer.BadParameter(f"must be one of {', '.join(FORMATS)}", param_hint="--format")
    counts = Counts()
    found: list[Conversation] = []
    for path in _files(files):
        found += _read(path, user, user_field, form, moment(at, "--at", timezone), counts)
    sent = {"sent": 0}
    if not dry_run and found:
        with opened(data, config, url, key) as store:
            for one in track(found, "importing", console=stderr()):
                _send(store, one, timezone, counts, sent)
    show_json(counts.record() | ({"dry_run": True} if dry_run else sent))
    if counts.refused:
        raise typer.Exit(INCOMPLETE)


def _files(given: list[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.suffix in {".json", ".jsonl"})
        else:
            yield path


def _read(
    path: Path, user: str | None, field: str, form: str, at: Any, counts: Counts
) -> Iterator[Conversation]:
    if path.stat().st_size > MAX_FILE_BYTES:
        counts.refused["file_too_large"] += 1
        fail(f"{path}: larger than {MAX_FILE_BYTES} bytes; split it")
        return
    text = path.read_text("utf-8", errors="replace")
    for one in read_text(text, user=user, field=field, wanted=form, at=at):
        counts.add(one)
        if isinstance(one, Conversation):
            yield one
        else:
            fail(f"{path}:{one.line}: {one.reason}")


def _send(
    store: Store, one: Conversation, timezone: str | None, counts: Counts, sent: dict[str, int]
) -> None:
    """One conversation, a request at a time; what the memory refuses is counted, and the rest goes on."""
    for part in one.parts():
        try:
            job = _patiently(store, one, part, timezone)
        except (InvalidInput, MessageIdReused, SessionOwned) as error:
            counts.refused[error.code] += 1
            return
        sent["sent"] += len(part)
        if job.get("status") == "failed":
            counts.refused["extraction_failed"] += 1


def _patiently(store: Store, one: Conversation, part: Any, timezone: str | None) -> dict[str, Any]:
    """Send again, with the same ids, as often and as late as the memory asks. Raises Overloaded after that."""
    for _ in range(TRIES):
        try:
            return store.send(one.user, one.session_id, part, timezone=timezone)
        except Overloaded as error:
            time.sleep(error.retry_after_s)
    return store.send(one.user, one.session_id, part, timezone=timezone)
