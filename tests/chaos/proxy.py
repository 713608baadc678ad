"""A TCP relay between the product and one of its servers that misbehaves when told to.

It runs on a loop in a thread of its own, so that a busy driver does not slow it down; its methods may be called from
any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

_T = TypeVar("_T")
CHUNK = 65_536
ANSWER_S = 10.0  # what a method of the relay may take


class Fate(StrEnum):
    """What becomes of the next request that holds a mark."""

    CUT_MIDWAY = "cut_midway"  # half of it arrives, then both sides are cut
    LOSE_REPLY = "lose_reply"  # it arrives and is answered; the answer does not


@dataclass(eq=False)
class _Link:
    """One connection of the product and its counterpart."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    swallow: bool = False  # the next bytes from the server are lost, and the connection with them
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def abort(self) -> None:
        """Cut both sides without a farewell."""
        for writer in (self.near, self.far):
            writer.transport.abort()


class FaultyProxy:
    """Relays one local port to ``host:port``."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-proxy", daemon=True)
        self._links: set[_Link] = set()
        self._fates: list[tuple[bytes, Fate]] = []
        self._open = asyncio.Event()  # closed while the relay stalls
        self._refusing = False
        self._server: asyncio.Server | None = None
        self.port = 0
        self.struck = 0  # fates that were carried out

    def start(self) -> int:
        """Listen on a free port, which is returned."""
        self._thread.start()
        self._call(self._listen())
        return self.port

    def stop(self) -> None:
        """Close everything."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ANSWER_S)
        self._loop.close()

    def cut(self) -> int:
        """Cut every connection; how many there were."""
        return self._call(self._cut())

    def doom(self, mark: bytes, fate: Fate, times: int = 1) -> None:
        """Let the next ``times`` requests that hold ``mark`` meet their fate."""
        self._call(self._set(lambda: self._fates.extend([(mark, fate)] * times)))

    def spare(self) -> None:
        """Forget the fates that have not struck, relay and accept again."""

        def relax() -> None:
            self._fates.clear()
            self._refusing = False
            self._open.set()

        self._call(self._set(relax))

    def stall(self) -> None:
        """Hold every byte back until ``spare``."""
        self._call(self._set(self._open.clear))

    def refuse(self) -> None:
        """Cut every connection and accept none until ``spare``."""

        def close() -> None:
            self._refusing = True

        self._call(self._set(close))
        self.cut()

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_S)

    async def _set(self, change: Callable[[], None]) -> None:
        change()

    async def _listen(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut()
        await asyncio.sleep(0)  # the relays notice

    async def _cut(self) -> int:
        links = list(self._links)
        for link in links:
            link.abort()
        return len(links)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, far_writer)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._relay(reader, link, self._ask), self._relay(far_reader, link, self._answer)
            )
        finally:
            self._links.discard(link)
            link.abort()

    async def _relay(
        self, reader: asyncio.StreamReader, link: _Link, hand_on: Callable[[_Link, bytes], Awaitable[bool]]
    ) -> None:
        try:
            while data := await reader.read(CHUNK):
                await self._open.wait()
                if not await hand_on(link, data):
                    break
        except OSError:
            pass  # cut by the other side, or by us
        link.abort()

    async def _ask(self, link: _Link, data: bytes) -> bool:
        fate = self._fate_of(data)
        if fate is Fate.CUT_MIDWAY:
            link.far.write(data[: len(data) // 2])
            await link.far.drain()
            return False
        if fate is Fate.LOSE_REPLY:
            link.swallow = True
        link.far.write(data)
        await link.far.drain()
        return True

    async def _answer(self, link: _Link, data: bytes) -> bool:
        if link.swallow:
            return False
        link.near.write(data)
        await link.near.drain()
        return True

    def _fate_of(self, data: bytes) -> Fate | None:
        for number, (mark, fate) in enumerate(self._fates):
            if mark in data:
                del self._fates[number]
                self.struck += 1
                return fate
        return None
