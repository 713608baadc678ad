"""``hermes nightly``: the night over all users, in this process on a data directory, or as a job on a cluster."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from hermes_cli.console import fail, stdout
from hermes_cli.opening import HeldByAServer
from hermes_cli.options import Config, Data, moment

if TYPE_CHECKING:
    from hermes_memory.app.night import ShardProgress
    from hermes_memory.config import Settings

FAILED = 1
MOST_SUBMISSIONS = 50  # of one date
POLL_S = 2.0


def nightly(
    data: Data = Path("./data"),
    config: Config = None,
    address: Annotated[
        str | None,
        typer.Option(help="Of a Ray cluster's dashboard: run it there as a job.", metavar="URL"),
    ] = None,
    date: Annotated[str | None, typer.Option(help="Of the night; today's, in UTC, by default.")] = None,
    now: Annotated[str | None, typer.Option(help="The moment that it is about.", metavar="TIME")] = None,
    report: Annotated[Path, typer.Option(help="The folder for the report.", file_okay=False)] = Path(
        "reports"
    ),
) -> None:
    """Let memories settle: promote, merge, decay, digest, renew profiles; then figures of quality for all users.

    Ended anywhere, it goes on where it was when it is called again; a date that is done gives its report again.
    """
    at = moment(now, "--now") or datetime.now(UTC)
    day = _day(date, at)
    if address is not None:
        _on_a_cluster(address, config, data, day, None if now is None else at, report)
        return
    from hermes_memory.config import load_settings

    settings = load_settings(config)
    console = stdout()
    with _shown(console, settings.nightly.shards) as told:
        found = asyncio.run(_here(settings, data, day, at, told))
    from jobs.page import write_report

    users = found["users"]
    console.print(Text(f"{users['done']:,} users done, {users['failed']:,} not reached."), soft_wrap=True)
    console.print(Text(f"report: {write_report(found, report)}"), soft_wrap=True)
    if users["failed"]:
        raise typer.Exit(FAILED)


def _day(date: str | None, at: datetime) -> str:
    if date is None:
        return at.astimezone(UTC).date().isoformat()
    try:
        return datetime.strptime(date, "%Y-%m-%d").date().isoformat()  # noqa: DTZ007  # a day has no zone
    except ValueError:
        raise typer.BadParameter("must look like 2026-03-02", param_hint="--date") from None


async def _here(
    settings: Settings, data: Path, day: str, at: datetime, told: Callable[[ShardProgress], None]
) -> dict[str, Any]:
    """The night in this process, with a host of its own."""
    from hermes_memory.adapters.data_lock import DataLock
    from hermes_memory.errors import DataInUse
    from hermes_memory.runtime.local import LocalUsers
    from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_ledger, let_go
    from jobs.building import build_night

    lock = DataLock(data)
    try:
        lock.acquire({"what": "hermes nightly"})
    except DataInUse as error:
        raise HeldByAServer(error.path, error.holder) from None
    embedder = build_embedder(settings)
    distiller = build_distiller(settings, embedder)
    host, ledger = build_host("local", settings, data, distiller, embedder.info), build_ledger(settings, data)
    try:
        await ledger.open(embedder.info)
        await host.start()
        try:
            return await build_night(settings, ledger, LocalUsers(host), told).run(day, at)
        finally:
            await host.stop()
    finally:
        await ledger.close()
        await let_go(embedder, distiller)
        lock.release()


def _on_a_cluster(
    address: str, config: Path | None, data: Path, day: str, now: datetime | None, report: Path
) -> None:
    """Submit the job, or join the one of that date; a failed one is followed by another, which goes on from there."""
    from ray.job_submission import JobStatus, JobSubmissionClient

    words = ["python", "-m", "jobs.nightly", "--data", str(data), "--date", day, "--report", str(report)]
    words += ["--config", str(config)] if config else []
    words += ["--now", now.isoformat()] if now else []
    console, client = stdout(), JobSubmissionClient(address)
    number = submit(client, f"hermes-nightly-{day}", shlex.join(words))
    console.print(Text(f"job {number}"), soft_wrap=True)
    seen = ""
    while True:
        status, logs = client.get_job_status(number), client.get_job_logs(number)
        console.file.write(logs[len(seen) :] if logs.startswith(seen) else logs)
        console.file.flush()
        seen = logs
        if status.is_terminal():
            break
        time.sleep(POLL_S)
    if status != JobStatus.SUCCEEDED:
        fail(f"the job ended as {status}; call it again to go on where it was")
        raise typer.Exit(FAILED)


def submit(client: Any, name: str, entrypoint: str) -> str:
    """The id of the job to follow: the one that runs or is done, else a new one behind those that failed."""
    known = {job.submission_id: str(job.status.value) for job in client.list_jobs()}
    for number in range(1, MOST_SUBMISSIONS + 1):
        chosen = name if number == 1 else f"{name}-{number}"
        if known.get(chosen) in {"FAILED", "STOPPED"}:
            continue
        if chosen not in known:
            client.submit_job(entrypoint=entrypoint, submission_id=chosen)
        return chosen
    fail(f"{name} has failed {MOST_SUBMISSIONS} times")
    raise typer.Exit(FAILED)


@contextmanager
def _shown(console: Console, shards: int) -> Iterator[Callable[[ShardProgress], None]]:
    """A bar on a terminal, a line now and then elsewhere."""
    from jobs.building import Lines

    if not console.is_terminal:
        yield Lines(shards, lambda line: print(line, file=console.file, flush=True)).tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("night", total=shards)

        def write(line: str) -> None:
            progress.update(task, description=line)

        lines = Lines(shards, write)

        def tell(found: ShardProgress) -> None:
            lines.tell(found)
            if found.finished:
                progress.advance(task)

        yield tell
