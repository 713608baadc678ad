"""The scope floor (SPEC §4.1.7): the extractor proposes, the rule decides."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.model import Category, Scope, Source
from hermes_memory.core.scope import passing, settled_scope
from tests.small_world import NOW, a_candidate, a_turn

TURN = a_turn(content="我住在苏州")
SESSION, SCENE, USER = Scope.SESSION, Scope.SCENE, Scope.USER


def scope_of(scene: str | None = None, markers: set[Marker] | None = None, **over: Any) -> Scope:
    return settled_scope(a_candidate(TURN, markers=frozenset(markers or ()), **over), scene)


@pytest.mark.parametrize("scene", [None, "dining"])
def test_spec_4_1_7_a_plain_declaration_reaches_the_user(scene: str | None) -> None:
    assert scope_of(scene) is USER


@pytest.mark.parametrize(
    ("markers", "scene", "scope"),
    [
        ({Marker.TEMPORARY}, None, SESSION),  # 今天, 这次
        ({Marker.TEMPORARY}, "travel", SCENE),  # for this trip
        ({Marker.CONDITIONAL}, None, SESSION),  # 如果
        ({Marker.CONDITIONAL}, "travel", SCENE),
        ({Marker.TEMPORARY, Marker.LASTING_CHANGE}, None, USER),  # 我最近搬到杭州
        ({Marker.LASTING_CHANGE}, None, USER),  # 从今天起我不喝酒
        ({Marker.CONDITIONAL, Marker.LASTING_CHANGE}, None, SESSION),  # a condition is a condition
        ({Marker.HABITUAL}, None, USER),  # 一直, always
        ({Marker.HABITUAL, Marker.TEMPORARY}, None, SESSION),  # 最近一直
        ({Marker.HEDGED}, None, SESSION),  # 好像: not an unhedged declaration
        ({Marker.HEDGED}, "dining", SCENE),
        ({Marker.HEDGED, Marker.HABITUAL}, None, USER),  # habitual wording is enough
        ({Marker.CORRECTION}, None, USER),
    ],
)
def test_spec_4_1_7_wording_lowers_the_scope(markers: set[Marker], scene: str | None, scope: Scope) -> None:
    assert scope_of(scene, markers) is scope


@pytest.mark.parametrize(("scene", "scope"), [(None, SESSION), ("dining", SCENE)])
def test_spec_4_1_7_an_inferred_statement_reaches_a_scene_at_most(scene: str | None, scope: Scope) -> None:
    assert scope_of(scene, {Marker.HABITUAL}, source=Source.INFERRED) is scope


@pytest.mark.parametrize(
    "act",
    [SpeechAct.JOKE, SpeechAct.HYPOTHETICAL, SpeechAct.IRONY, SpeechAct.QUOTATION, SpeechAct.VENTING],
)
def test_spec_4_1_5_what_is_not_meant_never_leaves_the_session(act: SpeechAct) -> None:
    assert scope_of("dining", {Marker.HABITUAL}, speech_act=act) is SESSION


@pytest.mark.parametrize(
    ("proposed", "scene", "scope"),
    [
        (SCENE, "dining", SCENE),
        (SCENE, None, SESSION),
        (SESSION, "dining", SESSION),
        (SESSION, None, SESSION),
    ],
)
def test_spec_4_1_7_the_rule_never_widens_what_is_proposed(
    proposed: Scope, scene: str | None, scope: Scope
) -> None:
    assert scope_of(scene, scope=proposed) is scope


@pytest.mark.parametrize("markers", [{Marker.TEMPORARY}, {Marker.HEDGED}])
def test_spec_4_1_7_lowering_never_widens_a_session_scope(markers: set[Marker]) -> None:
    assert scope_of("dining", markers, scope=SESSION) is SESSION


def test_spec_4_1_7_an_inferred_session_scope_stays_one_inside_a_scene() -> None:
    assert scope_of("dining", scope=SESSION, source=Source.INFERRED) is SESSION


def test_spec_4_1_7_a_dated_event_is_not_lowered_for_naming_its_time() -> None:
    event = {"category": Category.EVENT, "layer": None, "valid_from": NOW}
    assert scope_of(None, {Marker.TEMPORARY}, **event) is USER
    assert scope_of(None, {Marker.TEMPORARY}, **(event | {"valid_from": None})) is SESSION
    assert scope_of(None, {Marker.TEMPORARY}, valid_from=NOW) is SESSION  # a dated fact is


def test_spec_4_1_7_passing_wording_is_temporary_or_conditional() -> None:
    assert passing(a_candidate(TURN, markers=frozenset({Marker.CONDITIONAL})))
    assert passing(a_candidate(TURN, markers=frozenset({Marker.TEMPORARY})))
    assert not passing(a_candidate(TURN, markers=frozenset({Marker.TEMPORARY, Marker.LASTING_CHANGE})))
    assert not passing(a_candidate(TURN))
