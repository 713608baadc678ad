"""Readings to candidates: content, category, weight, scope, dates, entities."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Rules, Weight
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.when import Moment
from hermes_memory.core.candidate import Candidate, Marker, Span, SpeechAct
from hermes_memory.core.dimensions import Dimension, Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, Intent, Polarity, Scope, Turn

_FIGURES = re.compile(r"\d[\d.,:%/-]*\d|\d")
_NAMES = re.compile(r"(?<![.!?]\s)(?<!^)\b(?!I\b)[A-Z][\w’'-]+(?:\s[A-Z][\w’'-]+)*")
_CJK = re.compile(r"[一-鿿]")
_MAX_ENTITIES = 8
_PAST = frozenset({"event", "opinion"})
_NARROW = frozenset({Marker.TEMPORARY, Marker.CONDITIONAL})
_PLAIN = frozenset({SpeechAct.STATEMENT, SpeechAct.DIRECTIVE, SpeechAct.OPINION})


@dataclass(frozen=True, slots=True)
class Words:
    """The stretch a candidate rests on: ``text[start:end]``, and the act and markers that cover it."""

    start: int
    end: int
    act: SpeechAct
    markers: frozenset[Marker]
    moment: Moment | None
    emotional: bool = False
    says: int = 0  # where the content begins; before it only the subject's mention is taken
    lead_subject: str = ""  # put before the content when the clause itself names nobody
    content: str = ""  # an earlier statement with its value replaced; otherwise the words themselves


class Builder:
    """Makes candidates out of readings of one extractor."""

    def __init__(self, rules: Rules, dimensions: Dimensions) -> None:
        self._rules = rules
        self._dimensions = dimensions

    def build(self, turn: Turn, mirror: str, reading: Reading, words: Words) -> Candidate:
        """The candidate for one reading."""
        row = reading.pattern
        entry = self._dimensions.get(reading.dimension)
        moved = reading.dimension != row.dimension
        category = (None if moved else row.category) or (entry.category if entry else Category.FACT)
        layer = (None if moved else row.layer) or (entry.layer if entry else None)
        act = words.act if words.act is not SpeechAct.STATEMENT else row.act
        if act is SpeechAct.OPINION or category is Category.EVENT:
            category, layer = Category.EVENT, None
        weight = self._weight(reading.dimension)
        moment = self._moment(words, category, reading)
        markers = self._markers(words, row.markers, category, moment, reading, entry)
        span = Span(turn.message_id, words.start, words.end, turn.session_id)
        return Candidate(
            span=span,
            content=self._content(turn.content, mirror, reading, words, moment, category),
            category=category,
            layer=layer,
            subject=reading.subject.who,
            predicate=reading.dimension if moved else row.predicate,
            object=turn.content[reading.thing.start : reading.thing.end],
            dimension=reading.dimension,
            polarity=reading.polarity,
            negative=reading.negative,
            scope=self._scope(row.scope, act, markers, turn),
            speech_act=act,
            markers=markers,
            intent=self._intent(row.intent, act, markers, category),
            emotional=words.emotional,
            stability=weight.stability if row.stability is None else row.stability,
            importance=weight.importance if row.importance is None else row.importance,
            topic=weight.topic,
            entities=self._entities(turn.content, mirror, words, moment),
            valid_from=moment.at
            if moment and (category is Category.EVENT or Marker.LASTING_CHANGE in markers)
            else None,
        )

    def note(self, turn: Turn, mirror: str, who: str, words: Words) -> Candidate:
        """An unread sentence about ``who``, kept in their own words as an EVENT of dimension ``note``."""
        weight = self._weight("note")
        content = self._trim(turn.content, words.start, words.end)
        markers = words.markers - ({Marker.TEMPORARY} if words.moment else set())
        if words.moment:
            content = _dated(content, words.moment)
        return Candidate(
            span=Span(turn.message_id, words.start, words.end, turn.session_id),
            content=content,
            category=Category.EVENT,
            layer=None,
            subject=who,
            predicate="note",
            object=self._trim(turn.content, words.start, words.end),
            dimension="note",
            polarity=Polarity.POSITIVE,
            scope=self._scope(None, words.act, markers, turn),
            speech_act=words.act,
            markers=markers,
            emotional=words.emotional,
            stability=weight.stability,
            importance=weight.importance,
            topic=weight.topic,
            entities=self._entities(turn.content, mirror, words, words.moment),
            valid_from=words.moment.at if words.moment else None,
        )

    def _weight(self, dimension: str) -> Weight:
        return self._rules.weights.get(dimension) or self._rules.weights["note"]

    @staticmethod
    def _moment(words: Words, category: Category, reading: Reading) -> Moment | None:
        moment = words.moment
        past = category is Category.EVENT and reading.dimension in _PAST
        return moment.before() if moment is not None and past else moment

    @staticmethod
    def _markers(
        words: Words,
        of_row: frozenset[Marker],
        category: Category,
        moment: Moment | None,
        reading: Reading,
        entry: Dimension | None,
    ) -> frozenset[Marker]:
        markers = words.markers | of_row
        if reading.thing.corrects and entry is not None and entry.single:
            markers |= {Marker.CORRECTION}
        if category is Category.EVENT and moment is not None:
            markers -= {Marker.TEMPORARY}  # the words name a date, not a passing wish
        return markers

    @staticmethod
    def _scope(of_row: Scope | None, act: SpeechAct, markers: frozenset[Marker], turn: Turn) -> Scope:
        if act not in _PLAIN:
            return Scope.SESSION
        if markers & _NARROW and Marker.LASTING_CHANGE not in markers:
            return Scope.SCENE if turn.scene else Scope.SESSION
        return of_row or Scope.USER

    @staticmethod
    def _intent(of_row: Intent, act: SpeechAct, markers: frozenset[Marker], category: Category) -> Intent:
        if of_row is Intent.ADDRESS_UPDATE:
            return of_row
        if Marker.CORRECTION in markers:
            return Intent.CORRECTION
        if act is SpeechAct.DIRECTIVE:
            return Intent.TASK_INSTRUCTION
        return Intent.PREFERENCE_REVEAL if category is Category.PREFERENCE else of_row

    def _content(
        self,
        text: str,
        mirror: str,
        reading: Reading,
        words: Words,
        moment: Moment | None,
        category: Category,
    ) -> str:
        start, end = words.says, words.end
        if words.content:
            content = words.content
        elif reading.listed:
            content = self._one_of_many(text, reading, words)
        else:
            content = self._trim(text, start, end, keep=reading.thing.end)
        if words.lead_subject:
            joint = "" if _CJK.search(content) else " "
            content = f"{words.lead_subject}{joint}{content}"
        content = content[:MAX_CONTENT_CHARS]
        return _dated(content, moment) if moment and category is Category.EVENT else content

    def _one_of_many(self, text: str, reading: Reading, words: Words) -> str:
        """The clause with the whole list replaced by this one item, so that each atom stands alone."""
        item = text[reading.thing.start : reading.thing.end]
        around = text[words.says : reading.whole.start] + item + text[reading.whole.end : reading.end]
        return self._rules.grammar.strip_content.sub("", around).strip()

    def _trim(self, text: str, start: int, end: int, keep: int = 0) -> str:
        content = self._rules.grammar.strip_content.sub("", text[start:end]).strip()
        if len(content) <= MAX_CONTENT_CHARS:
            return content
        begin = max(start, keep - MAX_CONTENT_CHARS)
        return text[begin : begin + MAX_CONTENT_CHARS].strip()

    def _entities(self, text: str, mirror: str, words: Words, moment: Moment | None) -> tuple[str, ...]:
        a, b = words.start, words.end
        found: Iterable[str] = (
            *(text[hit.start() : hit.end()] for hit in self._rules.lexicon.places.finditer(mirror, a, b)),
            *(hit.group() for hit in _NAMES.finditer(text[a:b])),
            *(hit.group() for hit in _FIGURES.finditer(text[a:b])),
            *((moment.label,) if moment else ()),
        )
        return tuple(dict.fromkeys(found))[:_MAX_ENTITIES]


def _dated(content: str, moment: Moment) -> str:
    label = f"（{moment.label}）" if _CJK.search(content) else f" ({moment.label})"
    return content[: MAX_CONTENT_CHARS - len(label)] + label
