"""A limit on request bodies, counted as they arrive: a client's word about its length is not trusted."""

from __future__ import annotations

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Answers 413 to a body of more than ``max_bytes`` before the app sees any of it."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body within the limit, then hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []
        size, more = 0, True
        while more:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if size > self._max_bytes:
                await self._refuse(send)
                return

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, replay, send)

    async def _refuse(self, send: Send) -> None:
        body = json.dumps({
            "type": "urn:hermes-memory:problem:too_large", "title": "Content Too Large", "status": 413,
            "detail": f"the body has more than {self._max_bytes} bytes", "code": "too_large", "retryable": False,
        }).encode()  # fmt: skip
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
