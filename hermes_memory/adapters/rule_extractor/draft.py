"""What is being gathered while a turn is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hermes_memory.adapters.rule_extractor.building import Words
from hermes_memory.adapters.rule_extractor.clauses import Sentence
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.mending import Standing
from hermes_memory.adapters.rule_extractor.opening import Opening, Subject
from hermes_memory.adapters.rule_extractor.speech import Tone
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Polarity, Turn
from hermes_memory.core.reasons import Reason

Item = tuple[Reading, Words]

_HAVING = frozenset({"children", "family_member", "pet", "social_circle"})
_GROWING = frozenset({"work_schedule", "occupation", "employer"})  # one value that is told in several clauses
_DESCRIBING = frozenset(
    {
        "name",
        "age",
        "gender",
        "birthday",
        "zodiac",
        "body",
        "pet_name",
        "personality",
        "hometown",
        "education",
    }
)


@dataclass(slots=True)
class Draft:
    """What is being gathered from one turn."""

    turn: Turn
    mirror: str
    tone: Tone
    items: list[tuple[Reading, Words]] = field(default_factory=list)
    notes: list[tuple[str, Words]] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    spoken_of: Subject | None = None  # the last person other than the user
    standing: list[Standing] = field(default_factory=list)  # what a correction may be about
    question: str = ""  # what the assistant asked just before
    weighed: list[str] = field(default_factory=list)  # English words whose worth was asked
    topic: Subject | None = None  # the person the sentence before was about, if not the user

    def refuse(self, reason: Reason) -> None:
        """Note why a part holds nothing, once."""
        if reason not in self.reasons:
            self.reasons.append(reason)


@dataclass(slots=True)
class Stretch:
    """Clauses in a row that state something no pattern reads, and whom they are about."""

    start: int
    end: int
    who: str


@dataclass(slots=True)
class Thread:
    """What runs from clause to clause inside one sentence."""

    sentence: Sentence
    markers: frozenset[Marker]  # of the whole sentence
    before: frozenset[Marker] = frozenset()
    subject: Subject | None = None
    first: Subject | None = None  # whom the sentence began with
    prefix: int | None = None  # start of a clause that held only a date or adverbs
    last: int | None = None  # index of the last item, for tails
    addressed: bool = False  # the clause before was about the one who is spoken to
    said: bool = False
    asked: bool = False
    unread: list[Stretch] = field(default_factory=list)
    open: bool = False  # whether the last unread stretch may still grow

    def describes_last(self, draft: Draft, reading: Reading) -> bool:
        """Whether the words are about what was just named: "I have a daughter, five years old"."""
        if self.last is None or reading.pattern.own:
            return False
        if reading.dimension in _GROWING and draft.items[self.last][0].dimension == reading.dimension:
            return True
        return draft.items[self.last][0].dimension in _HAVING and reading.dimension in _DESCRIBING

    def judges(self, draft: Draft) -> bool:
        """Whether the last statement of the sentence is a judgement, which goes on clause by clause."""
        return self.last is not None and draft.items[self.last][0].pattern.act is SpeechAct.OPINION

    def lengthen(self, draft: Draft, end: int) -> None:
        """Let the last statement of the sentence reach to ``end``."""
        if self.last is not None and not draft.items[self.last][0].listed:
            reading, words = draft.items[self.last]
            draft.items[self.last] = (reading, replace(words, end=end))

    @property
    def who(self) -> str:
        """Whom the sentence is about so far."""
        return self.subject.who if self.subject else USER

    def leave(self, start: int, end: int) -> None:
        """Keep an unread clause in mind, together with the unread one before it."""
        if self.open:
            self.unread[-1].end = end
        else:
            self.unread.append(Stretch(start, end, self.who))
        self.open = True

    def meet(self, draft: Draft, opening: Opening) -> None:
        """Remember whom the clause is about."""
        if opening.subject is None:
            return
        self.subject = opening.subject
        self.first = self.first or opening.subject
        if not opening.subject.is_user:
            draft.spoken_of = opening.subject


def settled(draft: Draft, dimensions: Dimensions) -> list[Item]:
    """The items without repetitions, and without denials that a statement beside them makes idle."""
    return _without_denials(_sacred(_unique(draft)), dimensions)


def _sacred(items: list[Item]) -> list[Item]:
    """Beside "I'm Muslim" the pork that is not eaten is a religious rule, not a taste."""
    believers = {reading.subject.who for reading, _ in items if reading.dimension == "religion"}
    return [
        (replace(reading, dimension="religious_taboo"), words)
        if reading.dimension == "food_taboo" and reading.subject.who in believers
        else (reading, words)
        for reading, words in items
    ]


def _key(draft: Draft, reading: Reading) -> tuple[str, str, str, Polarity]:
    thing = draft.mirror[reading.thing.start : reading.thing.end].lower()
    return reading.subject.who.lower(), reading.dimension, thing, reading.polarity


def _unique(draft: Draft) -> list[Item]:
    kept: dict[tuple[str, str, str, Polarity], Item] = {}
    for item in draft.items:
        kept.setdefault(_key(draft, item[0]), item)
    return list(kept.values())


def _without_denials(items: list[Item], dimensions: Dimensions) -> list[Item]:
    """Beside "call me Lin" the "don't call me Xiao Lin" says nothing more about a single-valued dimension."""
    stated = {
        (reading.subject.who, reading.dimension)
        for reading, _ in items
        if reading.polarity is Polarity.POSITIVE
    }
    return [
        item
        for item in items
        if item[0].polarity is Polarity.POSITIVE
        or (item[0].subject.who, item[0].dimension) not in stated
        or not dimensions.single(item[0].dimension)
    ]
