"""An OpenAI-compatible API: JSON out, JSON back, with bounded patience and without a word of content in an error."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from hermes_memory.errors import InvalidConfig, ModelFailed

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
MAX_PAUSE_S = 10.0  # between two tries; an endpoint that asks for more is left to the caller's patience
MAX_BYTES = 256_000_000  # of one answer: some two thousand long vectors
MAX_CONCURRENT = 64
BUSY = {408, 425, 429}
KEY_REFUSED = {401, 403}


class _Busy(Exception):
    """This try failed and another may not. ``after_s``: the least pause that the endpoint asks for."""

    def __init__(self, why: str, after_s: float = 0.0) -> None:
        super().__init__(why, after_s)
        self.why, self.after_s = why, after_s


@dataclass(slots=True)
class _Pool:
    """The connections of one event loop, and the room for calls at once."""

    client: httpx.AsyncClient
    room: asyncio.Semaphore


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
        max_concurrent: Tries under way at once, of one event loop; who finds no room within ``timeout_s`` fails.
        max_bytes: How much of an answer is read.
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
        max_concurrent: int = MAX_CONCURRENT,
        max_bytes: int = MAX_BYTES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._base = _checked(base_url, section)
        self._headers = _authorised(key, section)
        self._what, self._section = what, section
        self._timeout_s, self._attempts, self._backoff_s = timeout_s, attempts, backoff_s
        self._max_concurrent, self._max_bytes = max_concurrent, max_bytes
        self._sleep = sleep
        self._trust_env = self._base.host not in LOOPBACK  # a proxy for the outside world is none for here
        self._certificates = httpx.create_ssl_context(trust_env=self._trust_env)  # reads files: not in a loop
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    @property
    def what(self) -> str:
        """Who asks, as errors name it."""
        return self._what

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send ``body`` and return the answer's JSON. Busy and unreachable endpoints are tried again.

        Raises:
            ModelFailed: no answer, or one that is not JSON. Where the endpoint asks for a pause it is raised with that
                as ``after_s``: at once where it is longer than ``MAX_PAUSE_S``, so that nothing is held meanwhile.
            InvalidConfig: the endpoint refuses the key, the model or the request; trying again is of no use.
        """
        return await self._patiently("POST", path, body)

    async def get(self, path: str) -> Any:
        """The JSON that lies there; as ``post``."""
        return await self._patiently("GET", path, None)

    async def aclose(self) -> None:
        """Close the connections of this event loop. May be called twice."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.client.aclose()

    async def _patiently(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        for tries in range(1, self._attempts + 1):
            try:
                return self._json(await self._once(method, path, body))
            except _Busy as busy:
                if tries == self._attempts or busy.after_s > MAX_PAUSE_S:
                    raise ModelFailed(self._what, busy.why, busy.after_s) from None
                pause_s = self._backoff_s * 2 ** (tries - 1) * random.uniform(0.5, 1.0)
                await self._sleep(min(MAX_PAUSE_S, max(busy.after_s, pause_s)))
        raise AssertionError

    async def _once(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        pool = self._pool()
        try:
            async with (
                self._room(pool),
                asyncio.timeout(self._timeout_s),
                pool.client.stream(method, path, json=body) as response,
            ):
                return await self._read(response)
        except TimeoutError:
            raise _Busy(f"nothing within {self._timeout_s:g} s") from None
        except httpx.RequestError as error:
            raise _Busy(type(error).__name__) from None

    @asynccontextmanager
    async def _room(self, pool: _Pool) -> AsyncIterator[None]:
        """One of the tries at once; a pause between two takes up no room."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await pool.room.acquire()
        except TimeoutError:
            raise ModelFailed(self._what, f"no room for another call within {self._timeout_s:g} s") from None
        try:
            yield
        finally:
            pool.room.release()

    async def _read(self, response: httpx.Response) -> bytes:
        if not response.is_success:
            raise self._failure(response)
        whole = bytearray()
        async for part in response.aiter_bytes():
            whole += part
            if len(whole) > self._max_bytes:
                raise ModelFailed(self._what, f"the endpoint's answer is longer than {self._max_bytes} bytes")
        return bytes(whole)

    def _json(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
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

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools = {one: pool for one, pool in self._pools.items() if not one.is_closed()}
            client = httpx.AsyncClient(
                base_url=self._base,
                headers=self._headers,
                timeout=None,  # noqa: S113  # each try has one, over all its parts
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=self._max_concurrent),
                verify=self._certificates,
                trust_env=self._trust_env,
            )
            self._pools[loop] = _Pool(client, asyncio.Semaphore(self._max_concurrent))
        return self._pools[loop]


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
    """The pause that ``Retry-After`` asks for, which is a number of seconds or a date; the longest for nonsense."""
    if not (value or "").strip():
        return 0.0
    try:
        seconds = float(value or "")
    except ValueError:
        return _until(value or "")
    return seconds if math.isfinite(seconds) and seconds >= 0 else MAX_PAUSE_S


def _until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return MAX_PAUSE_S
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
