"""The user model follows from the memories (SPEC §8)."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.core.model import Category, Granularity, Layer, Lock, Polarity, Scope, Source, Status
from hermes_memory.core.profile import SECTIONS, build_profile, supports
from tests.small_world import DAY, DIMENSIONS, NOW, a_memory


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
