"""One table from the domain's errors to HTTP: ``application/problem+json`` with a stable code (API, Errors)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Scope

from hermes_memory import errors
from hermes_memory.core.failures import told

log = logging.getLogger(__name__)


class TooLarge(errors.InvalidInput):
    """A body or a message is over its limit."""

    code = "too_large"


STATUS: Mapping[type[errors.HermesError], int] = {
    errors.HermesError: 500,
    errors.InvalidInput: 422,
    errors.InvalidId: 422,
    TooLarge: 413,
    errors.InvalidConfig: 500,
    errors.NotFound: 404,
    errors.SessionOwned: 409,
    errors.MessageIdReused: 409,
    errors.Illegal: 409,
    errors.MemoryFrozen: 423,
    errors.StaleMemory: 412,
    errors.PreconditionMissing: 428,
    errors.VersionConflict: 409,
    errors.Fenced: 503,
    errors.LeaseLost: 503,
    errors.ChallengeRefused: 403,
    errors.CoreFull: 409,
    errors.Refused: 422,
    errors.UserPaused: 409,
    errors.Overloaded: 429,
    errors.OutcomeUnknown: 503,
    errors.LedgerUnavailable: 503,
    errors.IndexUnavailable: 503,
    errors.ExtractionFailed: 503,
    errors.ModelFailed: 503,
    errors.DataInUse: 503,
    errors.StartupFailed: 503,
    errors.EmbedderMismatch: 503,
}

MEDIA_TYPE = "application/problem+json"

HTTP_PROBLEMS: Mapping[int, tuple[str, str]] = {
    400: ("invalid_json", "the body is not JSON that can be read"),
    404: ("no_such_route", "there is nothing at this path"),
    405: ("method_not_allowed", "this path does not take this method"),
    415: ("unsupported_media_type", "the body must come as application/json"),
}

PROBLEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "An error (RFC 9457) with a code to act on and an id to ask about.",
    "required": ["type", "title", "status", "detail", "code", "retryable", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "code": {"type": "string", "pattern": "^[a-z]+(_[a-z]+)*$"},
        "retryable": {"type": "boolean"},
        "request_id": {"type": "string"},
    },
    "additionalProperties": False,
}

_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request cannot be carried out; nothing was changed.", "content": _CONTENT},
    "5XX": {"description": "The service failed; `retryable` says whether to try again.", "content": _CONTENT},
}


def problem(
    scope: Scope,
    status: int,
    code: str,
    detail: str,
    *,
    retryable: bool = False,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """An error in the shape of RFC 9457, with a code to act on and an id to ask about."""
    body = {
        "type": f"urn:hermes-memory:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "retryable": retryable,
        "request_id": request_id(scope),
    }
    return JSONResponse(body, status, headers, media_type=MEDIA_TYPE)


def request_id(scope: Scope) -> str:
    """One id for each request, made at the first use; every answer carries it as ``X-Request-Id``."""
    state: dict[str, Any] = scope.setdefault("state", {})
    found: str = state.setdefault("request_id", f"req_{uuid.uuid4().hex[:16]}")
    return found


def of_error(scope: Scope, error: errors.HermesError) -> JSONResponse:
    """A domain error as a problem."""
    headers = {}
    if isinstance(error, errors.Overloaded):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    if isinstance(error, errors.ModelFailed):
        headers["Retry-After"] = str(max(1, round(error.after_s)))
    status = status_of(type(error))
    return problem(scope, status, error.code, error.detail, retryable=error.retryable, headers=headers)


def status_of(kind: type[errors.HermesError]) -> int:
    """The status of a kind of error: its own, or that of the nearest kind above it."""
    return next(STATUS[above] for above in kind.__mro__ if above in STATUS)


def install(app: FastAPI) -> None:
    """Make every error of ``app`` a problem."""
    app.add_exception_handler(errors.HermesError, _domain)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _domain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.HermesError)  # noqa: S101  # the handler is registered for this class
    return of_error(request.scope, error)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    """Says where and what is wrong, and never echoes the input: it may hold anything."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _plain_problem(request, 400)
    if tuple(first["loc"]) == ("body",) and isinstance(first.get("input"), bytes):
        return _plain_problem(request, 415)  # FastAPI reads only what is announced as JSON
    where = ".".join(_plain(part) for part in first["loc"])
    code = errors.InvalidId.code if first["type"] == errors.InvalidId.code else errors.InvalidInput.code
    return problem(request.scope, 422, code, f"{where}: {first['msg']}")


def _plain(part: object) -> str:
    """A piece of a location; keys that a client made up are not echoed."""
    text = str(part)
    return (
        text
        if text.isascii() and len(text) <= 40 and text.replace("_", "").replace("-", "").isalnum()
        else "?"
    )


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    return _plain_problem(request, error.status_code, dict(error.headers or {}))


def _plain_problem(request: Request, status: int, headers: dict[str, str] | None = None) -> JSONResponse:
    code, detail = HTTP_PROBLEMS.get(status, ("http_error", HTTPStatus(status).phrase))
    return problem(request.scope, status, code, detail, headers=headers)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    name = request_id(request.scope)
    log.error("unexpected error: %s", told(error), extra={"request_id": name})
    return problem(request.scope, 500, "internal", "an unexpected error; ask with the request id")
