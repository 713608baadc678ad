"""Conversations of other products: read as they are, each record for itself (SPEC §2, §3.3)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory.adapters.conversation_files import read_text
from hermes_memory.app.importing import Conversation, Counts, Problem

AT = datetime(2024, 5, 1, tzinfo=UTC)


def read(*records: Any, **given: Any) -> list[Conversation | Problem]:
    return list(read_text("\n".join(json.dumps(record) for record in records), user="ana", **given))


def only(*records: Any, **given: Any) -> Conversation:
    (found,) = read(*records, **given)
    assert isinstance(found, Conversation)
    return found


def test_openai_messages_keep_roles_and_times() -> None:
    found = only({"messages": [
        {"role": "user", "content": "I live in Oslo.", "created_at": "2023-01-02T03:04:05+00:00"},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}, {"type": "image_url"}]},
    ]}, at=AT)  # fmt: skip
    assert [(one.role.value, one.content, one.created_at) for one in found.messages] == [
        ("user", "I live in Oslo.", datetime(2023, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("assistant", "Noted.", AT),
    ]


def test_of_a_tree_the_current_branch_is_read() -> None:
    def node(text: str, parent: str) -> dict[str, Any]:
        said = {"author": {"role": "user"}, "content": {"parts": [text]}, "create_time": 1700000000.5}
        return {"message": said, "parent": parent}

    tree = {"root": {"message": None, "parent": None}, "a": node("one", "root"), "b": node("two", "a"), "c": node("other", "a")}  # fmt: skip
    found = only({"id": "x", "mapping": tree, "current_node": "c"})
    assert [one.content for one in found.messages] == ["one", "other"]


def test_a_tree_in_a_ring_is_named() -> None:
    ring = {"a": {"message": None, "parent": "b"}, "b": {"message": None, "parent": "a"}}
    assert read({"mapping": ring, "current_node": "a"}) == [Problem(1, "broken_tree")]


def test_sharegpt() -> None:
    found = only({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]})
    assert [one.role.value for one in found.messages] == ["user", "assistant"]


def test_ids_are_the_same_each_time_and_differ_between_users() -> None:
    record = {"user": "bo", "messages": [{"role": "user", "content": "hi"}]}
    assert only(record) == only(record)
    (other,) = read_text(json.dumps(record), user=None)
    assert isinstance(other, Conversation) and other.user == "bo"
    assert other.session_id != only(record).session_id


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"messages": [{"role": "developer", "content": "x"}]}, "unknown_role"),
        ({"messages": [{"role": "user", "content": " "}]}, "no_messages"),
        ({"messages": [{"role": "user", "content": "x", "created_at": "2024-01-01"}]}, "time_without_zone"),
        ({"messages": [{"role": "user", "content": "x", "created_at": True}]}, "bad_time"),
        ({"format": "hermes-memory/1"}, "own_export"),
        ([1], "unknown_format"),
    ],
)
def test_what_cannot_be_taken_is_named(record: Any, reason: str) -> None:
    good = {"messages": [{"role": "user", "content": "hi"}]}
    first, second = read(record, good) if record != [1] else read({"x": 1}, good)
    assert first == Problem(1, reason)
    assert isinstance(second, Conversation)


def test_a_line_that_is_no_json_does_not_stop_the_rest() -> None:
    found = list(read_text('{"\n{"messages":[{"role":"user","content":"hi"}]}\n', user="ana"))
    assert found[0] == Problem(1, "not_json") and isinstance(found[1], Conversation)


def test_counts() -> None:
    counts = Counts()
    for one in read({"messages": [{"role": "user", "content": "hi", "created_at": 5}, {"role": "tool", "content": "x"}]}, {}):  # fmt: skip
        counts.add(one)
    assert counts.record() == {
        "conversations": 1, "users": 1, "messages": {"tool": 1, "user": 1}, "without_a_time": 1,
        "earliest": "1970-01-01T00:00:05+00:00", "latest": "1970-01-01T00:00:05+00:00",
        "refused": {"unknown_format": 1},
    }  # fmt: skip


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["messages", "mapping", "conversations", "role", "content", "from", "value", "parts", "id", "message", "author", "parent", "current_node", "created_at", "create_time", "user"]) , inner),
)  # fmt: skip


@settings(max_examples=40)
@given(st.one_of(ANY, st.fixed_dictionaries({"messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": ANY, "created_at": ANY}))})))  # fmt: skip
def test_any_json_is_read_or_named(record: Any) -> None:
    for one in read_text(json.dumps(record), user="ana"):
        assert isinstance(one, Conversation | Problem)
