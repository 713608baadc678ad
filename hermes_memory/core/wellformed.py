"""What has the shape of a candidate, an affirmation, a refusal (SPEC §4.1.1): a dataclass holds anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from hermes_memory.core.candidate import (
    Affirmation,
    Candidate,
    Extraction,
    Marker,
    Refusal,
    Span,
    SpeechAct,
)
from hermes_memory.core.model import (
    MAX_CONTENT_CHARS,
    Category,
    Granularity,
    Intent,
    Layer,
    Polarity,
    Scope,
    Source,
    Turn,
)
from hermes_memory.core.reasons import REASONS, Reason

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")  # dimensions and topics are names of ours, not words of anybody's
_PROPOSED = (Source.EXPLICIT, Source.INFERRED)  # an operator's entry comes from no extractor
_FIRST_YEAR, _LAST_YEAR = 1800, 2200  # a user's life, and what they tell of
_KINDS: dict[str, type] = {
    "category": Category, "polarity": Polarity, "negative": bool, "granularity": Granularity, "scope": Scope,
    "speech_act": SpeechAct, "source": Source, "intent": Intent, "emotional": bool,
}  # fmt: skip


def well_formed(candidate: Any) -> bool:
    """Whether every field of a candidate is of its kind and within its bounds; how long its content is is not asked."""
    return isinstance(candidate, Candidate) and _is_filled(candidate)


def _is_filled(candidate: Any) -> bool:
    return (
        _is_span(candidate.span)
        and all(isinstance(getattr(candidate, name), kind) for name, kind in _KINDS.items())
        and candidate.source in _PROPOSED
        and (candidate.layer is None or isinstance(candidate.layer, Layer))
        and (candidate.category is Category.EVENT) == (candidate.layer is None)
        and _is_text(candidate.content, None)
        and all(_is_text(text) for text in (candidate.subject, candidate.predicate, candidate.object))
        and _is_key(candidate.dimension)
        and (candidate.topic == "" or _is_key(candidate.topic))
        and isinstance(candidate.markers, frozenset)
        and all(isinstance(marker, Marker) for marker in candidate.markers)
        and isinstance(candidate.entities, tuple)
        and all(_is_text(name) for name in candidate.entities)
        and _is_share(candidate.importance)
        and _is_share(candidate.stability)
        and _in_time(candidate.valid_from, candidate.valid_to)
    )


def sound(extraction: Extraction, turns: Iterable[Turn], most: int) -> tuple[Extraction, list[int]]:
    """What of an extraction can be looked at, and which of its candidates those are.

    Of each kind at most ``most`` are looked at; what is left out, or has the wrong shape, becomes a refusal of one of
    ``turns``, and what is left out one for all of it.
    """
    places = [(turn.session_id, turn.message_id) for turn in turns]
    refused: list[Refusal] = []

    def refuse(reason: Reason, span: object = None) -> None:
        here = (span.session_id, span.message_id) if isinstance(span, Span) and _is_span(span) else None
        session_id, message_id = here if here in places else (places or [("", "")])[-1]
        refused.append(Refusal(message_id, reason, session_id))

    kept = []
    for number, candidate in enumerate(extraction.candidates[:most]):
        if well_formed(candidate):
            kept.append(number)
        else:
            refuse(Reason.SCHEMA, getattr(candidate, "span", None))
    affirmations = []
    for affirmation in extraction.affirmations[:most]:
        if _affirms(affirmation):
            affirmations.append(affirmation)
        else:
            refuse(Reason.SCHEMA, getattr(affirmation, "span", None))
    told = [refusal for refusal in extraction.refusals[:most] if _refuses(refusal)]
    if len(told) < len(extraction.refusals[:most]):
        refuse(Reason.SCHEMA)
    if max(map(len, (extraction.candidates, extraction.affirmations, extraction.refusals))) > most:
        refuse(Reason.TOO_MANY)
    return (
        replace(
            extraction,
            candidates=tuple(extraction.candidates[number] for number in kept),
            affirmations=tuple(affirmations),
            refusals=(*told, *refused),
        ),
        kept,
    )


def _affirms(affirmation: Any) -> bool:
    return (
        isinstance(affirmation, Affirmation)
        and _is_text(affirmation.memory_id)
        and _is_span(affirmation.span)
    )


def _refuses(refusal: Any) -> bool:
    if not isinstance(refusal, Refusal):
        return False
    texts = (refusal.message_id, refusal.session_id, refusal.reason)
    return all(isinstance(text, str) for text in texts) and refusal.reason in REASONS


def _is_span(span: Any) -> bool:
    if not isinstance(span, Span):
        return False
    ids, places = (span.message_id, span.session_id), (span.start, span.end)
    return all(isinstance(text, str) for text in ids) and all(type(place) is int for place in places)


def _is_text(text: object, most: int | None = MAX_CONTENT_CHARS) -> bool:
    if not isinstance(text, str) or not text.strip() or (most is not None and len(text) > most):
        return False
    return _UNPRINTABLE.search(text, 0, MAX_CONTENT_CHARS) is None


def _is_key(text: object) -> bool:
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _in_time(*period: Any) -> bool:
    """Whether its times are aware, in order, and of a year somebody may speak of."""
    times = [time for time in period if time is not None]
    if not all(isinstance(time, datetime) and time.utcoffset() is not None for time in times):
        return False
    return all(_FIRST_YEAR <= time.year <= _LAST_YEAR for time in times) and times == sorted(times)
