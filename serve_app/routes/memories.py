"""Memories: list, read, edit, delete, confirm, freeze, the verified unfreeze (API, Memories)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from hermes_memory.app.commands import (
    AnswerChallenge,
    ConfirmMemory,
    Delete,
    Edit,
    FreezeMemory,
    GetMemory,
    Incoming,
    Ingest,
    ListMemories,
    RequestUnfreeze,
)
from hermes_memory.app.users import operation_id_of
from hermes_memory.core.model import Category, EvidenceKind, Layer, Lock, Role, Scope, Status, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.errors import ExtractionFailed, InvalidInput, Refused
from hermes_memory.ports.ledger import JobStatus
from serve_app.schemas import ChallengeAnswer, ConfirmIn, FreezeIn, MemoryPatch, StatementIn, UnfreezeIn
from serve_app.services import ChallengePath, MemoryPath, Services_, User

router = APIRouter(tags=["memories"])

_ETAG = re.compile(r'\s*(?:"([0-9]{1,15})"|([0-9]{1,15}))\s*')

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=512)]


@router.get("/v1/users/{user}/memories", summary="A page of memories, newest first")
async def list_memories(
    key: User,
    at: Services_,
    status: Status | None = None,
    lock: Lock | None = None,
    tier: Tier | None = None,
    category: Category | None = None,
    layer: Layer | None = None,
    topic: Annotated[str | None, Query(max_length=128)] = None,
    scope: Scope | None = None,
    q: Annotated[str | None, Query(max_length=256)] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Records of SPEC §3.1; without ``status`` those of every status."""
    given = {
        "status": status, "lock": lock, "tier": tier, "category": category, "layer": layer, "topic": topic, "scope": scope,
    }  # fmt: skip
    filters = {name: str(value) for name, value in given.items() if value is not None}
    return await at.users.ask(key, ListMemories(filters=filters, contains=q, cursor=cursor, limit=limit))


@router.post(
    "/v1/users/{user}/memories",
    status_code=201,
    summary="State a memory in a panel",
    responses={202: {"description": "Safe, but not read yet: the job says when."}},
)
async def state_memory(key: User, body: StatementIn, at: Services_, response: Response) -> dict[str, Any]:
    """The statement is a user turn of its own; it goes through the gates, and 422 says what they refused."""
    command = Ingest(
        session_id=body.session_id or f"panel-{key.hashed[:16]}",
        messages=(Incoming(role=Role.USER, content=body.content),),
        timezone=at.settings.api.default_timezone,
        kind=EvidenceKind.PANEL,
    )
    accepted = await at.users.execute(key, command, operation_id_of(command))
    job = await at.users.wait(key, accepted["job_id"], at.settings.api.default_wait_s)
    if job is None:  # it will be read later; the job says when
        response.status_code = 202
        return {**accepted, "changes": [], "memory_ids": []}
    if job["status"] == JobStatus.FAILED:
        raise ExtractionFailed(job["reason"])
    changes = job["changes"]
    kept = [change for change in changes if change["memory_id"] and change["op"] != "refused"]
    if not kept:
        raise Refused(changes[0]["reason"] if changes else Reason.LOW_VALUE)
    return {
        **accepted,
        "changes": changes,
        "memory_ids": list(dict.fromkeys(change["memory_id"] for change in kept)),
    }


@router.get("/v1/users/{user}/memories/{memory}", summary="One whole record")
async def get_memory(key: User, memory: MemoryPath, at: Services_, response: Response) -> dict[str, Any]:
    """The record, with its version as the ETag."""
    record = await at.users.ask(key, GetMemory(memory_id=memory))
    response.headers["ETag"] = f'"{record["version"]}"'
    return record


@router.get("/v1/users/{user}/memories/{memory}/history", summary="What a memory was before")
async def get_history(key: User, memory: MemoryPath, at: Services_) -> dict[str, Any]:
    """Old values with when, why and by which turn, oldest first."""
    record = await at.users.ask(key, GetMemory(memory_id=memory))
    return {"history": record["history"], "next_cursor": None}


@router.patch("/v1/users/{user}/memories/{memory}", summary="Edit a memory")
async def patch_memory(
    key: User,
    memory: MemoryPath,
    body: MemoryPatch,
    at: Services_,
    response: Response,
    if_match: Annotated[str | None, Header()] = None,
    hermes_unfreeze: Annotated[str | None, Header(max_length=256)] = None,
) -> dict[str, Any]:
    """Needs ``If-Match``; a frozen memory also needs ``Hermes-Unfreeze``, which opens it for this one change."""
    command = Edit(
        memory_id=memory,
        expected_version=_version(if_match),
        unfreeze_token=hermes_unfreeze,
        **body.model_dump(exclude_unset=True),
    )
    record: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    response.headers["ETag"] = f'"{record["version"]}"'
    return record


def _version(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    found = _ETAG.fullmatch(if_match)
    if found is None:
        raise InvalidInput("If-Match", "must be the version from the ETag")
    return int(found[1] or found[2])


@router.delete("/v1/users/{user}/memories/{memory}", summary="Remove one memory, physically")
async def delete_memory(key: User, memory: MemoryPath, at: Services_) -> dict[str, Any]:
    """Its words go from waiting turns and working memory too; the receipt counts what went."""
    command = Delete(memory_id=memory)
    receipt: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return receipt


@router.post("/v1/users/{user}/memories/{memory}/confirm", summary="Confirm a memory")
async def confirm_memory(
    key: User, memory: MemoryPath, at: Services_, body: ConfirmIn | None = None
) -> dict[str, Any]:
    """Counts once for each memory and session."""
    command = ConfirmMemory(memory_id=memory, session_id=(body or ConfirmIn()).session_id)
    record: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return record


@router.post("/v1/users/{user}/memories/{memory}/freeze", summary="Freeze a memory by hand")
async def freeze_memory(
    key: User, memory: MemoryPath, at: Services_, body: FreezeIn | None = None
) -> dict[str, Any]:
    """Needs room in the core tier."""
    command = FreezeMemory(memory_id=memory, reason=(body or FreezeIn()).reason)
    record: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return record


@router.post(
    "/v1/users/{user}/memories/{memory}/unfreeze", status_code=202, summary="Ask for an unfreeze challenge"
)
async def request_unfreeze(key: User, memory: MemoryPath, body: UnfreezeIn, at: Services_) -> dict[str, Any]:
    """A one-time code to echo in a later request (SPEC §5)."""
    command = RequestUnfreeze(memory_id=memory, reason=body.reason, source_session_id=body.source_session_id)
    challenge: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return challenge


@router.post(
    "/v1/users/{user}/memories/{memory}/unfreeze/{challenge}", summary="Answer an unfreeze challenge"
)
async def answer_challenge(
    key: User, memory: MemoryPath, challenge: ChallengePath, body: ChallengeAnswer, at: Services_
) -> dict[str, Any]:
    """The right code gives a token for one change; a wrong one is 403."""
    command = AnswerChallenge(memory_id=memory, challenge_id=challenge, answer=body.answer)
    token: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return token
