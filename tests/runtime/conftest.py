"""The HTTP app over actors in this process, one for each module; each test has users and sessions of its own."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from hermes_memory.config import load_settings
from tests.runtime.local_app import WITHOUT_MODEL, local_app

PROBLEM = "application/problem+json"
PROBLEM_FIELDS = {"type", "title", "status", "detail", "code", "retryable", "request_id"}
OF_THE_HOUSE = {"meta", "leases", "tallies"}  # what time changes by itself; counts are written down later
QUICK: dict[str, Any] = {**WITHOUT_MODEL, "batch": {"delay_s": 0.01, "backoff_s": 0.01}}

PEANUTS = "我对花生过敏"
OSLO = "I live in Oslo."
SPICY = "我喜欢吃辣"

_numbers = itertools.count()


class Api(httpx.AsyncClient):
    """A client that knows the data directory behind the app."""

    data: Path

    def contents(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of the ledger, by table."""
        with closing(sqlite3.connect(self.data / "hermes.db")) as ledger:
            named = ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            tables = sorted({name for (name,) in named if not name.startswith("sqlite_")} - OF_THE_HOUSE)
            return {table: ledger.execute(f"SELECT * FROM {table}").fetchall() for table in tables}  # noqa: S608


def _built(data: Path, overrides: dict[str, Any]) -> FastAPI:
    return local_app(data, load_settings(None, overrides))


@asynccontextmanager
async def serving(data: Path, overrides: dict[str, Any] | None = None) -> AsyncIterator[Api]:
    """A client of an app that is running on ``data``."""
    app = await asyncio.to_thread(_built, data, {**QUICK, **(overrides or {})})
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with Api(transport=transport, base_url="http://hermes") as client:
            client.data = data
            yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    async with serving(tmp_path_factory.mktemp("data")) as client:
        yield client


class Someone:
    """A user of the API, with a session of their own."""

    def __init__(self, api: Api, name: str) -> None:
        self.api, self.name = api, name
        self.session = f"s-{name}"
        self.path = f"/v1/users/{name}"

    async def call(self, method: str, path: str, *, ok: int = 200, **request: Any) -> Any:
        """The JSON of an answer that has the status ``ok``."""
        answer = await self.api.request(method, self.path + path, **request)
        assert answer.status_code == ok, answer.text
        return answer.json()

    async def get(self, path: str, **query: Any) -> Any:
        return await self.call("GET", path, params=query)

    async def say(self, *contents: str, session: str | None = None) -> Any:
        """Messages of the user, read before the answer comes."""
        messages = [{"role": "user", "content": content} for content in contents]
        body = {"session_id": session or self.session, "messages": messages}
        return await self.call("POST", "/messages", json=body, params={"wait": "true"})

    async def remember(self, content: str) -> dict[str, Any]:
        """Say something that becomes one memory; its record."""
        said = await self.say(content)
        added = [change["memory_id"] for change in said["changes"] if change["op"] == "added"]
        assert len(added) == 1, said
        record: dict[str, Any] = await self.get(f"/memories/{added[0]}")
        return record


@pytest.fixture
def user(api: Api) -> Someone:
    return Someone(api, f"user-{next(_numbers)}")


@pytest.fixture
def other(api: Api) -> Someone:
    return Someone(api, f"other-{next(_numbers)}")


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path


def check_problem(
    answer: httpx.Response, status: int | None = None, code: str | None = None
) -> dict[str, Any]:
    """The problem that an answer is; it has the published shape."""
    assert 400 <= answer.status_code < 600, answer.text
    assert answer.headers["content-type"] == PROBLEM
    problem: dict[str, Any] = answer.json()
    assert set(problem) == PROBLEM_FIELDS
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"urn:hermes-memory:problem:{problem['code']}"
    assert problem["request_id"] == answer.headers["X-Request-Id"]
    assert isinstance(problem["retryable"], bool)
    assert (status, code) in {
        (None, None),
        (problem["status"], None),
        (problem["status"], problem["code"]),
    }, problem
    return problem


def body(session: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"session_id": session, "messages": list(messages), **more}


def message(content: str, id_: str | None = None, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **({"id": id_} if id_ else {}), **more}


async def post(user: Someone, sent: dict[str, Any], **query: Any) -> tuple[int, Any]:
    answer = await user.api.post(f"{user.path}/messages", json=sent, params=query)
    return answer.status_code, answer.json()
