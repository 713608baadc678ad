"""What only the real proxy, replica and actors can show; the contract itself is tested without Ray."""

from __future__ import annotations

import re

import httpx

from tests.cluster.harness import records, say


def test_readiness_names_each_dependency(http: httpx.Client) -> None:
    checks = http.get("/readyz").json()["checks"]
    assert set(checks) == {"ledger", "hosts", "distiller", "index"}
    assert all(check["ok"] for check in checks.values())
    assert len(checks["hosts"]["hosts"]) == 2


def test_the_peanut_story_through_every_process(http: httpx.Client) -> None:
    done = say(http, "mei", "我家小孩对花生过敏，吃了会起疹子", "mei-1")
    assert {"added", "frozen"} <= {change["op"] for change in done["changes"]}
    answer = http.post(
        "/v1/users/mei/recall", json={"query": "推荐一款曲奇的配方", "session_id": "mei-2"}
    ).json()
    assert "花生" in answer["context"]
    assert answer["timings_ms"]["actor"] > 0
    [memory] = records(http, "mei")
    assert memory["evidence"][0]["quote"] == "我家小孩对花生过敏，吃了会起疹子"


def test_an_id_with_an_encoded_slash_reaches_its_user(http: httpx.Client) -> None:
    say(http, "team%2Fana", "I live in Porto.", "slash-1")
    assert [memory["user_id"] for memory in records(http, "team%2Fana")] == ["team/ana"]
    assert records(http, "team") == []


def test_errors_come_through_the_actor_as_problems(http: httpx.Client) -> None:
    say(http, "leo", "I live in Oslo.", "leo-1")
    stolen = http.post(
        "/v1/users/eve/messages",
        json={"session_id": "leo-1", "messages": [{"role": "user", "content": "hi there"}]},
    )
    assert (stolen.status_code, stolen.json()["code"]) == (409, "session_owned")
    [memory] = records(http, "leo")
    stale = http.patch(
        f"/v1/users/leo/memories/{memory['id']}",
        headers={"If-Match": '"99"'},
        json={"content": "I live in Rome."},
    )
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_version")
    missing = http.get("/v1/users/leo/memories/mem_none")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")


def test_an_edit_is_read_and_embedded_by_the_distiller(http: httpx.Client) -> None:
    say(http, "ida", "我喜欢喝乌龙茶。", "ida-1")
    [memory] = records(http, "ida")
    edited = http.patch(
        f"/v1/users/ida/memories/{memory['id']}",
        headers={"If-Match": f'"{memory["version"]}"'},
        json={"content": "用户喜欢喝红茶"},
    )
    assert edited.json()["object"] == "红茶"
    answer = http.post("/v1/users/ida/recall", json={"query": "泡点什么茶"}).json()
    assert "红茶" in answer["context"]
    assert "乌龙" not in answer["context"]


def test_an_oversized_body_is_refused_before_it_reaches_anybody(http: httpx.Client) -> None:
    body = b'{"session_id": "s", "messages": [{"role": "user", "content": "' + b"x" * 3_000_000 + b'"}]}'
    answer = http.post("/v1/users/max/messages", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_metrics_tell_the_processes_apart(http: httpx.Client) -> None:
    say(http, "kim", "I'm allergic to peanuts.", "kim-1")
    text = http.get("/metrics").text
    assert 'hermes_messages_total{process="ingress-' in text
    assert re.search(r'hermes_changes_total\{process="hermes-host-[01]",op="frozen"', text)
    assert all(f'hermes_up{{process="hermes-host-{number}"}} 1\n' in text for number in range(2))
    assert "hermes_undeclared_metrics_total" in text
    assert not re.search(r"hermes_undeclared_metrics_total\{[^}]*\} [^0]", text)
    assert 'process_resident_memory_bytes{process="hermes-host-0"}' in text


def test_the_documentation_is_served(http: httpx.Client) -> None:
    assert http.get("/openapi.json").json()["info"]["title"] == "Hermes Memory"
    assert http.get("/docs").status_code == 200
