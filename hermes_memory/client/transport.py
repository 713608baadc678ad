"""One HTTP call: the request out, the answer or the domain's error back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from hermes_memory.client.errors import ApiError, Problem, ServerUnreachable, error_of
from hermes_memory.core.ids import check_id
from hermes_memory.errors import InvalidConfig, OutcomeUnknown

LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class Transport:
    """A connection pool to one server. ``timeout_s`` is for one call, from the request to the whole answer."""

    def __init__(
        self, url: str, key: str | None, timeout_s: float, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        try:
            base = httpx.URL(self.url)
        except httpx.InvalidURL:
            raise InvalidConfig("url", "is not a URL") from None
        if base.scheme not in {"http", "https"} or not base.host:
            raise InvalidConfig("url", "must start with http:// or https:// and name a host")
        self._http = httpx.Client(
            base_url=base,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            transport=transport,
            trust_env=base.host not in LOOPBACK,  # a proxy for the outside world is none for this machine
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
        about: str = "",
    ) -> dict[str, Any]:
        """Send one request. None in ``body`` and ``query`` means left out; ``wait_s`` comes on top of the timeout.

        Raises:
            HermesError: as the server raised it, rebuilt from the problem's code.
            ServerUnreachable: nothing was sent.
            OutcomeUnknown: it was sent, and no answer came.
        """
        try:
            response = self._http.request(
                method,
                path,
                json=_given(body) if body is not None else None,
                params=_given(query or {}),
                headers=dict(headers or {}),
                timeout=self._timeout_s + wait_s,
            )
        except (
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.PoolTimeout,
            httpx.UnsupportedProtocol,
        ) as error:
            raise ServerUnreachable(self.url, str(error) or type(error).__name__) from None
        except httpx.TransportError:
            raise OutcomeUnknown from None
        if response.is_success:
            return _object(response)
        raise error_of(_problem(response, about))

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._http.close()


def user_path(user: str, *rest: str) -> str:
    """The path of what belongs to a user; every part is checked as an id and quoted.

    Raises:
        InvalidId: a part cannot be an id.
    """
    parts = [check_id(user, "user"), *(check_id(part, "path") for part in rest)]
    return "/v1/users/" + "/".join(quote(part, safe="") for part in parts)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _object(response: httpx.Response) -> dict[str, Any]:
    found = _json(response)
    if found is None:
        raise ApiError(response.status_code, "not_hermes", "the answer is not a JSON object", False)
    return found


def _json(response: httpx.Response) -> dict[str, Any] | None:
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _problem(response: httpx.Response, about: str) -> Problem:
    said = _json(response) or {}
    status = response.status_code
    return Problem(
        status=status,
        code=str(said.get("code", "http_error")),
        detail=str(said.get("detail", response.reason_phrase)),
        retryable=bool(said.get("retryable", status in {429, 502, 503, 504})),
        request_id=str(said["request_id"]) if "request_id" in said else None,
        retry_after_s=_seconds(response.headers.get("Retry-After")),
        about=about,
    )


def _seconds(value: str | None) -> float:
    try:
        return float(value or 1.0)
    except ValueError:  # the other form, a date, is not what our server sends
        return 1.0
