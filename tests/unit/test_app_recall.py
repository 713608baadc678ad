"""The answer of a recall (SPEC §6, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.app.commands import EndSession, FreezeMemory, MarkAsked
from hermes_memory.core.candidate import Marker
from hermes_memory.core.model import Layer, Polarity, Scope, Status
from tests.small_world import DAY, HOUR, NOW, say
from tests.tiny_ledger import Person

MINUS = Polarity.NEGATIVE


def listed(answer: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(record["content"], record["always"]) for record in answer["memories"]]


def test_an_unknown_user_gets_an_empty_answer() -> None:
    answer = Person().recall("晚饭吃什么", session_id="x")
    assert (answer["context"], answer["memories"], answer["ask"], answer["version"]) == ("", [], None, 0)
    assert answer["over_budget"] is False
    assert set(answer["timings_ms"]) == {"rank", "assemble"}


def test_spec_7_1_restrictions_come_whatever_is_asked() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    person.tell(say("我不吃香菜", dimension="food_taboo", object="香菜", polarity=MINUS, at=NOW + HOUR))
    person.pass_time(days=1)
    answer = person.recall("今天天气")
    assert "- 过敏：花生" in answer["context"]
    assert "似乎 忌口：不要香菜" in answer["context"]
    assert sorted(listed(answer)) == [("我不吃香菜", True), ("我对花生过敏", True)]
    assert all(record["score"] is None for record in answer["memories"])


def test_spec_7_2_ranked_hits_come_first_with_their_parts_then_the_other_always_on_ones() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    person.tell(say("我对虾过敏", dimension="allergy", object="虾", at=NOW + HOUR))
    person.tell(say("我养猫", dimension="pet", object="猫", at=NOW + HOUR))
    person.pass_time(days=1)
    answer = person.recall("我对虾过敏", top_k=1)
    assert listed(answer) == [("我对虾过敏", True), ("我对花生过敏", True)]
    hit = answer["memories"][0]
    product = 1.0
    for part in hit["score_parts"].values():
        product *= part
    assert hit["score"] == pytest.approx(product)
    assert hit["evidence"][0]["quote"] == "我对虾过敏"
    assert set(hit) == {
        "id", "content", "category", "layer", "scope", "scene", "lock", "polarity", "confidence", "always", "score",
        "score_parts", "evidence",
    }  # fmt: skip


def test_spec_7_1_frozen_memories_are_in_the_block_by_default_within_their_scope() -> None:
    person = Person()
    memory = person.remember(
        say("我喜欢靠窗", dimension="seat", object="靠窗", scope=Scope.SCENE, scene="train")
    )
    person.act(FreezeMemory(memory_id=memory.id, reason="x"))
    assert "靠窗" in person.recall("天气", scene="train")["context"]
    assert "靠窗" not in person.recall("天气", scene="dining")["context"]


def test_spec_6_the_newest_statement_of_this_session_guides_the_reply() -> None:
    person = Person()
    person.tell(say("我喜欢靠窗", dimension="seat", object="靠窗"))
    person.act(EndSession(session_id="s1"))
    person.pass_time(days=1)
    person.tell(say("我喜欢过道", dimension="seat", object="过道", session="s2", at=person.now))
    here = person.recall("我喜欢靠窗", session_id="s2")
    assert "用户最近提到：“我喜欢过道”" in here["context"]
    assert "靠窗" not in here["context"]
    there = person.recall("我喜欢靠窗", session_id="s3")
    assert "“我喜欢靠窗”（近期可能改变）" in there["context"]
    assert "过道" not in there["context"]


def test_spec_6_a_fact_that_waits_for_an_answer_stands_in_other_sessions() -> None:
    person = Person()
    person.tell(say("我住在苏州", object="苏州"))
    person.tell(say("我住在苏州", object="苏州", at=NOW + HOUR))
    person.pass_time(days=200)
    person.tell(say("我住在杭州", object="杭州", session="s2", at=person.now))
    there = person.recall("你知道我住哪吗", session_id="s3")
    assert [record["content"] for record in there["memories"]] == ["我住在苏州"]
    here = person.recall("你知道我住哪吗", session_id="s2")
    assert [record["content"] for record in here["memories"]] == ["我住在杭州"]


@pytest.mark.parametrize("session", ["s2", "s3", None])
def test_spec_6_against_safety_the_stricter_one_stays_marked_as_under_confirmation(
    session: str | None,
) -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    person.pass_time(days=1)
    over: dict[str, Any] = {
        "polarity": MINUS,
        "session": "s2",
        "at": person.now,
        "markers": frozenset({Marker.CORRECTION}),
    }
    person.tell(say("其实我对花生不过敏", dimension="allergy", object="花生", **over))
    assert "- 过敏：花生（待用户确认）" in person.recall("吃什么", session_id=session)["context"]


def test_spec_6_the_stricter_one_may_be_the_newer_one() -> None:
    """ "I am not allergic" stood first; what protects is in the block before the question is answered."""
    person = Person()
    person.tell(say("我对花生不过敏", dimension="allergy", object="花生", polarity=MINUS))
    person.pass_time(days=1)
    new = person.remember(
        say("我对花生过敏", dimension="allergy", object="花生", session="s2", at=person.now)
    )
    assert new.rival_of is not None
    context = person.recall("吃什么", session_id="s3")["context"]
    assert "过敏：花生（待用户确认）" in context


def test_spec_7_1_what_this_session_brought_is_sorted_by_kind() -> None:
    person = Person()
    person.tell(
        say("我养猫", dimension="pet", object="猫"),
        say("我要租房", dimension="need", object="租房", at=NOW + HOUR),
        say("我住在苏州", object="苏州", at=NOW + HOUR, layer=Layer.CONTEXT),
    )
    person.pass_time(days=1)
    lines = person.recall("天气", session_id="s1", budget_chars=2000)["context"].splitlines()
    assert lines[1] == "- 用户最近提到：“我养猫”"
    assert sorted(lines[2:4]) == ["- 用户最近提到：“我住在苏州”", "- 用户最近提到：“我要租房”"]
    person.act(EndSession(session_id="s1"))
    assert "最近提到" not in person.recall("天气", session_id="s1")["context"]


def test_spec_6_at_most_one_question_per_conversation() -> None:
    person = Person()
    for name in ("花生", "虾"):
        person.tell(say(f"我对{name}过敏", dimension="allergy", object=name, at=person.now))
    person.pass_time(days=1)
    for name in ("花生", "虾"):
        over: dict[str, Any] = {"session": "s2", "at": person.now, "polarity": MINUS}
        person.tell(say(f"我对{name}不过敏", dimension="allergy", object=name, **over))
    assert person.recall("吃什么")["ask"] is None  # no conversation to ask in
    assert person.recall("吃什么", session_id="s2", include=frozenset())["ask"] is None
    first = person.recall("吃什么", session_id="s2")["ask"]
    person.act(MarkAsked(session_id="s2", request_id=first["id"]))
    assert person.recall("吃什么", session_id="s2")["ask"] is None
    second = person.recall("吃什么", session_id="s3")["ask"]
    assert second["id"] != first["id"]
    person.act(MarkAsked(session_id="s3", request_id=second["id"]))
    assert person.recall("吃什么", session_id="s4")["ask"] is None
    person.restart()
    assert person.recall("吃什么", session_id="s2")["ask"] is None


def test_spec_6_an_expired_question_is_not_asked() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    person.tell(say("我对花生不过敏", dimension="allergy", object="花生", polarity=MINUS, at=NOW + HOUR))
    assert person.recall("?", session_id="s2")["ask"]
    person.pass_time(days=31)
    assert person.recall("?", session_id="s2")["ask"] is None


def test_spec_7_6_as_of_moves_statement_time() -> None:
    person = Person()
    person.tell(say("我养猫", dimension="pet", object="猫"))
    person.pass_time(days=9)
    assert listed(person.recall("我养猫"))
    before = person.recall("我养猫", as_of=NOW - DAY)
    assert (before["memories"], before["as_of"]) == ([], (NOW - DAY).isoformat())


def test_spec_8_the_profile_holds_the_slots_that_were_called_for_each_once() -> None:
    person = Person()
    person.tell(
        say("我对花生过敏", dimension="allergy", object="花生"), say("我养猫", dimension="pet", object="猫")
    )
    person.pass_time(days=1)
    profile = person.recall("我对花生过敏")["profile"]
    assert profile["restriction"]["allergy"]["value"] == ["花生"]
    assert profile["identity"] == {}


@pytest.mark.parametrize(
    ("include", "empty"), [(frozenset({"memories"}), "profile"), (frozenset({"profile"}), "memories")]
)
def test_what_is_not_asked_for_is_left_out(include: frozenset[str], empty: str) -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    answer = person.recall("花生", include=include)
    assert not answer[empty]
    assert answer["context"]


def test_spec_7_4_the_answer_says_when_restrictions_exceed_the_budget() -> None:
    person = Person()
    person.tell(
        *(
            say(f"我对过敏原{n}号过敏", dimension="allergy", object=f"过敏原{n}号" + "长" * 0)
            for n in range(40)
        )
    )
    answer = person.recall("吃什么", budget_chars=200)
    assert answer["over_budget"] is True
    assert all(f"过敏原{n}号" in answer["context"] for n in range(40))


def test_spec_7_4_a_rival_in_review_clouds_nothing() -> None:
    person = Person()
    person.tell(say("我喜欢靠窗", dimension="seat", object="靠窗"))
    rival = person.remember(say("我喜欢过道", dimension="seat", object="过道", session="s2", at=NOW + HOUR))
    assert "近期可能改变" in person.recall("我喜欢靠窗", session_id="s3")["context"]
    person.state._place(rival.with_(status=Status.REVIEW), None)
    assert "近期可能改变" not in person.recall("我喜欢靠窗", session_id="s3")["context"]
