"""The user model follows from the memories (SPEC §8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermes_memory.app.commands import Delete, EraseKind
from hermes_memory.app.profiling import profile_of
from hermes_memory.core.briefing import Material, compose
from hermes_memory.core.model import (
    USER,
    Category,
    Granularity,
    Layer,
    Lock,
    Memory,
    Polarity,
    Scope,
    Source,
    Status,
    hundredths,
)
from hermes_memory.core.profile import SECTIONS, Slot, build_profile, supports
from tests.small_world import DAY, DIMENSIONS, NOW, a_memory, default_rules, say
from tests.tiny_ledger import Person


def test_spec_8_no_memories_give_every_section_empty() -> None:
    assert build_profile([], DIMENSIONS) == {section: {} for section in SECTIONS}


def test_spec_8_a_slot_names_its_memories_and_how_sure_it_is() -> None:
    memory = a_memory(dimension="city", contradictions=1, source=Source.INFERRED, lock=Lock.CONFIRMED)
    slot = build_profile([memory], DIMENSIONS)["identity"]["city"]
    assert (slot.value, slot.confidence, slot.lock, slot.source) == (
        "苏州",
        0.75,
        Lock.CONFIRMED,
        Source.INFERRED,
    )
    assert (slot.memory_ids, slot.contradictions, slot.updated_at) == (("mem-1",), 1, NOW)


@pytest.mark.parametrize("layer", Layer)
def test_spec_8_each_layer_has_its_section(layer: Layer) -> None:
    profile = build_profile([a_memory(layer=layer, dimension="x")], DIMENSIONS)
    assert {name for name, slots in profile.items() if slots} == {layer.value}


@pytest.mark.parametrize(
    "over",
    [
        {"status": Status.REVIEW}, {"status": Status.SUPERSEDED}, {"status": Status.ARCHIVED}, {"subject": "妈妈"},
        {"scope": Scope.SESSION}, {"scope": Scope.SCENE}, {"granularity": Granularity.SPAN},
        {"layer": None, "category": Category.EVENT}, {"rival_of": "other"},
    ],
)  # fmt: skip
def test_spec_8_what_stands_behind_no_slot(over: dict[str, Any]) -> None:
    assert supports(a_memory())
    assert not supports(a_memory(**over))
    assert not build_profile([a_memory(**over)], DIMENSIONS)["identity"]


def test_spec_8_slots_are_per_subject() -> None:
    mine, hers = a_memory(dimension="city"), a_memory(id="m", dimension="city", object="无锡", subject="妈妈")
    assert build_profile([mine, hers], DIMENSIONS)["identity"]["city"].value == "苏州"
    assert build_profile([mine, hers], DIMENSIONS, "妈妈")["identity"]["city"].value == "无锡"


@pytest.mark.parametrize(
    "better", [{"lock": Lock.FROZEN}, {"lock": Lock.UNFROZEN}, {"lock": Lock.CONFIRMED}, {"confidence": 0.8}, {"updated_at": NOW + DAY}]
)  # fmt: skip
def test_spec_8_a_single_valued_slot_shows_the_firmest_then_the_surest_then_the_newest(
    better: dict[str, Any],
) -> None:
    weak = a_memory(id="weak", dimension="city")
    firm = a_memory(id="firm", dimension="city", object="杭州", **better)
    slot = build_profile([weak, firm], DIMENSIONS)["identity"]["city"]
    assert slot.value == "杭州"
    assert slot.memory_ids == ("firm", "weak")


def test_spec_8_a_multi_valued_slot_lists_all_and_marks_what_is_denied() -> None:
    cat = a_memory(id="c", dimension="pet", object="猫", lock=Lock.CONFIRMED, contradictions=2)
    dog = a_memory(
        id="d",
        dimension="pet",
        object="狗",
        polarity=Polarity.NEGATIVE,
        updated_at=NOW + DAY,
        contradictions=1,
    )
    slot = build_profile([dog, cat], DIMENSIONS)["identity"]["pet"]
    assert slot.value == ["猫", "-狗"]
    assert (slot.contradictions, slot.updated_at) == (3, NOW + DAY)


def test_spec_8_the_profile_is_recomputed_when_a_memory_goes() -> None:
    old, new = (
        a_memory(dimension="city"),
        a_memory(id="b", dimension="city", object="杭州", lock=Lock.CONFIRMED),
    )
    assert build_profile([old, new], DIMENSIONS)["identity"]["city"].value == "杭州"
    gone = new.with_(status=Status.SUPERSEDED)
    assert build_profile([old, gone], DIMENSIONS)["identity"]["city"].value == "苏州"


def test_spec_2_a_period_that_is_over_stands_behind_no_slot() -> None:
    ended = a_memory(valid_to=NOW - DAY)
    assert not supports(ended)
    lasts = a_memory(valid_to=NOW + DAY)
    assert supports(lasts, now=NOW)
    assert not supports(lasts, now=NOW + 2 * DAY)


def test_spec_8_what_is_comes_before_what_is_not_where_one_value_holds() -> None:
    left = a_memory(id="a", dimension="city", polarity=Polarity.NEGATIVE, lock=Lock.CONFIRMED)
    now_in = a_memory(id="b", dimension="city", object="杭州")
    assert build_profile([left, now_in], DIMENSIONS)["identity"]["city"].value == "杭州"
    assert build_profile([left], DIMENSIONS)["identity"]["city"].value == "-苏州"


def test_spec_8_agreement_raises_a_slot_up_to_the_cap_and_a_value_is_listed_once() -> None:
    waves = default_rules().profile
    same = [a_memory(id=f"m{n}", dimension="pet", object="猫") for n in range(3)]
    slot = build_profile(same, DIMENSIONS, rules=waves, cap=0.98)["identity"]["pet"]
    assert (slot.value, slot.confidence) == (["猫"], hundredths(0.75 + 2 * waves.agreement_bonus))
    many = [a_memory(id=f"m{n:02}", dimension="pet", object="猫") for n in range(40)]
    assert build_profile(many, DIMENSIONS, rules=waves, cap=0.98)["identity"]["pet"].confidence == 0.98


def test_spec_8_a_live_rival_lowers_the_slot_and_leaves_its_value_and_never_a_frozen_one() -> None:
    waves = default_rules().profile
    old = a_memory(dimension="city")
    rival = a_memory(id="r", dimension="city", object="杭州", rival_of=old.id)
    slot = build_profile([old, rival], DIMENSIONS, rules=waves, rivals=[rival])["identity"]["city"]
    assert (slot.value, slot.confidence) == ("苏州", hundredths(0.75 - waves.rival_malus))
    frozen = old.with_(lock=Lock.FROZEN)
    slot = build_profile([frozen], DIMENSIONS, rules=waves, rivals=[rival])["identity"]["city"]
    assert slot.confidence == 0.75


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_spec_8_the_order_of_the_memories_does_not_matter(order: tuple[int, ...]) -> None:
    members = [a_memory(id=f"m{n}", dimension="pet", object=str(n)) for n in range(3)]
    assert build_profile([members[n] for n in order], DIMENSIONS) == build_profile(members, DIMENSIONS)


def given(person: Person, *memories: Memory) -> None:
    """As if they had been stored before."""
    person.ledger.memories |= {memory.id: memory for memory in memories}
    person.restart()


def liked(number: int) -> list[Memory]:
    return [
        a_memory(id=f"d{n}", dimension="drink", object=f"茶{n}", category=Category.PREFERENCE, layer=Layer.PREFERENCE)
        for n in range(number)
    ]  # fmt: skip


def slots(person: Person, subject: str = USER) -> dict[str, dict[str, Slot]]:
    return profile_of(person.state, DIMENSIONS, person.policy.rules, subject)


def test_spec_8_a_restriction_counts_at_once_and_a_preference_with_eight_others() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    assert slots(person)["restriction"]["allergy"].value == ["花生"]
    enough = person.policy.rules.profile.new_memories
    given(person, *liked(enough - 1))
    assert not slots(person)["preference"]
    given(person, *liked(enough))
    assert len(slots(person)["preference"]["drink"].value) == enough


def test_spec_8_what_another_has_is_never_the_users() -> None:
    person = Person()
    person.tell(say("妈妈对花生过敏", dimension="allergy", object="花生", subject="妈妈"))
    assert not any(slots(person).values())
    assert slots(person, "妈妈")["restriction"]["allergy"].value == ["花生"]


def test_spec_11_a_deleted_memory_leaves_its_slot_in_the_same_commit_and_is_counted() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    (memory,) = person.state.memories.values()
    assert person.state.settings.profile == {"restriction/allergy": [memory.id]}
    receipt = person.act(Delete(memory_id=memory.id))
    assert receipt["erased"]["profile_slots"] == 1
    assert person.state.settings.profile == {}
    assert not any(slots(person).values())


def test_spec_11_habits_that_were_read_from_a_memory_go_with_it() -> None:
    person = Person()
    person.tell(say("我对花生过敏", dimension="allergy", object="花生"))
    (memory,) = person.state.memories.values()
    read = {"topics": {"memory_ids": [memory.id]}, "active_time": {"memory_ids": []}}
    person.ledger.settings = replace(person.ledger.settings, behavior=read)
    person.restart()
    assert person.act(EraseKind(kind="restriction"))["erased"]["profile_slots"] == 2
    assert set(person.state.settings.behavior) == {"active_time"}


def test_s1_1_3_how_to_answer_is_one_line_of_the_block_and_only_seems_while_pending() -> None:
    style = [
        a_memory(id="s1", dimension="reply", predicate="长短", object="简短", layer=Layer.STYLE, lock=Lock.CONFIRMED),
        a_memory(id="s2", dimension="tone", predicate="语气", object="正式", layer=Layer.STYLE, polarity=Polarity.NEGATIVE),
    ]  # fmt: skip
    block = compose(Material(style=style, longterm=style), 600, default_rules().briefing, DIMENSIONS)
    assert block.text.splitlines()[1:-1] == ["- 回答方式：长短：简短；语气：似乎 不要正式"]
    assert block.memory_ids == ("s1", "s2")


def test_s1_1_3_the_directive_is_given_whatever_is_asked() -> None:
    person = Person()
    given(
        person,
        a_memory(
            dimension="reply",
            predicate="长短",
            object="简短",
            layer=Layer.STYLE,
            category=Category.PREFERENCE,
        ),
    )
    person.pass_time(days=1)
    assert "- 回答方式：长短：似乎 简短" in person.recall("天气")["context"]
