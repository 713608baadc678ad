"""The bounded gate's entry checks and their order (SPEC §3.3, §4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.core.bounded import (
    ENTRY,
    Entrance,
    check_grounding,
    check_privacy,
    check_schema,
    check_speaker,
    check_speech_act,
    check_value,
    refusal,
    touches_block,
)
from hermes_memory.core.candidate import Candidate, Span, SpeechAct
from hermes_memory.core.model import Category, Layer, Polarity, Role, Source, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Consent
from tests.small_world import DIMENSIONS, NOW, a_candidate, a_turn, grounding, rules

TURN = a_turn(content="我住在苏州")


def enter(turn: Turn = TURN, **over: Any) -> Reason | None:
    """The first refusal of a candidate for ``turn``; ``consents`` and ``entry`` go to the room it enters."""
    room = {name: over.pop(name) for name in ("consents", "entry") if name in over}
    return refusal(a_candidate(turn, **over), entrance(turn, **room))


def entrance(turn: Turn = TURN, *, consents: bool = True, entry: dict[str, Any] | None = None) -> Entrance:
    turns = {(turn.session_id, turn.message_id): turn}
    return Entrance(turns, DIMENSIONS, rules(entry=entry or {}).entry, grounding(), consents)


def said(text: str, **over: Any) -> Turn:
    return a_turn(content=text, **over)


def test_spec_4_1_a_grounded_plain_statement_enters() -> None:
    assert enter(object="苏州") is None


def test_spec_4_1_the_checks_run_in_the_published_order() -> None:
    published = (
        check_schema, check_speaker, check_grounding, check_privacy, check_value, check_speech_act,
    )  # fmt: skip
    assert published == ENTRY


def test_spec_4_1_the_first_refusal_counts() -> None:
    """One thing after another is put right, and the next check speaks."""
    turn = said("[card]，如果我对花生过敏", role=Role.ASSISTANT)
    wrong: dict[str, Any] = {
        "content": "用户对 3 种花生过敏", "object": "[card]", "dimension": "allergy", "importance": 0.1,
        "speech_act": SpeechAct.HYPOTHETICAL, "predicate": "",
    }  # fmt: skip
    seen = [enter(turn, **wrong)]
    seen.append(enter(turn, **(wrong := wrong | {"predicate": "is"})))
    turn = said(turn.content)
    seen.append(enter(turn, **wrong))
    seen.append(enter(turn, **(wrong := wrong | {"content": "如果用户对花生过敏"})))
    seen.append(enter(turn, **(wrong := wrong | {"object": "花生"})))
    seen.append(enter(turn, **(wrong := wrong | {"importance": 0.9})))
    seen.append(enter(turn, **(wrong | {"speech_act": SpeechAct.STATEMENT})))
    assert seen == [
        Reason.SCHEMA, Reason.NOT_A_USER_TURN, Reason.UNGROUNDED, Reason.PRIVACY, Reason.LOW_VALUE,
        Reason.HYPOTHETICAL, None,
    ]  # fmt: skip


# §4.1.1 schema


@pytest.mark.parametrize("field", ["content", "subject", "predicate", "object", "dimension"])
@pytest.mark.parametrize("value", ["", " \n"])
def test_spec_4_1_1_a_missing_field_is_dropped(field: str, value: str) -> None:
    over: dict[str, Any] = {field: value}
    assert enter(**over) is Reason.SCHEMA


@pytest.mark.parametrize(
    ("category", "layer"),
    [
        (Category.EVENT, Layer.PREFERENCE),
        (Category.FACT, None),
        (Category.PREFERENCE, None),
        (Category.STATE, None),
    ],
)
def test_spec_3_1_only_an_event_has_no_layer(category: Category, layer: Layer | None) -> None:
    assert enter(category=category, layer=layer) is Reason.SCHEMA


def test_spec_3_1_an_event_without_a_layer_enters() -> None:
    assert enter(dimension="event", object="苏州") is None


@pytest.mark.parametrize("field", ["importance", "stability"])
@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_spec_3_1_weights_lie_between_0_and_1(field: str, value: float) -> None:
    over: dict[str, Any] = {field: value}
    assert enter(**over) is Reason.SCHEMA


@pytest.mark.parametrize(("length", "reason"), [(256, None), (257, Reason.TOO_LONG)])
def test_spec_3_1_content_has_at_most_256_characters(length: int, reason: Reason | None) -> None:
    assert enter(content="住" * length, object="苏州") is reason


# §3.3 who speaks


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
def test_spec_3_3_only_a_user_turn_is_evidence(role: Role) -> None:
    assert enter(said("我住在苏州", role=role), object="苏州") is Reason.NOT_A_USER_TURN


@pytest.mark.parametrize("span", [Span("m9", 0, 5, "s1"), Span("m0", 0, 5, "s9"), Span("m0", 0, 5)])
def test_spec_3_3_a_span_points_into_a_known_turn(span: Span) -> None:
    assert enter(span=span, object="苏州") is Reason.NOT_A_USER_TURN


# §4.1.2 grounding


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 3), (4, 3), (-1, 5), (0, 6), (99, 100)])
def test_spec_4_1_2_the_span_lies_inside_the_turn(start: int, end: int) -> None:
    assert enter(span=Span("m0", start, end, "s1"), object="苏州") is Reason.UNGROUNDED


def test_spec_4_1_2_a_blank_span_is_no_quote() -> None:
    turn = said("我  住在苏州")
    assert enter(turn, span=Span("m0", 1, 3, "s1"), object="苏州") is Reason.UNGROUNDED


def test_spec_4_1_2_the_object_stands_in_the_span_not_merely_in_the_turn() -> None:
    turn = said("我住在苏州，喜欢杭州")
    assert enter(turn, span=Span("m0", 0, 5, "s1"), content="住在苏州", object="杭州") is Reason.UNGROUNDED
    assert enter(turn, span=Span("m0", 6, 10, "s1"), content="喜欢杭州", object="杭州") is None


@pytest.mark.parametrize(
    ("text", "found", "reason"),
    [
        ("I live in New-York!", "new york", None),  # case and punctuation do not matter
        ("我有ＷｅＣｈａｔ", "wechat", None),  # nor does width
        ("I have a dog called Rex", "dog Rex", None),  # words that stand apart
        ("I have a dog called Rex", "cat Rex", Reason.UNGROUNDED),
        ("I have a dog", "cat", Reason.UNGROUNDED),
    ],
)
def test_spec_4_1_2_the_object_is_in_the_users_words(text: str, found: str, reason: Reason | None) -> None:
    assert enter(said(text), object=found) is reason


@pytest.mark.parametrize(
    ("text", "content", "reason"),
    [
        ("我养了3只猫", "用户养了3只猫", None),
        ("我养了３只猫", "用户养了3只猫", None),  # full width
        ("我养了3只猫", "用户养了4只猫", Reason.UNGROUNDED),
        ("我养了猫", "用户养了2只猫", Reason.UNGROUNDED),
        ("我养了13只猫", "用户养了3只猫", Reason.UNGROUNDED),
    ],
)
def test_spec_4_1_2_numbers_are_the_users(text: str, content: str, reason: Reason | None) -> None:
    assert enter(said(text), content=content, object="猫") is reason


@pytest.mark.parametrize("field", ["valid_from", "valid_to"])
def test_spec_4_1_2_a_number_may_follow_by_rule_from_a_resolved_date(field: str) -> None:
    turn, content = said("我昨天搬到苏州"), "用户 2026-01-01 搬到苏州"
    assert enter(turn, content=content, object="苏州", **{field: NOW}) is None
    assert enter(turn, content="用户 1月1日 搬到苏州", object="苏州", **{field: NOW}) is None
    assert enter(turn, content=content, object="苏州") is Reason.UNGROUNDED


@pytest.mark.parametrize(
    ("text", "content", "reason"),
    [
        ("我不吃香菜", "用户不吃香菜", None),
        ("我吃香菜", "用户不吃香菜", Reason.UNGROUNDED),
        ("我戒了香菜", "用户戒了香菜", None),
        ("我戒了香菜", "用户不吃香菜", Reason.UNGROUNDED),  # nobody said 吃
        ("I eat 香菜", "the user does not eat 香菜", Reason.UNGROUNDED),
        ("I don't eat 香菜", "the user does not eat 香菜", None),
        ("No 香菜", "no 香菜", None),
        ("No 香菜", "the user wants no 香菜", Reason.UNGROUNDED),
    ],
)
def test_spec_4_1_2_a_negation_is_the_users(text: str, content: str, reason: Reason | None) -> None:
    assert enter(said(text), content=content, object="香菜", polarity=Polarity.NEGATIVE) is reason


BLOCK = '<user_memory note="x">\n- 居住地：苏州\n</user_memory>'


def test_spec_3_3_a_pasted_recall_block_is_never_evidence() -> None:
    turn = said(f"你说 {BLOCK} 我住在苏州")
    inside, after = turn.content.index("居住地"), turn.content.index("我住")
    assert (
        enter(turn, span=Span("m0", inside, inside + 6, "s1"), content="苏州", object="苏州")
        is Reason.UNGROUNDED
    )
    assert enter(turn, span=Span("m0", after, after + 5, "s1"), content="苏州", object="苏州") is None


def test_spec_3_3_a_span_that_reaches_into_a_pasted_block_is_no_evidence() -> None:
    turn = said(f"你说 {BLOCK}")
    assert (
        enter(turn, span=Span("m0", 0, len(turn.content), "s1"), content="苏州", object="苏州")
        is Reason.UNGROUNDED
    )


def test_spec_3_3_a_block_cut_off_reaches_to_the_end() -> None:
    text = "看 <user_memory>我住在苏州"
    assert touches_block(text, text.index("我住"), len(text))
    assert not touches_block(text, 0, 1)


def test_spec_3_3_several_blocks_are_all_found() -> None:
    text = f"{BLOCK} 一 {BLOCK} 二"
    assert [touches_block(text, text.index(char), text.index(char) + 1) for char in "一二"] == [False, False]
    assert touches_block(text, text.rindex("居住地"), len(text))


# §4.1.3 privacy


@pytest.mark.parametrize("masked", ["[id]", "[card] [secret]", "[card]，"])
def test_spec_4_1_3_a_masked_secret_is_nothing_to_remember(masked: str) -> None:
    assert enter(said(f"我的卡号是{masked}"), object=masked) is Reason.PRIVACY


def test_spec_4_1_3_the_rest_of_a_masked_message_goes_on() -> None:
    assert enter(said("我住在苏州，卡号[card]"), object="苏州") is None


@pytest.mark.parametrize("dimension", ["allergy", "religious_taboo"])
def test_spec_4_1_3_health_and_religion_are_never_inferred(dimension: str) -> None:
    over = {"dimension": dimension, "object": "花生"}
    turn = said("我信教，对花生过敏")
    assert enter(turn, source=Source.INFERRED, **over) is Reason.SENSITIVE_INFERRED
    assert enter(turn, **over) is None


def test_spec_4_1_3_a_financial_limit_may_be_inferred() -> None:
    assert enter(said("预算500"), dimension="financial_limit", object="500", source=Source.INFERRED) is None


@pytest.mark.parametrize(
    ("consent", "given", "reason"),
    [
        (Consent.ASSUME, False, None),
        (Consent.ASSUME, True, None),
        (Consent.ASK, False, Reason.NO_CONSENT),
        (Consent.ASK, True, None),
    ],
)
def test_spec_4_1_3_consent_is_assumed_unless_configured(
    consent: Consent, given: bool, reason: Reason | None
) -> None:
    over = {"dimension": "allergy", "object": "花生", "entry": {"sensitive_consent": consent}}
    assert enter(said("我对花生过敏"), consents=given, **over) is reason


def test_spec_4_1_3_consent_is_asked_for_sensitive_matters_only() -> None:
    assert enter(object="苏州", consents=False, entry={"sensitive_consent": Consent.ASK}) is None


# §4.1.4 value


@pytest.mark.parametrize(
    ("act", "reason"), [(SpeechAct.QUESTION, Reason.QUESTION), (SpeechAct.COMMAND, Reason.COMMAND)]
)
def test_spec_4_1_4_questions_and_one_off_commands_hold_nothing(act: SpeechAct, reason: Reason) -> None:
    assert enter(object="苏州", speech_act=act) is reason


@pytest.mark.parametrize(("importance", "reason"), [(0.49, Reason.LOW_VALUE), (0.5, None), (1.0, None)])
def test_spec_4_1_4_importance_below_a_half_is_refused(importance: float, reason: Reason | None) -> None:
    assert enter(object="苏州", importance=importance) is reason


# §4.1.5 speech act


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (SpeechAct.JOKE, Reason.JOKE),
        (SpeechAct.HYPOTHETICAL, Reason.HYPOTHETICAL),
        (SpeechAct.IRONY, Reason.IRONY),
        (SpeechAct.QUOTATION, Reason.QUOTATION),
        (SpeechAct.VENTING, Reason.VENTING),
        (SpeechAct.PLANTED_ORDER, Reason.PLANTED_ORDER),
        (SpeechAct.STATEMENT, None),
        (SpeechAct.DIRECTIVE, None),
        (SpeechAct.OPINION, None),
    ],
)
def test_spec_4_1_5_what_was_not_meant_as_said_is_no_fact(act: SpeechAct, reason: Reason | None) -> None:
    assert enter(object="苏州", speech_act=act) is reason


def test_spec_4_1_every_speech_act_has_been_decided_on() -> None:
    told = {act: enter(object="苏州", speech_act=act) for act in SpeechAct}
    assert {act for act, reason in told.items() if reason is None} == {
        SpeechAct.STATEMENT, SpeechAct.DIRECTIVE, SpeechAct.OPINION,
    }  # fmt: skip


def test_spec_4_1_2_negative_polarity_alone_does_not_need_a_negator() -> None:
    assert enter(said("我讨厌香菜"), object="香菜", polarity=Polarity.NEGATIVE) is None


def test_the_quote_of_a_lost_span_is_empty() -> None:
    lost: Candidate = a_candidate(TURN, span=Span("m9", 0, 5, "s1"))
    assert entrance().quote_of(lost) == ""
    assert check_grounding(lost, entrance()) is Reason.UNGROUNDED


@pytest.mark.parametrize(
    "key", ["religion", "religious_taboo", "allergy", "health_state", "pregnancy", "legal_matter"]
)
def test_spec_4_1_3_a_faith_is_never_inferred_either(key: str) -> None:
    packaged = load_dimensions(Path(__file__).resolve().parents[2] / "configs" / "dimensions.toml")
    turn = said("我信佛，每周去寺里，过敏")
    room = Entrance({(turn.session_id, turn.message_id): turn}, packaged, rules().entry, grounding())
    guess = a_candidate(turn, dimension=key, object="寺", source=Source.INFERRED)
    assert refusal(guess, room) is Reason.SENSITIVE_INFERRED
