"""What all formats are read to: checked messages with ids that are the same each time a file is read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hermes_memory.app.commands import Incoming
from hermes_memory.app.importing import Conversation, Unreadable
from hermes_memory.core.ids import check_id, digest
from hermes_memory.core.model import Role
from hermes_memory.errors import InvalidId, InvalidInput


def moment(value: Any) -> datetime | None:
    """A time in seconds since 1970 or in ISO 8601 with an offset; None where there is none."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            if found.tzinfo is None:
                raise Unreadable("time_without_zone")
            return found
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise Unreadable("bad_time")


def words(content: Any) -> str:
    """The text of a message: a string, or the text among its parts. Anything else is left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return words(content.get("parts") or content.get("text"))
    if isinstance(content, list):
        return "\n".join(filter(None, (_part(part) for part in content)))
    raise Unreadable("bad_content")


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    return ""  # a picture, a sound, a file


def message(role: Any, content: Any, said_at: Any, default: datetime | None, own_id: Any) -> Incoming | None:
    """One message; None when it has no text. Raises Unreadable for a role or a time that is none."""
    if not isinstance(role, str) or role not in frozenset(Role):
        raise Unreadable("unknown_role")
    text = words(content)
    if not text.strip():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable("bad_content") from None
    return Incoming(
        role=Role(role),
        content=text,
        id=own_id if isinstance(own_id, str) and own_id else None,
        created_at=default if said_at is None else moment(said_at),
    )


def conversation(
    record: Mapping[str, Any], said: list[Incoming | None], user: str | None, field: str
) -> Conversation:
    """The conversation of ``record``. Its own id, or a digest of its words, makes the session's and the messages'."""
    kept = [one for one in said if one is not None]
    if not kept:
        raise Unreadable("no_messages")
    owner = user if user is not None else record.get(field)
    if not isinstance(owner, str):
        raise Unreadable("no_user")
    own = record.get("id") or record.get("conversation_id") or record.get("session_id")
    name = own if isinstance(own, str) else digest(*(f"{one.role}\n{one.content}" for one in kept))
    session = f"import-{digest(owner, name)}"
    try:
        check_id(owner, "user")
    except (InvalidId, InvalidInput):
        raise Unreadable("invalid_user") from None
    return Conversation(
        user=owner,
        session_id=session,
        messages=tuple(
            Incoming(
                role=one.role,
                content=one.content,
                created_at=one.created_at,
                id=f"import-{digest(session, one.id or str(number))}",
            )
            for number, one in enumerate(kept)
        ),
    )
