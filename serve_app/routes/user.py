"""The user: profile, summary, confirmations, audit, export, pause, consent, erasure (API, The user)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from hermes_memory.app.commands import (
    AnswerConfirmation,
    EraseKind,
    EraseUser,
    Export,
    Feedback,
    GetProfile,
    ListAudit,
    ListConfirmations,
    SetConsent,
    SetPaused,
    Summarise,
)
from hermes_memory.app.users import operation_id_of
from serve_app.routes.memories import Cursor, Limit
from serve_app.schemas import ConfirmationAnswer, ConsentIn, FeedbackIn
from serve_app.services import ConfirmationPath, Services_, User

router = APIRouter(tags=["user"])

Kind = Literal["all", "preference", "restriction", "identity", "style", "context", "event"]


@router.get("/v1/users/{user}/profile", summary="The user model")
async def get_profile(key: User, at: Services_) -> dict[str, Any]:
    """Layer, dimension, slot; recomputed from the memories as they are."""
    return await at.users.ask(key, GetProfile())


@router.get("/v1/users/{user}/summary", summary="What do you remember about me")
async def get_summary(key: User, at: Services_, lang: Literal["zh", "en"] | None = None) -> dict[str, Any]:
    """Plain words with quotes."""
    return await at.users.ask(key, Summarise(language=lang))


@router.get("/v1/users/{user}/confirmations", summary="Confirmation requests, newest first")
async def list_confirmations(
    key: User, at: Services_, cursor: Cursor = None, limit: Limit = 50
) -> dict[str, Any]:
    """Open, answered and expired ones."""
    return await at.users.ask(key, ListConfirmations(cursor=cursor, limit=limit))


@router.post("/v1/users/{user}/confirmations/{confirmation}", summary="Answer a confirmation request")
async def answer_confirmation(
    key: User, confirmation: ConfirmationPath, body: ConfirmationAnswer, at: Services_
) -> dict[str, Any]:
    """The answer is verification enough for a frozen memory (SPEC §5)."""
    command = AnswerConfirmation(request_id=confirmation, choice=body.choice)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer


@router.get("/v1/users/{user}/audit", summary="What happened to the memories, oldest first")
async def get_audit(key: User, at: Services_, cursor: Cursor = None, limit: Limit = 50) -> dict[str, Any]:
    """Ids, reasons and versions; never content."""
    return await at.users.ask(key, ListAudit(cursor=cursor, limit=limit))


@router.get("/v1/users/{user}/export", summary="Everything that is kept about the user")
async def export(key: User, at: Services_) -> dict[str, Any]:
    """Memories, sessions, turns, confirmations, settings, audit."""
    return await at.users.ask(key, Export())


@router.post("/v1/users/{user}/pause", summary="Stop remembering")
async def pause(key: User, at: Services_) -> dict[str, Any]:
    """Turns that wait are not read any more."""
    answer: dict[str, Any] = await at.users.execute(
        key, SetPaused(paused=True), operation_id_of(SetPaused(paused=True))
    )
    return answer


@router.post("/v1/users/{user}/resume", summary="Remember again")
async def resume(key: User, at: Services_) -> dict[str, Any]:
    """What was said while paused is not made up for."""
    command = SetPaused(paused=False)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer


@router.put("/v1/users/{user}/consent", summary="Record consent")
async def put_consent(key: User, body: ConsentIn, at: Services_) -> dict[str, Any]:
    """To sensitive matters, to cohort profiles."""
    command = SetConsent(sensitive=body.sensitive, cohort=body.cohort)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer


@router.post("/v1/users/{user}/feedback", summary="What the user made of what was recalled")
async def post_feedback(key: User, body: FeedbackIn, at: Services_) -> dict[str, Any]:
    """Moves the rank of the memories, never what they say; the same signal of a conversation counts once."""
    command = Feedback(session_id=body.session_id, memory_ids=tuple(body.memory_ids), signal=body.signal)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer


@router.delete("/v1/users/{user}", summary="Erase a user, or one kind of memories")
async def erase(key: User, at: Services_, kind: Annotated[Kind, Query()] = "all") -> dict[str, Any]:
    """Physical and everywhere; the receipt counts what went and what could still be found."""
    command = EraseUser() if kind == "all" else EraseKind(kind=kind)
    receipt: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return receipt
