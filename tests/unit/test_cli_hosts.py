"""hermes hosts: asks the server, says what it answered, and passes its refusals on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app


class Server:
    """Answers what it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answer = httpx.Response(200, json={"hosts": 4, "revision": 3})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, str(request.url), body))
        return self.answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    answering = Server()
    client = httpx.Client

    def patched(**options: Any) -> httpx.Client:
        return client(**options | {"transport": httpx.MockTransport(answering)})

    monkeypatch.setattr("hermes_memory.client.transport.httpx.Client", patched)
    yield answering


def hosts(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["hosts", *arguments])


def test_the_number_is_shown(server: Server) -> None:
    result = hosts("show", "--url", "http://127.0.0.1:9")
    assert (result.exit_code, result.stdout) == (0, "4 hosts carry the users\n")
    assert server.asked == [("GET", "http://127.0.0.1:9/v1/admin/hosts", None)]


def test_another_number_is_asked_for(server: Server) -> None:
    server.answer = httpx.Response(200, json={"hosts": 1, "revision": 4})
    assert hosts("scale", "1").stdout == "1 host carries the users\n"
    assert server.asked == [("POST", "http://127.0.0.1:8000/v1/admin/hosts", {"hosts": 1})]


def test_machines_get_json(server: Server) -> None:
    assert json.loads(hosts("scale", "4", "--json").stdout) == {"hosts": 4, "revision": 3}


def test_a_refusal_is_one_line_and_exit_2(server: Server) -> None:
    problem = {"code": "invalid_input", "detail": "hosts: must be from 1 to 64", "retryable": False}
    server.answer = httpx.Response(422, json=problem)
    result = hosts("scale", "65")
    assert result.exit_code == 2
    assert "must be from 1 to 64" in result.stderr
    assert "Traceback" not in result.output


def test_none_at_all_is_not_even_asked_for(server: Server) -> None:
    assert hosts("scale", "0").exit_code == 2
    assert server.asked == []
