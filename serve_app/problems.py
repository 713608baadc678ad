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

from hermes_memory import errors

log = logging.getLogger(__name__)

STATUS: Mapping[type[errors.HermesError], int] = {
    errors.InvalidInput: 422,
    errors.InvalidId: 422,
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
    errors.ExtractionFailed: 503,
    errors.DataInUse: 503,
    errors.EmbedderMismatch: 503,
}

_HTTP_CODES = {
    400: "bad_request", 404: "no_such_route", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type",
}  # fmt: skip


class TooLarge(errors.InvalidInput):
    """A body or a message is over its limit."""

    code = "too_large"


def problem(
    request: Request,
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
        "request_id": request_id(request),
    }
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def request_id(request: Request) -> str:
    """One id for each request, made at the first use."""
    if not hasattr(request.state, "request_id"):
        request.state.request_id = f"req_{uuid.uuid4().hex[:16]}"
    return str(request.state.request_id)


def install(app: FastAPI) -> None:
    """Make every error of ``app`` a problem."""
    app.add_exception_handler(errors.HermesError, _domain)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _domain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.HermesError)  # noqa: S101  # the handler is registered for this class
    headers = {}
    if isinstance(error, errors.Overloaded):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    status = (
        413
        if isinstance(error, TooLarge)
        else next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    )
    return problem(request, status, error.code, error.detail, retryable=error.retryable, headers=headers)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    """Says where and what is wrong, and never echoes the input: it may hold anything."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(request, 400, "invalid_json", "the body is not valid JSON")
    where = ".".join(_plain(part) for part in first["loc"])
    code = "invalid_id" if _is_id(first) else "invalid_input"
    return problem(request, 422, code, f"{where}: {_message(first)}")


def _is_id(first: Mapping[str, Any]) -> bool:
    cause = (first.get("ctx") or {}).get("error")
    return isinstance(cause, errors.InvalidId)


def _message(first: Mapping[str, Any]) -> str:
    cause = (first.get("ctx") or {}).get("error")
    if isinstance(cause, errors.InvalidInput):
        return cause.problem
    return str(first["msg"]).encode("utf-8", "replace").decode("utf-8")


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
    code = _HTTP_CODES.get(error.status_code, "http_error")
    return problem(
        request,
        error.status_code,
        code,
        HTTPStatus(error.status_code).phrase,
        headers=dict(error.headers or {}),
    )


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected %s in request %s", type(error).__name__, request_id(request), exc_info=error)
    return problem(request, 500, "internal", "an unexpected error; ask with the request id", retryable=False)
