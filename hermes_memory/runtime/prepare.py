"""What a command needs looked up before it can be decided without I/O."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from hermes_memory.app.commands import (
    AnswerChallenge,
    Command,
    ConfirmMemory,
    Delete,
    Edit,
    EndSession,
    EraseKind,
    Feedback,
    Ingest,
    Maintain,
    RequestUnfreeze,
)
from hermes_memory.app.editing import Reading
from hermes_memory.app.ingest import check_ids, check_times
from hermes_memory.app.state import UserState
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role, Turn
from hermes_memory.errors import SessionOwned

if TYPE_CHECKING:
    from hermes_memory.runtime.active import Surroundings

PANEL_SESSION = "panel"  # where a confirmation counts that names no session
_NAMED_USER = re.compile(r"^\s*(?:(用户|使用者)|(the user))\s*", re.IGNORECASE)


async def prepare(key: UserKey, state: UserState, command: Command, around: Surroundings) -> Any:
    """The facts that ``command`` is decided on besides the state; None for most."""
    step = _STEPS.get(type(command))
    return await step(key, state, command, around) if step else None


async def read_ahead(state: UserState, command: Command, around: Surroundings) -> Reading | None:
    """What needs a model, done before the command's turn comes: a mailbox never waits for a model."""
    return await _edit(state.key, state, command, around) if isinstance(command, Edit) else None


async def _ingest(key: UserKey, state: UserState, command: Ingest, around: Surroundings) -> Any:
    """Bind the session, and find out which of the messages are known; what is invalid binds nothing."""
    check_times(command, around.clock.now())
    check_ids(command)
    await around.ledger.bind_session(key, command.session_id)
    ids = [message.id for message in command.messages if message.id is not None]
    return await around.ledger.seen_messages(key, command.session_id, ids) if ids else {}


async def _named(
    key: UserKey, state: UserState, command: EndSession | ConfirmMemory | Feedback, around: Surroundings
) -> None:
    """A session that is named must not be another user's; an unknown one is nobody's and stays so."""
    if command.session_id in state.sessions or command.session_id == PANEL_SESSION:
        return
    owner = await around.ledger.session_owner(key.namespace, command.session_id)
    if owner not in {None, key.user_id}:
        raise SessionOwned


async def _edit(key: UserKey, state: UserState, command: Edit, around: Surroundings) -> Reading | None:
    """Read the new text as if the user had said it, so that object and dimension follow the words."""
    if command.content is None or command.memory_id not in state.memories:
        return None
    text = around.policy.mask(command.content.strip())
    spoken = _NAMED_USER.sub(lambda found: "我" if found[1] else "I ", text)
    vectors = await around.distiller.embed([text])
    distilled = await around.distiller.distil(
        ExtractionRequest(turns=(_as_turn(spoken, around.clock.now()),))
    )
    candidates = distilled.extraction.candidates
    return Reading(vectors[0], candidates[0] if len(candidates) == 1 else None)


def _as_turn(text: str, now: datetime) -> Turn:
    return Turn(
        session_id="panel", index=0, message_id="panel", role=Role.USER, content=text, created_at=now,
        received_at=now, timezone="UTC",
    )  # fmt: skip


async def _kept(key: UserKey, state: UserState, command: Command, around: Surroundings) -> list[Turn]:
    """Every raw turn that is still kept: what is erased goes from those outside the window too."""
    return await around.ledger.turns(key)


async def _zone(key: UserKey, state: UserState, command: Maintain, around: Surroundings) -> tzinfo | None:
    """The zone that the user last wrote from: the night's days are its days."""
    return await around.zones.of(state.settings.timezone or None)


async def _secret(key: UserKey, state: UserState, command: Command, around: Surroundings) -> str:
    """A one-time code or token: chance is an input, so that deciding stays pure."""
    code = isinstance(command, RequestUnfreeze) and not command.by_operator
    return secrets.token_hex(4 if code else 16)


_STEPS: dict[type[Command], Callable[[UserKey, UserState, Any, Surroundings], Awaitable[Any]]] = {
    Ingest: _ingest,
    EndSession: _named,
    ConfirmMemory: _named,
    Feedback: _named,
    Edit: _edit,
    Delete: _kept,
    EraseKind: _kept,
    Maintain: _zone,
    RequestUnfreeze: _secret,
    AnswerChallenge: _secret,
}
