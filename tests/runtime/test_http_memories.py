"""The routes of single memories and of lists: versions, locks, the verified unfreeze, pages, filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_memory.core.reasons import Reason
from tests.runtime.conftest import OSLO, PEANUTS, Someone, body, check_problem, message, post, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")


# memories


async def test_a_record_has_its_version_as_etag(user: Someone) -> None:
    made = await user.remember(OSLO)
    answer = await user.api.get(f"{user.path}/memories/{made['id']}")
    assert answer.headers["ETag"] == f'"{made["version"]}"'
    await user.call("POST", "/recall", json={"query": OSLO})
    assert (await user.get(f"/memories/{made['id']}"))["version"] == made["version"]
    assert await user.get(f"/memories/{made['id']}/history") == {"history": [], "next_cursor": None}


async def test_an_edit_needs_the_current_version(user: Someone) -> None:
    made = await user.remember(OSLO)
    at = f"{user.path}/memories/{made['id']}"
    change = {"content": "I live in Bergen."}
    check_problem(await user.api.patch(at, json=change), 428, "precondition_required")
    for garbage in ("abc", '"', "*", '"1", "2"', "", 'W/"1"', "9" * 40, "-1", '"1'):
        check_problem(
            await user.api.patch(at, json=change, headers={"If-Match": garbage}), 422, "invalid_input"
        )
    check_problem(await user.api.patch(at, json=change, headers={"If-Match": '"99"'}), 412, "stale_version")
    check_problem(await user.api.patch(at, json={}, headers={"If-Match": '"1"'}), 422, "invalid_input")
    assert await user.get(f"/memories/{made['id']}") == made

    answer = await user.api.patch(at, json=change, headers={"If-Match": f'"{made["version"]}"'})
    assert answer.status_code == 200
    edited = answer.json()
    assert answer.headers["ETag"] == f'"{edited["version"]}"'
    assert edited["version"] > made["version"]
    assert "Bergen" in edited["content"]
    assert edited["evidence"][-1]["kind"] == "edit"
    history = (await user.get(f"/memories/{made['id']}/history"))["history"]
    assert [entry["content"] for entry in history] == [made["content"]]


async def test_an_edit_may_set_scope_scene_and_period_but_no_backward_one(user: Someone) -> None:
    made = await user.remember(OSLO)
    at, version = f"{user.path}/memories/{made['id']}", {"If-Match": f'"{made["version"]}"'}
    backward = {"valid_from": "2026-01-01T00:00:00Z", "valid_to": "2025-01-01T00:00:00Z"}
    check_problem(await user.api.patch(at, json=backward, headers=version), 422, "invalid_input")
    change = {"scope": "scene", "scene": "travel", "valid_from": "2020-01-01T00:00:00Z"}
    edited = (await user.api.patch(at, json=change, headers=version)).json()
    assert (edited["scope"], edited["scene"], edited["valid_from"][:4]) == ("scene", "travel", "2020")


async def test_the_verified_unfreeze(user: Someone) -> None:
    made = await user.remember(PEANUTS)
    assert made["lock"] == "frozen"
    at, change = f"{user.path}/memories/{made['id']}", {"content": "我对花生和腰果过敏"}
    check_problem(await user.api.patch(at, json=change), 423, "memory_frozen")  # checked first
    version = {"If-Match": f'"{made["version"]}"'}
    check_problem(await user.api.patch(at, json=change, headers=version), 423, "memory_frozen")

    wanted = {"reason": "I was tested again", "source_session_id": user.session}
    stranger = {**wanted, "source_session_id": "s-not-mine"}
    check_problem(await user.api.post(f"{at}/unfreeze", json=stranger), 422, "invalid_input")
    for missing in ("reason", "source_session_id"):
        partly = {name: value for name, value in wanted.items() if name != missing}
        check_problem(await user.api.post(f"{at}/unfreeze", json=partly), 422, "invalid_input")
    challenge = await user.call("POST", f"/memories/{made['id']}/unfreeze", json=wanted, ok=202)
    assert set(challenge) == {"challenge_id", "prompt", "code", "expires_at"}

    answer_at = f"{at}/unfreeze/{challenge['challenge_id']}"
    check_problem(await user.api.post(answer_at, json={"answer": "wrong"}), 403, "challenge_refused")
    token = (await user.api.post(answer_at, json={"answer": challenge["code"]})).json()
    assert set(token) == {"token", "expires_at"}
    check_problem(await user.api.post(answer_at, json={"answer": challenge["code"]}), 404, "not_found")

    key = {"Hermes-Unfreeze": token["token"]}
    check_problem(await user.api.patch(at, json=change, headers=key), 428, "precondition_required")
    stale = {**key, "If-Match": '"99"'}
    check_problem(await user.api.patch(at, json=change, headers=stale), 412, "stale_version")
    wrong = {**version, "Hermes-Unfreeze": "0" * 32}
    check_problem(await user.api.patch(at, json=change, headers=wrong), 423, "memory_frozen")
    edited = (await user.api.patch(at, json=change, headers={**key, **version})).json()
    assert (edited["content"], edited["lock"]) == (change["content"], "frozen")
    assert edited["unfreeze_reason"]
    once_more = {**key, "If-Match": f'"{edited["version"]}"'}
    check_problem(await user.api.patch(at, json=change, headers=once_more), 423, "memory_frozen")


async def test_a_challenge_ends_with_the_third_wrong_answer(user: Someone) -> None:
    made = await user.remember(PEANUTS)
    wanted = {"reason": "a mistake", "source_session_id": user.session}
    challenge = await user.call("POST", f"/memories/{made['id']}/unfreeze", json=wanted, ok=202)
    at = f"{user.path}/memories/{made['id']}/unfreeze/{challenge['challenge_id']}"
    for answer in ("a", "b", "c", challenge["code"]):
        check_problem(await user.api.post(at, json={"answer": answer}), 403, "challenge_refused")


async def test_only_a_frozen_memory_can_be_unfrozen(user: Someone) -> None:
    made = await user.remember(OSLO)
    wanted = {"reason": "why not", "source_session_id": user.session}
    answer = await user.api.post(f"{user.path}/memories/{made['id']}/unfreeze", json=wanted)
    check_problem(answer, 409, "illegal_transition")


async def test_confirming_counts_once_for_each_session(user: Someone) -> None:
    made = await user.remember(OSLO)
    at = f"/memories/{made['id']}/confirm"
    first = await user.call("POST", at)
    assert first["confidence"] == pytest.approx(made["confidence"] + 0.1)
    assert first["lock"] == "confirmed"
    assert (await user.call("POST", at))["confidence"] == first["confidence"]
    second = await user.call("POST", at, json={"session_id": "s-later"})
    assert len(second["confirmations"]) == 2


async def test_freezing_by_hand(user: Someone) -> None:
    made = await user.remember(OSLO)
    frozen = await user.call("POST", f"/memories/{made['id']}/freeze", json={"reason": "it is so"})
    assert (frozen["lock"], frozen["tier"], frozen["freeze_reason"]) == ("frozen", "core", "it is so")
    again = await user.api.post(f"{user.path}/memories/{made['id']}/freeze")
    check_problem(again, 409, "illegal_transition")


async def test_freezing_needs_room_in_the_core(data: Path) -> None:
    async with serving(data, {"capacity": {"core": 1}}) as api:
        user = Someone(api, "u")
        await user.remember(PEANUTS)
        made = await user.remember(OSLO)
        answer = await api.post(f"/v1/users/u/memories/{made['id']}/freeze")
    check_problem(answer, 409, "core_full")


async def test_a_memory_can_be_stated_in_a_panel(user: Someone) -> None:
    made = await user.call("POST", "/memories", json={"content": OSLO}, ok=201)
    assert set(made) == {"job_id", "accepted", "duplicates", "changes", "memory_ids"}
    (memory_id,) = made["memory_ids"]
    record = await user.get(f"/memories/{memory_id}")
    assert record["evidence"][0]["kind"] == "panel"
    refused = check_problem(
        await user.api.post(f"{user.path}/memories", json={"content": "ok"}), 422, "refused"
    )
    assert refused["detail"].removeprefix("not stored: ") in set(Reason)


async def test_deleting_one_memory_leaves_none_of_its_words(user: Someone) -> None:
    made, kept = await user.remember(PEANUTS), await user.remember(OSLO)
    receipt = await user.call("DELETE", f"/memories/{made['id']}")
    assert receipt["remaining"] == 0
    assert (receipt["erased"]["memories"], receipt["erased"]["vectors"]) == (1, 1)
    for method, path in (
        ("GET", ""), ("GET", "/history"), ("DELETE", ""), ("POST", "/confirm"), ("POST", "/freeze"),
    ):  # fmt: skip
        gone = await user.api.request(method, f"{user.path}/memories/{made['id']}{path}")
        check_problem(gone, 404, "not_found")
    for path in ("/memories", "/export", "/summary", "/profile", "/audit"):
        assert "花生" not in str(await user.get(path))
    assert "花生" not in str(await user.call("POST", "/recall", json={"query": "过敏"}))
    assert [record["id"] for record in (await user.get("/memories"))["memories"]] == [kept["id"]]


# lists


async def test_memories_are_listed_in_pages(user: Someone) -> None:
    hobbies = ("I like chess.", "I like tea.", "I like hiking.", "I like jazz.", "I like Rome.")
    await user.say(OSLO, *hobbies)
    everything = (await user.get("/memories"))["memories"]
    assert len(everything) >= 5
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await user.get("/memories", limit=2, **({"cursor": cursor} if cursor else {}))
        assert set(page) == {"memories", "next_cursor"}
        assert len(page["memories"]) <= 2
        seen += [record["id"] for record in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [record["id"] for record in everything]
    assert len(set(seen)) == len(seen)
    times = [record["created_at"] for record in everything]
    assert times == sorted(times, reverse=True)


async def test_memories_are_listed_newest_first_also_before_1970(user: Someone) -> None:
    said = [
        message(text, created_at=f"{year}-01-01T00:00:00Z")
        for text, year in ((OSLO, 1950), ("I like chess.", 1960), ("I like tea.", 1990))
    ]
    await post(user, body(user.session, *said), wait="true")
    years = [record["created_at"][:4] for record in (await user.get("/memories"))["memories"]]
    assert years == sorted(years, reverse=True)
    assert len(years) >= 3


async def test_memories_are_filtered(user: Someone) -> None:
    await user.say(PEANUTS, OSLO)
    for name, value in (
        ("status", "active"), ("lock", "frozen"), ("lock", "fluid"), ("tier", "core"), ("category", "FACT"),
        ("layer", "restriction"), ("scope", "user"), ("q", "花生"),
    ):  # fmt: skip
        found = (await user.get("/memories", **{name: value}))["memories"]
        assert found, (name, value)
        if name not in {"q", "lock"}:
            assert {record[name] for record in found} == {value}
    assert (await user.get("/memories", status="archived"))["memories"] == []
    topic = (await user.get("/memories"))["memories"][0]["topic"]
    assert (await user.get("/memories", topic=topic))["memories"]


@pytest.mark.parametrize("path", ["/memories", "/confirmations", "/audit"])
async def test_limits_and_cursors_are_checked(user: Someone, path: str) -> None:
    await user.say(OSLO)
    for limit in ("0", "201", "-1", "x", "1.5", "", "9" * 30):
        answer = await user.api.get(f"{user.path}{path}", params={"limit": limit})
        check_problem(answer, 422, "invalid_input")
    assert (await user.get(path, limit=200))["next_cursor"] is None
    assert (await user.api.get(f"{user.path}{path}", params={"limit": 1})).status_code == 200
    for cursor in ("x", "AAAA", "%%%", "汉", "Zm9vCg", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "a" * 600):
        answer = await user.api.get(f"{user.path}{path}", params={"cursor": cursor})
        check_problem(answer, 422, "invalid_input")


async def test_the_audit_names_what_happened_without_words(user: Someone) -> None:
    await user.say(PEANUTS, OSLO)
    first = await user.get("/audit", limit=1)
    assert len(first["audit"]) == 1
    rest = await user.get("/audit", cursor=first["next_cursor"])
    entries = first["audit"] + rest["audit"]
    assert {"added", "frozen"} <= {entry["op"] for entry in entries}
    assert all(entry["reason"] in set(Reason) for entry in entries)
    assert [entry["seq"] for entry in entries] == sorted(entry["seq"] for entry in entries)
    assert "花生" not in str(entries)


# feedback


async def test_feedback_moves_rank_and_nothing_else(user: Someone) -> None:  # API, feedback
    made = await user.remember(OSLO)
    body_ = {"session_id": "s-feedback", "memory_ids": [made["id"], "mem_0"], "signal": "like"}
    for counted in (1, 0):  # sent again, it counts no more
        answer = await user.call("POST", "/feedback", json=body_)
        assert answer == {"counted": counted, "unknown": ["mem_0"]}
    after = await user.get(f"/memories/{made['id']}")
    assert {name for name in made if made[name] != after[name]} <= {
        "feedback",
        "access_count",
        "last_access_at",
    }
    assert [one["signal"] for one in after["feedback"]] == ["like"]
    at = f"{user.path}/feedback"
    check_problem(await user.api.post(at, json={**body_, "memory_ids": ["mem_0"]}), 404, "not_found")
    mistakes: list[dict[str, Any]] = [
        {"signal": "love"}, {"memory_ids": []}, {"memory_ids": ["m"] * 51}, {"session_id": ""},
    ]  # fmt: skip
    for wrong in mistakes:
        answer = await user.api.post(at, json={**body_, **wrong})
        assert answer.status_code == 422


async def test_no_figures_of_quality_before_the_first_night(user: Someone) -> None:
    answer = await user.api.get("/v1/admin/metrics")
    assert answer.json() == {"measured_at": None, "since": None, "users": 0, "figures": []}
