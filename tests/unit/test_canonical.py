"""Two runs of one history are equal up to ids, versions and run times, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from hermes_memory.testing.canonical import canonical

Export = dict[str, Any]


def an_export(
    ids: Callable[[str], str] = lambda name: name, day: str = "2026-03-02", version: int = 7
) -> Export:
    """Two pets and where the user lives, one of them in question."""
    at = f"{day}T08:00:00Z"

    def memory(name: str, content: str, **over: Any) -> Export:
        evidence = {
            "session_id": ids("s1"), "message_id": ids(f"msg-{name}"), "quote": content,
            "created_at": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        return {
            "id": ids(name), "version": version, "content": content, "confidence": 0.75, "access_count": 2,
            "created_at": at, "updated_at": at, "archived_at": None, "valid_from": None, "rival_of": None,
            "merged_into": None, "attributes": {}, "evidence": [evidence], **over,
        }  # fmt: skip

    memories = [
        memory("a", "用户住在苏州"),
        memory("b", "cat", attributes={"parts": sorted([ids("a"), ids("c")])}),
        memory("c", "dog", rival_of=ids("b")),
    ]
    return {
        "format": "hermes-memory/1",
        "user": "ann",
        "version": version,
        "memories": sorted(memories, key=lambda each: each["id"]),
        "sessions": [{"id": ids("s1"), "started_at": at, "last_at": at, "turns": 2, "ended": False}],
        "confirmations": [
            {"id": ids("r"), "memory_ids": [ids("b"), ids("c")], "created_at": at, "asked_in": None, "asked_at": None}
        ],
        "settings": {
            "paused": False, "consent": {"cohort": True}, "spent": {"day": day, "tokens": 9},
            "profile": {"identity/pet": sorted([ids("b"), ids("c")])},
        },
        "profile": {"identity": {"pet": {"value": ["cat", "dog"], "memory_ids": sorted([ids("b"), ids("c")])}}},
        "tally": {day: {"recalls": 3}},
        "turns": [{"session_id": ids("s1"), "index": 0, "message_id": ids("msg-a"), "received_at": at}],
        "audit": [
            {"seq": version, "version": version, "op": "add", "memory_id": ids("a"), "at": at},
            {"seq": version + 1, "version": version, "op": "add", "memory_id": ids("gone"), "at": at},
        ],
    }  # fmt: skip


def reversed_ids(name: str) -> str:
    """Other ids, in another order."""
    return "".join(chr(219 - ord(char)) if char.isalpha() else char for char in name) + "-x"


def test_another_run_of_the_history_is_equal() -> None:
    again = an_export(reversed_ids, "2027-12-31", 11)
    again["sessions"].reverse()
    assert again != an_export()
    assert canonical(again) == canonical(an_export())
    assert json.dumps(canonical(again)) == json.dumps(canonical(an_export()))


def test_the_export_itself_is_left_as_it_is() -> None:
    export = an_export()
    before = copy.deepcopy(export)
    canonical(export)
    assert export == before


def test_ids_are_named_alike_wherever_they_stand() -> None:
    told = canonical(an_export())
    by_content = {memory["content"]: memory["id"] for memory in told["memories"]}
    assert len(set(by_content.values())) == 3
    assert told["confirmations"][0]["memory_ids"] == [by_content["cat"], by_content["dog"]]
    assert sorted(told["settings"]["profile"]["identity/pet"]) == sorted(
        (by_content["cat"], by_content["dog"])
    )
    assert "version" not in str(told)


def test_of_two_memories_that_say_the_same_the_one_in_the_profile_is_told_apart() -> None:
    def twins(in_profile: str) -> Export:
        export = an_export()
        for number, memory in enumerate(export["memories"]):
            memory.update(content="same", rival_of=None, attributes={}, evidence=[], id=f"m{number}")
        export["settings"]["profile"] = {"identity/pet": [in_profile]}
        export |= {"profile": {}, "confirmations": [], "audit": []}
        return export

    assert canonical(twins("m0")) == canonical(twins("m2"))
    other = twins("m0")
    other["settings"]["profile"] = {"identity/pet": ["m0", "m1"]}
    assert canonical(other) != canonical(twins("m0"))


CHANGES: dict[str, Callable[[Export], object]] = {
    "content": lambda e: e["memories"][0].update(content="用户住在杭州"),
    "confidence": lambda e: e["memories"][0].update(confidence=0.76),
    "recalls": lambda e: e["memories"][1].update(access_count=3),
    "archived": lambda e: e["memories"][1].update(archived_at="2026-03-02T08:00:00Z"),
    "validity": lambda e: e["memories"][1].update(valid_from="2026-03-02T08:00:00Z"),
    "when it was said": lambda e: e["memories"][0]["evidence"][0].update(created_at="2026-01-02T00:00:00Z"),
    "rival": lambda e: e["memories"][2].update(rival_of="a"),
    "parts": lambda e: e["memories"][1]["attributes"].update(parts=["a"]),
    "a memory more": lambda e: e["memories"].append({**e["memories"][0], "id": "d"}),
    "a memory less": lambda e: e["memories"].pop(),
    "old and new": lambda e: e["confirmations"][0]["memory_ids"].reverse(),
    "asked": lambda e: e["confirmations"][0].update(asked_at="2026-03-02T08:00:00Z"),
    "paused": lambda e: e["settings"].update(paused=True),
    "tokens": lambda e: e["settings"]["spent"].update(tokens=8),
    "what was taken up": lambda e: e["settings"]["profile"]["identity/pet"].pop(),
    "slot": lambda e: e["profile"]["identity"]["pet"].update(value=["cat"]),
    "tally": lambda e: e["tally"]["2026-03-02"].update(recalls=4),
    "a day more": lambda e: e["tally"].update({"2026-03-03": {}}),
    "audit order": lambda e: e["audit"].reverse(),
    "audit op": lambda e: e["audit"][0].update(op="edit"),
    "audited memory": lambda e: e["audit"][0].update(memory_id="b"),
    "turn": lambda e: e["turns"][0].update(index=1),
    "session": lambda e: e["sessions"][0].update(ended=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_one_thing_that_differs_is_seen(change: str) -> None:
    export = an_export()
    CHANGES[change](export)
    assert canonical(export) != canonical(an_export())


def test_an_empty_export_stays_empty() -> None:
    assert canonical({"user": "ann", "memories": [], "version": 0}) == {
        "memories": [], "tally": {}, "user": "ann",
    }  # fmt: skip
