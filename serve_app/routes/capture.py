"""Capture: messages in, jobs, the end of a session (API, Capture)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from hermes_memory.app.commands import EndSession, Incoming, Ingest
from hermes_memory.app.records import job_record
from hermes_memory.app.users import operation_id_of
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import InvalidInput, NotFound
from serve_app.problems import TooLarge
from serve_app.schemas import MessagesIn, is_blank
from serve_app.services import DEFAULT_NAMESPACE, JobPath, Services, Services_, SessionPath, User

router = APIRouter(tags=["capture"])


@router.post(
    "/v1/users/{user}/messages",
    status_code=202,
    summary="Take turns in; wait=true waits for extraction",
    responses={200: {"description": "With `wait=true`: what the gates made of them."}},
)
async def post_messages(
    key: User,
    body: MessagesIn,
    at: Services_,
    response: Response,
    wait: Annotated[bool, Query()] = False,
    timeout_s: Annotated[float | None, Query(gt=0, le=120)] = None,
) -> dict[str, Any]:
    """Append the turns durably and queue them.

    202 with a job id once they are safe; with ``wait=true`` 200 with what the gates made of them, or 202 when
    the time is over first. Messages that were sent before count as duplicates.
    """
    command = ingest_command(body, at)
    longest_s = at.settings.api.max_wait_s
    if timeout_s is not None and timeout_s > longest_s:
        raise InvalidInput("timeout_s", f"must be at most {longest_s:g}")
    accepted: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    at.metrics.count("hermes_messages_total", accepted["accepted"])
    if not wait:
        return accepted
    if accepted["duplicates"] == len(command.messages):
        response.status_code = 200
        return {**accepted, "status": "done", "reason": None, "changes": [], "version": None}
    return await settled(key, accepted, timeout_s or at.settings.api.default_wait_s, at, response)


def ingest_command(body: MessagesIn, at: Services) -> Ingest:
    """The command of a POST; blank messages carry nothing and are left out."""
    limits = at.settings.api
    if len(body.messages) > limits.max_messages:
        raise InvalidInput("messages", f"must be at most {limits.max_messages}")
    spoken = [message for message in body.messages if not is_blank(message.content)]
    if not spoken:
        raise InvalidInput("messages", "hold no content")
    for number, message in enumerate(body.messages):
        if len(message.content) > limits.max_content_chars:
            raise TooLarge(
                f"messages.{number}.content", f"has more than {limits.max_content_chars} characters"
            )
    return Ingest(
        session_id=body.session_id,
        messages=tuple(
            Incoming(role=m.role, content=m.content, id=m.id, created_at=m.created_at) for m in spoken
        ),
        timezone=body.timezone or limits.default_timezone,
        scene=body.scene,
    )


async def settled(
    key: UserKey, accepted: dict[str, Any], timeout_s: float, at: Services, response: Response
) -> dict[str, Any]:
    """What became of an accepted POST, as 200; the acceptance, as 202, when the time is over first."""
    job = await at.users.wait(key, accepted["job_id"], timeout_s)
    if job is None:
        return accepted
    response.status_code = 200
    return {**accepted, **{name: job[name] for name in ("status", "reason", "changes", "version")}}


@router.get("/v1/jobs/{job}", summary="Where an extraction job stands")
async def get_job(job: JobPath, at: Services_) -> dict[str, Any]:
    """Status queued, running, done or failed, with reason, attempts and, at the end, the changes."""
    found = await at.ledger.job(DEFAULT_NAMESPACE, job)
    if found is None:
        raise NotFound("job")
    return job_record(found[1])


@router.post("/v1/users/{user}/sessions/{session}/end", summary="End a conversation")
async def end_session(key: User, session: SessionPath, at: Services_) -> dict[str, Any]:
    """What lasts moves to longterm, what was of the session is archived."""
    command = EndSession(session_id=session)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer
