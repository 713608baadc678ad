"""The callers of the ingress benchmark read both kinds of bodies, and open a connection again that was closed."""

from __future__ import annotations

import asyncio
from itertools import repeat

import pytest

from bench.ingress import CALLERS, CHOSEN, COUNTS, LIMITS, STOCK, WAYS, Seen, _report
from bench.plain_http import Line, flood, get
from bench.traffic import Spread

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"


async def serving(answer: bytes, asked: list[bytes], *, each_closes: bool = False) -> asyncio.Server:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
                await writer.drain()
                if each_closes:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    return await asyncio.start_server(handle, "127.0.0.1", 0)


@pytest.mark.parametrize("answer", [SIZED, CHUNKED])
@pytest.mark.parametrize("each_closes", [False, True])
async def test_every_request_is_answered_and_timed(answer: bytes, each_closes: bool) -> None:
    asked: list[bytes] = []
    async with await serving(answer, asked, each_closes=each_closes) as server:
        port = server.sockets[0].getsockname()[1]
        waited, seconds = await flood(port, repeat(get("/healthz")), 2, 9)
    assert len(waited) == len(asked) == 9
    assert 0 < max(waited) <= seconds * 1000
    assert asked[0].startswith(b"GET /healthz HTTP/1.1\r\n")


async def test_what_is_not_200_ends_the_measurement() -> None:
    async with await serving(REFUSED, []) as server:
        line = await Line.open(server.sockets[0].getsockname()[1])
        with pytest.raises(RuntimeError, match="503"):
            await line.ask(get("/"))
        await line.close()


def test_the_limit_compares_the_clusters_way_with_the_stock_proxy() -> None:
    def seen(name: str, per_s: float) -> Seen:
        return Seen(
            name, 1, 1, {request: dict.fromkeys(CALLERS, Spread(1, 1, 1, per_s)) for request in COUNTS}
        )

    good = _report([seen(STOCK, 100), seen(CHOSEN, 300)])
    assert good.figures == {"healthz_gain": 3, "profile_gain": 3, "recall_gain": 3}
    assert not good.missed(LIMITS)
    assert _report([seen(STOCK, 100), seen(CHOSEN, 120)]).missed(LIMITS)
    assert {STOCK, CHOSEN} <= {way.name for way in WAYS}
