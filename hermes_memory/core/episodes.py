"""Every informative user turn as an EVENT in its own words (SPEC §7.6, ``entry.episodic = "all_turns"``).

For products that must answer "when did I say …". Episodes go through the gates like any candidate; being EVENTs they
contradict nothing and fill no slot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hermes_memory.core.bounded import outside_blocks
from hermes_memory.core.candidate import SAID, Candidate, Extraction, Marker, Refusal, Span, SpeechAct
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, USER, Category, EvidenceKind, Role, Scope, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Consent, EntryRules, Episodic
from hermes_memory.core.sentences import Stretch, asks, clauses, sentences
from hermes_memory.core.text import normal

_MASK = re.compile(r"\[[a-z]+\]")  # what the privacy gate left in place of a secret
_HOLDS_NOTHING = {Reason.FILLER, Reason.QUESTION, Reason.COMMAND}
_NOT_MEANT = {Reason.JOKE, Reason.HYPOTHETICAL, Reason.IRONY, Reason.QUOTATION, Reason.VENTING}
_MEANT = {SpeechAct.STATEMENT, SpeechAct.DIRECTIVE, SpeechAct.OPINION}
_LOWERS = {Marker.TEMPORARY, Marker.CONDITIONAL, Marker.HEDGED}


def with_episodes(
    extraction: Extraction, turns: Sequence[Turn], rules: EntryRules, dimensions: Dimensions
) -> Extraction:
    """The extraction with an episode for each informative turn after what was distilled; unchanged in another mode.

    An EVENT that was distilled from the same words is the episode and reaches as far as one.
    """
    if rules.episodic is not Episodic.ALL_TURNS:
        return extraction
    candidates = list(extraction.candidates)
    for turn in turns:
        own = [candidate for candidate in extraction.candidates if _place(candidate.span) == _place(turn)]
        reasons = {refused.reason for refused in extraction.refusals if _place(refused) == _place(turn)}
        for episode in episodes(turn, own, reasons, rules, dimensions):
            twins = [number for number, candidate in enumerate(candidates) if _is_twin(candidate, episode)]
            if not twins:
                candidates.append(episode)
            for number in twins:
                lasting = candidates[number].markers - _LOWERS
                candidates[number] = replace(candidates[number], scope=episode.scope, markers=lasting)
    return replace(extraction, candidates=tuple(candidates))


def episodes(
    turn: Turn, own: Sequence[Candidate], reasons: Collection[str], rules: EntryRules, dimensions: Dimensions
) -> Iterator[Candidate]:
    """The episodes of one turn: its words, in pieces of at most 256 characters that end with a sentence.

    ``own`` and ``reasons`` are what an extractor made of the turn. Nothing comes of fillers, of what only asks or
    commands, of planted orders, of a sentence with a masked secret, nor of sensitive matters where consent must be
    asked for. What was not meant as said stays in its session (SPEC §4.1.5).
    """
    meant = [candidate for candidate in own if candidate.speech_act in _MEANT]
    if turn.role is not Role.USER or turn.kind is not EvidenceKind.SAID or Reason.PLANTED_ORDER in reasons:
        return
    barren = bool(reasons) and set(reasons) <= _HOLDS_NOTHING
    if not meant and (barren or not _states(turn.content)):
        return
    if rules.sensitive_consent is Consent.ASK and any(dimensions.safety(c.dimension) for c in own):
        return
    scope = Scope.SESSION if not meant and _NOT_MEANT & set(reasons) else Scope.USER
    for start, end in pieces(turn.content):
        text = turn.content[start:end]
        yield Candidate(
            span=Span(turn.message_id, start, end, turn.session_id), content=text, category=Category.EVENT, layer=None,
            subject=USER, predicate=SAID, object=text, dimension=SAID, scope=scope,
            stability=rules.episode_stability, importance=max(rules.episode_importance, rules.min_importance),
        )  # fmt: skip


def pieces(text: str) -> Iterator[Stretch]:
    """``text`` in stretches of at most 256 characters, without pasted blocks and sentences with a masked secret."""
    for low, high in outside_blocks(text):
        held: Stretch | None = None
        for start, end in _units(text[low:high]):
            a, b = low + start, low + end
            if held is not None and (b - held[0] > MAX_CONTENT_CHARS or _MASK.search(text, held[1], b)):
                yield from _speaking(text, held)
                held = None
            if not _MASK.search(text, a, b):
                held = (held[0] if held else a, b)
        if held is not None:
            yield from _speaking(text, held)


def _speaking(text: str, stretch: Stretch) -> Iterator[Stretch]:
    if normal(text[stretch[0] : stretch[1]]):
        yield stretch


def _units(text: str) -> Iterator[Stretch]:
    """Sentences; of one that is too long its clauses, and of a clause that is too long as much as fits each time."""
    for start, end in sentences(text):
        parts = [(start, end)]
        if end - start > MAX_CONTENT_CHARS:
            parts = [(start + a, start + b) for a, b in clauses(text[start:end])]
        for low, high in parts:
            for at in range(low, high, MAX_CONTENT_CHARS):
                yield at, min(high, at + MAX_CONTENT_CHARS)


def _states(text: str) -> bool:
    """Whether some sentence is not a question."""
    return any(not asks(text[start:end]) for start, end in sentences(text))


def _place(at: Span | Refusal | Turn) -> tuple[str, str]:
    return at.session_id, at.message_id


def _is_twin(candidate: Candidate, episode: Candidate) -> bool:
    """Whether a candidate will be an EVENT of the same words."""
    event = candidate.category is Category.EVENT or candidate.speech_act is SpeechAct.OPINION
    meant = event and candidate.speech_act in _MEANT and _place(candidate.span) == _place(episode.span)
    return meant and normal(candidate.content) == normal(episode.content)
