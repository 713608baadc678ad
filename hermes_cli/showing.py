"""Memories, changes and recall blocks as rich shows them; pure functions of JSON records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

Record = Mapping[str, Any]

LOCK_STYLES = {"frozen": "bold cyan", "confirmed": "green", "pending": "yellow", "unfrozen": "magenta"}
ID_WIDTH = 30  # an id is there to be copied: it keeps to one line, also in a narrow terminal
WITH_IDS = {"memory", "session, message"}
BARE_OPS = {"refused": "red", "erased": "red", "archived": "dim", "evicted": "dim"}


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house's style."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        shown.add_column(column, overflow="fold", width=ID_WIDTH if column in WITH_IDS else None)
    return shown


def kind_of(record: Record, between: str = "/") -> str:
    """Category and layer."""
    return between.join(filter(None, (record["category"], record["layer"])))


def scope_of(record: Record) -> str:
    """The scope, with the scene where it has one."""
    return f"{record['scope']}: {record['scene']}" if record.get("scene") else str(record["scope"])


def lock_of(record: Record) -> Text:
    """The lock, in its colour."""
    return Text(record["lock"], LOCK_STYLES.get(record["lock"], ""))


def quote_of(record: Record) -> str:
    """The newest of the user's own words that the memory rests on."""
    return str(record["evidence"][-1]["quote"]) if record["evidence"] else ""


def with_id(content: str | Text, memory_id: str) -> Text:
    """A memory's content over its id."""
    return Text.assemble(content, "\n", (memory_id, "dim"))


def memories_table(records: Sequence[Record]) -> Table:
    """What is stored, with ids; fits a terminal of 80 columns."""
    shown = table("memory", "kind, scope", "lock, sure", "the user's words")
    for record in records:
        reach = "\n".join((kind_of(record, "\n"), scope_of(record)))
        shown.add_row(
            with_id(_content(record), record["id"]),
            reach,
            Text.assemble(lock_of(record), f"\n{record['confidence']:.2f}"),
            Text(quote_of(record), "italic"),
        )
    return shown


def stored_table(records: Sequence[Record], title: str) -> Table:
    """What is stored, without ids, a line for each memory where the terminal is wide."""
    shown = table("content", "kind", "scope", "lock", "confidence", "the user's words", title=title)
    for record in records:
        words = Text(quote_of(record), "italic")
        confidence = f"{record['confidence']:.2f}"
        shown.add_row(_content(record), kind_of(record), scope_of(record), lock_of(record), confidence, words)
    return shown


def _content(record: Record) -> Text:
    if record["status"] == "active":
        return Text(record["content"])
    return Text(f"{record['content']} ({record['status']})", "dim")


def changes_table(changes: Sequence[Record], records: Mapping[str, Record]) -> Table:
    """What the gates made of a message; ``records`` by id give the changes their content."""
    shown = table("what", "why", "memory", "lock")
    for change in changes:
        memory_id = change["memory_id"] or ""
        record = records.get(memory_id)
        shown.add_row(
            Text(change["op"], BARE_OPS.get(change["op"], "green")),
            change["reason"],
            with_id(record["content"], memory_id) if record else memory_id,
            lock_of(record) if record else "",
        )
    return shown


def packs_table(packs: Sequence[Record]) -> Table:
    """The knowledge packs that are loaded."""
    shown = table("namespace", "pack", "version", "entries", "languages", "licence", "loaded")
    for pack in packs:
        loaded = datetime.fromisoformat(pack["loaded_at"]).strftime("%Y-%m-%d %H:%M")
        languages = ", ".join(pack["languages"])
        shown.add_row(
            pack["namespace"],
            pack["name"],
            pack["version"],
            str(pack["entries"]),
            languages,
            pack["licence"],
            loaded,
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
    shown = table("score", "memory", "kind", "lock", "the user's words")
    for hit in hits:
        score = "always" if hit["score"] is None else f"{hit['score']:.3f}"
        memory = with_id(hit["content"], hit["id"])
        shown.add_row(score, memory, kind_of(hit, "\n"), lock_of(hit), Text(quote_of(hit), "italic"))
    return shown


def parts_line(hit: Record) -> Text:
    """How a score comes about: its factors and their product."""
    factors = " × ".join(f"{name} {value:.3f}" for name, value in hit["score_parts"].items())
    return Text.assemble("top hit: ", (str(hit["content"]), "bold"), f"  =  {factors}  =  {hit['score']:.3f}")


def evidence_table(evidence: Sequence[Record]) -> Table:
    """The user's words behind a memory: when, where, and how they reached us."""
    shown = table("said at", "session, message", "as", "the user's words")
    for piece in evidence:
        where = Text.assemble(piece["session_id"], "\n", (piece["message_id"], "dim"))
        shown.add_row(
            _to_the_second(piece["created_at"]), where, piece["kind"], Text(piece["quote"], "italic")
        )
    return shown


def _to_the_second(moment: str) -> str:
    return datetime.fromisoformat(moment).isoformat(" ", "seconds")


def receipt_table(receipt: Record) -> Table:
    """What an erasure removed, by place."""
    shown = table("erased", "number")
    for place, number in receipt["erased"].items():
        shown.add_row(place.replace("_", " "), str(number))
    shown.add_row("still to be found", str(receipt["remaining"]), style="bold")
    return shown
