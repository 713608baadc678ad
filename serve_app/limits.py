"""What happens to a request before the app sees it: its id, the form of its path, the size of its body."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes_memory.errors import InvalidId
from serve_app.problems import TooLarge, of_error, request_id

REQUEST_ID = "X-Request-Id"


class RequestId:
    """Gives every request an id, which its answer carries."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and stamp the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = request_id(scope)

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = name
            await send(message)

        await self._app(scope, receive, stamped)


class QuotedPath:
    """Routes by the path as it was sent, so that an id may hold a slash: ``a%2Fb`` is one segment.

    Each segment is brought into one form of percent-encoding; ``services.path_id`` decodes it. Bytes that are not
    UTF-8 are refused: a server would turn different ones into the same replacement character.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the quoted path in the place of the decoded one."""
        if scope["type"] == "http":
            try:
                scope = {**scope, "path": _quoted(scope)}
            except UnicodeError:
                error = InvalidId("path", "is not percent-encoded UTF-8")
                await of_error(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _quoted(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
    segments = raw.partition(b"?")[0].decode("utf-8").split("/")
    return "/".join(quote(unquote(segment, errors="strict"), safe="") for segment in segments)


class BodyLimit:
    """Answers 413 to a body of more than ``max_bytes`` before the app sees any of it.

    The bytes are counted as they arrive: a client's word about its length is not trusted.
    """

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
                error = TooLarge("body", f"has more than {self._max_bytes} bytes")
                await of_error(scope, error)(scope, receive, send)
                return

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, replay, send)
