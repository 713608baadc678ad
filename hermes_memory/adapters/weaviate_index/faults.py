"""What an error of the client means. Weaviate tells most of it in sentences only, so they are read here alone.

A sentence of the server may quote what was stored, so none of them goes further: only the codes below do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import StrEnum

import httpx
from grpc import StatusCode  # type: ignore[import-untyped]  # grpcio ships no types
from grpc.aio import AioRpcError  # type: ignore[import-untyped]  # the same
from weaviate.exceptions import (
    InsufficientPermissionsError,
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateClosedClientError,
    WeaviateConnectionError,
    WeaviateStartUpError,
    WeaviateTimeoutError,
)

CLIENT_ERRORS = (WeaviateBaseError, AioRpcError, httpx.HTTPError, OSError)


class Fault(StrEnum):
    """Why a request failed. All but the first three end as an IndexUnavailable of this name."""

    MISSING = "tenant_missing"  # nobody has put anything for this user
    ASLEEP = "tenant_asleep"
    MOVING = "busy"  # the tenant is being put to sleep, woken or dropped; or something the server cannot name
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    CLOSED = "closed"
    UNAUTHORISED = "unauthorised"
    NO_COLLECTION = "no_collection"  # `open` makes it
    SERVER_ERROR = "server_error"


class TenantError(Exception):
    """The user's tenant is not there, asleep or changing; never leaves the adapter."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class Refusal(StrEnum):
    """Why a document will never be taken."""

    BAD_ID = "bad_id"
    BAD_VECTOR = "bad_vector"
    TOO_LARGE = "too_large"
    REJECTED = "rejected"  # the server takes the others and says of this one what we cannot read


_OF_STATUS = {
    StatusCode.UNAVAILABLE: Fault.UNREACHABLE,
    StatusCode.CANCELLED: Fault.UNREACHABLE,  # the channel was closed under the call
    StatusCode.DEADLINE_EXCEEDED: Fault.TIMEOUT,
    StatusCode.UNAUTHENTICATED: Fault.UNAUTHORISED,
    StatusCode.PERMISSION_DENIED: Fault.UNAUTHORISED,
    StatusCode.RESOURCE_EXHAUSTED: Fault.MOVING,
}
_OF_TYPE: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    ((WeaviateTimeoutError, httpx.TimeoutException), Fault.TIMEOUT),
    ((WeaviateClosedClientError,), Fault.CLOSED),
    ((InsufficientPermissionsError,), Fault.UNAUTHORISED),
    ((WeaviateConnectionError, WeaviateStartUpError, httpx.HTTPError, OSError), Fault.UNREACHABLE),
)
_OF_HTTP = {401: Fault.UNAUTHORISED, 403: Fault.UNAUTHORISED, 429: Fault.MOVING}
_SENTENCES = (
    ("tenant not active", Fault.ASLEEP),
    ("tenant not found", Fault.MISSING),
    ("could not find class", Fault.NO_COLLECTION),
    ("class not found", Fault.NO_COLLECTION),
    ("could not check if tenant exists", Fault.NO_COLLECTION),
    ("multi-tenancy disabled", Fault.NO_COLLECTION),  # the server made one by itself: it is none of ours
    ("multi-tenancy is not enabled", Fault.NO_COLLECTION),
    ("update_tenant: shard not found", Fault.MISSING),
    ("deadline exceeded", Fault.TIMEOUT),
)
_WRONG_LENGTH = ("wrong size", "vector lengths don't match")


def fault_of(error: BaseException) -> Fault:
    """What an error out of ``CLIENT_ERRORS`` means."""
    for status in _statuses(error):
        if status in _OF_STATUS:
            return _OF_STATUS[status]
    for kinds, fault in _OF_TYPE:
        if isinstance(error, kinds):
            return fault
    if isinstance(error, UnexpectedStatusCodeError):
        if error.status_code in _OF_HTTP:
            return _OF_HTTP[error.status_code]
        if error.status_code >= 500:
            return fault_in(str(error), Fault.SERVER_ERROR)
    return fault_in(str(error))


def fault_in(sentence: str, otherwise: Fault = Fault.MOVING) -> Fault:
    """What the server's sentence means.

    While a tenant changes its state the server says all sorts of things, down to a caught panic of its own: what
    is not known is worth another try.
    """
    plain = sentence.lower()
    return next((fault for part, fault in _SENTENCES if part in plain), otherwise)


def is_refusal(sentence: str) -> bool:
    """Whether the server says of a document that its vector does not belong here."""
    return any(part in sentence for part in _WRONG_LENGTH)


def _statuses(error: BaseException) -> Iterator[StatusCode]:
    """The gRPC statuses that the client's error stands for: the client keeps them as causes only."""
    at: BaseException | None = error
    for _ in range(4):
        if isinstance(at, AioRpcError):
            yield at.code()
        at = at and (at.__cause__ or at.__context__)


class _WithoutContent(logging.Filter):
    """The client logs the documents that a batch failed with; their words are nobody's business."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, dict):
            record.msg, record.args = str(record.msg.get("message", "")), None
        return True


_FILTER = _WithoutContent()


def keep_content_out_of_logs() -> None:
    """Let the client log what happened and never what it happened to. May be called again."""
    logging.getLogger("weaviate-client").addFilter(_FILTER)
