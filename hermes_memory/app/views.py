"""Queries: what a user's memory holds, read from the last commit."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from hermes_memory.app.aggregating import aggregate
from hermes_memory.app.commands import (
    Aggregate,
    Ask,
    Export,
    GetMemory,
    GetProfile,
    ListConfirmations,
    ListMemories,
    Summarise,
)
from hermes_memory.app.desk import Policy
from hermes_memory.app.profiling import profile_of
from hermes_memory.app.records import (
    alert_record,
    dead_letters_record,
    memory_record,
    profile_record,
    session_record,
    turn_record,
)
from hermes_memory.app.state import UserState
from hermes_memory.core.model import USER, Memory, Status
from hermes_memory.core.text import main_language
from hermes_memory.errors import InvalidInput, NotFound
from hermes_memory.ports.ledger import Ledger

MAX_PAGE = 200
_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
FILTERS = ("status", "lock", "tier", "category", "layer", "topic", "scope")


def list_memories(state: UserState, wanted: ListMemories, _: Policy) -> dict[str, Any]:
    """A page of records, newest first, and the cursor of the next one."""
    needle = (wanted.contains or "").casefold()
    found = [
        memory
        for memory in state.memories.values()
        if all(getattr(memory, name) == value for name, value in wanted.filters.items())
        and needle in f"{memory.content} {memory.object}".casefold()
    ]
    found.sort(key=_place, reverse=True)
    return page("memories", found, wanted.cursor, wanted.limit, _place, memory_record)


def _place(memory: Memory) -> str:
    since_year_1_us = (memory.created_at - _YEAR_1) // timedelta(microseconds=1)
    return f"{since_year_1_us:018d}|{memory.id}"


def page(
    name: str,
    items: Sequence[Any],
    cursor: str | None,
    limit: int,
    place: Callable[[Any], str],
    show: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """``limit`` of the ``items`` (sorted by falling ``place``) after the cursor, in the shape of the API."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("limit", f"must be between 1 and {MAX_PAGE}")
    if cursor is not None:
        after = _after(name, cursor)
        items = [item for item in items if place(item) < after]
    shown = items[:limit]
    more = len(items) > limit
    return {
        name: [show(item) for item in shown],
        "next_cursor": encode_cursor(f"{name}\n{place(shown[-1])}") if more else None,
    }


def _after(name: str, cursor: str) -> str:
    """The place in the list ``name`` that a cursor of this list stands for."""
    owner, newline, place = decode_cursor(cursor).partition("\n")
    if owner != name or not newline:
        raise InvalidInput("cursor", "is not one that this list gave")
    return place


def encode_cursor(place: str) -> str:
    """An opaque, URL-safe form of a place in a list."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """The inverse of ``encode_cursor``. Raises InvalidInput for anything else."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise InvalidInput("cursor", "is not one that this API gave") from None


def get_memory(state: UserState, wanted: GetMemory, _: Policy) -> dict[str, Any]:
    """One whole record. Raises NotFound."""
    memory = state.memories.get(wanted.memory_id)
    if memory is None:
        raise NotFound("memory")
    return memory_record(memory)


def get_profile(state: UserState, wanted: GetProfile, policy: Policy) -> dict[str, Any]:
    """The user model by layer and dimension, or what is known of another person (SPEC §8)."""
    profile = profile_record(profile_of(state, policy.dimensions, policy.rules.profile, wanted.subject))
    return {**profile, "behavior": dict(state.settings.behavior) if wanted.subject == USER else {}}


def list_confirmations(state: UserState, wanted: ListConfirmations, _: Policy) -> dict[str, Any]:
    """A page of confirmation requests, newest first."""

    def place(record: Mapping[str, Any]) -> str:
        return f"{record['created_at']}|{record['id']}"

    records = sorted(state.settings.confirmations.values(), key=place, reverse=True)
    return page("confirmations", records, wanted.cursor, wanted.limit, place, dict)


async def alerts_page(ledger: Ledger, namespace: str, cursor: str | None, limit: int) -> dict[str, Any]:
    """A page of the open alerts of a namespace."""
    after = _after("alerts", cursor) if cursor is not None else ""
    found = await ledger.alerts(namespace, after, limit + 1)
    more = encode_cursor(f"alerts\n{found[limit - 1].id}") if len(found) > limit else None
    return {"alerts": [alert_record(alert) for alert in found[:limit]], "next_cursor": more}


async def dead_letters_page(ledger: Ledger, namespace: str, cursor: str | None, limit: int) -> dict[str, Any]:
    """A page of the users of a namespace with memories that the index refused, and the oldest of these."""
    first = f"{quote(namespace, safe='')}/"
    after = first + _after("dead_letters", cursor) if cursor is not None else first
    keys = [
        key for key in await ledger.outbox_users(after, limit + 1, buried=True) if key.namespace == namespace
    ]
    shown = keys[:limit]
    more = encode_cursor(f"dead_letters\n{str(shown[-1]).removeprefix(first)}") if len(keys) > limit else None
    return {
        "dead_letters": [
            dead_letters_record(key, await ledger.read_outbox(key, MAX_PAGE, buried=True)) for key in shown
        ],
        "next_cursor": more,
    }


def summarise(state: UserState, wanted: Summarise, policy: Policy) -> dict[str, Any]:
    """The list in plain words, with quotes (SPEC §11)."""
    memories = [m for m in state.live.values() if m.status is Status.ACTIVE]
    language = wanted.language or main_language(m.content for m in memories)
    lines = [
        {
            "memory_id": m.id,
            "label": policy.dimensions.label(m.dimension, language) or m.predicate,
            "text": m.content,
            "lock": m.lock.value,
            "quotes": [piece.quote for piece in m.evidence],
        }
        for m in sorted(memories, key=_place, reverse=True)
    ]
    return {"language": language, "memories": lines, "version": state.version}


def export(state: UserState, _: Export, policy: Policy) -> dict[str, Any]:
    """Everything the state holds, in an order of its own; the runtime adds raw turns and audit from the ledger.

    Only open challenges are left out: they prove one instruction, and are worth nothing anywhere else.
    """
    settings = state.settings
    memories = sorted(map(_counted(state), state.memories.values()), key=_place)
    requests = sorted(settings.confirmations.values(), key=lambda each: (each["created_at"], each["id"]))
    turns = sorted(state.turns.values(), key=lambda turn: (turn.received_at, turn.session_id, turn.index))
    return {
        "format": "hermes-memory/1",
        "user": state.key.user_id,
        "version": state.version,
        "memories": [memory_record(memory) for memory in memories],
        "sessions": [session_record(state.sessions[id_]) for id_ in sorted(state.sessions)],
        "confirmations": [dict(record) for record in requests],
        "settings": {
            "paused": settings.paused,
            "consent": _sorted(settings.consent),
            "timezone": settings.timezone,
            "profile": _sorted(settings.profile),
            "behavior": _sorted(settings.behavior),
            "spent": {"day": settings.spent.day, "tokens": settings.spent.tokens},
        },
        "profile": get_profile(state, GetProfile(), policy),
        "tally": {day: _sorted(state.tally[day]) for day in sorted(state.tally)},
        "turns": [turn_record(turn) for turn in turns],
    }


def _counted(state: UserState) -> Callable[[Memory], Memory]:
    """A memory with the recalls that are not written down yet."""

    def counted(memory: Memory) -> Memory:
        more = state.access.get(memory.id)
        if more is None:
            return memory
        return memory.with_(access_count=memory.access_count + more.count, last_access_at=more.last_at)

    return counted


def _sorted(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(values)}


View = Callable[[UserState, Any, Policy], dict[str, Any]]

VIEWS: dict[type[Ask], View] = {
    ListMemories: list_memories,
    GetMemory: get_memory,
    GetProfile: get_profile,
    ListConfirmations: list_confirmations,
    Summarise: summarise,
    Export: export,
    Aggregate: aggregate,
}
