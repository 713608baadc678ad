"""The HTTP contract, route by route: shapes, statuses, headers, and what one call means to the next."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.core.reasons import Reason
from tests.runtime.conftest import (
    OSLO,
    PEANUTS,
    SPICY,
    Api,
    Someone,
    body,
    check_problem,
    message,
    post,
    serving,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPS = {
    "added", "reinforced", "confirmed", "superseded", "rival", "conflict", "merged", "frozen", "unfrozen",
    "refrozen", "archived", "reactivated", "evicted", "erased", "refused",
}  # fmt: skip
LAYERS = {"identity", "restriction", "preference", "style", "context"}


# capture


async def test_messages_are_taken_in_and_read_later(user: Someone) -> None:
    status, taken = await post(user, body(user.session, message(PEANUTS, "m-1")))
    assert status == 202
    assert set(taken) == {"job_id", "accepted", "duplicates"}
    assert (taken["accepted"], taken["duplicates"]) == (1, 0)
    async with asyncio.timeout(10):
        while (job := (await user.api.get(f"/v1/jobs/{taken['job_id']}")).json())["status"] != "done":
            assert job["status"] in {"queued", "running"}
            await asyncio.sleep(0.01)
    assert {"job_id", "status", "reason", "attempts", "changes", "version"} <= set(job)
    assert job["job_id"] == taken["job_id"]


async def test_waiting_answers_with_what_the_gates_made(user: Someone) -> None:
    sent = body(
        user.session,
        message(PEANUTS, "m-1", created_at="2026-03-02T20:15:00+08:00"),
        message("Noted.", "m-2", "assistant"),
        message("ok", "m-3"),
        timezone="Asia/Shanghai",
        scene="dining",
    )
    status, answer = await post(user, sent, wait="true", timeout_s=20)
    assert status == 200
    assert set(answer) == {"job_id", "accepted", "duplicates", "status", "reason", "changes", "version"}
    assert (answer["status"], answer["accepted"]) == ("done", 3)
    for change in answer["changes"]:
        assert set(change) == {"op", "memory_id", "reason", "message_id"}
        assert change["op"] in OPS
        assert change["reason"] in set(Reason)
    made = [change for change in answer["changes"] if change["message_id"] == "m-1"]
    assert [change["op"] for change in made] == ["added", "frozen"]  # two entries
    record = await user.get(f"/memories/{made[0]['memory_id']}")
    assert record["evidence"][0]["quote"] in PEANUTS
    assert datetime.fromisoformat(record["created_at"]) == datetime(2026, 3, 2, 12, 15, tzinfo=UTC)


async def test_time_over_is_202_as_without_waiting(data: Path) -> None:
    async with serving(data, {"batch": {"attempts": 50, "backoff_s": 5.0}}) as api:
        app = api._transport.app  # type: ignore[attr-defined]
        host = app.state.services.users._host

        async def stuck(_: Any) -> Any:
            await asyncio.sleep(60)

        host._distiller.distil = stuck
        status, answer = await post(Someone(api, "u"), body("s", message(OSLO)), wait="true", timeout_s=0.05)
    assert status == 202
    assert set(answer) == {"job_id", "accepted", "duplicates"}


async def test_a_failed_extraction_is_200_failed_with_a_reason(data: Path) -> None:
    async with serving(data, {"batch": {"attempts": 1, "delay_s": 0.01}}) as api:
        app = api._transport.app  # type: ignore[attr-defined]

        async def broken(_: Any) -> Any:
            raise RuntimeError("no model")

        app.state.services.users._host._distiller.distil = broken
        user = Someone(api, "u")
        status, answer = await post(user, body("s", message(OSLO)), wait="true")
        assert (status, answer["status"], answer["reason"]) == (200, "failed", "RuntimeError")
        job = (await api.get(f"/v1/jobs/{answer['job_id']}")).json()
        assert (job["status"], job["attempts"]) == ("failed", 1)
        check_problem(
            await api.post("/v1/users/u/memories", json={"content": OSLO}), 503, "extraction_failed"
        )


async def test_the_same_messages_again_are_duplicates_and_change_nothing(user: Someone) -> None:
    sent = body(user.session, message(PEANUTS, "m-1"), message(OSLO, "m-2"))
    _, first = await post(user, sent, wait="true")
    before = user.api.contents()
    status, again = await post(user, sent)
    assert (status, again) == (202, {"job_id": first["job_id"], "accepted": 0, "duplicates": 2})
    status, waited = await post(user, sent, wait="true")
    assert (status, waited["status"], waited["changes"]) == (200, "done", [])
    assert waited["job_id"] == first["job_id"]
    assert user.api.contents() == before


async def test_a_request_with_some_known_messages_takes_the_rest(user: Someone) -> None:
    await post(user, body(user.session, message(PEANUTS, "m-1")), wait="true")
    _, answer = await post(
        user, body(user.session, message(PEANUTS, "m-1"), message(OSLO, "m-2")), wait="true"
    )
    assert (answer["accepted"], answer["duplicates"]) == (1, 1)


@pytest.mark.parametrize("changed", [message(OSLO, "m-1"), message(PEANUTS, "m-1", "assistant")])
async def test_a_message_id_with_other_content_is_409(user: Someone, changed: dict[str, Any]) -> None:
    await post(user, body(user.session, message(PEANUTS, "m-1")), wait="true")
    before = user.api.contents()
    answer = await user.api.post(f"{user.path}/messages", json=body(user.session, message(SPICY), changed))
    check_problem(answer, 409, "message_id_reused")
    assert user.api.contents() == before


async def test_message_ids_are_unique_per_user_and_session(user: Someone, other: Someone) -> None:
    await post(user, body(user.session, message(PEANUTS, "m-1")), wait="true")
    _, elsewhere = await post(user, body(f"{user.session}-2", message(OSLO, "m-1")))
    _, stranger = await post(other, body(other.session, message(OSLO, "m-1")))
    assert (elsewhere["accepted"], stranger["accepted"]) == (1, 1)


async def test_a_session_belongs_to_one_user(user: Someone, other: Someone) -> None:
    await user.say(OSLO)
    before = user.api.contents()
    sent = body(user.session, message(PEANUTS))
    check_problem(await other.api.post(f"{other.path}/messages", json=sent), 409, "session_owned")
    asked = {"query": "hello", "session_id": user.session}
    check_problem(await other.api.post(f"{other.path}/recall", json=asked), 409, "session_owned")
    check_problem(await other.api.post(f"{other.path}/sessions/{user.session}/end"), 409, "session_owned")
    stated = {"content": PEANUTS, "session_id": user.session}
    check_problem(await other.api.post(f"{other.path}/memories", json=stated), 409, "session_owned")
    assert user.api.contents() == before


async def test_a_refused_request_binds_no_session(user: Someone, other: Someone) -> None:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    sent = body("s-contested-1", message(OSLO, created_at=ahead))
    check_problem(await user.api.post(f"{user.path}/messages", json=sent), 422, "invalid_input")
    twice = body("s-contested-2", message(OSLO, "m"), message(SPICY, "m"))
    check_problem(await user.api.post(f"{user.path}/messages", json=twice), 409, "message_id_reused")
    for session in ("s-contested-1", "s-contested-2"):
        assert (await post(other, body(session, message(OSLO))))[0] == 202


async def test_ending_a_session_is_200_and_may_be_repeated(user: Someone) -> None:
    await user.say(OSLO)
    for session in (user.session, user.session, "s-never-seen"):
        assert await user.call("POST", f"/sessions/{session}/end") == {"session_id": session, "ended": True}
    assert {record["tier"] for record in (await user.get("/memories"))["memories"]} == {"longterm"}


async def test_an_unknown_job_is_404(api: Api) -> None:
    check_problem(await api.get("/v1/jobs/job_nothing"), 404, "not_found")


async def test_a_full_mailbox_is_429_with_retry_after(data: Path) -> None:
    async with serving(data, {"actors": {"max_waiting": 0}}) as api:
        answer = await api.post("/v1/users/u/pause")
    assert check_problem(answer, 429, "overloaded")["retryable"] is True
    assert int(answer.headers["Retry-After"]) >= 1


async def test_a_busy_host_is_429_with_retry_after_and_changes_nothing(data: Path) -> None:
    async with serving(data, {"actors": {"max_in_flight": 1}}) as api:
        answers = await asyncio.gather(*(api.post(f"/v1/users/u-{n}/pause") for n in range(20)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        for answer in refused:
            assert check_problem(answer, 429, "overloaded")["retryable"] is True
            assert int(answer.headers["Retry-After"]) >= 1
        assert len(api.contents()["users"]) == len(answers) - len(refused)
        assert (await api.post("/v1/users/u-1/pause")).status_code == 200


async def test_in_one_process_the_number_of_hosts_is_fixed(api: Api) -> None:
    check_problem(await api.get("/v1/admin/hosts"), 404, "not_found")
    check_problem(await api.post("/v1/admin/hosts", json={"hosts": 2}), 404, "not_found")


# recall


async def test_recall_answers_in_the_published_shape(user: Someone) -> None:
    await user.say(PEANUTS, "我住在苏州")
    asked = {
        "query": "晚饭吃什么,花生酱可以吗", "session_id": "s-unknown", "scene": "dining", "top_k": 6, "budget_chars": 600,
        "timezone": "Asia/Shanghai", "include": ["memories", "profile", "ask"],
    }  # fmt: skip
    answer = await user.call("POST", "/recall", json=asked)
    assert set(answer) == {
        "context", "memories", "profile", "ask", "version", "as_of", "degraded", "over_budget", "timings_ms",
    }  # fmt: skip
    assert "花生" in answer["context"]
    assert len(answer["context"]) <= 600
    for hit in answer["memories"]:
        assert set(hit) == {
            "id", "content", "category", "layer", "scope", "scene", "lock", "polarity", "confidence", "always", "score",
            "score_parts", "evidence",
        }  # fmt: skip
        assert hit["polarity"] in {"+", "-"}
        for piece in hit["evidence"]:
            assert set(piece) == {"session_id", "message_id", "quote", "created_at"}
    assert [hit["always"] for hit in answer["memories"]].count(True) >= 1
    assert (answer["degraded"], answer["over_budget"], answer["ask"]) == ([], False, None)


async def test_recall_creates_no_session_and_changes_nothing(user: Someone, other: Someone) -> None:
    await user.say(PEANUTS)
    before = user.api.contents()
    await user.call("POST", "/recall", json={"query": "花生", "session_id": "s-asked-only"})
    assert user.api.contents() == before
    assert (await post(other, body("s-asked-only", message(OSLO))))[0] == 202


async def test_recall_leaves_out_what_is_not_wanted(user: Someone) -> None:
    await user.say(PEANUTS)
    answer = await user.call("POST", "/recall", json={"query": "花生", "include": ["profile"]})
    assert answer["memories"] == []
    assert "restriction" in answer["profile"]


# the user


async def test_the_profile_has_slots_by_layer(user: Someone) -> None:
    made = await user.remember(PEANUTS)
    profile = await user.get("/profile")
    assert set(profile) <= LAYERS | {"behavior"}
    slot = next(iter(profile["restriction"].values()))
    assert {"value", "confidence", "lock", "source", "memory_ids", "contradictions", "updated_at"} <= set(
        slot
    )
    assert slot["memory_ids"] == [made["id"]]


@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_the_summary_quotes(user: Someone, lang: str) -> None:
    await user.say(PEANUTS)
    summary = await user.get("/summary", lang=lang)
    assert summary["language"] == lang
    assert "花生" in summary["memories"][0]["quotes"][0]
    check_problem(await user.api.get(f"{user.path}/summary", params={"lang": "fr"}), 422, "invalid_input")


async def test_a_contradiction_of_a_frozen_memory_is_asked_and_answered(user: Someone) -> None:
    made = await user.remember(PEANUTS)
    await user.say("我对花生不过敏", session=f"{user.session}-2")
    (asked,) = (await user.get("/confirmations"))["confirmations"]
    assert {"id", "question", "options", "memory_ids", "quotes", "status", "expires_at"} <= set(asked)
    assert {option["choice"] for option in asked["options"]} == {"old", "new", "both", "neither"}
    assert all(set(option) == {"choice", "label"} for option in asked["options"])
    assert (asked["status"], asked["memory_ids"][0]) == ("open", made["id"])
    recalled = await user.call("POST", "/recall", json={"query": "花生", "session_id": f"{user.session}-3"})
    assert recalled["ask"]["id"] == asked["id"]

    at = f"/confirmations/{asked['id']}"
    check_problem(await user.api.post(user.path + at, json={"choice": "perhaps"}), 422, "invalid_input")
    answer = await user.call("POST", at, json={"choice": "new"})
    assert answer["confirmation"]["status"] == "answered"
    assert {"unfrozen", "superseded"} <= {change["op"] for change in answer["changes"]}
    assert (await user.get(f"/memories/{made['id']}"))["status"] == "superseded"
    check_problem(await user.api.post(user.path + at, json={"choice": "old"}), 404, "not_found")


async def test_pausing_stops_remembering(user: Someone) -> None:
    assert await user.call("POST", "/pause") == {"paused": True}
    assert await user.call("POST", "/pause") == {"paused": True}
    said = await user.say(PEANUTS)
    assert (said["accepted"], said["duplicates"], said["status"]) == (0, 0, "done")
    assert [(change["op"], change["reason"]) for change in said["changes"]] == [("refused", "paused")]
    refused = await user.api.post(f"{user.path}/memories", json={"content": OSLO})
    check_problem(refused, 422, "refused")
    assert await user.call("POST", "/resume") == {"paused": False}
    assert (await user.get("/memories"))["memories"] == []
    await user.remember(OSLO)


async def test_consent_is_recorded_field_by_field(user: Someone) -> None:
    assert await user.call("PUT", "/consent", json={"sensitive": True}) == {"consent": {"sensitive": True}}
    both = await user.call("PUT", "/consent", json={"cohort": False})
    assert both == {"consent": {"sensitive": True, "cohort": False}}
    assert (await user.get("/export"))["settings"]["consent"] == both["consent"]


async def test_the_export_is_complete(user: Someone) -> None:
    made = await user.remember(PEANUTS)
    exported = await user.get("/export")
    assert set(exported) == {
        "format", "user", "version", "memories", "sessions", "confirmations", "settings", "profile", "tally",
        "turns", "audit",
    }  # fmt: skip
    assert exported["memories"] == [made]
    assert [turn["content"] for turn in exported["turns"]] == [PEANUTS]
    assert [session["id"] for session in exported["sessions"]] == [user.session]


EMPTY: list[tuple[str, Any]] = [
    ("/memories", {"memories": [], "next_cursor": None}),
    ("/confirmations", {"confirmations": [], "next_cursor": None}),
    ("/audit", {"audit": [], "next_cursor": None}),
    ("/summary", {"language": "en", "memories": [], "version": 0}),
]


async def reads_as_empty(user: Someone, version: int) -> None:
    for path, expected in EMPTY:
        found = await user.get(path)
        assert found == {**expected, **({"version": version} if "version" in expected else {})}
    assert not any((await user.get("/profile")).values())
    exported = await user.get("/export")
    assert not any(exported[name] for name in ("memories", "sessions", "turns", "audit", "confirmations"))
    recalled = await user.call("POST", "/recall", json={"query": "花生过敏"})
    assert (recalled["context"], recalled["memories"], recalled["ask"]) == ("", [], None)


async def test_an_unknown_user_reads_as_empty_and_stays_unknown(user: Someone) -> None:
    before = user.api.contents()
    await reads_as_empty(user, 0)
    check_problem(await user.api.get(f"{user.path}/memories/mem_1"), 404, "not_found")
    receipt = await user.call("DELETE", "")
    assert (receipt["remaining"], set(receipt["erased"].values())) == (0, {0})
    assert user.api.contents() == before


async def test_erasing_leaves_nothing_findable(data: Path) -> None:
    async with serving(data) as api:
        user, other = Someone(api, "the-erased"), Someone(api, "the-other")
        sent = body(user.session, message(PEANUTS, "m-1"))
        _, said = await post(user, sent, wait="true")
        memory_id = said["changes"][0]["memory_id"]
        await user.say("我对花生不过敏", session=f"{user.session}-2")
        receipt = await user.call("DELETE", "")
        assert set(receipt["erased"]) == {"memories", "vectors", "turns", "audit", "jobs", "profile_slots"}
        assert receipt["remaining"] == 0
        assert min(receipt["erased"][name] for name in ("memories", "vectors", "turns", "audit", "jobs")) >= 1
        await reads_as_empty(user, (await user.get("/summary"))["version"])
        check_problem(await api.get(f"{user.path}/memories/{memory_id}"), 404, "not_found")
        check_problem(await api.get(f"/v1/jobs/{said['job_id']}"), 404, "not_found")
        assert not found_in_files(data, user.name, "花生")

        _, late = await post(user, sent)  # a late retry revives nobody
        assert (late["accepted"], late["duplicates"]) == (0, 1)
        assert not found_in_files(data, user.name, "花生")
        status, _ = await post(other, body(user.session, message(OSLO)))  # the session is free again
        assert status == 202


def found_in_files(data: Path, *words: str) -> list[str]:
    """The words that stand anywhere in the files of a data directory."""
    everything = b"".join(path.read_bytes() for path in data.iterdir() if path.is_file())
    return [word for word in words if word.encode() in everything]


async def test_erasing_one_kind_leaves_the_others(user: Someone) -> None:
    await user.say(PEANUTS, OSLO)
    receipt = await user.call("DELETE", "", params={"kind": "restriction"})
    assert receipt["erased"]["memories"] == 1
    left = (await user.get("/memories"))["memories"]
    assert left
    assert "restriction" not in {record["layer"] for record in left}
    assert "花生" not in str(await user.get("/export"))
    again = await user.call("DELETE", "", params={"kind": "restriction"})
    assert again["erased"]["memories"] == 0


@pytest.mark.parametrize("query", ["kinds=style", "kind=everything", "kind=style&kind=all", "kind="])
async def test_a_slip_in_the_query_erases_nothing(user: Someone, query: str) -> None:
    await user.say(OSLO)
    before = user.api.contents()
    check_problem(await user.api.delete(f"{user.path}?{query}"), 422, "invalid_input")
    assert user.api.contents() == before


# operators


async def test_a_night_can_be_run_for_one_user(user: Someone) -> None:
    await user.say(OSLO)
    at = f"/v1/admin/users/{user.name}/maintain"
    answer = await user.api.post(at)
    assert answer.status_code == 200
    assert {"changes", "expired_requests"} <= set(answer.json())
    later = await user.api.post(at, json={"now": "2027-01-01T03:00:00Z"})
    again = await user.api.post(at, json={"now": "2027-01-01T03:00:00Z"})
    assert (later.status_code, again.json()["changes"]) == (200, [])


async def test_alerts_are_listed_and_closed(user: Someone) -> None:
    for number in range(51):  # the core tier holds fifty
        await user.say(f"我对{number}号药过敏")
    open_ones = (await user.api.get("/v1/admin/alerts")).json()
    (alert,) = [alert for alert in open_ones["alerts"] if alert["user_id"] == user.name]
    assert (alert["kind"], alert["job_id"]) == ("core_full", None)
    assert alert["memory_id"] in {m["id"] for m in (await user.get("/memories", limit=200))["memories"]}
    closed = await user.api.post(f"/v1/admin/alerts/{alert['id']}")
    assert (closed.status_code, closed.json()) == (200, {"id": alert["id"], "status": "closed"})
    check_problem(await user.api.post(f"/v1/admin/alerts/{alert['id']}"), 404, "not_found")
    assert alert["id"] not in {a["id"] for a in (await user.api.get("/v1/admin/alerts")).json()["alerts"]}


def _refuse(user: Someone) -> None:
    with sqlite3.connect(user.api.data / "hermes.db") as ledger:
        sql = "INSERT INTO outbox (name, op, memory_id, reason) VALUES (?, 'put', 'm1', 'too_large')"
        ledger.execute(sql, (f"default/{user.name}",))


async def test_what_an_index_refused_is_listed(user: Someone) -> None:
    await user.remember(PEANUTS)
    await asyncio.to_thread(_refuse, user)
    letters = (await user.api.get("/v1/admin/dead-letters")).json()
    (own,) = [one for one in letters["dead_letters"] if one["user_id"] == user.name]
    assert own["memories"] == [{"memory_id": "m1", "op": "put", "reason": "too_large"}]


async def test_health(api: Api) -> None:
    assert (await api.get("/healthz")).json() == {"status": "ok"}
    ready = (await api.get("/readyz")).json()
    assert (ready["status"], ready["checks"]["ledger"]["ok"]) == ("ready", True)
    metrics = await api.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "hermes_" in metrics.text


async def test_every_answer_carries_its_request_id(api: Api) -> None:
    ids = [(await api.get(path)).headers["X-Request-Id"] for path in ("/healthz", "/nothing", "/healthz")]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "name", ["a%2Fb", "%2e%2e%2fx", "汉字", "a%20b", "100%25", "a%3Fb%23c", "a+b", "%F0%9F%8D%9C"]
)
async def test_an_id_may_hold_any_printable_character(api: Api, name: str) -> None:
    user = Someone(api, name)
    user.session = f"s-of-{name}"
    await user.remember(OSLO)
    exported = await user.get("/export")
    assert "%2" not in exported["user"]
    assert await Someone(api, f"{name}x").get("/memories") == {"memories": [], "next_cursor": None}
    ended = await user.call("POST", f"/sessions/{name}/end")
    assert ended["session_id"] == exported["user"]


async def test_the_document_describes_problems(api: Api) -> None:
    document = (await api.get("/openapi.json")).json()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path.startswith("/v1/"):
                problem = operation["responses"]["4XX"]["content"]["application/problem+json"]["schema"]
                assert problem == {"$ref": "#/components/schemas/Problem"}
    ids = [
        operation["operationId"] for methods in document["paths"].values() for operation in methods.values()
    ]
    assert len(set(ids)) == len(ids)
    assert "post_messages" in ids
