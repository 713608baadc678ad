"""The rule floor: the model proposes, what the rules hear in the text decides (SPEC §4.1.4–7).

A statement becomes a candidate with the span, the act, the markers, the subject and the times that the rules read at its
words. Where the rules read the same object themselves, their dimension and polarity stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hermes_memory.adapters.model_extractor.contract import Statement
from hermes_memory.adapters.model_extractor.floor_file import FloorRules
from hermes_memory.adapters.model_extractor.placing import Place, is_chinese, is_own, placed
from hermes_memory.adapters.model_extractor.prompt import MAX_TURN_CHARS
from hermes_memory.adapters.model_extractor.shaping import EVENT, OPINION, PLAN, Shaper
from hermes_memory.adapters.model_extractor.subjects import whose
from hermes_memory.adapters.rule_extractor import Heard, RuleExtractor
from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.adapters.rule_extractor.lasting import CIRCUMSTANCE, NOTE
from hermes_memory.adapters.rule_extractor.speech import REASON_OF
from hermes_memory.core.candidate import Candidate, Extraction, ExtractionRequest, Marker, SpeechAct
from hermes_memory.core.dimensions import Dimensions, SafetyClass
from hermes_memory.core.grounding import Grounding
from hermes_memory.core.model import USER, Polarity, Role, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.text import normal

# What fits no dimension of its own: whether it is worth keeping is the rules' to say.
LOOSE = frozenset({NOTE, CIRCUMSTANCE, EVENT, "event_detail", OPINION, "mood", "need"})
ADDRESS = "form_of_address"
_WEIGHED = frozenset({"goal", PLAN, "need", "mood"})  # may be told of what is not so yet
_STANDING = frozenset({Marker.HABITUAL, Marker.LASTING_CHANGE})


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


class Floor:
    """Holds statements against the text."""

    def __init__(
        self, extractor: RuleExtractor, dimensions: Dimensions, rules: FloorRules, grounding: Grounding
    ) -> None:
        self._extractor, self._dimensions, self.rules = extractor, dimensions, rules
        self.grounding = grounding
        self._shaper = Shaper(extractor.rules, dimensions, rules.done, rules.wished, rules.over)

    def hear(self, request: ExtractionRequest) -> Hearing:
        """What a model is shown of the request's user turns, heard and read by rule."""
        heard: dict[tuple[str, str], Heard] = {}
        questions: dict[tuple[str, str], str] = {}
        before = request.context[-1] if request.context else None
        turns = tuple(replace(turn, content=turn.content[:MAX_TURN_CHARS]) for turn in request.turns)
        for turn in turns:
            if turn.role is Role.USER:
                heard[_key(turn)] = Heard(turn, self._extractor.rules)
                questions[_key(turn)] = _question(turn, before)
            before = turn
        return Hearing(heard, self._extractor.read(replace(request, turns=turns)), questions)

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
        if key not in _WEIGHED and self._is_unreal(place):
            return Reason.HYPOTHETICAL
        if refused := self._holds_nothing(
            said, place, key, act, readings, hearing.question.get(_key(turn), "")
        ):
            return refused
        rule = self._same_thing(key, place, readings)
        subject = self._subject(said, place, key, rule)
        if rule is None and key not in _WEIGHED and _is_conditional(place):
            return Reason.HYPOTHETICAL
        question = hearing.question.get(_key(turn), "")
        declared = rule is None and said.source == "explicit"  # the gate refuses the other
        if (
            subject is None
            or self._is_other(said, place, key, question)
            or (rule is not None and self._contradicts(said, key, subject, rule))
            or (declared and not self._is_literal(key, place, question))
        ):
            return Reason.UNGROUNDED
        return self._shaper.candidate(said, place, key, act, subject, rule)

    def _dimension(self, said: Statement, place: Place, readings: Sequence[Candidate]) -> str:
        """The dimension that is named, if it is known; the general one for who somebody is where no word tells of it.

        A value that only one can hold would take the place of another: "Hangzhou's food is fine" is no address.
        """
        key, cue = said.dimension, self.rules.cues.get(said.dimension)
        named_by = self.rules.named_by.search(place.heard.mirror, place.clause.start, place.clause.end)
        if key not in self._dimensions or (key == ADDRESS and named_by is not None):
            return NOTE
        if cue is None or any(item.dimension == key for item in readings):
            return key
        told = cue.search(place.heard.mirror, *self._stretch(cue, place)) or self._is_beside(key, place)
        return key if told else NOTE

    def _stretch(self, cue: Regex, place: Place) -> tuple[int, int]:
        """The part of the words, between its "and"s, that holds the object: "born in Porto and work in Lisbon".

        A verb right before an "and" shares its object with the next one: "live and work in Lisbon".
        """
        text, start, end = place.heard.mirror, place.start, place.end
        for hit in self.rules.joint.finditer(text, place.start, place.end):
            if hit.end() <= place.object_start:
                shared = any(one.end() == hit.start() for one in cue.finditer(text, start, hit.start()))
                start = start if shared else hit.end()
            elif hit.start() >= place.object_end:
                end = min(end, hit.start())
        return start, end

    def _is_beside(self, key: str, place: Place) -> bool:
        """Whether words of the dimension end where the object begins: "I'm Tom", not "I'm fond of Tom"."""
        beside, text = self.rules.beside.get(key), place.heard.mirror[: place.clause.end]
        if beside is None:
            return False
        upto = place.heard.mirror[: place.object_start]
        ending = beside.search(upto, place.clause.start)
        if ending is not None and ending.end() == place.object_start:
            return True
        return any(hit.end() == place.object_start for hit in beside.finditer(text, place.clause.start))

    def _act(self, said: Statement, place: Place, key: str) -> SpeechAct:
        """What the user does there: the rules' word, else the model's; a safety statement made in anger still is one."""
        heard = place.heard.act_at(place.object_start)
        if place.quoted:
            return SpeechAct.QUOTATION
        act = heard if heard is not SpeechAct.STATEMENT else said.act
        safe = self._dimensions.safety(key) is not None
        return SpeechAct.STATEMENT if act is SpeechAct.VENTING and safe else act

    def _subject(self, said: Statement, place: Place, key: str, rule: Candidate | None) -> str | None:
        """Whom it is about; what the rules read of the very same is about whom they say ("My dog is called …": the user)."""
        people = self.rules.people
        if rule is not None and rule.dimension == key and people.same_person(said.subject, rule.subject):
            return rule.subject
        subject = whose(said.subject, place.clause, place.heard, place.object_start, people)
        another = (
            place.clause.addressed
            or (key in self.rules.cues and self._is_theirs(place))
            or (key not in LOOSE and self._is_anybodys(place))
        )
        return None if another and subject == USER else subject

    def _is_theirs(self, place: Place) -> bool:
        """Whether the clause is about what is the user's: "our company has an office in Oslo", "my doctor is from Chile"."""
        return self.rules.theirs.match(place.heard.mirror, place.clause.said, place.clause.end) is not None

    def _is_anybodys(self, place: Place) -> bool:
        """Whether the clause is about somebody, people or a thing: "Someone in my class is allergic"."""
        found = self.rules.anybody.match(place.heard.mirror, place.clause.said, place.clause.end)
        if found is None or place.clause.subject is not None:
            return False
        return not place.heard.user_between(found.end(), place.object_start)

    def _is_of_a_thing(self, place: Place) -> bool:
        """Whether a thing or an animal is spoken of before the object, and the user not since."""
        hits = [*self.rules.things.finditer(place.heard.mirror, place.clause.start, place.object_start)]
        return bool(hits) and not place.heard.user_between(hits[-1].end(), place.object_start)

    def _is_cut(self, place: Place) -> bool:
        """Whether the object is part of a longer name: 猫 of 熊猫, 上海 of 上海路, "vegan" of "a vegan roommate"."""
        rules, text, end = self.rules, place.heard.mirror, place.clause.end
        if rules.behind.match(text, place.object_end, end) or rules.persons.match(
            text, place.object_end, end
        ):
            return True
        return any(
            hit.start() <= place.object_start
            and place.object_end <= hit.end()
            and hit.span() != (place.object_start, place.object_end)
            for hit in rules.longer.finditer(text, place.clause.start, end)
        )

    def _is_other(self, said: Statement, place: Place, key: str, question: str) -> bool:
        """Whether the object is a piece of a name, a figure of speech, or is not what the words tell of."""
        if self._dimensions.safety(key) == SafetyClass.ALLERGY and self.rules.figure.search(place.thing):
            return True
        return (key not in LOOSE and self._is_cut(place)) or self._is_turned(said, place, question)

    def _is_turned(self, said: Statement, place: Place, question: str) -> bool:
        """Whether the words around the object say something else of it than that it is so, or is not."""
        rules, mirror = self.rules, place.heard.mirror[: place.object_start]
        start, positive = place.clause.start, said.polarity is Polarity.POSITIVE
        counted = bool(self.grounding.read(place.thing).figures)  # "more than 3000"
        if (not counted and rules.lesser.search(mirror, start)) or (
            positive and rules.excepted.search(mirror, start)
        ):
            return True
        if not positive and rules.doubled.search(mirror, start):
            return True
        bare = bool(question) and not place.heard.user_between(place.clause.said, place.clause.end)
        return bare and rules.told.match(place.heard.mirror, place.object_end, place.clause.end) is not None

    def _is_unreal(self, place: Place) -> bool:
        """Whether the sentence weighs, wishes or plays what it says of the object."""
        start = place.clause.sentence.start
        return self.rules.unreal.search(place.heard.mirror, start, place.object_start) is not None

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
        if any(item.dimension not in LOOSE or key in LOOSE for item in readings):
            return None
        standing = bool(clause.markers & _STANDING) or self.rules.standing.search(
            heard.mirror, clause.start, clause.end
        )
        if (clause.orders or act is SpeechAct.DIRECTIVE) and not standing:
            return Reason.COMMAND
        if act is SpeechAct.DIRECTIVE or question:
            return None
        if self.rules.nobody.search(heard.mirror, clause.start, clause.end) and not is_own(place):
            return Reason.LOW_VALUE
        if key in LOOSE:
            dated = heard.moment(place.start, place.end, clause.markers) is not None and is_own(place)
            return None if dated or heard.tells(place.start, place.end, question) else Reason.LOW_VALUE
        somebody = is_own(place) or is_chinese(place)
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

    def _is_literal(self, key: str, place: Place, question: str) -> bool:
        """Whether a word of its class stands in the words, or in the question, where it protects or freezes.

        "I treat patients with diabetes" and "a song called Allergic" have the word and not the meaning.
        """
        clause, read = place.clause, self.grounding.read
        if self._guarded(key) and (
            self.rules.elsewhere.search(place.heard.mirror, clause.start, clause.end)
            or self._is_of_a_thing(place)
        ):
            return False
        named = [name for name in (self._dimensions.safety(key), self._dimensions.freeze_class(key)) if name]
        said = read(place.turn.content[place.start : place.end]), read(question)
        return not named or any(self.grounding.cue(name, *said) for name in named)

    def _guarded(self, key: str) -> bool:
        """Whether statements of it are frozen at once, kept apart, or never settled without asking."""
        known = self._dimensions
        return bool(known.safety(key) or known.sensitive(key) or known.freeze_class(key))


def _question(turn: Turn, before: Turn | None) -> str:
    """What the assistant said just before, in the same conversation."""
    if before is None or before.role is not Role.ASSISTANT or before.session_id != turn.session_id:
        return ""
    return before.content[:MAX_TURN_CHARS]


def _key(turn: Turn) -> tuple[str, str]:
    return turn.session_id, turn.message_id


def _is_conditional(place: Place) -> bool:
    """Whether it would be so on a condition, and the condition is not on something that happens again and again."""
    sentence = place.clause.sentence
    met = Marker.CONDITIONAL in place.clause.markers
    return met and not place.heard.habit(sentence.start, sentence.end)


def _near(mine: str, theirs: str, *, loosely: bool) -> bool:
    """Whether two objects are one; ``loosely``: also where one is a small part of the other."""
    if not mine or not theirs or not (mine in theirs or theirs in mine):
        return False
    return loosely or 2 * min(len(mine), len(theirs)) >= max(len(mine), len(theirs))
