"""A TCP proxy that loses what a test tells it to lose."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from enum import StrEnum


class Loss(StrEnum):
    """What happens to the next request that holds ``needle``."""

    REPLY = "reply"  # the server gets it; the connection is cut before its answer passes
    REQUEST = "request"  # the connection is cut and the server never sees it
    HALF = "half"  # the server sees half of it, then the cut
    STALL = "stall"  # the server gets it; its answer is held back, and the connection stays


class LossyProxy:
    """Passes on bytes between a client and ``port``; ``plan`` holds one loss for each marked request to come."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.port = 0
        self.plan: list[Loss] = []
        self.needle = b""
        self.marked = 0  # requests with the needle that came by
        self._open: set[asyncio.WriteTransport] = set()
        self._served: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[LossyProxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for connection in list(self._open):
                connection.abort()
            await server.wait_closed()
            await asyncio.gather(*self._served, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.append(task)
        self._open.add(writer.transport)
        behind_reader, behind = await asyncio.open_connection("127.0.0.1", self._server_port)
        stalled = asyncio.Event()
        back = asyncio.create_task(self._back(behind_reader, writer, stalled))
        try:
            while data := await reader.read(1 << 20):
                if not await self._forward(data, behind, back, stalled):
                    return
        except ConnectionError:
            return
        finally:
            self._open.discard(writer.transport)
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            for each in (writer, behind):
                each.transport.abort()

    async def _forward(
        self, data: bytes, behind: asyncio.StreamWriter, back: asyncio.Task[None], stalled: asyncio.Event
    ) -> bool:
        loss = None
        if self.needle and self.needle in data:
            self.marked += 1
            loss = self.plan.pop(0) if self.plan else None
        if loss is Loss.STALL:
            stalled.set()
        if loss is Loss.REQUEST:
            return False
        if loss is Loss.REPLY:
            back.cancel()
        behind.write(data[: len(data) // 2] if loss is Loss.HALF else data)
        await behind.drain()
        if loss is Loss.REPLY:
            await asyncio.sleep(0.1)  # the server has applied it by now
        return loss not in {Loss.REPLY, Loss.HALF}

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stalled: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 20):
            if stalled.is_set():
                return
            writer.write(data)
            await writer.drain()
