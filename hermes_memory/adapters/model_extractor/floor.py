"""The rule floor: the model proposes, what the rules hear in the text decides (SPEC §4.1.4–7).

A statement becomes a candidate with the span, the act, the markers, the subject and the times that the rules read at its
words. Where the rules read the same object themselves, their dimension and polarity stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes_memory.adapters.model_extractor.contract import Statement
from hermes_memory.adapters.model_extractor.floor_file import FloorRules
from hermes_memory.adapters.model_extractor.locating import occurrences
from hermes_memory.adapters.model_extractor.subjects import whose
from hermes_memory.adapters.rule_extractor import Heard, HeardClause, RuleExtractor
from hermes_memory.adapters.rule_extractor.building import with_date
from hermes_memory.adapters.rule_extractor.lasting import CIRCUMSTANCE, NOTE
from hermes_memory.adapters.rule_extractor.speech import REASON_OF
from hermes_memory.adapters.rule_extractor.when import Moment
from hermes_memory.core.bounded import outside_blocks
from hermes_memory.core.candidate import Candidate, Extraction, ExtractionRequest, Marker, Span, SpeechAct
from hermes_memory.core.dimensions import Dimension, Dimensions
from hermes_memory.core.model import (
    MAX_CONTENT_CHARS,
    USER,
    Category,
    Intent,
    Polarity,
    Role,
    Scope,
    Source,
    Turn,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.scope import wider
from hermes_memory.core.text import normal

PLAN, EVENT, OPINION = "plan", "event", "opinion"
# What fits no dimension of its own: whether it is worth keeping is the rules' to say.
LOOSE = frozenset({NOTE, CIRCUMSTANCE, EVENT, "event_detail", OPINION, "condition", "mood", "need", PLAN})
_STANDING = frozenset({Marker.HABITUAL, Marker.LASTING_CHANGE})
_NARROW = frozenset({Marker.TEMPORARY, Marker.CONDITIONAL})
_FROM = ("从", "自", "from ", "since ", "starting ")


@dataclass(frozen=True, slots=True)
class Hearing:
    """What the rules hear and read in the user turns of a request, by session and message."""

    heard: dict[tuple[str, str], Heard]
    read: Extraction
    question: dict[tuple[str, str], str] = field(default_factory=dict)  # of the assistant, just before

    def of(self, turn: Turn) -> Heard:
        """One turn."""
        return self.heard[turn.session_id, turn.message_id]

    def readings(self, turn: Turn, start: int, end: int) -> list[Candidate]:
        """What the rules read there."""
        return [
            item
            for item in self.read.candidates
            if (item.span.session_id, item.span.message_id) == (turn.session_id, turn.message_id)
            and item.span.start < end
            and start < item.span.end
        ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands: its clauses, and its object within them."""

    heard: Heard
    clauses: tuple[HeardClause, ...]
    clause: HeardClause  # the one that holds the object
    start: int
    end: int
    object_start: int
    object_end: int

    @property
    def turn(self) -> Turn:
        """The turn."""
        return self.heard.turn

    @property
    def thing(self) -> str:
        """The object as the user wrote it."""
        return self.turn.content[self.object_start : self.object_end]


class Floor:
    """Holds statements against the text."""

    def __init__(self, extractor: RuleExtractor, dimensions: Dimensions, rules: FloorRules) -> None:
        self._extractor, self._dimensions, self.rules = extractor, dimensions, rules

    def hear(self, request: ExtractionRequest) -> Hearing:
        """The request's user turns, heard and read by rule."""
        heard: dict[tuple[str, str], Heard] = {}
        questions: dict[tuple[str, str], str] = {}
        before = request.context[-1] if request.context else None
        for turn in request.turns:
            if turn.role is Role.USER:
                key = turn.session_id, turn.message_id
                heard[key] = Heard(turn, self._extractor.rules)
                asked = (
                    before is not None
                    and before.role is Role.ASSISTANT
                    and before.session_id == turn.session_id
                )
                questions[key] = before.content if asked and before is not None else ""
            before = turn
        return Hearing(heard, self._extractor.read(request), questions)

    def candidate(self, said: Statement, turn: Turn, hearing: Hearing) -> Candidate | Reason:
        """The candidate that a statement about a user turn becomes, or why it does not."""
        place = placed(said.quote, said.object, hearing.of(turn))
        if place is None:
            return Reason.UNGROUNDED
        readings = hearing.readings(turn, place.clause.start, place.clause.end)
        key = self._dimension(said, place, readings)
        act = self._act(said, place, key)
        if act in REASON_OF:
            return REASON_OF[act]
        if refused := self._holds_nothing(
            said, place, key, act, readings, hearing.question.get(_key(turn), "")
        ):
            return refused
        rule = self._same_thing(key, place, readings)
        subject = self._subject(said, place, key, rule)
        if subject is None or (rule is not None and self._contradicts(said, key, subject, rule)):
            return Reason.UNGROUNDED
        return self._built(said, place, key, act, subject, rule)

    def _dimension(self, said: Statement, place: Place, readings: Sequence[Candidate]) -> str:
        """The dimension that is named, if it is known; the general one for who somebody is where no word tells of it.

        A value that only one can hold would take the place of another: "Hangzhou's food is fine" is no address.
        """
        key, cue = said.dimension, self.rules.cues.get(said.dimension)
        if key not in self._dimensions:
            return NOTE
        read = any(item.dimension == key for item in readings)
        return key if cue is None or read or cue.search(place.heard.mirror, place.start, place.end) else NOTE

    def _act(self, said: Statement, place: Place, key: str) -> SpeechAct:
        """What the user does there: the rules' word, else the model's; a safety statement made in anger still is one."""
        heard = place.heard.act_at(place.object_start)
        act = heard if heard is not SpeechAct.STATEMENT else said.act
        safe = self._dimensions.safety(key) is not None
        return SpeechAct.STATEMENT if act is SpeechAct.VENTING and safe else act

    def _subject(self, said: Statement, place: Place, key: str, rule: Candidate | None) -> str | None:
        """Whom it is about; what the rules read of the very same is about whom they say ("My dog is called …": the user)."""
        people = self.rules.people
        if rule is not None and rule.dimension == key and people.same_person(said.subject, rule.subject):
            return rule.subject
        subject = whose(said.subject, place.clause, place.heard, place.object_start, people)
        return None if place.clause.addressed and subject == USER else subject

    def _holds_nothing(
        self,
        said: Statement,
        place: Place,
        key: str,
        act: SpeechAct,
        readings: Sequence[Candidate],
        question: str,
    ) -> Reason | None:
        """Why the words hold nothing worth recalling, if so (SPEC §4.1.4)."""
        heard, clause = place.heard, place.clause
        if heard.is_filler(place.start, place.end):
            return Reason.FILLER
        if clause.asks:
            return Reason.QUESTION
        if readings:
            return None
        standing = bool(clause.markers & _STANDING) or self.rules.standing.search(
            heard.mirror, clause.start, clause.end
        )
        if (clause.orders or act is SpeechAct.DIRECTIVE) and not standing:
            return Reason.COMMAND
        if act is SpeechAct.DIRECTIVE or question:
            return None
        if self.rules.nobody.search(heard.mirror, clause.start, clause.end) and not _is_own(place):
            return Reason.LOW_VALUE
        if key in LOOSE:
            dated = heard.moment(place.start, place.end, clause.markers) is not None and _is_own(place)
            return None if dated or heard.tells(place.start, place.end, question) else Reason.LOW_VALUE
        somebody = _is_own(place) or _is_chinese(place)
        return None if somebody else Reason.LOW_VALUE

    def _same_thing(self, key: str, place: Place, readings: Sequence[Candidate]) -> Candidate | None:
        """What the rules read of the same object: in the same dimension first, never a mere note."""
        typed = [item for item in readings if item.dimension not in LOOSE or item.dimension == key]
        mine = normal(place.thing)
        same = [item for item in typed if _near(mine, normal(item.object), loosely=item.dimension == key)]
        return next((item for item in same if item.dimension == key), same[0] if same else None)

    def _contradicts(self, said: Statement, key: str, subject: str, rule: Candidate) -> bool:
        """Whether the model says another person, the opposite, or what is graver than what the rules read there."""
        if not self.rules.people.same_person(rule.subject, subject):
            return True
        if self._guarded(key) and not self._guarded(rule.dimension):
            return True
        avoids = self._dimensions.avoids(key) or self._dimensions.avoids(rule.dimension)
        return rule.polarity is not said.polarity and not avoids

    def _guarded(self, key: str) -> bool:
        """Whether statements of it are frozen at once, kept apart, or never settled without asking."""
        known = self._dimensions
        return bool(known.safety(key) or known.sensitive(key) or known.freeze_class(key))

    def _built(
        self, said: Statement, place: Place, key: str, act: SpeechAct, subject: str, rule: Candidate | None
    ) -> Candidate | Reason:
        if said.when and not occurrences(
            place.turn.content, said.when, [(place.start, place.end)], case=False
        ):
            return Reason.UNGROUNDED
        of = rule.dimension if rule is not None and rule.category is not Category.EVENT else key
        entry = self._dimensions.get(of)
        markers = place.clause.markers | (rule.markers if rule else frozenset())
        moment = self._moment(said, place, markers)
        past = place.heard.past(place.start, place.end, markers)
        ahead = (
            not past
            and entry is not None
            and entry.category is Category.FACT
            and _ahead(place, moment, markers)
        )
        episode = past or ahead or act is SpeechAct.OPINION or _is_event(said, entry, rule)
        dimension = _of_episode(of, entry, act, ahead=ahead) if episode else of
        if episode and moment is not None:
            markers -= {Marker.TEMPORARY}  # the words name a date, not a passing wish
        weight = self._extractor.rules.weights.get(dimension) or self._extractor.rules.weights[NOTE]
        valid_from = moment.at if moment and (episode or Marker.LASTING_CHANGE in markers) else None
        valid_to = place.turn.created_at if past else None
        if valid_from and valid_to and valid_from > valid_to:
            valid_from = None
        return Candidate(
            span=Span(place.turn.message_id, place.start, place.end, place.turn.session_id),
            content=self._content(said, place, moment if episode else None),
            category=Category.EVENT if episode else entry.category if entry else Category.FACT,
            layer=None if episode or entry is None else entry.layer,
            subject=subject,
            predicate=_predicate(said, place, of),
            object=place.thing,
            dimension=dimension,
            polarity=rule.polarity if rule else said.polarity,
            negative=_is_negative(said, rule) and not past,
            granularity=said.granularity,
            scope=_scope(said, markers, place),
            speech_act=act,
            markers=markers,
            source=Source(said.source),
            intent=_intent(said, act, markers, rule),
            emotional=said.emotional or place.heard.act_at(place.object_start) is SpeechAct.VENTING,
            stability=weight.stability if said.stability is None else min(said.stability, weight.stability),
            importance=weight.importance
            if said.importance is None
            else min(said.importance, weight.importance),
            topic=weight.topic,
            entities=_entities(said, place, moment),
            valid_from=valid_from,
            valid_to=valid_to,
        )

    def _moment(self, said: Statement, place: Place, markers: frozenset[Marker]) -> Moment | None:
        """The date in the words the model points to, else in the clause; one within the object is the value itself."""
        spans = [(place.clause.start, place.clause.end), (place.start, place.end)]
        if said.when:
            spans = occurrences(place.turn.content, said.when, [(place.start, place.end)], case=False)
        found = (place.heard.moment(start, end, markers) for start, end in spans)
        moment = next((one for one in found if one is not None), None)
        if moment is None or (place.object_start < moment.end and moment.start < place.object_end):
            return None
        return moment

    def _content(self, said: Statement, place: Place, moment: Moment | None) -> str:
        """In the model's choice of the user's words, else the clauses themselves."""
        content = said.content.strip()
        if not content:
            text = place.turn.content
            whole = self._trimmed(text[max(place.start, place.clauses[0].said) : place.end])
            content = whole if len(whole) <= MAX_CONTENT_CHARS else self._trimmed(said.quote)
        return with_date(content, moment) if moment is not None else content

    def _trimmed(self, words: str) -> str:
        return self._extractor.rules.grammar.strip_content.sub("", words).strip()


def placed(quote: str, thing: str, heard: Heard) -> Place | None:
    """Where a quote stands, in its whole clauses, with ``thing`` within them: in words that are meant, else the first."""
    spans = occurrences(heard.turn.content, quote, outside_blocks(heard.turn.content))
    found = [place for span in spans if (place := _widened(thing, heard, *span)) is not None]
    meant = (place for place in found if heard.act_at(place.object_start) is SpeechAct.STATEMENT)
    return next(meant, found[0] if found else None)


def _key(turn: Turn) -> tuple[str, str]:
    return turn.session_id, turn.message_id


def _widened(thing: str, heard: Heard, start: int, end: int) -> Place | None:
    """A quote in its whole clauses: what it leaves out ("not", "my sister") is part of what was said."""
    clauses = tuple(clause for clause in heard.clauses if clause.start < end and start < clause.end)
    if not clauses:
        return None
    start, end = min(start, clauses[0].said), max(end, clauses[-1].end)
    things = occurrences(heard.turn.content, thing, [(start, end)], case=False)
    if not things:  # words of the object that stand apart: "allergic … to nuts"; the gate looks at each
        words = thing.split()
        things = (
            occurrences(heard.turn.content, words[-1], [(start, end)], case=False) if len(words) > 1 else []
        )
    held = ((clause, span) for span in things for clause in clauses if span[0] < clause.end)
    first = next(held, None)
    if first is None:
        return None
    return Place(heard, clauses, first[0], start, end, *first[1])


def _is_own(place: Place) -> bool:
    """Whether the sentence names the user or somebody of theirs."""
    sentence = place.clause.sentence
    named = place.heard.names_somebody(sentence.start, sentence.end)
    about = place.clause.subject or place.clause.carried
    return named or (about is not None and not about.unknown)  # "It's raining" names nobody


def _is_chinese(place: Place) -> bool:
    """Chinese leaves out who is meant."""
    return any("一" <= char <= "鿿" for char in place.heard.mirror[place.clause.start : place.clause.end])


def _near(mine: str, theirs: str, *, loosely: bool) -> bool:
    """Whether two objects are one; ``loosely``: also where one is a small part of the other."""
    if not mine or not theirs or not (mine in theirs or theirs in mine):
        return False
    return loosely or 2 * min(len(mine), len(theirs)) >= max(len(mine), len(theirs))


def _ahead(place: Place, moment: Moment | None, markers: frozenset[Marker]) -> bool:
    """Whether it is told of a later day: it does not hold yet ("我下个月搬到杭州")."""
    if moment is None or moment.side(place.turn.created_at) <= 0 or Marker.HABITUAL in markers:
        return False
    return not place.heard.mirror[: moment.start].lower().endswith(_FROM)  # a change that is declared now


def _is_event(said: Statement, entry: Dimension | None, rule: Candidate | None) -> bool:
    if rule is not None and rule.category is Category.EVENT:
        return True
    return said.category is Category.EVENT or entry is None or entry.category is Category.EVENT


def _of_episode(key: str, entry: Dimension | None, act: SpeechAct, *, ahead: bool) -> str:
    """An episode fills no slot: it bears on a dimension of episodes."""
    if act is SpeechAct.OPINION:
        return OPINION
    if ahead:
        return PLAN
    return key if entry is None or entry.category is Category.EVENT else EVENT


def _predicate(said: Statement, place: Place, key: str) -> str:
    words = said.predicate.strip()
    stands = words and occurrences(place.turn.content, words, [(place.start, place.end)], case=False)
    return words if stands else key


def _is_negative(said: Statement, rule: Candidate | None) -> bool:
    return rule.negative if rule else said.negative and said.polarity is Polarity.NEGATIVE


def _scope(said: Statement, markers: frozenset[Marker], place: Place) -> Scope:
    """The narrower of what the model proposes and what the wording allows."""
    unknown = place.clause.subject is not None and place.clause.subject.unknown
    floor = Scope.SESSION if unknown else Scope.USER
    if markers & _NARROW and Marker.LASTING_CHANGE not in markers:
        floor = Scope.SCENE if place.turn.scene else Scope.SESSION
    return floor if wider(said.scope, floor) else said.scope


def _intent(said: Statement, act: SpeechAct, markers: frozenset[Marker], rule: Candidate | None) -> Intent:
    """A correction is one only where words of correction stand."""
    if Marker.CORRECTION in markers:
        return Intent.CORRECTION
    if rule is not None:
        return rule.intent
    if act is SpeechAct.DIRECTIVE:
        return Intent.TASK_INSTRUCTION
    return Intent.STATEMENT if said.intent in (Intent.CORRECTION, Intent.CONFIRMATION) else said.intent


def _entities(said: Statement, place: Place, moment: Moment | None) -> tuple[str, ...]:
    """Those that stand in the words, as they stand there."""
    text, within = place.turn.content, [(place.start, place.end)]
    spans = [span for name in said.entities for span in occurrences(text, name, within, case=False)[:1]]
    found = [text[start:end] for start, end in spans] + ([moment.label] if moment else [])
    return tuple(dict.fromkeys(found))
