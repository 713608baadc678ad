"""What the user can look at (SPEC §8, §11; API, Memories and The user)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from hermes_memory.app.commands import (
    Export,
    GetMemory,
    GetProfile,
    ListConfirmations,
    ListMemories,
    SetConsent,
    Summarise,
)
from hermes_memory.app.records import audit_record, job_record
from hermes_memory.app.views import VIEWS, alerts_page, dead_letters_page, decode_cursor, encode_cursor
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Polarity
from hermes_memory.errors import InvalidInput, NotFound
from hermes_memory.ports.ledger import Alert, Ledger, OutboxEntry
from hermes_memory.testing.builders import KEY, a_job, an_alert, an_audit
from tests.small_world import DAY, HOUR, NOW, say
from tests.tiny_ledger import Person


def see(person: Person, query: Any) -> dict[str, Any]:
    return VIEWS[type(query)](person.state, query, person.policy)


def with_pets(number: int) -> Person:
    person = Person()
    person.tell(
        *(say(f"我养猫{n}", dimension="pet", object=f"猫{n}", at=NOW - (n % 7) * HOUR) for n in range(number))
    )
    return person


def contents(answer: dict[str, Any]) -> list[str]:
    return [record["content"] for record in answer["memories"]]


# lists


@pytest.mark.parametrize("limit", [1, 3, 4, 7, 50])
def test_pages_hold_everything_once_newest_first(limit: int) -> None:
    person = with_pets(12)
    cursor, pages, seen = None, 0, []
    while True:
        answer = see(person, ListMemories(filters={}, cursor=cursor, limit=limit))
        seen += answer["memories"]
        pages += 1
        assert len(answer["memories"]) <= limit
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert pages == -(-12 // limit)
    assert len({record["id"] for record in seen}) == 12
    times = [record["created_at"] for record in seen]
    assert times == sorted(times, reverse=True)


def test_what_is_added_between_two_pages_moves_nothing() -> None:
    person = with_pets(4)
    first = see(person, ListMemories(filters={}, limit=2))
    person.tell(say("我养狗", dimension="pet", object="狗", at=NOW + DAY))
    second = see(person, ListMemories(filters={}, cursor=first["next_cursor"], limit=2))
    assert not set(contents(first)) & set(contents(second))
    assert "我养狗" not in contents(second)


def test_times_before_1970_are_in_order_too() -> None:
    person = Person()
    old = [datetime(year, 1, 1, tzinfo=UTC) for year in (1950, 1969, 1971)]
    person.tell(*(say(f"我养猫{at:%Y}", dimension="pet", object=f"猫{at:%Y}", at=at) for at in old))
    assert contents(see(person, ListMemories(filters={}))) == ["我养猫1971", "我养猫1969", "我养猫1950"]
    first = see(person, ListMemories(filters={}, limit=1))
    rest = see(person, ListMemories(filters={}, cursor=first["next_cursor"]))
    assert contents(rest) == ["我养猫1969", "我养猫1950"]


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_1_to_200(limit: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        see(Person(), ListMemories(filters={}, limit=limit))
    assert caught.value.field == "limit"


@pytest.mark.parametrize(
    "cursor", ["!", "é", "AAA", "____", "_w", encode_cursor("other\nplace"), encode_cursor("memories")]
)
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        see(with_pets(1), ListMemories(filters={}, cursor=cursor))
    assert caught.value.field == "cursor"


@pytest.mark.parametrize("place", ["", "a", "ab", "abc", "000|mem_中文|x", "~" * 50])
def test_a_cursor_is_an_opaque_url_safe_form_of_a_place(place: str) -> None:
    cursor = encode_cursor(place)
    assert decode_cursor(cursor) == place
    assert set(cursor) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_an_unknown_user_reads_as_empty() -> None:
    person = Person()
    assert see(person, ListMemories(filters={})) == {"memories": [], "next_cursor": None}
    assert see(person, ListConfirmations()) == {"confirmations": [], "next_cursor": None}
    assert see(person, Summarise())["memories"] == []
    assert see(person, Export())["memories"] == []
    assert not any(see(person, GetProfile()).values())


@pytest.mark.parametrize(
    ("filters", "contains", "found"),
    [
        ({}, None, 3),
        ({"status": "active"}, None, 2),
        ({"status": "superseded"}, None, 1),
        ({"layer": "identity", "status": "active"}, None, 2),
        ({"category": "FACT", "topic": "pet"}, None, 1),
        ({"lock": "frozen"}, None, 0),
        ({"tier": "working", "scope": "user"}, None, 3),
        ({}, "REX", 1),
        ({}, "住在", 2),
        ({"status": "active"}, "苏州", 0),
    ],
)
def test_filters_and_words_narrow_the_list(filters: dict[str, str], contains: str | None, found: int) -> None:
    person = Person()
    person.tell(say("我住在苏州", object="苏州"), say("my dog is Rex", dimension="pet", object="Rex"))
    person.tell(say("我住在杭州", object="杭州", at=NOW + HOUR))
    assert len(contents(see(person, ListMemories(filters=filters, contains=contains)))) == found


def test_one_record_has_every_field_of_spec_3_1() -> None:
    person = with_pets(1)
    (memory,) = person.state.memories.values()
    record = see(person, GetMemory(memory_id=memory.id))
    assert set(record) == set(Memory.__dataclass_fields__)
    assert (record["content"], record["polarity"], record["version"]) == ("我养猫0", "+", 1)
    with pytest.raises(NotFound):
        see(person, GetMemory(memory_id="other"))


def test_spec_6_confirmations_are_listed_newest_first() -> None:
    person = Person()
    for number, name in enumerate(("花生", "虾")):
        person.tell(say(f"我对{name}过敏", dimension="allergy", object=name, at=person.now))
        person.pass_time(days=1)
        over: dict[str, Any] = {"session": f"s{number + 2}", "at": person.now, "polarity": Polarity.NEGATIVE}
        person.tell(say(f"我对{name}不过敏", dimension="allergy", object=name, **over))
    page = see(person, ListConfirmations(limit=1))
    assert page["confirmations"][0]["quotes"][0] == "我对虾过敏"
    assert set(page["confirmations"][0]) >= {
        "id",
        "question",
        "options",
        "memory_ids",
        "quotes",
        "status",
        "expires_at",
    }
    rest = see(person, ListConfirmations(cursor=page["next_cursor"]))
    assert [record["quotes"][0] for record in rest["confirmations"]] == ["我对花生过敏"]


# the user


def test_spec_11_the_summary_is_in_plain_words_with_quotes() -> None:
    person = Person()
    person.tell(
        say("我住在苏州", object="苏州"), say("my dog is Rex", dimension="pet", object="Rex", at=NOW + HOUR)
    )
    person.tell(say("我住在杭州", object="杭州", at=NOW + DAY))
    person.tell(say("我喜欢咖啡", dimension="shoe", predicate="喜欢", object="咖啡", at=NOW + DAY))
    answer = see(person, Summarise())
    assert answer["language"] == "zh"
    assert [
        (line["label"], line["text"], line["quotes"]) for line in answer["memories"] if "住在" in line["text"]
    ] == [("居住地", "我住在杭州", ["我住在杭州"])]
    assert {line["label"] for line in answer["memories"]} == {"居住地", "宠物", "喜欢"}
    english = see(person, Summarise(language="en"))
    assert {line["label"] for line in english["memories"]} == {"Lives in", "Pets", "喜欢"}
    assert answer["version"] == person.state.version


def test_spec_8_the_profile_follows_the_memories() -> None:
    person = with_pets(2)
    slot = see(person, GetProfile())["identity"]["pet"]
    assert sorted(slot["value"]) == ["猫0", "猫1"]
    assert set(slot) == {
        "value",
        "confidence",
        "lock",
        "source",
        "memory_ids",
        "contradictions",
        "updated_at",
    }


def test_spec_11_the_export_is_complete() -> None:
    person = with_pets(2)
    person.act(SetConsent(sensitive=True))
    answer = see(person, Export())
    assert (len(answer["memories"]), len(answer["sessions"]), len(answer["turns"])) == (2, 1, 2)
    assert (answer["settings"]["paused"], answer["settings"]["consent"]) == (False, {"sensitive": True})
    assert (answer["user"], answer["format"], answer["version"]) == (
        "ann",
        "hermes-memory/1",
        person.state.version,
    )


def test_spec_11_the_export_holds_the_user_model_and_what_was_counted() -> None:
    person = with_pets(2)
    person.state.note_access([next(iter(person.state.memories))], person.now)
    person.state.count({"recalls": 1}, person.now)
    answer = see(person, Export())
    assert answer["profile"] == see(person, GetProfile())
    assert sorted(memory["access_count"] for memory in answer["memories"]) == [0, 1]
    assert answer["tally"] == {person.now.date().isoformat(): {"recalls": 1}}
    assert answer["settings"]["profile"] == dict(person.state.settings.profile)
    assert set(answer["settings"]) == {"paused", "consent", "timezone", "profile", "behavior", "spent"}
    assert json.loads(json.dumps(answer)) == answer


def test_spec_11_the_order_of_an_export_is_that_of_its_content() -> None:
    person = with_pets(3)
    before = json.dumps(see(person, Export()))
    kept: tuple[dict[Any, Any], ...] = (person.state.memories, person.state.sessions, person.state.turns)
    for held in kept:
        entries = list(held.items())
        held.clear()
        held.update(reversed(entries))
    assert json.dumps(see(person, Export())) == before


async def test_alerts_are_listed_page_by_page() -> None:
    class Shelf:
        async def alerts(self, namespace: str, after: str, limit: int) -> list[Alert]:
            raised = [an_alert(id=f"a{number}", key=KEY) for number in range(3)]
            return [alert for alert in raised if alert.id > after][:limit]

    shelf = cast("Ledger", Shelf())
    first = await alerts_page(shelf, "app", None, 2)
    rest = await alerts_page(shelf, "app", first["next_cursor"], 2)
    assert [alert["id"] for alert in (*first["alerts"], *rest["alerts"])] == ["a0", "a1", "a2"]
    assert (rest["next_cursor"], first["alerts"][0]["user_id"]) == (None, KEY.user_id)


async def test_dead_letters_are_listed_by_user_page_by_page() -> None:
    keys = [UserKey("a", "zoe"), *(UserKey("app", f"u{n}/x") for n in range(3)), UserKey("app2", "ann")]

    class Shelf:
        async def outbox_users(self, after: str, limit: int, *, buried: bool) -> list[UserKey]:
            assert buried
            return [key for key in keys if str(key) > after][:limit]

        async def read_outbox(self, key: UserKey, limit: int, *, buried: bool) -> list[OutboxEntry]:
            assert buried
            return [OutboxEntry(op="put", memory_id="m1", seq=3, key=key, reason="too_large")]

    shelf = cast("Ledger", Shelf())
    first = await dead_letters_page(shelf, "app", None, 2)
    rest = await dead_letters_page(shelf, "app", first["next_cursor"], 2)
    assert [one["user_id"] for one in (*first["dead_letters"], *rest["dead_letters"])] == [
        "u0/x",
        "u1/x",
        "u2/x",
    ]
    assert first["dead_letters"][0]["memories"] == [{"memory_id": "m1", "op": "put", "reason": "too_large"}]
    assert rest["next_cursor"] is None
    assert (await dead_letters_page(shelf, "nobody", None, 2))["dead_letters"] == []
    with pytest.raises(InvalidInput):
        await dead_letters_page(shelf, "app", encode_cursor("alerts\na1"), 2)


def test_jobs_and_audit_entries_have_json_forms() -> None:
    job, entry = job_record(a_job()), audit_record(an_audit())
    assert (job["job_id"], "pending_turns" in job) == (a_job().id, False)
    assert entry["memory_id"] == "mem-1"


def test_spec_11_the_summary_is_grouped_by_layer_and_says_how_sure_it_is() -> None:
    person = Person()
    person.tell(
        say("我对花生过敏", dimension="allergy", object="花生"),
        say("妈妈住在无锡", subject="妈妈", object="无锡"),
        say("我坐靠窗", dimension="seat", object="靠窗"),
    )
    person.tell(say("我想坐过道", session="s2", dimension="seat", object="过道", at=NOW + DAY))
    answer = see(person, Summarise(language="en"))
    said = {line["text"]: line["said"] for line in answer["memories"]}
    assert said["我对花生过敏"] == "“我对花生过敏”"  # frozen: stated
    assert said["妈妈住在无锡"] == "About 妈妈: Seems: “妈妈住在无锡”"
    assert said["我坐靠窗"] == "Seems: “我坐靠窗” (may be changing)"
    assert [group["layer"] for group in answer["groups"]] == ["identity", "restriction", "preference"]
    assert {i for group in answer["groups"] for i in group["memory_ids"]} == {
        line["memory_id"] for line in answer["memories"]
    }
