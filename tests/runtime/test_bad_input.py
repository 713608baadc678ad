"""Hostile input on every route: 4xx with a stable code, nothing echoed, and not a row of the ledger changed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import pytest_asyncio

from tests.runtime.conftest import Api, Someone, check_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARK = "Zq7xMark"  # in every hostile value, in no answer
JSON = [(b"content-type", b"application/json")]
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class World:
    """A user with a frozen memory, a plain one, an open question and an open challenge."""

    api: Api
    names: dict[str, str]

    def fill(self, template: str, **replaced: str) -> str:
        return template.format(**{**self.names, **replaced})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(api: Api) -> AsyncIterator[World]:
    user = Someone(api, "u-1")
    frozen = await user.remember("我对花生过敏")
    plain = await user.remember("I live in Oslo.")
    said = await user.say("我对花生不过敏", session="s-2")
    (asked,) = (await user.get("/confirmations"))["confirmations"]
    wanted = {"reason": "a test", "source_session_id": user.session}
    challenge = await user.call("POST", f"/memories/{frozen['id']}/unfreeze", json=wanted, ok=202)
    yield World(api, {
        "alert": "alert_none", "user": "u-1", "session": user.session, "memory": plain["id"], "frozen": frozen["id"], "job": said["job_id"],
        "challenge": challenge["challenge_id"], "confirmation": asked["id"],
    })  # fmt: skip


async def send(
    api: Api, method: str, target: bytes | str, headers: Headers | None = None, chunks: Iterable[bytes] = ()
) -> httpx.Response:
    """A request as a server hands it on, byte for byte: a client library would tidy it up first."""
    raw = target if isinstance(target, bytes) else target.encode("utf-8")
    raw_path, _, query = raw.partition(b"?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(raw_path.decode("latin-1")), "raw_path": raw_path, "query_string": query, "root_path": "",
        "headers": headers or [], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    parts = list(chunks) or [b""]
    incoming = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def answer(part: Any) -> None:
        sent.append(part)

    await api._transport.app(scope, receive, answer)  # type: ignore[attr-defined]
    body = b"".join(part.get("body", b"") for part in sent[1:])
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=body)


async def refused(
    world: World,
    method: str,
    target: bytes | str,
    headers: Headers | None = None,
    chunks: Iterable[bytes] = (),
) -> dict[str, Any]:
    """The problem that a request is answered with; it changed nothing and was not echoed."""
    before = world.api.contents()
    answer = await send(world.api, method, target, headers, chunks)
    problem = check_problem(answer)
    assert 400 <= answer.status_code < 500
    assert problem["retryable"] is False
    assert MARK not in answer.text
    assert MARK not in str(answer.headers)
    assert world.api.contents() == before
    return problem


MESSAGE = {"role": "user", "content": "I like tea."}
MESSAGES = {"session_id": "s-new", "messages": [MESSAGE]}
UNFREEZE = {"reason": "a test", "source_session_id": "s-u-1"}

ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "/v1/users/{user}/messages", MESSAGES),
    ("GET", "/v1/jobs/{job}", None),
    ("POST", "/v1/users/{user}/sessions/{session}/end", None),
    ("POST", "/v1/users/{user}/recall", {"query": "tea"}),
    ("GET", "/v1/users/{user}/memories", None),
    ("POST", "/v1/users/{user}/memories", {"content": "I like tea."}),
    ("GET", "/v1/users/{user}/memories/{memory}", None),
    ("GET", "/v1/users/{user}/memories/{memory}/history", None),
    ("PATCH", "/v1/users/{user}/memories/{memory}", {"scope": "scene"}),
    ("DELETE", "/v1/users/{user}/memories/{memory}", None),
    ("POST", "/v1/users/{user}/memories/{memory}/confirm", {"session_id": "s-9"}),
    ("POST", "/v1/users/{user}/memories/{memory}/freeze", {"reason": "a test"}),
    ("POST", "/v1/users/{user}/memories/{frozen}/unfreeze", UNFREEZE),
    ("POST", "/v1/users/{user}/memories/{frozen}/unfreeze/{challenge}", {"answer": "x"}),
    ("GET", "/v1/users/{user}/profile", None),
    ("GET", "/v1/users/{user}/summary", None),
    ("GET", "/v1/users/{user}/confirmations", None),
    ("POST", "/v1/users/{user}/confirmations/{confirmation}", {"choice": "old"}),
    ("GET", "/v1/users/{user}/audit", None),
    ("GET", "/v1/users/{user}/export", None),
    ("POST", "/v1/users/{user}/pause", None),
    ("POST", "/v1/users/{user}/resume", None),
    ("PUT", "/v1/users/{user}/consent", {"sensitive": True}),
    ("POST", "/v1/users/{user}/feedback", {"session_id": "s1", "memory_ids": ["m1"], "signal": "like"}),
    ("DELETE", "/v1/users/{user}", None),
    ("GET", "/v1/admin/alerts", None),
    ("GET", "/v1/admin/metrics", None),
    ("POST", "/v1/admin/alerts/{alert}", None),
    ("GET", "/v1/admin/dead-letters", None),
    ("GET", "/v1/admin/hosts", None),
    ("POST", "/v1/admin/hosts", {"hosts": 2}),
    ("POST", "/v1/admin/users/{user}/maintain", {"now": "2027-01-01T00:00:00Z"}),
]
WITH_BODY = [route for route in ROUTES if route[2] is not None]
OPTIONAL_BODY = {"confirm", "freeze", "maintain"}


def as_json(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


async def test_the_table_above_names_every_route(api: Api) -> None:
    document = (await api.get("/openapi.json")).json()["paths"]
    documented = {
        (method.upper(), path)
        for path, methods in document.items()
        for method in methods
        if path.startswith("/v1")
    }
    assert {(method, path.replace("{frozen}", "{memory}")) for method, path, _ in ROUTES} == documented


# ids

HOSTILE_IDS = {
    "dot": ".", "dots": "..", "quoted dots": "%2e%2e", "half quoted dots": ".%2E", "nul": f"{MARK}%00", "newline": f"{MARK}%0A",
    "delete": f"{MARK}%7F", "c1": f"{MARK}%C2%85", "long": MARK * 1250, "129": MARK * 16 + "x", "line separator": f"{MARK}%E2%80%A8",
    "surrogate": f"{MARK}%ED%A0%80", "not utf-8": f"{MARK}%FF", "overlong": "%C0%AE%C0%AE", "cut": f"{MARK}%E6%B1", "space": "%20",
    "ideographic space": "%E3%80%80",
}  # fmt: skip
PLACES = [
    (method, path, name, body)
    for method, path, body in ROUTES
    for name in ("user", "session", "memory", "frozen", "job", "challenge", "confirmation", "alert")
    if f"{{{name}}}" in path
]


@pytest.mark.parametrize("hostile", HOSTILE_IDS.values(), ids=HOSTILE_IDS.keys())
async def test_ids_in_the_path(world: World, hostile: str) -> None:
    for method, path, name, body in PLACES:
        problem = await refused(world, method, world.fill(path, **{name: hostile}), JSON, [as_json(body)])
        assert (problem["status"], problem["code"]) == (422, "invalid_id"), (method, path, name)


@pytest.mark.parametrize(
    "target",
    [
        "/v1/users//memories",
        "/v1/users/u-1/memories/",
        "/v1/users/../../etc/passwd",
        "//",
        "/v1/users/a/b/memories",
    ],
)
async def test_paths_that_are_no_route(world: World, target: str) -> None:
    assert (await refused(world, "GET", target))["code"] == "no_such_route"


async def test_an_unknown_id_with_a_slash_is_not_found_and_not_another_route(world: World) -> None:
    for method, path in (("GET", "/v1/jobs/a%2Fb"), ("GET", "/v1/users/u-1/memories/a%2Fhistory")):
        assert (await refused(world, method, path))["code"] == "not_found"


# whole bodies

DEEP = 10_000
BROKEN = {
    "not json": f"{MARK}".encode(), "cut": b'{"a": ', "two": b"{}{}", "not utf-8": b'{"content": "\xff\xfe"}', "nul": b"\x00",
    "deep list": b"[" * DEEP + b"]" * DEEP, "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP, "deep and open": b"[" * 100_000,
    "huge int": b'{"a": ' + b"9" * 5000 + b"}", "single quotes": b"{'a': 1}", "trailing comma": b'{"a": 1,}', "bom": b"\xef\xbb\xbf\xff",
}  # fmt: skip
WRONG = {
    "list": b"[]", "text": b'"Zq7xMark"', "number": b"1", "true": b"true", "huge float": b"1e999", "nan": b"NaN",
    "infinity": b"-Infinity", "unknown field": b'{"<Zq7xMark>": 1}', "surrogate key": b'{"\\ud800": 1}',
    "surrogate bytes key": b'{"\xed\xa0\x80": 1}', "empty key": b'{"": 1}', "proto": b'{"__class__": "Zq7xMark"}',
    "nested": b'{"session_id": ' + b"[" * 500 + b"]" * 500 + b"}", "long key": b'{"' + b"Zq7xMark" * 1000 + b'": 1}',
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), WITH_BODY, ids=[f"{m} {p}" for m, p, _ in WITH_BODY])
async def test_bodies(world: World, method: str, path: str, body: Any) -> None:
    target = world.fill(path)
    for name, sent in BROKEN.items():
        problem = await refused(world, method, target, JSON, [sent])
        assert (problem["status"], problem["code"]) == (400, "invalid_json"), name
    for name, sent in WRONG.items():
        problem = await refused(world, method, target, JSON, [sent])
        assert (problem["status"], problem["code"]) == (422, "invalid_input"), name
    extra = {**body, f"<{MARK}>": 1}
    assert (await refused(world, method, target, JSON, [as_json(extra)]))["detail"].startswith("body.?")
    if path.rpartition("/")[2] not in OPTIONAL_BODY:
        for sent in (b"", b"null"):
            assert (await refused(world, method, target, JSON, [sent]))["code"] == "invalid_input"


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"\xff\xfe",
        b"",
    ],
)
async def test_only_json_is_read(world: World, content_type: bytes | None) -> None:
    headers = [] if content_type is None else [(b"content-type", content_type)]
    for method, path, body in WITH_BODY:
        problem = await refused(world, method, world.fill(path), headers, [as_json(body)])
        assert (problem["status"], problem["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "sizes", [[2_000_001], [1_000_000, 1_000_000, 1], [100_000] * 21], ids=["whole", "chunks", "more"]
)
@pytest.mark.parametrize("claimed", [None, b"10", b"99999999999", b"-1", b"x"])
async def test_a_body_over_the_limit(world: World, sizes: list[int], claimed: bytes | None) -> None:
    headers = [*JSON, *([(b"content-length", claimed)] if claimed else [(b"transfer-encoding", b"chunked")])]
    for method, path, _ in (ROUTES[0], ROUTES[4]):
        problem = await refused(world, method, world.fill(path), headers, [b" " * size for size in sizes])
        assert (problem["status"], problem["code"]) == (413, "too_large")


# fields


def messages(**changed: Any) -> dict[str, Any]:
    return {"session_id": "s-new", "messages": [{**MESSAGE, **changed}]}


BAD_IDS: list[Any] = [
    "",
    ".",
    "..",
    "a\0b",
    "a\nb",
    MARK * 1250,
    "a\u2028b",
    "\ud800",
    " ",
    1,
    None,
    True,
    [],
    {},
    1.5,
]
BAD_TIMES: list[Any] = [
    0, 1_700_000_000, -1, 1.5, True, [], {}, "", "now", "2026-03-02", "2026-03-02T20:15:00", "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z", "2999-01-01T00:00:00Z", "1700000000",
    "2026-13-01T00:00:00Z", "2026-03-02T20:15:00+99:00", "\ud800", MARK, "1e400", "-2026-03-02T20:15:00Z",
]  # fmt: skip
BAD_ZONES: list[Any] = [
    "../../etc/passwd", "/etc/passwd", "..", "", "Mars/Olympus", "Asia/Shanghai\0", "A" * 65, "\ud800", 8, "C:\\x", "汉", "Asia/",
    "Asia", ".", "UTC\n",
]  # fmt: skip
BAD_TEXTS: list[Any] = [
    "",
    " ",
    "\n\t",
    "\u200b",
    "\u2028",
    "\u3000",
    "\ufeff\u200d",
    "\ud800",
    "ok \udfff",
    1,
    None,
    True,
    [],
    {},
]


def some(*values: Any) -> tuple[Any, ...]:
    return values


def cases() -> Iterable[tuple[str, Any]]:
    """(path, body) of requests that are wrong in one field."""
    at = "/v1/users/{user}/messages"
    yield from (
        (at, {**MESSAGES, "messages": wrong})
        for wrong in some([], None, {}, "x", [None], [[]], [1], [MESSAGE] * 201)
    )
    yield from (
        (at, messages(role=role))
        for role in some("", "User", "developer", MARK, 1, None, [], "\ud800", "user\0")
    )
    yield from ((at, messages(content=content)) for content in BAD_TEXTS)
    yield from ((at, messages(id=id_)) for id_ in BAD_IDS if id_ is not None)
    yield from ((at, messages(created_at=when)) for when in BAD_TIMES)
    yield from ((at, messages(**{f"<{MARK}>": 1})) for _ in range(1))
    yield from ((at, {**MESSAGES, "session_id": id_}) for id_ in BAD_IDS)
    yield from ((at, {**MESSAGES, "scene": scene}) for scene in BAD_IDS if scene is not None)
    yield from ((at, {**MESSAGES, "timezone": zone}) for zone in BAD_ZONES)

    at = "/v1/users/{user}/recall"
    query = {"query": "tea"}
    yield from ((at, {"query": text}) for text in BAD_TEXTS)
    yield from (
        (at, {**query, "top_k": k})
        for k in some(0, -1, 51, "6", 1.5, 1.0, True, 10**30, [], float("nan"), float("inf"))
    )
    yield from (
        (at, {**query, "budget_chars": n}) for n in some(199, 0, -1, "600", 600.5, True, 10**30, 100_001, [])
    )
    yield from ((at, {**query, "session_id": id_}) for id_ in BAD_IDS if id_ is not None)
    yield from ((at, {**query, "timezone": zone}) for zone in BAD_ZONES)
    yield from ((at, {**query, "as_of": when}) for when in BAD_TIMES)
    yield from (
        (at, {**query, "include": wrong})
        for wrong in some("memories", [MARK], [1], [None], ["ask"] * 100, {})
    )

    at = "/v1/users/{user}/memories"
    yield from ((at, {"content": text}) for text in [*BAD_TEXTS, MARK * 100])
    yield from ((at, {"content": "I like tea.", "session_id": id_}) for id_ in BAD_IDS if id_ is not None)
    yield from ((at, {"content": "I like tea.", "scope": scope}) for scope in some("", "world", 1, [], True))

    at = "/v1/users/{user}/memories/{memory}"
    yield from ((f"{at}/confirm", {"session_id": id_}) for id_ in BAD_IDS)
    yield from ((f"{at}/freeze", {"reason": text}) for text in [*BAD_TEXTS, MARK * 100])
    at = "/v1/users/{user}/memories/{frozen}/unfreeze"
    yield from ((at, {**UNFREEZE, "reason": text}) for text in [*BAD_TEXTS, MARK * 100])
    yield from ((at, {**UNFREEZE, "source_session_id": id_}) for id_ in BAD_IDS)
    yield from (
        (f"{at}/{{challenge}}", {"answer": text}) for text in some("", "\ud800", 1, None, MARK * 17, [])
    )

    at = "/v1/users/{user}/confirmations/{confirmation}"
    yield from ((at, {"choice": choice}) for choice in some("", "OLD", MARK, 1, None, [], True, "\ud800"))
    at = "/v1/users/{user}/consent"
    yield from (
        (at, {name: wrong}) for name in ("sensitive", "cohort") for wrong in some("yes", 1, 0, "true", [], {})
    )
    at = "/v1/admin/users/{user}/maintain"
    yield from ((at, {"now": when}) for when in BAD_TIMES if when != "2999-01-01T00:00:00Z")


CASES = list(cases())
METHODS = {path: method for method, path, _ in ROUTES if method in {"POST", "PUT"}}


@pytest.mark.parametrize("path", list(dict.fromkeys(path for path, _ in CASES)))
async def test_fields(world: World, path: str) -> None:
    for body in (body for at, body in CASES if at == path):
        problem = await refused(world, METHODS[path], world.fill(path), JSON, [as_json(body)])
        assert problem["status"] == 422, body
        assert problem["code"] in {"invalid_input", "invalid_id"}, body


PATCHES: list[Any] = [
    *({"content": text} for text in [*BAD_TEXTS, MARK * 100] if text is not None), {},
    *({"scope": scope} for scope in some("", "world", 1, [])), *({"scene": scene} for scene in BAD_IDS if scene is not None),
    *({name: when} for name in ("valid_from", "valid_to") for when in BAD_TIMES if when != "2999-01-01T00:00:00Z"),
    {"lock": "pending"}, {"version": 7}, {"id": "x"}, {"confidence": 1}, {"user_id": MARK},
]  # fmt: skip


async def test_fields_of_an_edit(world: World) -> None:
    target = world.fill("/v1/users/{user}/memories/{memory}")
    for body in PATCHES:
        problem = await refused(world, "PATCH", target, [*JSON, (b"if-match", b'"1"')], [as_json(body)])
        assert problem["status"] == 422, body


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/users/{user}/messages", messages(content=MARK * 4001)),
        (
            "/v1/users/{user}/messages",
            {**MESSAGES, "messages": [MESSAGE, {"role": "tool", "content": MARK * 10_000}]},
        ),
        ("/v1/users/{user}/recall", {"query": MARK * 501}),
    ],
)
async def test_texts_over_their_limit(world: World, path: str, body: Any) -> None:
    problem = await refused(world, "POST", world.fill(path), JSON, [as_json(body)])
    assert (problem["status"], problem["code"]) == (413, "too_large")


# queries and headers

QUERIES: list[tuple[str, str]] = [
    *(("GET /v1/users/{user}/memories", query) for query in (
        "status=gone", "status=", "lock=x", "tier=x", "category=fact", "layer=x", "scope=x", "limit=0", "limit=201", "limit=1.5",
        "limit=NaN", "limit=" + "9" * 5000, "cursor=" + "a" * 600, "cursor=Zq7xMark", "cursor=%00", "limit=1&limit=2", "Zq7xMark=1", "q=%FF",
        "q=" + "a" * 257, "topic=" + "a" * 129, "status=active&status=active", "%00=1", "q=%ED%A0%80", "=1", "limit=%D9%A3%FF",
    )),
    *(("GET /v1/users/{user}/audit", query) for query in ("cursor=Zq7xMark", "cursor=LTE", "limit=-1", "limit=true")),
    *(("GET /v1/users/{user}/confirmations", query) for query in ("cursor=AAAA", "limit=0x10")),
    *(("GET /v1/users/{user}/summary", query) for query in ("lang=fr", "lang=", "lang=zh&lang=en", "language=zh")),
    *(("DELETE /v1/users/{user}", query) for query in ("kind=", "kind=Zq7xMark", "kinds=style", "kind=style&kind=all", "kind=%FF", "Kind=style")),
    *(("POST /v1/users/{user}/messages", query) for query in (
        "wait=maybe", "wait=true&timeout_s=0", "wait=true&timeout_s=121", "wait=true&timeout_s=nan", "wait=true&timeout_s=inf",
        "wait=true&timeout_s=-1", "timeout_s=x", "wait=true&wait=false", "timeout=5",
    )),
    *((f"{method} {path}", "x=1") for method, path, _ in ROUTES),
]  # fmt: skip


@pytest.mark.parametrize("route", list(dict.fromkeys(route for route, _ in QUERIES)))
async def test_queries(world: World, route: str) -> None:
    method, _, path = route.partition(" ")
    body = {(m, p): b for m, p, b in ROUTES}[method, path]
    for query in (query for at, query in QUERIES if at == route):
        target = f"{world.fill(path)}?{query}"
        problem = await refused(world, method, target, JSON, [as_json(body)])
        assert (problem["status"], problem["code"]) == (422, "invalid_input"), query


@pytest.mark.parametrize(
    "etag",
    [
        b"",
        b"*",
        b"\xff\xfe",
        b"Zq7xMark",
        b'"1',
        b'1"',
        b'""',
        b'"-1"',
        b'"1.0"',
        b'"1", "2"',
        b'W/"1"',
        b"9" * 5000,
        b'"1"x',
        b"\xc2\xb2",
    ],
)
async def test_if_match(world: World, etag: bytes) -> None:
    target = world.fill("/v1/users/{user}/memories/{memory}")
    problem = await refused(world, "PATCH", target, [*JSON, (b"if-match", etag)], [b'{"scope": "scene"}'])
    assert (problem["status"], problem["code"]) == (422, "invalid_input")


@pytest.mark.parametrize("token", [b"", b"\xff\xfe", b"Zq7xMark", b"\x00", b"x" * 256])
async def test_unfreeze_tokens(world: World, token: bytes) -> None:
    headers = [*JSON, (b"if-match", b'"1"'), (b"hermes-unfreeze", token)]
    target = world.fill("/v1/users/{user}/memories/{frozen}")
    problem = await refused(world, "PATCH", target, headers, [b'{"scope": "scene"}'])
    assert (problem["status"], problem["code"]) == (423, "memory_frozen")
    long = [*headers[:-1], (b"hermes-unfreeze", b"Zq7xMark" * 100)]
    assert (await refused(world, "PATCH", target, long, [b'{"scope": "scene"}']))["status"] == 422


async def test_the_clients_request_id_is_not_taken_over(world: World) -> None:
    headers = [(b"x-request-id", b"Zq7xMark"), (b"host", b"Zq7xMark"), (b"accept", b"\xff")]
    assert (await refused(world, "GET", "/v1/jobs/none", headers))["code"] == "not_found"


# methods


@pytest.mark.parametrize(
    "method", ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "Zq7xMark", "GET", "POST"]
)
async def test_methods_that_a_path_does_not_take(world: World, method: str) -> None:
    taken: dict[str, set[str]] = {}
    for known, path, _ in ROUTES:
        taken.setdefault(path.replace("{frozen}", "{memory}"), set()).add(known)
    for path in [*taken, "/healthz", "/readyz", "/metrics", "/openapi.json"]:
        if method in taken.get(path, {"GET", "HEAD"}):
            continue
        answer = await send(world.api, method, world.fill(path), JSON, [b"{}"])
        check_problem(answer, 405, "method_not_allowed")
        assert answer.headers["Allow"]
        await refused(world, method, world.fill(path), JSON, [b"{}"])
