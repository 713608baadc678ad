"""A small OpenAI-compatible server on a real port: embeddings of ``HashEmbedder``, chat answers as told, faults in turn."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.openai_endpoint import Endpoint

DIMENSION = 64
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """What one request gets in place of a good answer; ``change`` spoils a good one, ``hang`` gives none."""

    status: int = 200
    body: bytes | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    change: Callable[[dict[str, Any]], Any] | None = None
    hang: bool = False
    drop: bool = False


@dataclass
class OpenAIServer:
    """What it was asked, and the faults that come first.

    ``judge`` gives the content of a chat answer by the JSON that was asked; ``chat``, where there is one, by the whole
    request, also an answer that ends otherwise than well.
    """

    url: str
    faults: list[Fault] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    judge: Callable[[dict[str, Any]], str] = lambda question: json.dumps(
        {"relevance": [1.0] * len(question["texts"])}
    )
    chat: Callable[[dict[str, Any]], tuple[str, str]] | None = (
        None  # of a whole request: content, why it ended
    )
    hanging: asyncio.Queue[str] = field(default_factory=asyncio.Queue)  # "asked", then "given up"
    _embedder: HashEmbedder = field(default_factory=lambda: HashEmbedder(DIMENSION))

    def endpoint(self, **changes: Any) -> Endpoint:
        """An endpoint that asks here, without patience."""
        given = {"key": None, "what": "the model", "section": "embedder", "timeout_s": 5.0, "backoff_s": 0.0}
        return Endpoint(self.url, **{**given, **changes})

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = json.loads(await _read(receive))
        self.asked.append(body)
        self.paths[scope["path"]] += 1
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        fault = self.faults.pop(0) if self.faults else Fault()
        if fault.hang:
            await self._hang(receive)
            return
        answer = self._answer(scope["path"], body)
        if fault.change is not None:
            answer = fault.change(answer)
        data = fault.body if fault.body is not None else json.dumps(answer).encode()
        length = len(data) + (1 if fault.drop else 0)  # the last byte never comes
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % length),
            *fault.headers,
        ]
        await send({"type": "http.response.start", "status": fault.status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _hang(self, receive: Receive) -> None:
        self.hanging.put_nowait("asked")
        while (await receive())["type"] != "http.disconnect":
            pass
        self.hanging.put_nowait("given up")

    def _answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/embeddings"):
            rows = self._embedder.embed(body["input"]) * 3.0  # not of unit length: that is the adapter's work
            data = [
                {"object": "embedding", "index": place, "embedding": row.tolist()}
                for place, row in enumerate(rows)
            ]
            return {"object": "list", "model": body["model"], "data": data}
        if self.chat is not None:
            content, ended = self.chat(body)
        else:
            content, ended = self.judge(json.loads(body["messages"][-1]["content"])), "stop"
        message = {"role": "assistant", "content": content}
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        return {"choices": [{"index": 0, "finish_reason": ended, "message": message}], "usage": usage}


async def _read(receive: Receive) -> bytes:
    parts = []
    while True:
        event = await receive()
        parts.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(parts)


@asynccontextmanager
async def serving() -> AsyncIterator[OpenAIServer]:
    """The server, answering, until the context ends."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = OpenAIServer(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
    config = uvicorn.Config(app, lifespan="off", log_level="error", access_log=False, log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.001)
        yield app
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, 10)
