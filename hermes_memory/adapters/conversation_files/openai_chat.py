"""The chat format of OpenAI's API, and the tree of ChatGPT's data export."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes_memory.adapters.conversation_files.said import message
from hermes_memory.app.commands import Incoming
from hermes_memory.app.importing import Unreadable


def messages(record: Mapping[str, Any], at: datetime | None) -> list[Incoming | None]:
    """``{"messages": [{"role", "content"} …]}``; a message's own time, else the record's, else ``at``."""
    listed = record["messages"]
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise Unreadable("bad_messages")
    of_all = _first(record, "created_at", "create_time")
    return [
        message(
            one.get("role"), one.get("content"), _first(one, "created_at", "create_time") or of_all, at, one.get("id")
        )
        for one in listed
    ]  # fmt: skip


def branch(record: Mapping[str, Any], at: datetime | None) -> list[Incoming | None]:
    """``{"mapping": {id: {"message", "parent"}}, "current_node"}``: from the current leaf up to the root."""
    mapping, node = record["mapping"], record.get("current_node")
    if not isinstance(mapping, Mapping):
        raise Unreadable("bad_messages")
    found: list[Incoming | None] = []
    seen: set[str] = set()
    while isinstance(node, str):
        entry = mapping.get(node)
        if node in seen or not isinstance(entry, Mapping):
            raise Unreadable("broken_tree")
        seen.add(node)
        found.append(_node(entry.get("message"), record, at))
        node = entry.get("parent")
    return found[::-1]


def _node(said: Any, record: Mapping[str, Any], at: datetime | None) -> Incoming | None:
    if said is None:
        return None
    author = said.get("author") if isinstance(said, Mapping) else None
    if not isinstance(author, Mapping):
        raise Unreadable("bad_messages")
    when = said.get("create_time") or record.get("create_time")
    return message(author.get("role"), said.get("content"), when, at, said.get("id"))


def _first(record: Mapping[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
