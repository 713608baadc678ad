"""ShareGPT's format: ``{"conversations": [{"from": "human", "value": "…"}]}``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes_memory.adapters.conversation_files.said import message
from hermes_memory.app.commands import Incoming
from hermes_memory.app.importing import Unreadable

ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system", "tool": "tool"}  # fmt: skip


def messages(record: Mapping[str, Any], at: datetime | None) -> list[Incoming | None]:
    """The messages of one record; a message's own time, else the record's, else ``at``."""
    listed = record["conversations"]
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise Unreadable("bad_messages")
    return [
        message(
            ROLES.get(str(one.get("from"))), one.get("value"),
            one.get("created_at") or record.get("created_at"), at, one.get("id"),
        )
        for one in listed
    ]  # fmt: skip
