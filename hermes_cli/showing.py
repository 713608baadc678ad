"""Memories, changes and recall blocks as rich shows them; pure functions of JSON records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

Record = Mapping[str, Any]

LOCK_STYLES = {"frozen": "bold cyan", "confirmed": "green", "pending": "yellow", "unfrozen": "magenta"}
BARE_OPS = {"refused": "red", "erased": "red", "archived": "dim", "evicted": "dim"}


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house's style."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold", no_wrap=column == "id")  # an id is there to be copied
    return shown


def kind_of(record: Record) -> str:
    """Category and layer."""
    return f"{record['category']}/{record['layer']}" if record["layer"] else str(record["category"])


def scope_of(record: Record) -> str:
    """The scope, with the scene where it has one."""
    return f"{record['scope']}: {record['scene']}" if record.get("scene") else str(record["scope"])


def lock_of(record: Record) -> Text:
    """The lock, in its colour."""
    return Text(record["lock"], LOCK_STYLES.get(record["lock"], ""))


def quote_of(record: Record) -> str:
    """The newest of the user's own words that the memory rests on."""
    return str(record["evidence"][-1]["quote"]) if record["evidence"] else ""


def memories_table(records: Sequence[Record], *, title: str | None = None, ids: bool = True) -> Table:
    """What is stored, a row for each memory."""
    names = ("content", "kind", "scope", "lock", "confidence", "the user's words")
    shown = table(*(("id",) if ids else ()), *names, title=title)
    for record in records:
        status = "" if record["status"] == "active" else f" ({record['status']})"
        shown.add_row(
            *((record["id"],) if ids else ()),
            Text(record["content"] + status, "dim" if status else ""),
            kind_of(record),
            scope_of(record),
            lock_of(record),
            f"{record['confidence']:.2f}",
            Text(quote_of(record), "italic"),
        )
    return shown


def changes_table(changes: Sequence[Record], records: Mapping[str, Record]) -> Table:
    """What the gates made of a message; ``records`` by id give the changes their content."""
    shown = table("what", "why", "memory", "lock", "id")
    for change in changes:
        record = records.get(change["memory_id"] or "")
        shown.add_row(
            Text(change["op"], BARE_OPS.get(change["op"], "green")),
            change["reason"],
            Text(record["content"]) if record else "",
            lock_of(record) if record else "",
            change["memory_id"] or "",
        )
    return shown


def block(answer: Record, *, title: str = "for the prompt") -> Panel:
    """The recall block as the model would get it."""
    context = answer["context"] or "(nothing is remembered that matters here)"
    over = ", over its budget" if answer["over_budget"] else ""
    return Panel(
        Text(context), title=title, title_align="left", subtitle=f"{len(answer['context'])} characters{over}",
        subtitle_align="right", border_style="cyan",
    )  # fmt: skip


def hits_table(hits: Sequence[Record]) -> Table:
    """The recalled memories with their scores; what is always in the block has none."""
    shown = table("score", "content", "kind", "lock", "the user's words", "id")
    for hit in hits:
        score = "always" if hit["score"] is None else f"{hit['score']:.3f}"
        shown.add_row(
            score, Text(hit["content"]), kind_of(hit), lock_of(hit), Text(quote_of(hit), "italic"), hit["id"]
        )
    return shown


def parts_line(hit: Record) -> Text:
    """How a score comes about: its factors and their product."""
    factors = " × ".join(f"{name} {value:.3f}" for name, value in hit["score_parts"].items())
    return Text.assemble("top hit: ", (str(hit["content"]), "bold"), f"  =  {factors}  =  {hit['score']:.3f}")


def evidence_table(evidence: Sequence[Record]) -> Table:
    """The user's words behind a memory: when, where, and how they reached us."""
    shown = table("said at", "session", "message", "as", "the user's words")
    for piece in evidence:
        shown.add_row(
            piece["created_at"], piece["session_id"], piece["message_id"], piece["kind"], Text(piece["quote"], "italic")
        )  # fmt: skip
    return shown


def receipt_table(receipt: Record) -> Table:
    """What an erasure removed, by place."""
    shown = table("erased", "number")
    for place, number in receipt["erased"].items():
        shown.add_row(place.replace("_", " "), str(number))
    shown.add_row("still to be found", str(receipt["remaining"]), style="bold")
    return shown
