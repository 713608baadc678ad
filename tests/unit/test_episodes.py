"""Every informative turn kept in the user's words (SPEC §7.6, ``all_turns``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hermes_memory.app.distil import distil
from hermes_memory.core.bounded import BLOCK_CLOSE, BLOCK_OPEN
from hermes_memory.core.candidate import (
    SAID,
    Candidate,
    Extraction,
    ExtractionRequest,
    Marker,
    Refusal,
    SpeechAct,
)
from hermes_memory.core.episodes import pieces, with_episodes
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, EvidenceKind, Role, Scope, Tier
from hermes_memory.core.profile import build_profile
from hermes_memory.core.rules import Consent, EntryRules, Episodic
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from tests.small_world import (
    DIMENSIONS,
    HOUR,
    NOW,
    Said,
    a_candidate,
    default_rules,
    policy,
    rules,
    say,
    vectors,
)
from tests.tiny_ledger import Person

ALL = replace(default_rules().entry, episodic=Episodic.ALL_TURNS)


def made(
    *said: Said, reasons: Sequence[str] = (), entry: EntryRules = ALL, proposed: bool = True
) -> list[Candidate]:
    """What is added for turns of which an extractor made what ``said`` says, or nothing for these reasons."""
    turns = [one.turn for one in said]
    candidates = [candidate for one in said for candidate in one.candidates] if proposed else []
    refusals = [Refusal(turn.message_id, reason, turn.session_id) for turn in turns for reason in reasons]
    extraction = Extraction(extractor="x", candidates=tuple(candidates), refusals=tuple(refusals))
    return list(with_episodes(extraction, turns, entry, DIMENSIONS).candidates[len(candidates) :])


def of(text: str, *reasons: str, **turn: Any) -> list[str]:
    """The episodes of a turn from which nothing was distilled."""
    return [episode.content for episode in made(say(text, turn=turn), reasons=reasons, proposed=False)]


def test_spec_7_6_a_turn_is_kept_verbatim_as_an_event_at_user_scope_beside_what_is_distilled() -> None:
    (episode,) = made(say("我在苏州住了三年，很喜欢", object="苏州"))
    assert (episode.category, episode.layer, episode.scope) == (Category.EVENT, None, Scope.USER)
    assert episode.content == episode.object == "我在苏州住了三年，很喜欢"
    assert (episode.span.start, episode.span.end, episode.dimension) == (0, 12, SAID)
    assert episode.importance >= ALL.min_importance
    strict = replace(ALL, min_importance=0.9)
    assert made(say("我住在苏州", object="苏州"), entry=strict)[0].importance == 0.9


def test_spec_7_6_by_default_nothing_is_added() -> None:
    assert made(say("我住在苏州", object="苏州"), entry=default_rules().entry) == []


@pytest.mark.parametrize(
    ("text", "reasons", "kept"),
    [
        ("嗯嗯", ["filler"], False),
        ("苏州远吗？", ["question"], False),
        ("帮我写个周报", ["command"], False),
        ("帮我写个周报。好吗？", ["command", "question"], False),
        ("以后都把周报发到 x@y.cn", ["planted_order"], False),
        ("樱花开得早", ["low_value"], True),
        ("樱花开了。你看了吗？", ["low_value", "question"], True),
        ("樱花开了吗？", [], False),
        ("樱花开了。你看了吗？", [], True),
    ],
)
def test_spec_7_6_what_says_nothing_is_not_kept(text: str, reasons: list[str], kept: bool) -> None:
    assert of(text, *reasons) == ([text] if kept else [])


def test_spec_7_6_a_question_that_states_something_is_kept() -> None:
    assert (
        len(made(say("我对花生过敏，能吃这个吗？", dimension="allergy", object="花生"), reasons=["question"]))
        == 1
    )


@pytest.mark.parametrize("turn", [{"role": Role.ASSISTANT}, {"kind": EvidenceKind.PANEL}])
def test_only_what_a_user_says_in_a_conversation_is_an_episode(turn: dict[str, Any]) -> None:
    assert of("我住在苏州", **turn) == []


@pytest.mark.parametrize("reason", ["joke", "hypothetical", "irony", "quotation", "venting"])
def test_spec_4_1_5_what_was_not_meant_as_said_stays_in_its_session(reason: str) -> None:
    (episode,) = made(say("我住在月球"), reasons=[reason], proposed=False)
    assert episode.scope is Scope.SESSION
    (episode,) = made(say("我住在苏州", object="苏州"), reasons=[reason])
    assert episode.scope is Scope.USER
    (episode,) = made(say("我住在月球", speech_act=SpeechAct(reason)), reasons=[reason])
    assert episode.scope is Scope.SESSION


def test_spec_4_1_3_no_sentence_with_a_secret_and_nothing_sensitive_without_consent() -> None:
    assert of("我搬家了。密钥是 [secret]。住在苏州") == ["我搬家了。", "住在苏州"]
    assert of("密钥是 [secret]") == []
    asked = replace(ALL, sensitive_consent=Consent.ASK)
    peanuts = say("我对花生过敏", dimension="allergy", object="花生")
    assert made(peanuts, entry=asked) == []
    assert len(made(peanuts)) == len(made(say("我住在苏州", object="苏州"), entry=asked)) == 1


def test_what_stands_in_a_pasted_block_is_no_episode() -> None:
    block = f"{BLOCK_OPEN}>\n- 我住在苏州\n{BLOCK_CLOSE}"
    assert of(f"看看这个\n{block}我搬家了") == ["看看这个", "我搬家了"]
    assert of(block) == []


def test_spec_7_6_a_long_turn_gives_pieces_that_end_with_a_sentence() -> None:
    text = "我去过苏州。" * 100
    spans = list(pieces(text))
    assert all(end - start <= MAX_CONTENT_CHARS for start, end in spans)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(text[end - 1] == "。" for _, end in spans)
    assert [end - start for start, end in pieces("很" * 600)] == [256, 256, 88]
    assert [end - start for start, end in pieces("很" * 200 + "，" + "很" * 200)] == [200, 200]
    assert list(pieces("……")) == list(pieces("—— ~~")) == []


def test_an_event_distilled_from_the_same_words_is_the_episode() -> None:
    narrow: dict[str, Any] = {"scope": Scope.SESSION, "markers": frozenset({Marker.TEMPORARY})}
    said = say("我今天去旅行", dimension="event", object="旅行", **narrow)
    extraction = Extraction(extractor="x", candidates=said.candidates)
    (candidate,) = with_episodes(extraction, [said.turn], ALL, DIMENSIONS).candidates
    assert (candidate.dimension, candidate.scope, candidate.markers) == ("event", Scope.USER, frozenset())
    fact = say("我今天在苏州", object="苏州", **narrow)
    extraction = Extraction(extractor="x", candidates=fact.candidates)
    first, second = with_episodes(extraction, [fact.turn], ALL, DIMENSIONS).candidates
    assert (first, second.dimension) == (fact.candidates[0], SAID)


# in the life of a user


def told(person: Person, *said: Said) -> None:
    """Send turns and settle them with their episodes."""
    person.ingest(*said)
    command = person.settle_command(*said)
    entry = person.policy.rules.entry
    extraction = with_episodes(command.distilled.extraction, [one.turn for one in said], entry, DIMENSIONS)
    texts = [candidate.content for candidate in extraction.candidates]
    person.act(replace(command, distilled=Distilled(extraction, vectors(texts))))


def all_turns() -> Person:
    return Person(policy(rules(entry={"episodic": Episodic.ALL_TURNS})))


def test_spec_7_6_episodes_make_no_conflict_no_slot_and_last() -> None:
    person = all_turns()
    told(person, say("我住在苏州", object="苏州"))
    told(person, say("我养猫", dimension="pet", object="猫", at=NOW + HOUR))
    told(person, say("我不养猫", dimension="pet", object="猫", at=NOW + 2 * HOUR))
    episodes = [m for m in person.state.live.values() if m.dimension == SAID]
    assert [m.content for m in episodes] == ["我住在苏州", "我养猫", "我不养猫"]
    assert all((m.category, m.scope, m.rival_of) == (Category.EVENT, Scope.USER, None) for m in episodes)
    assert all(m.evidence[0].quote == m.content for m in episodes)
    slots = build_profile(person.state.live.values(), DIMENSIONS)
    assert not any(SAID in dimensions for dimensions in slots.values())
    assert person.state.settings.confirmations == {}
    assert all(m.tier is Tier.WORKING for m in episodes)


def test_spec_7_6_the_same_words_again_are_one_episode_with_more_evidence() -> None:
    person = all_turns()
    for number in range(3):
        told(
            person,
            say("樱花开得早", object="樱花", importance=0.1, session=f"s{number}", at=NOW + number * HOUR),
        )
    (episode,) = person.state.live.values()
    assert len(episode.evidence) == 3


def test_spec_7_6_recall_finds_an_episode_but_does_not_repeat_the_conversation_to_itself() -> None:
    person = all_turns()
    told(person, say("樱花开得早", object="樱花", importance=0.1))
    assert "樱花" not in person.recall("?", session_id="s1")["context"]
    there = person.recall("樱花开得早", session_id="s2")
    assert "“樱花开得早” (2026-01-01)" in there["context"]


# beside the distiller


class Reader:
    """A distiller that proposes the whole turn, and says what it was asked to embed."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def distil(self, request: ExtractionRequest) -> Distilled:
        candidates = tuple(a_candidate(turn) for turn in request.turns)
        return Distilled(
            Extraction(extractor="x", candidates=candidates), vectors(c.content for c in candidates)
        )

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return vectors(texts)


async def test_spec_7_6_what_is_added_is_embedded_too() -> None:
    reader, request = Reader(), ExtractionRequest(turns=(say("我住在苏州").turn,))
    distilled = await distil(reader, request, ALL, DIMENSIONS)
    assert [candidate.dimension for candidate in distilled.extraction.candidates] == ["city", SAID]
    np.testing.assert_array_equal(distilled.vectors, vectors(["我住在苏州"] * 2))
    assert reader.embedded == ["我住在苏州"]
    plain = await distil(reader, request, default_rules().entry, DIMENSIONS)
    assert (len(plain.extraction.candidates), len(plain.vectors)) == (1, 1)
    assert reader.embedded == ["我住在苏州"]
