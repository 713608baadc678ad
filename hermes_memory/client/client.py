"""The client: what the in-process ``Memory`` offers, and the panel's calls, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from hermes_memory.client.panel import Panel
from hermes_memory.client.transport import Transport, user_path
from hermes_memory.core.ids import check_id, digest
from hermes_memory.errors import InvalidInput

if TYPE_CHECKING:
    from hermes_memory.app.commands import Incoming  # loads more than a client needs

DEFAULT_URL = "http://127.0.0.1:8000"
WAIT_S = 60.0  # for extraction; the server's limit is 120


class HermesClient(Panel):
    """A synchronous client of one server; usable as a context, and from one thread at a time.

    Args:
        url: Where the server answers.
        key: The API key; the embedded default on loopback needs none.
        timeout_s: For one call, besides the time it waits for extraction.
        transport: Another httpx transport, for tests.

    Example::

        with HermesClient("http://127.0.0.1:8000") as memory:
            memory.remember("ana", "I'm allergic to peanuts.")
            print(memory.recall("ana", "a recipe for cookies")["context"])
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        key: str | None = None,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(Transport(url, key, timeout_s, transport))

    def remember(
        self,
        user: str,
        text: str,
        *,
        session: str | None = None,
        message_id: str | None = None,
        said_at: datetime | None = None,
        timezone: str | None = None,
        scene: str | None = None,
        wait_s: float = WAIT_S,
    ) -> dict[str, Any]:
        """Store one user message, wait until it is settled, and return the job with its changes.

        Without a ``session`` it is said in one of the user's own: a session belongs to one user.
        Without a ``status`` in the answer the message is safe, but was not settled within ``wait_s`` seconds.

        Raises:
            InvalidInput: blank text, an unusable id, or a time in the future.
            SessionOwned: the session belongs to another user.
        """
        if not text.strip():
            raise InvalidInput("text", "is blank")
        message = {
            "role": "user",
            "content": text,
            "id": message_id,
            "created_at": _moment(said_at, "said_at"),
        }
        return self._call(
            "POST",
            user_path(user, "messages"),
            body={
                "session_id": check_id(session, "session") if session is not None else own_session(user),
                "messages": [{name: value for name, value in message.items() if value is not None}],
                "timezone": timezone,
                "scene": scene,
            },
            query={"wait": "true", "timeout_s": wait_s},
            wait_s=wait_s,
            about=message_id or "",
        )

    def send(
        self,
        user: str,
        session: str,
        messages: Sequence[Incoming],
        *,
        timezone: str | None = None,
        wait_s: float = WAIT_S,
    ) -> dict[str, Any]:
        """Store messages of any role, with their own ids and times, and wait until they are settled.

        Raises:
            MessageIdReused: one of the ids was sent before with other content.
            SessionOwned: the session belongs to another user.
        """
        listed = [
            {
                "role": one.role.value, "content": one.content, "id": one.id,
                "created_at": _moment(one.created_at, "created_at"),
            }
            for one in messages
        ]  # fmt: skip
        return self._call(
            "POST",
            user_path(user, "messages"),
            body={
                "session_id": check_id(session, "session"),
                "messages": [{k: v for k, v in one.items() if v is not None} for one in listed],
                "timezone": timezone,
            },
            query={"wait": "true", "timeout_s": wait_s},
            wait_s=wait_s,
        )

    def recall(
        self,
        user: str,
        query: str,
        *,
        session: str | None = None,
        scene: str | None = None,
        top_k: int | None = None,
        budget_chars: int | None = None,
        as_of: datetime | None = None,
        timezone: str | None = None,
    ) -> dict[str, Any]:
        """What matters for ``query``: the block for the prompt (``context``), the ``memories`` behind it, and more."""
        if not query.strip():
            raise InvalidInput("query", "is blank")
        body = {
            "query": query, "session_id": session, "scene": scene, "top_k": top_k, "budget_chars": budget_chars,
            "as_of": _moment(as_of, "as_of"), "timezone": timezone,
        }  # fmt: skip
        return self._call("POST", user_path(user, "recall"), body=body)

    def memories(self, user: str, **filters: str) -> list[dict[str, Any]]:
        """Every record of a user, newest first; ``filters`` such as ``status="active"``."""
        return self._all(user_path(user, "memories"), "memories", filters)

    def why(self, user: str, memory_id: str) -> list[dict[str, Any]]:
        """The evidence of one memory: the user's own words, where and when. Raises NotFound."""
        evidence: list[dict[str, Any]] = self.memory(user, memory_id)["evidence"]
        return evidence

    def forget(self, user: str, memory_id: str | None = None) -> dict[str, Any]:
        """Remove one memory, or, without an id, everything of the user; the receipt counts what went."""
        path = user_path(user) if memory_id is None else user_path(user, "memories", memory_id)
        return self._call("DELETE", path, about=memory_id or "")

    def end_session(self, user: str, session: str) -> None:
        """A conversation is over: what lasts moves on, the rest is archived."""
        self._call("POST", user_path(user, "sessions", session, "end"))

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._transport.close()

    def __enter__(self) -> HermesClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def own_session(user: str) -> str:
    """The session of what a user says outside any."""
    return f"default-{digest(user)}"


def _moment(value: datetime | None, field: str) -> str | None:
    if value is None:
        return None
    if value.tzinfo is None:
        raise InvalidInput(field, "has no time zone")
    return value.isoformat()
