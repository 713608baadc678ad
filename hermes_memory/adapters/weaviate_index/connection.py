"""The way to the server: opened once, bounded in time, and back by itself when the server is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from urllib.parse import urlsplit

import grpc.aio  # type: ignore[import-untyped]  # grpcio ships no types
from pydantic import ValidationError
from weaviate import WeaviateAsyncClient
from weaviate.classes.init import AdditionalConfig, Auth, Timeout
from weaviate.config import GrpcConfig
from weaviate.connect import ConnectionParams

from hermes_memory.adapters.weaviate_index.faults import (
    CLIENT_ERRORS,
    Fault,
    TenantError,
    fault_of,
    keep_content_out_of_logs,
)
from hermes_memory.errors import IndexUnavailable, InvalidConfig

PROBE_S = 1.0  # how long a server that failed last time may take to say that it is ready
BACKOFF_MS = 500  # gRPC would wait up to two minutes before it looks for a server again
_LOST = {Fault.TIMEOUT, Fault.UNREACHABLE}


class Connection:
    """One client in the event loop that opened it.

    Args:
        url: ``http(s)://host[:port]``.
        grpc_port: Where the server answers gRPC.
        grpc_host: Where that is another host than the URL's.
        grpc_secure: TLS for gRPC; None: as the URL says.
        api_key: What the server asks for, if it does.
        timeout_s: For one answer of the client; what is asked of ``guarded`` bounds the whole.

    Raises:
        InvalidConfig: the URL or the ports name no server.
    """

    def __init__(
        self,
        url: str,
        *,
        grpc_port: int,
        grpc_host: str | None,
        grpc_secure: bool | None,
        api_key: str | None,
        timeout_s: float,
    ) -> None:
        self._params = _params(url, grpc_port, grpc_host, grpc_secure)
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._client: WeaviateAsyncClient | None = None
        self._lost = False  # the last request found no server: ask it before the next one waits in vain

    async def open(self, timeout_s: float) -> bool:
        """Connect; False where that was done already. Raises IndexUnavailable."""
        if self._client is not None:
            return False
        keep_content_out_of_logs()
        _keep_grpc()
        client = self._new_client()
        try:
            async with _bounded(timeout_s):
                await client.connect()
        except BaseException:
            await client.close()
            raise
        self._client = client
        return True

    async def close(self) -> None:
        """Let go of the client."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def guarded(self, timeout_s: float) -> AsyncIterator[WeaviateAsyncClient]:
        """The client for a while, with the port's errors.

        Raises:
            TenantError: What to do about it is the caller's to know.
            IndexUnavailable: Everything else, and no answer within ``timeout_s``.
        """
        if self._client is None:
            raise IndexUnavailable(Fault.CLOSED)
        if self._lost:
            await self._probe(self._client)
        try:
            async with _bounded(timeout_s):
                yield self._client
        except IndexUnavailable as error:
            self._lost = error.why in _LOST
            raise

    async def _probe(self, client: WeaviateAsyncClient) -> None:
        """Ask whether the server is there: quick where it is gone, whereas gRPC is tried again for seconds."""
        async with _bounded(PROBE_S):
            await client.get_meta()
        self._lost = False

    def _new_client(self) -> WeaviateAsyncClient:
        options: list[tuple[str, str | int | float | bool]] = [
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", BACKOFF_MS),
        ]
        seconds = self._timeout_s
        return WeaviateAsyncClient(
            self._params,
            auth_client_secret=None if self._api_key is None else Auth.api_key(self._api_key),
            additional_config=AdditionalConfig(
                timeout=Timeout(init=seconds, query=seconds, insert=seconds),
                grpc_config=GrpcConfig(channel_options=options),
            ),
            skip_init_checks=True,  # they would ask a package index whether the client is the newest
        )


@asynccontextmanager
async def _bounded(timeout_s: float) -> AsyncIterator[None]:
    """Bound what happens inside, and translate its errors."""
    try:
        async with asyncio.timeout(timeout_s):
            with translated():
                yield
    except TimeoutError:
        raise IndexUnavailable(Fault.TIMEOUT) from None


@contextmanager
def translated() -> Iterator[None]:
    """Raise the client's errors as TenantError or IndexUnavailable, without what the server said."""
    try:
        yield
    except CLIENT_ERRORS as error:
        fault = fault_of(error)
    else:
        return
    if fault in {Fault.MISSING, Fault.ASLEEP, Fault.MOVING}:
        raise TenantError(fault)
    raise IndexUnavailable(fault)


@cache
def _keep_grpc() -> None:
    """Hold gRPC's own thread for the life of the process.

    The last channel to go would end it and wait for it, in the event loop; and the next one start it again.
    """
    grpc.aio.init_grpc_aio()


def _params(url: str, grpc_port: int, grpc_host: str | None, grpc_secure: bool | None) -> ConnectionParams:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
        raise InvalidConfig("index.url", "must be http(s)://host:port")
    secure = parts.scheme == "https"
    try:
        return ConnectionParams.from_params(
            http_host=parts.hostname,
            http_port=parts.port or (443 if secure else 80),
            http_secure=secure,
            grpc_host=grpc_host or parts.hostname,
            grpc_port=grpc_port,
            grpc_secure=secure if grpc_secure is None else grpc_secure,
        )
    except (ValueError, ValidationError):
        raise InvalidConfig("index.url", "names no port that can be asked") from None
