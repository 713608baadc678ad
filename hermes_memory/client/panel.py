"""The calls of a user's own panel, and of health checks: read, edit, confirm, freeze, unfreeze, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hermes_memory.client.transport import Transport, user_path
from hermes_memory.core.ids import check_id

PAGE = 200
STATE_WAIT_S = 30.0  # the server extracts before it answers


class Panel:
    """What a panel asks of the server; errors are those of ``hermes_memory.errors``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._call = transport.call

    def memory(self, user: str, memory_id: str) -> dict[str, Any]:
        """One whole record. Raises NotFound."""
        return self._call("GET", user_path(user, "memories", memory_id))

    def history(self, user: str, memory_id: str) -> list[dict[str, Any]]:
        """What a memory was before, oldest first. Raises NotFound."""
        answer = self._call("GET", user_path(user, "memories", memory_id, "history"))
        history: list[dict[str, Any]] = answer["history"]
        return history

    def state(
        self, user: str, content: str, *, session: str | None = None, scope: str | None = None
    ) -> dict[str, Any]:
        """State a memory as in a panel; its ids are in ``memory_ids``. Raises Refused with the gate's reason."""
        body = {"content": content, "session_id": session, "scope": scope}
        return self._call("POST", user_path(user, "memories"), body=body, wait_s=STATE_WAIT_S)

    def edit(
        self, user: str, memory_id: str, version: int, *, unfreeze_token: str | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Change content, scope, scene, valid_from or valid_to of the ``version`` that was read; the new record.

        Raises:
            StaleMemory: somebody changed it since.
            MemoryFrozen: it is frozen, and ``unfreeze_token`` does not open it.
        """
        headers = {"If-Match": f'"{version}"'}
        if unfreeze_token is not None:
            headers["Hermes-Unfreeze"] = unfreeze_token
        path = user_path(user, "memories", memory_id)
        return self._call("PATCH", path, body=changes, headers=headers, about=memory_id)

    def confirm(self, user: str, memory_id: str, *, session: str | None = None) -> dict[str, Any]:
        """Confirm a memory; counts once for each session. The record afterwards."""
        path = user_path(user, "memories", memory_id, "confirm")
        return self._call("POST", path, body={"session_id": session}, about=memory_id)

    def freeze(self, user: str, memory_id: str, *, reason: str | None = None) -> dict[str, Any]:
        """Freeze a memory by hand; the record afterwards. Raises CoreFull when there is no room."""
        path = user_path(user, "memories", memory_id, "freeze")
        return self._call("POST", path, body={"reason": reason}, about=memory_id)

    def request_unfreeze(
        self, user: str, memory_id: str, *, reason: str, source_session: str
    ) -> dict[str, Any]:
        """Ask for a challenge: ``challenge_id`` and the one-time ``code`` to echo."""
        body = {"reason": reason, "source_session_id": source_session}
        return self._call("POST", user_path(user, "memories", memory_id, "unfreeze"), body=body)

    def answer_challenge(self, user: str, memory_id: str, challenge_id: str, answer: str) -> dict[str, Any]:
        """Echo the code; the ``token`` opens the memory for one edit. Raises ChallengeRefused."""
        path = user_path(user, "memories", memory_id, "unfreeze", challenge_id)
        return self._call("POST", path, body={"answer": answer}, about=memory_id)

    def profile(self, user: str) -> dict[str, Any]:
        """The user model by layer and dimension."""
        return self._call("GET", user_path(user, "profile"))

    def summary(self, user: str, *, language: str | None = None) -> dict[str, Any]:
        """What is remembered, in plain words with quotes; ``language`` is zh or en."""
        return self._call("GET", user_path(user, "summary"), query={"lang": language})

    def confirmations(self, user: str) -> list[dict[str, Any]]:
        """Every question to the user, newest first."""
        return self._all(user_path(user, "confirmations"), "confirmations")

    def answer_confirmation(self, user: str, request_id: str, choice: str) -> dict[str, Any]:
        """Answer a question with one of its options' choices."""
        return self._call("POST", user_path(user, "confirmations", request_id), body={"choice": choice})

    def audit(self, user: str) -> list[dict[str, Any]]:
        """What happened to the memories, oldest first."""
        return self._all(user_path(user, "audit"), "audit")

    def export(self, user: str) -> dict[str, Any]:
        """Everything that is kept about the user."""
        return self._call("GET", user_path(user, "export"))

    def forget_kind(self, user: str, kind: str) -> dict[str, Any]:
        """Remove one kind of memories: a layer's name, or ``event``; the receipt counts what went."""
        return self._call("DELETE", user_path(user), query={"kind": kind})

    def pause(self, user: str) -> dict[str, Any]:
        """Stop remembering."""
        return self._call("POST", user_path(user, "pause"))

    def resume(self, user: str) -> dict[str, Any]:
        """Remember again; what was said while paused is not made up for."""
        return self._call("POST", user_path(user, "resume"))

    def consent(
        self, user: str, *, sensitive: bool | None = None, cohort: bool | None = None
    ) -> dict[str, Any]:
        """Record consent to sensitive matters and to cohort profiles; None leaves one as it is."""
        return self._call("PUT", user_path(user, "consent"), body={"sensitive": sensitive, "cohort": cohort})

    def feedback(self, user: str, session: str, memory_ids: Sequence[str], signal: str) -> dict[str, Any]:
        """What the user made of recalled memories: like, dislike, click or ignore. Moves their rank only."""
        body = {"session_id": session, "memory_ids": list(memory_ids), "signal": signal}
        return self._call("POST", user_path(user, "feedback"), body=body)

    def job(self, job_id: str) -> dict[str, Any]:
        """Where an extraction job stands. Raises NotFound."""
        return self._call("GET", f"/v1/jobs/{quote(check_id(job_id, 'job_id'), safe='')}")

    def ready(self) -> dict[str, Any]:
        """Every dependency by name. Raises ApiError (503) while one of them does not answer."""
        return self._call("GET", "/readyz")

    def _all(self, path: str, name: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Every page of a list."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            asked = {**(query or {}), "cursor": cursor, "limit": PAGE}
            page = self._call("GET", path, query=asked)
            found += page[name]
            cursor = page["next_cursor"]
            if cursor is None:
                return found
