"""What is counted and logged of every request: its route's template, never its path, and how it went."""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes_memory.adapters.metric_catalogue import METHODS_OF_HTTP, OTHER
from hermes_memory.adapters.metrics import NullMetrics
from hermes_memory.core.failures import told
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import InvalidId
from hermes_memory.ports.metrics import Metrics
from serve_app.problems import problem, request_id
from serve_app.services import namespace, path_id

log = logging.getLogger(__name__)

UNMATCHED = "unmatched"
GONE = 499  # the caller left before the answer


class Measured:
    """Times every request; answers for the app when it fails, so that no server logs what the exception says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, then count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), GONE

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        metrics = _metrics(scope)
        self._went(metrics, 1)
        try:
            await self._app(scope, receive, noted)
        except Exception as error:  # noqa: BLE001  # told in our way, and answered here
            _tell_failure(scope, error)
            if status != GONE:
                raise RuntimeError("an answer broke off") from None
            await problem(scope, 500, "internal", "an unexpected error; ask with the request id")(
                scope, receive, noted
            )
        finally:
            self._went(metrics, -1)
            _count(metrics, scope, status, time.perf_counter() - started)

    def _went(self, metrics: Metrics, by: int) -> None:
        self._in_flight += by
        metrics.gauge("hermes_http_in_flight", self._in_flight)


def _metrics(scope: Scope) -> Metrics:
    services = getattr(scope["app"].state, "services", None)  # none before the app has started
    found: Metrics = services.metrics if services is not None else NullMetrics()
    return found


def _count(metrics: Metrics, scope: Scope, status: int, seconds: float) -> None:
    route: str = getattr(scope.get("route"), "path", UNMATCHED)
    method = scope["method"] if scope["method"] in METHODS_OF_HTTP else OTHER
    metrics.count("hermes_http_requests_total", route=route, method=method, status=str(status))
    metrics.observe("hermes_http_request_seconds", seconds, route=route, method=method)
    if log.isEnabledFor(logging.INFO):
        told_of = {"route": route, "method": method, "status": status, "ms": round(seconds * 1000, 1)}
        log.info("request", extra={**_who(scope), "request_id": request_id(scope), **told_of})


def _tell_failure(scope: Scope, error: Exception) -> None:
    log.error("unexpected error: %s", told(error), extra={**_who(scope), "request_id": request_id(scope)})


def _who(scope: Scope) -> dict[str, Any]:
    """The user of the path, as a hash; nobody where the path names none, or none that there can be."""
    quoted = scope.get("path_params", {}).get("user")
    try:
        return {"user": UserKey(namespace(), path_id(quoted, "user")).hashed} if quoted else {}
    except InvalidId:
        return {}
