"""An OpenAI-compatible chat endpoint on a bare socket: one that is cut, slow, endless, reset or closed, and comes back.

Beside ``tests.openai_server``, whose web server answers too well to break a connection in the middle.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from hermes_memory.adapters.openai_endpoint import Endpoint

PIECE = b" " * 65_536


@dataclass(frozen=True)
class Spoil:
    """What becomes of one answer; the default is a good one."""

    status: int = 200
    retry_after: str = ""
    body: bytes | None = None
    finish: str = "stop"
    first_byte_s: float = 0.0
    cut: bool = False  # the connection is reset in the middle of the answer
    endless: bool = False  # blanks without end, then nothing


GOOD = Spoil()


@dataclass
class FaultyEndpoint:
    """What it was asked and sent. ``spoils`` is asked for each request; ``answer`` gives the content of a good one."""

    answer: Callable[[dict[str, Any]], str] = lambda _: "{}"
    spoils: Iterator[Spoil] = field(default_factory=lambda: cycle([GOOD]))
    usage: Mapping[str, Any] = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})
    asked: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _open: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def endpoint(self, **changes: Any) -> Endpoint:
        """An endpoint that asks here, with little patience."""
        given = {"key": None, "what": "the model", "section": "extractor", "timeout_s": 5.0, "backoff_s": 0.0}
        return Endpoint(self.url, **{**given, **changes})

    async def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """As if it were killed: the port is closed, and every connection reset."""
        if self._server is not None:
            self._server.close()
            for writer in self._open.values():
                writer.transport.abort()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while True:
                await self._exchange(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the caller has hung up, or we have
        finally:
            del self._open[task]
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
        body = json.loads(await reader.readexactly(length) or b"{}")
        self.asked.append(body)
        spoil = next(self.spoils)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self._send(writer, spoil, body)
        finally:
            self.running -= 1

    async def _send(self, writer: asyncio.StreamWriter, spoil: Spoil, body: dict[str, Any]) -> None:
        await asyncio.sleep(spoil.first_byte_s)
        data = spoil.body if spoil.body is not None else self._good(spoil, body)
        more = f"Retry-After: {spoil.retry_after}\r\n" if spoil.retry_after else ""
        length = 10**12 if spoil.endless else len(data)
        head = f"HTTP/1.1 {spoil.status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n"
        self.statuses.append(spoil.status)
        writer.write(head.encode())
        if spoil.cut:
            writer.write(data[: len(data) // 2])
            await writer.drain()
            raise ConnectionResetError
        while spoil.endless:
            writer.write(PIECE)
            await writer.drain()
        writer.write(data)
        await writer.drain()

    def _good(self, spoil: Spoil, body: dict[str, Any]) -> bytes:
        message = {"role": "assistant", "content": self.answer(body)}
        choice = {"index": 0, "finish_reason": spoil.finish, "message": message}
        return json.dumps({"choices": [choice], "usage": dict(self.usage)}).encode()


@asynccontextmanager
async def faulty_endpoint(**parts: Any) -> AsyncIterator[FaultyEndpoint]:
    """One that listens until the context ends."""
    made = FaultyEndpoint(**parts)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
