"""Text of a file to conversations, each line or element for itself; what cannot be read is named and passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from hermes_memory.adapters.conversation_files import openai_chat, sharegpt
from hermes_memory.adapters.conversation_files.said import conversation
from hermes_memory.app.importing import Conversation, Problem, Unreadable

FORMATS = ("auto", "openai", "sharegpt")
READERS = {
    "messages": ("openai", openai_chat.messages),
    "mapping": ("openai", openai_chat.branch),
    "conversations": ("sharegpt", sharegpt.messages),
}


def read_text(
    text: str, *, user: str | None, field: str = "user", wanted: str = "auto", at: datetime | None = None
) -> Iterator[Conversation | Problem]:
    """The conversations of JSON lines or of one JSON array; ``Problem.line`` counts lines or elements from 1.

    ``user`` owns all of them, else each record names its own in ``field``.
    """
    for number, record in _records(text):
        try:
            yield _one(record, user, field, wanted, at)
        except Unreadable as error:
            yield Problem(number, error.reason)


def _records(text: str) -> Iterator[tuple[int, Any]]:
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        whole = _json(text.lstrip("\ufeff"))
        if isinstance(whole, list):
            yield from enumerate(whole, start=1)
            return
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip():
            yield number, _json(line)


def _json(text: str) -> Any:
    """What ``text`` says; an Unreadable, not raised, where it is no JSON or too deep, so that the rest is read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable("not_json")


def _one(record: Any, user: str | None, field: str, wanted: str, at: datetime | None) -> Conversation:
    if isinstance(record, Unreadable):
        raise record
    if not isinstance(record, Mapping):
        raise Unreadable("unknown_format")
    for key, (name, read) in READERS.items():
        if key in record and wanted in ("auto", name):
            return conversation(record, read(record, at), user, field)
    raise Unreadable("own_export" if record.get("format") == "hermes-memory/1" else "unknown_format")
