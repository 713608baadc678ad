"""A small OpenAI-compatible endpoint on a real port that writes down what it is asked, and answers as it is told."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from bench.peers.venv import Call
from hermes_memory.adapters.hash_embedder import HashEmbedder

DIMENSION = 384
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass
class Recorder:
    """What was asked so far. ``answer`` gives the text that answers a chat request.

    ``POST {url}/announce`` calls ``announced``: a peer in another process says what it will have read next.
    """

    url: str
    answer: Callable[[dict[str, Any]], str]
    announced: Callable[[Any], None] = lambda _: None
    calls: list[Call] = field(default_factory=list)
    embedded: int = 0  # texts
    _embedder: HashEmbedder = field(default_factory=lambda: HashEmbedder(DIMENSION))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = json.loads(await _read(receive))
        given = json.dumps(self._given(scope["path"], body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(given))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": given})

    def _given(self, path: str, body: Any) -> dict[str, Any]:
        if path.endswith("/announce"):
            self.announced(body)
            return {}
        if path.endswith("/embeddings"):
            return self._embeddings(body)
        if not path.endswith("/chat/completions"):
            raise ValueError(f"nobody is to ask {path}")
        text = self.answer(body)
        messages = tuple({"role": one["role"], "content": one["content"]} for one in body["messages"])
        self.calls.append(Call(messages, text, form_of(body)))
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice],
        }

    def _embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        rows = self._embedder.embed(body["input"])
        self.embedded += len(rows)
        data = [
            {"object": "embedding", "index": place, "embedding": row.tolist()}
            for place, row in enumerate(rows)
        ]
        return {
            "object": "list",
            "model": body["model"],
            "data": data,
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
        }


def form_of(body: Mapping[str, Any]) -> str:
    """The name of the answer's form that a request asks for, or its kind where it has no name."""
    asked: dict[str, Any] = body.get("response_format") or {}
    named: str = asked.get("json_schema", {}).get("name") or asked.get("type", "")
    return named


async def _read(receive: Receive) -> bytes:
    parts = []
    while True:
        event = await receive()
        parts.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(parts) or b"null"


def listening() -> socket.socket:
    """A socket on a free port of this machine, for an endpoint that is to come."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def url_of(bound: socket.socket) -> str:
    """Where the endpoint on ``bound`` is asked."""
    return f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


@asynccontextmanager
async def recording(
    answer: Callable[[dict[str, Any]], str], bound: socket.socket | None = None
) -> AsyncIterator[Recorder]:
    """The endpoint, answering, until the context ends."""
    bound = bound or listening()
    recorder = Recorder(url_of(bound), answer)
    config = uvicorn.Config(recorder, lifespan="off", log_level="error", access_log=False, log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([bound]))
    try:
        while not server.started:
            if serving.done():
                raise RuntimeError("the endpoint did not start")
            await asyncio.sleep(0.001)
        yield recorder
    finally:
        server.should_exit = True
        await asyncio.wait_for(serving, 10)
