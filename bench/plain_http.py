"""HTTP/1.1 callers that cost next to nothing, so that what is measured is the server; and a server without Ray.

``python -m bench.plain_http DATA PORT CONFIG`` serves the product's app from one uvicorn with the users in the same
process: the floor under every ingress.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.config import Settings, load_settings
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_ledger, build_policy
from serve_app.api import create_app
from serve_app.services import Services

HOST = "127.0.0.1"


@dataclass(slots=True)
class Line:
    """One connection that is kept; opened again when the server closes it between two answers, as HAProxy may."""

    port: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int) -> Line:
        return cls(port, *await asyncio.open_connection(HOST, port, limit=1 << 22))

    async def ask(self, request: bytes) -> float:
        """The milliseconds from the request to the last byte of an answer that must be 200."""
        started = time.perf_counter()
        try:
            return await self._once(request, started)
        except (asyncio.IncompleteReadError, ConnectionError):
            again = await Line.open(self.port)
            self.reader, self.writer = again.reader, again.writer
            return await self._once(request, started)

    async def _once(self, request: bytes, started: float) -> float:
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        body = await self._body(head)
        ms = (time.perf_counter() - started) * 1000
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"{head[:60]!r} {body[:300]!r}")
        return ms

    async def _body(self, head: bytes) -> bytes:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                return await self.reader.readexactly(int(value))
            if name == b"transfer-encoding":
                return await self._chunks()
        raise RuntimeError("an answer without a length")

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def flood(port: int, requests: Iterator[bytes], callers: int, count: int) -> tuple[list[float], float]:
    """``count`` requests by ``callers`` who each ask again at once: every wait in ms, and the seconds in all."""
    waited: list[float] = []
    left = iter(range(count))
    lines = [await Line.open(port) for _ in range(callers)]

    async def caller(line: Line) -> None:
        for _ in left:
            waited.append(await line.ask(next(requests)))  # noqa: PERF401  # the callers fill one list

    started = time.perf_counter()
    await asyncio.gather(*(caller(line) for line in lines))
    seconds = time.perf_counter() - started
    await asyncio.gather(*(line.close() for line in lines))
    return waited, seconds


@asynccontextmanager
async def _services(settings: Settings, data: Path) -> AsyncIterator[Services]:
    embedder = build_embedder(settings)
    host = build_host("bench", settings, data, build_distiller(settings, embedder), embedder.info)
    ledger = build_ledger(settings, data)
    await ledger.open(embedder.info)
    await host.start()
    await embedder.queries(["ready"])
    try:
        yield Services(
            users=LocalUsers(host),
            ledger=ledger,
            embedder=embedder,
            policy=build_policy(settings),
            settings=settings,
            metrics=PrometheusMetrics(),
            probes={},
        )
    finally:
        await host.stop()
        await ledger.close()


def serve(data: Path, port: int, config: Path) -> None:
    """Until a signal ends it."""
    settings = load_settings(config)
    app = create_app(lambda: _services(settings, data), settings.api)
    uvicorn.run(app, host=HOST, port=port, access_log=False, log_level="warning")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
