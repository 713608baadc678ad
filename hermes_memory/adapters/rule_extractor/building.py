"""Readings to candidates: content, category, weight, scope, dates, entities."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Rules, Weight
from hermes_memory.adapters.rule_extractor.lasting import NOTE
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.when import Moment
from hermes_memory.core.candidate import Candidate, Marker, Span, SpeechAct
from hermes_memory.core.dimensions import Dimension, Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, Intent, Polarity, Scope, Turn

_FIGURES = re.compile(r"\d[\d.,:%/-]*\d|\d")
_NAMES = re.compile(r"(?<![.!?]\s)(?<!^)\b(?!I\b)[A-Z][\w’'-]+(?:\s[A-Z][\w’'-]+)*")
_CJK = re.compile(r"[一-鿿]")
_MAX_ENTITIES = 8
_LASTING = frozenset({Category.FACT})
_NEXT = frozenset("下这這本")
_FROM = frozenset({"从", "從", "自"})
_PLAN = "plan"
_WAS = "event"  # the dimension of what was and need not be any more
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
    past: bool = False  # it was so, and need not be so now
    emotional: bool = False
    says: int = 0  # where the content begins; before it only the subject's mention is taken
    lead_subject: str = ""  # put before the content when the clause itself names nobody
    lasting: str | None = None  # of what no pattern reads: the dimension, if it tells of what lasts
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
        past = words.past and category is not Category.EVENT
        ahead = not past and category in _LASTING and self._ahead(turn, words, reading)
        if past or ahead:  # an episode: it never contradicts what holds now, and fills no slot
            category, layer = Category.EVENT, None
        dimension = (
            _PLAN if ahead else _WAS if past or self._over(turn, words, reading) else reading.dimension
        )
        weight = self._weight(dimension)
        moment = self._moment(words, category, reading)
        markers = self._markers(words, row.markers, category, moment, reading, entry)
        span = Span(turn.message_id, words.start, words.end, turn.session_id)
        return Candidate(
            span=span,
            content=words.content or self._content(turn.content, mirror, reading, words, moment, category),
            category=category,
            layer=layer,
            subject=reading.subject.who,
            predicate=reading.dimension if moved or past or ahead else row.predicate,
            object=turn.content[reading.thing.start : reading.thing.end],
            dimension=dimension,
            polarity=reading.polarity,
            negative=reading.negative and not past,
            scope=self._scope(Scope.SESSION if reading.subject.unknown else row.scope, act, markers, turn),
            speech_act=act,
            markers=markers,
            intent=self._intent(row.intent, act, markers, category),
            emotional=words.emotional,
            stability=weight.stability if past or ahead or row.stability is None else row.stability,
            importance=weight.importance if past or ahead or row.importance is None else row.importance,
            topic=weight.topic,
            entities=self._entities(turn.content, mirror, words, moment),
            valid_from=moment.at
            if moment and (category is Category.EVENT or Marker.LASTING_CHANGE in markers)
            else None,
            valid_to=turn.created_at if past else None,
        )

    def note(self, turn: Turn, mirror: str, who: str, words: Words) -> Candidate:
        """An unread sentence about ``who``, kept in their own words: an EVENT of dimension ``note``, or a lasting FACT."""
        dimension = words.lasting or NOTE
        entry, weight = self._dimensions.get(dimension), self._weight(dimension)
        content = self._trim(turn.content, words.start, words.end)
        has_date = words.moment is not None and not self._only_today(content, words.moment, turn)
        markers = words.markers - ({Marker.TEMPORARY} if has_date else set())
        if words.moment:
            content = with_date(content, words.moment)
        entities = self._entities(turn.content, mirror, words, words.moment)
        # a Chinese sentence that was not understood and names neither date nor figure reaches no further
        tells = bool(words.lasting or words.moment or _FIGURES.search(content) or not _CJK.search(content))
        return Candidate(
            span=Span(turn.message_id, words.start, words.end, turn.session_id),
            content=content,
            category=entry.category if entry else Category.EVENT,
            layer=entry.layer if entry else None,
            subject=who,
            predicate=dimension,
            object=self._trim(turn.content, words.start, words.end),
            dimension=dimension,
            polarity=Polarity.POSITIVE,
            scope=self._scope(None if tells else Scope.SESSION, words.act, markers, turn),
            speech_act=words.act,
            markers=markers,
            emotional=words.emotional,
            stability=weight.stability,
            importance=weight.importance,
            topic=weight.topic,
            entities=entities,
            valid_from=words.moment.at if words.moment else None,
        )

    def _only_today(self, content: str, moment: Moment, turn: Turn) -> bool:
        """Whether Chinese words tell how things stand today ("我今天没带伞"): nothing happens, so no episode is dated."""
        if moment.side(turn.created_at) != 0 or not _CJK.search(content):
            return False
        return self._rules.lasting.episode.search(content) is None

    def _weight(self, dimension: str) -> Weight:
        return self._rules.weights.get(dimension) or self._rules.weights[NOTE]

    @staticmethod
    def _over(turn: Turn, words: Words, reading: Reading) -> bool:
        """Whether what reads as a plan lies before the day of the turn."""
        moment = words.moment
        if reading.dimension != _PLAN or moment is None:
            return False
        return moment.side(turn.created_at) < 0

    @staticmethod
    def _ahead(turn: Turn, words: Words, reading: Reading) -> bool:
        """Whether a fact is told of a later day ("我下个月搬到杭州"): it does not hold yet."""
        moment = words.moment
        if moment is None or reading.pattern.language != "zh" or moment.start >= reading.thing.start:
            return False  # a date within the object is the value itself: a birthday
        if moment.weekly and turn.content[moment.start] not in _NEXT:
            return False  # 周末, 周三: more often a habit than a date
        if Marker.HABITUAL in words.markers or turn.content[max(0, moment.start - 1) : moment.start] in _FROM:
            return False  # "从下个月起": a change that is declared now
        return moment.side(turn.created_at) > 0

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
        return with_date(content, moment) if moment and category is Category.EVENT else content

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


def with_date(content: str, moment: Moment) -> str:
    """``content`` with the date that its words name."""
    label = f"（{moment.label}）" if _CJK.search(content) else f" ({moment.label})"
    return content[: MAX_CONTENT_CHARS - len(label)] + label
