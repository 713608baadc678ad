"""What comes in over HTTP, validated: every number that a client decides has a limit (API, ARCHITECTURE §7)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from hermes_memory.core.confirmation import Choice
from hermes_memory.core.ids import MAX_ID_CHARS, check_id
from hermes_memory.core.model import MAX_CONTENT_CHARS, MAX_FELT, Role, Signal
from hermes_memory.errors import InvalidId, InvalidInput

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, LookupError):
        raise _wrong("is not a known IANA time zone") from None
    return value


def _text_time(value: Any) -> Any:
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise _wrong("must be an RFC 3339 string with offset")
    return value


def _sane_time(value: datetime) -> datetime:
    try:
        sane = EARLIEST <= value <= LATEST
    except OverflowError:
        sane = False
    if not sane:
        raise _wrong("lies outside the years 1900 to 2199")
    return value


def _id(value: str) -> str:
    try:
        return check_id(value, "id")
    except InvalidId as error:
        raise _wrong(error.problem, error.code) from None


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, controls, zero-width characters."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _encodable(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong("holds lone surrogates") from None
    return value


def _not_blank(value: str) -> str:
    if is_blank(value):
        raise _wrong("is blank")
    return value


def _wrong(problem: str, code: str = InvalidInput.code) -> PydanticCustomError:
    """What a validator raises, so that the answer says where it was."""
    return PydanticCustomError(code, problem)


Time = Annotated[AwareDatetime, BeforeValidator(_text_time), AfterValidator(_sane_time)]
TimeZone = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_zone)]
Id = Annotated[str, AfterValidator(_id), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_ID_CHARS})]
Scene = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_id)]
Text = Annotated[str, AfterValidator(_encodable)]
Statement = Annotated[
    Text, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS), AfterValidator(_not_blank)
]
Reason = Annotated[Text, StringConstraints(min_length=1, max_length=500), AfterValidator(_not_blank)]


class Body(BaseModel):
    """Base of all bodies: an unknown field is an error, so that a typo is not silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MessageIn(Body):
    """One turn. ``id`` makes the request idempotent for this message; ``created_at`` is statement time."""

    role: Role
    content: Text
    id: Id | None = None
    created_at: Time | None = None


class MessagesIn(Body):
    """Turns of one conversation, oldest first."""

    session_id: Id
    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=200)]
    timezone: TimeZone | None = None
    scene: Scene | None = None


class RecallIn(Body):
    """A query and where it is asked from."""

    query: Annotated[Text, AfterValidator(_not_blank)]
    session_id: Id | None = None
    scene: Scene | None = None
    top_k: Annotated[int, Field(ge=1, le=50, strict=True)] | None = None
    budget_chars: Annotated[int, Field(ge=200, le=100_000, strict=True)] | None = None
    timezone: TimeZone | None = None
    as_of: Time | None = None
    include: Annotated[list[Literal["memories", "profile", "ask"]], Field(max_length=3)] = [
        "memories",
        "profile",
        "ask",
    ]


class StatementIn(Body):
    """A memory stated in a panel."""

    content: Statement
    session_id: Id | None = None
    scope: Literal["session", "scene", "user"] | None = None


class MemoryPatch(Body):
    """What may be edited; a field left out stays."""

    content: Statement | None = None
    scope: Literal["session", "scene", "user"] | None = None
    scene: Scene | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None


class ConfirmIn(Body):
    """The panel's confirm; the session defaults to the panel's own."""

    session_id: Id = "panel"


class FreezeIn(Body):
    """A reason for freezing by hand."""

    reason: Reason = "frozen in the panel"


class UnfreezeIn(Body):
    """Reason and source dialog are mandatory (SPEC §5)."""

    reason: Reason
    source_session_id: Id


class ChallengeAnswer(Body):
    """The one-time code."""

    answer: Annotated[Text, StringConstraints(min_length=1, max_length=128)]


class ConfirmationAnswer(Body):
    """The choice among the options of a confirmation request."""

    choice: Choice


class FeedbackIn(Body):
    """What the user made of memories that a recall of this conversation gave."""

    session_id: Id
    memory_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_FELT)]
    signal: Signal


class ConsentIn(Body):
    """What the user agrees to; a field left out stays."""

    sensitive: Annotated[bool, Field(strict=True)] | None = None
    cohort: Annotated[bool, Field(strict=True)] | None = None


class MaintainIn(Body):
    """As of when the night's work is done."""

    now: Time | None = None


class HostsIn(Body):
    """How many hosts shall carry the users; the configuration says how many at most."""

    hosts: Annotated[int, Field(ge=1, le=10_000, strict=True)]
