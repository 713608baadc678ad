"""What of the knowledge packs an answer shows, beside what is known of the user (SPEC §7.1.4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest

from hermes_memory.app.commands import Recall
from hermes_memory.app.recall import recall
from hermes_memory.core.knowledge import KnowledgeShelf
from hermes_memory.testing.builders import EMBEDDER, a_pack, an_entry
from tests.small_world import policy, rules, say, vector, vectors, words
from tests.tiny_ledger import Person
from tests.unit.test_daytime import DAYTIMES

SATAY = "沙嗲酱里通常有花生"
ENTRIES = tuple(
    an_entry(id=f"satay-{n}", content={"zh": f"{SATAY}（{n}）", "en": f"satay {n}"}) for n in range(5)
)


def shelf(*entries: Any) -> KnowledgeShelf:
    pack = a_pack(entries=entries or (an_entry(),))
    return KnowledgeShelf([(pack, vectors(pack.passages))], words, EMBEDDER.dimension)


def asked(
    person: Person, query: str, packs: KnowledgeShelf | None, zone: Any = None, **over: Any
) -> dict[str, Any]:
    wanted = Recall(query=query, vector=vector(query), words=words(query), **over)
    return recall(person.state, wanted, person.policy, person.now, packs, zone).answer


def test_spec_7_1_4_an_entry_is_shown_apart_from_the_memories() -> None:
    answer = asked(Person(), "沙嗲好吃吗", shelf())
    (entry,) = answer["knowledge"]
    assert entry == {
        "id": "satay", "pack": "everyday", "pack_version": "1", "content": SATAY,
        "relevance": entry["relevance"], "score": entry["relevance"],
    }  # fmt: skip
    assert answer["memories"] == []
    assert not any(answer["profile"].values())
    assert f"- {SATAY}" in answer["context"]
    assert "“" not in answer["context"]


def test_without_packs_and_where_none_answers_the_answer_is_as_it_was() -> None:
    person = Person()
    plain = asked(person, "今天星期几", None)
    assert "knowledge" not in plain
    assert set(asked(person, "今天星期几", shelf())) == set(plain)


@pytest.mark.parametrize("most", [0, 1, 2, 3, 50])
def test_spec_7_1_4_it_yields_to_memories(most: int) -> None:
    fresh = Person(policy(rules(knowledge={"most": most})))
    assert len(asked(fresh, "我爱吃沙嗲", shelf(*ENTRIES)).get("knowledge", [])) == min(most, len(ENTRIES))
    known = Person(policy(rules(knowledge={"most": most})))
    known.tell(say("我爱吃沙嗲", dimension="pet", object="沙嗲"))
    answer = asked(known, "我爱吃沙嗲", shelf(*ENTRIES))
    assert len(answer["memories"]) == 1
    assert len(answer.get("knowledge", [])) == min(most - 1 if most else 0, len(ENTRIES))


def test_spec_7_4_it_speaks_the_language_of_the_memories_or_else_of_the_query() -> None:
    person = Person()
    assert asked(person, "satay?", shelf())["knowledge"][0]["content"].startswith("Satay")
    person.tell(say("我养猫", dimension="pet", object="猫"))
    answer = asked(person, "我养猫 satay", shelf())
    assert answer["knowledge"][0]["content"] == SATAY
    assert SATAY in answer["context"]


def test_it_is_never_counted_as_shown_nor_kept() -> None:
    person = Person()
    before = person.state.version
    recalled = recall(
        person.state, Recall(query="沙嗲", vector=vector("沙嗲"), words=words("沙嗲")), person.policy, person.now, shelf()
    )  # fmt: skip
    assert recalled.answer["knowledge"]
    assert (recalled.shown, recalled.returned, person.state.version) == ((), (), before)


def test_its_limits_go_by_the_users_zone_the_scene_and_the_query() -> None:
    with_times = replace(policy(), daytimes=DAYTIMES)
    person = Person(with_times)  # it is noon in UTC
    night = shelf(an_entry(limits={"daytime": frozenset({"night"})}))
    far_east = timezone(timedelta(hours=9))
    assert asked(person, "沙嗲", night, far_east)["knowledge"]
    assert "knowledge" not in asked(person, "沙嗲", night, UTC)
    assert "knowledge" not in asked(person, "沙嗲", night)
    assert asked(person, "半夜吃沙嗲", night)["knowledge"]
    dining = shelf(an_entry(scenes=frozenset({"dining"})))
    assert asked(person, "沙嗲", dining, scene="dining")["knowledge"]
    assert "knowledge" not in asked(person, "沙嗲", dining)
