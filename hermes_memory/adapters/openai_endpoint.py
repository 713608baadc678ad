"""An OpenAI-compatible API: JSON out, JSON back, with bounded patience and without a word of content in an error."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from hermes_memory.errors import InvalidConfig, ModelFailed

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
MAX_PAUSE_S = 10.0  # between two tries, whatever the endpoint asks for
BUSY = {408, 425, 429}
KEY_REFUSED = {401, 403}


class _Busy(Exception):
    """This try failed and another may not. ``after_s``: the least pause that the endpoint asks for."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why, after_s)
        self.why, self.after_s = why, after_s


class Endpoint:
    """Everything under one base URL, for example ``https://host/v1``.

    One pool of connections for each event loop that asks.

    Args:
        base_url: Where the API begins.
        key: The bearer token; None where the endpoint asks for none.
        what: Who asks, as errors name it: "the embedder".
        section: The configuration's section that errors name.
        timeout_s: For one try, from the request to the whole answer.
        attempts: Tries in all.
        backoff_s: Pause after the first failed try; it doubles, up to ``MAX_PAUSE_S``, and is spread by chance.
        sleep: How it waits, in seconds.

    Raises:
        InvalidConfig: the URL is none that can be asked, or the key cannot stand in a header.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None,
        what: str,
        section: str,
        timeout_s: float,
        attempts: int = 1,
        backoff_s: float = 0.5,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._base = _checked(base_url, section)
        self._headers = _authorised(key, section)
        self._what, self._section = what, section
        self._timeout_s, self._attempts, self._backoff_s = timeout_s, attempts, backoff_s
        self._sleep = sleep
        self._trust_env = self._base.host not in LOOPBACK  # a proxy for the outside world is none for here
        self._certificates = httpx.create_ssl_context(trust_env=self._trust_env)  # reads files: not in a loop
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    @property
    def what(self) -> str:
        """Who asks, as errors name it."""
        return self._what

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send ``body`` and return the answer's JSON. Busy and unreachable endpoints are tried again.

        Raises:
            ModelFailed: no answer, or one that is not JSON.
            InvalidConfig: the endpoint refuses the key, the model or the request; trying again is of no use.
        """
        for tries in range(1, self._attempts + 1):
            try:
                return await self._once(path, body)
            except _Busy as busy:
                if tries == self._attempts:
                    raise ModelFailed(self._what, busy.why) from None
                pause_s = self._backoff_s * 2 ** (tries - 1) * random.uniform(0.5, 1.0)
                await self._sleep(min(MAX_PAUSE_S, max(busy.after_s, pause_s)))
        raise AssertionError

    async def aclose(self) -> None:
        """Close the connections of this event loop. May be called twice."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _once(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._client().post(path, json=body)
        except TimeoutError:
            raise _Busy(f"nothing within {self._timeout_s:g} s") from None
        except httpx.RequestError as error:
            raise _Busy(type(error).__name__) from None
        if response.is_success:
            return self._json(response)
        raise self._failure(response)

    def _json(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise ModelFailed(self._what, "the endpoint's answer is not JSON") from None

    def _failure(self, response: httpx.Response) -> Exception:
        """What an answer that is no success means. Its text is not looked at: it may repeat what was sent."""
        status = response.status_code
        if status in BUSY or status >= 500:
            return _Busy(f"status {status}", _seconds(response.headers.get("Retry-After")))
        if status in KEY_REFUSED:
            return InvalidConfig(
                f"{self._section}.key_env", f"the endpoint refuses the key (status {status})"
            )
        if status == 404:
            return InvalidConfig(self._section, "the endpoint knows no such path or model (status 404)")
        return InvalidConfig(self._section, f"the endpoint refuses the request (status {status})")

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients = {one: client for one, client in self._clients.items() if not one.is_closed()}
            self._clients[loop] = httpx.AsyncClient(
                base_url=self._base,
                headers=self._headers,
                timeout=None,  # noqa: S113  # each try has one, over all its parts
                verify=self._certificates,
                trust_env=self._trust_env,
            )
        return self._clients[loop]


def _checked(base_url: str, section: str) -> httpx.URL:
    field = f"{section}.base_url"
    try:
        base = httpx.URL(base_url)
    except httpx.InvalidURL:
        raise InvalidConfig(field, "is not a URL") from None
    if base.scheme not in {"http", "https"} or not base.host:
        raise InvalidConfig(field, "must start with http:// or https:// and name a host")
    if base.userinfo or base.query or base.fragment:
        raise InvalidConfig(field, "must be without user, query and fragment; a key comes from key_env")
    return base


def _authorised(key: str | None, section: str) -> dict[str, str]:
    if key is None:
        return {}
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise InvalidConfig(f"{section}.key_env", "names a variable that holds no usable key")
    return {"Authorization": f"Bearer {key}"}


def _seconds(value: str | None) -> float:
    try:
        seconds = float(value or 0.0)
    except ValueError:  # a date: our own backoff will do
        return 0.0
    return seconds if 0.0 <= seconds <= MAX_PAUSE_S else MAX_PAUSE_S
