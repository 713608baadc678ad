"""Messages told to the library as a product would send them, and which memories rest on which of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hermes_memory.app.commands import Incoming, Ingest
from hermes_memory.core.model import Role
from hermes_memory.memory import Memory

Message = tuple[str, str]  # id, text


def tell(memory: Memory, user: str, session: str, messages: Sequence[Message]) -> None:
    """Send the messages as one conversation, wait until the last is settled, and end the conversation.

    A user's turns are settled in the order in which they came: with the last one all are.
    """
    *first, (last_id, last_text) = messages
    if first:
        incoming = tuple(Incoming(role=Role.USER, content=text, id=name) for name, text in first)
        memory.execute(user, Ingest(session_id=session, messages=incoming, timezone="UTC"))
    memory.remember(user, last_text, session=session, message_id=last_id, timezone="UTC")
    memory.end_session(user, session)


def rests_on(record: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the messages that a memory's evidence names."""
    return (str(piece["message_id"]) for piece in record["evidence"])


def kept(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of all messages of which a memory is left."""
    return {message for record in records for message in rests_on(record)}


def ranked(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The memories of an answer that were ranked; always-on ones without a rank are left out."""
    return [record for record in answer["memories"] if record["score"] is not None]
