"""Tells a story to a server over HTTP, shows what comes of it, and says what should have and did not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hermes_cli.demo.stories import Session, Story
from hermes_cli.showing import block, hits_table, parts_line, stored_table, table
from hermes_memory.client import HermesClient

LOCKS = ("pending", "unfrozen", "confirmed", "frozen")  # by rising firmness
PACE = timedelta(minutes=2)  # between two lines

Record = Mapping[str, Any]


def play(story: Story, client: HermesClient, console: Console, now: datetime) -> list[str]:
    """Play one story as of ``now``. Returns what went wrong, a sentence for each; empty is success."""
    console.rule(Text(story.title, "bold"), align="left")
    locks = []
    for session in story.sessions:
        said = _say(story, session, client, now)
        records = client.memories(story.user)
        console.print(_transcript(session, said, {record["id"]: record for record in records}))
        locks.append(_lock(records, story.expected))
        if session is not story.sessions[-1]:
            client.end_session(story.user, session.id)
    console.print(stored_table(client.memories(story.user), f"What is stored of {story.user}"))
    export = client.export(story.user)
    _show_masked(export, story, console)
    answer = client.recall(story.user, story.query, session=story.sessions[-1].id)
    console.print(block(answer, title=f"recalled for: {story.query}"))
    _show_hits(answer["memories"], console)
    return _problems(story, answer, export, locks)


def _say(
    story: Story, session: Session, client: HermesClient, now: datetime
) -> list[tuple[datetime, str, Record]]:
    begin = (
        now.astimezone(ZoneInfo(story.timezone))
        - timedelta(days=session.days_ago)
        - PACE * len(session.lines)
    )
    said: list[tuple[datetime, str, Record]] = []
    for number, line in enumerate(session.lines):
        at = (begin + PACE * number).replace(microsecond=0)
        job = client.remember(story.user, line, session=session.id, said_at=at, timezone=story.timezone)
        said.append((at, line, job))
    return said


def _transcript(
    session: Session, said: Sequence[tuple[datetime, str, Record]], records: Mapping[str, Record]
) -> Table:
    shown = table("said at", "the user says", "what becomes of it", title=f"Conversation {session.id}")
    for at, line, job in said:
        shown.add_row(at.strftime("%a %d %b %H:%M"), Text(line), _outcome(job, records))
    return shown


def _outcome(job: Record, records: Mapping[str, Record]) -> Text:
    outcomes = []
    for change in job.get("changes", ()):
        record = records.get(change["memory_id"] or "")
        refused = change["op"] == "refused"
        about = f" “{record['content']}”" if record else ""
        outcomes.append(Text(f"{change['op']}: {change['reason']}{about}", "red" if refused else "green"))
    if not outcomes:
        return Text(str(job.get("reason") or job.get("status") or "not settled yet"), "dim")
    return Text("\n").join(outcomes)


def _show_masked(export: Record, story: Story, console: Console) -> None:
    """The line with the secret, as it is stored."""
    beginning = next(
        line.split(story.secret)[0] for session in story.sessions for line in session.lines if story.secret in line
    )  # fmt: skip
    for turn in export["turns"]:
        if turn["content"].startswith(beginning):
            console.print(Text.assemble("the secret as it is stored: ", (turn["content"], "italic")))
            console.print()


def _show_hits(hits: Sequence[Record], console: Console) -> None:
    if hits:
        console.print(hits_table(hits))
    if hits and hits[0]["score"] is not None:
        console.print(parts_line(hits[0]), soft_wrap=True)
    console.print()


def _lock(records: Sequence[Record], expected: str) -> str | None:
    return next((str(record["lock"]) for record in records if expected in record["content"]), None)


def _problems(story: Story, answer: Record, export: Record, locks: Sequence[str | None]) -> list[str]:
    found = []
    if story.expected not in answer["context"]:
        found.append(f"the block does not hold “{story.expected}”")
    if story.secret in json.dumps(export, ensure_ascii=False):
        found.append("the secret is stored as it was said")
    first, last = locks[0], locks[-1]
    if first is None or last is None:
        found.append(f"nothing about “{story.expected}” is stored")
    elif story.rises and LOCKS.index(last) <= LOCKS.index(first):
        found.append(f"the lock of “{story.expected}” did not rise: {first}, then {last}")
    return found
