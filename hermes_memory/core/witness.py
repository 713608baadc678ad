"""Whether the user's words bear a candidate out: what it says, of whom, when, and whether it is so (SPEC §4.1.2).

What is asked of the quote is that nothing in the candidate is another's: no word, number or name, no turned negation.
The assistant's question just before may supply the predicate of a short answer, and a correction may leave unsaid what
an earlier turn, or the memory that it corrects, has said (SPEC §3.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hermes_memory.core.candidate import SAID, Candidate, Marker
from hermes_memory.core.dimensions import Dimensions, SafetyClass
from hermes_memory.core.grounding import Grounding, Reading
from hermes_memory.core.model import USER, Category, Memory, Polarity, Role, Turn
from hermes_memory.core.text import normal, same_name

Known = Callable[[str], Iterable[Memory]]  # dimension → the user's memories of it

# Their words are few and known; there are more illnesses than any list holds.
_NAMED = frozenset({SafetyClass.ALLERGY, SafetyClass.MEDICATION, SafetyClass.RELIGIOUS_TABOO})
_LABEL = re.compile(r"\s*[(（](\d{4}(?:-\d\d){0,2}(?: \d\d:\d\d)?)[)）]$")  # a day that was resolved by rule
_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}(?: \d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said around a candidate's span: its turn, the turns of the session before it, and what is known."""

    quote: str
    turn: Turn
    before: Sequence[Turn]
    known: Known
    grounding: Grounding
    dimensions: Dimensions

    def question(self) -> str:
        """The assistant's question that the turn is a short answer to; empty if it is none."""
        asked = self.before[-1] if self.before else None
        if asked is None or asked.role is not Role.ASSISTANT:
            return ""
        short = self.grounding.short(self.grounding.read(self.turn.content))
        return self.grounding.question(asked.content) if short else ""

    def earlier(self) -> Iterator[Turn]:
        """The user's turns before it, newest first."""
        return (turn for turn in reversed(self.before) if turn.role is Role.USER)


def borne_out(candidate: Candidate, heard: Heard) -> bool:
    """Whether every word, number, name and negation of the candidate is the user's."""
    statement = _statement(candidate, heard)
    return all(
        holds()
        for holds in (
            statement.names_the_object, statement.is_timed, statement.counts, statement.is_signed, statement.is_about, statement.names, statement.is_labelled,
            statement.is_of_its_class, statement.is_said,
        )
    )  # fmt: skip


def says_only_yes(heard: Heard) -> bool:
    """Whether the quote says yes and nothing else."""
    return heard.grounding.lexicon.bare.fullmatch(heard.grounding.read(heard.quote).plain) is not None


def affirms(memory: Memory, heard: Heard) -> bool:
    """Whether the quote shares a word with the memory, or with a question about it, and does not deny it."""
    ground = heard.grounding
    quote, content, question = (ground.read(text) for text in (heard.quote, memory.content, heard.question()))
    shares = ground.shares(memory.content, quote) or ground.shares(memory.object, quote)
    asked = ground.shares(memory.object, question) and ground.shares(heard.question(), quote)
    regions = ground.around(content, quote)
    return (shares or asked) and ground.negated(content) in {ground.negated(quote, *one) for one in regions}


def declares(candidate: Candidate, name: str, heard: Heard) -> bool:
    """Whether a literal word of class ``name`` was said: in the quote, in the question it answers, or in what it corrects.

    Faith may be told of beside what follows from it: "I'm Muslim, I don't eat pork".
    """
    read = heard.grounding.read
    statement = _statement(candidate, heard)
    texts = [statement.quote, read(heard.question()), *statement.corrected()]
    if name == SafetyClass.RELIGIOUS_TABOO:
        texts.append(statement.turn)
    return heard.grounding.cue(name, *texts)


def earned(candidate: Candidate, heard: Heard) -> Candidate:
    """The candidate without the weight of a correction where the turn holds no word of one."""
    corrects = heard.grounding.lexicon.corrects.search(heard.grounding.read(heard.turn.content).plain)
    if corrects or Marker.CORRECTION not in candidate.markers:
        return candidate
    return replace(candidate, markers=candidate.markers - {Marker.CORRECTION})


def _statement(candidate: Candidate, heard: Heard) -> _Statement:
    read = heard.grounding.read
    return _Statement(
        candidate,
        heard,
        read(_without_day(candidate)),
        read(candidate.object),
        read(heard.quote),
        read(heard.turn.content),
    )


def _without_day(candidate: Candidate) -> str:
    """The content without the day that was resolved by rule and put behind it."""
    label, since = _LABEL.search(candidate.content), candidate.valid_from
    if label is None or since is None or not f"{since:%Y-%m-%d %H:%M}".startswith(label[1]):
        return candidate.content
    return candidate.content[: label.start()]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A candidate beside the words that it points at, all of them read."""

    candidate: Candidate
    heard: Heard
    content: Reading
    thing: Reading
    quote: Reading
    turn: Reading

    @property
    def _ground(self) -> Grounding:
        return self.heard.grounding

    def names_the_object(self) -> bool:
        """The object stands in the span; what has no word in it is looked at for privacy."""
        return not normal(self.candidate.object) or self._ground.stands(self.candidate.object, self.quote)

    def is_timed(self) -> bool:
        """Times come from words for a time."""
        timed = self.candidate.valid_from is not None or self.candidate.valid_to is not None
        return not timed or self._tells_time()

    def counts(self) -> bool:
        """Numbers are the user's, or follow from a date that was resolved by rule."""
        dates = self._dates()
        rest = dates.sub(" ", self.content.plain) if dates else self.content.plain
        return not self._ground.strange_figures(rest, self.quote.figures)

    def is_signed(self) -> bool:
        """Signs that say something, a currency or a face, are the user's."""
        if self._ground.strange_signs(self.content, self.quote):
            return False
        names = (self.candidate.object, self.candidate.subject, *self.candidate.entities)
        return not any(self._ground.strange_signs(self._ground.read(name), self.turn) for name in names)

    def is_of_its_class(self) -> bool:
        """An allergy, a medicine, a religious rule is called one; that it is over may be told in other words."""
        name = self.heard.dimensions.freeze_class(self.candidate.dimension)
        if name not in _NAMED or (name != SafetyClass.RELIGIOUS_TABOO and self._is_denied()):
            return True
        return declares(self.candidate, name, self.heard)

    def _is_denied(self) -> bool:
        return self.candidate.polarity is Polarity.NEGATIVE

    def is_about(self) -> bool:
        """Whom it is about was named: in the turn, in what was said before it, or by the memory it goes on about."""
        who, stands = self.candidate.subject, self._ground.stands
        if who == USER or stands(who, self.turn):
            return True
        said = [
            turn
            for number, turn in enumerate(reversed(self.heard.before))
            if not number or turn.role is Role.USER
        ]
        if any(stands(who, self._ground.read(turn.content)) for turn in said):
            return True
        return any(
            same_name(memory.subject, who) and self._ground.shares(memory.object, self.turn)
            for memory in self.heard.known(self.candidate.dimension)
        )

    def names(self) -> bool:
        """What is listed as named stands in the turn, or is the day that its words resolve to."""
        return all(
            self._ground.stands(name, self.turn) or self._resolves(name) for name in self.candidate.entities
        )

    def _resolves(self, name: str) -> bool:
        """Whether ``name`` is a day to which words for a time resolve: its own, or so many years from the turn's."""
        since = self.candidate.valid_from
        if not (_DAY.fullmatch(name) and self._tells_time()):
            return False
        if since is not None and f"{since:%Y-%m-%d %H:%M}".startswith(name):
            return True
        years = abs(int(name[:4]) - self.heard.turn.created_at.year)
        return years <= 1 or not self.turn.figures.isdisjoint({str(years), name[:4]})

    def is_labelled(self) -> bool:
        """A predicate that would stand before the object as its label is the user's; a known dimension has its own label."""
        candidate, known = self.candidate, self.heard.dimensions
        if candidate.dimension in known or candidate.predicate == candidate.dimension == SAID:
            return True
        asked = self._ground.read(self.heard.question())
        return any(self._ground.stands(candidate.predicate, text) for text in (self.quote, asked))

    def is_said(self) -> bool:
        """The words of the content were said, and whether it is so as they say."""
        return any(
            not self._ground.strange(self.content, [self.quote, source])
            and not self._ground.equates(self.content, self.thing, [self.quote, source])
            and self._agrees(source)
            for source in (self._ground.read(self.heard.question()), *self.corrected())
        )

    def _agrees(self, source: Reading) -> bool:
        """Whether the content negates what the quote negates, and nothing else."""
        ground, negated = self._ground, self._ground.negated(self.content)
        if not (negated or ground.negated(self.quote) or ground.lexicon.kept.search(self.quote.plain)):
            return self._has_sign(source)
        regions = [
            (start, end)
            for start, end in ground.around(self.content, self.quote)
            if not ground.left_out(self.content, self.quote, start, end)
        ]
        signs = {ground.negated(self.quote, start, end) for start, end in regions}
        # "What don't you eat?" – "Peanuts.": who is asked what is not so need not say "not"
        lent = negated and ground.negated(source) and not ground.stands(self.candidate.object, source)
        return (negated in signs or bool(signs and lent)) and self._has_sign(source)

    def _has_sign(self, source: Reading) -> bool:
        ground = self._ground
        if self.candidate.polarity is Polarity.NEGATIVE or self.candidate.negative:
            against = ground.lexicon.against
            return any(ground.negated(text) or against.search(text.plain) for text in (self.quote, source))
        if self.candidate.category is Category.EVENT or not ground.negated(self.content):
            return True  # what happened contradicts nothing
        regions = ground.around(self.thing, self.content)
        return not all(ground.negated(self.content, start, end) for start, end in regions) or ground.negated(
            self.thing
        )

    def corrected(self) -> Iterator[Reading]:
        """What a correction may be about: an earlier turn of the user's, or a memory whose object it names."""
        ground = self._ground
        if not (ground.short(self.turn) and ground.lexicon.corrects.search(self.turn.plain)):
            return
        yield from (ground.read(turn.content) for turn in self.heard.earlier())
        for memory in self.heard.known(self.candidate.dimension):
            if same_name(memory.subject, self.candidate.subject) and ground.stands(memory.object, self.turn):
                yield ground.read(memory.content)

    def _tells_time(self) -> bool:
        return self._ground.lexicon.times.search(self.turn.plain) is not None

    def _dates(self) -> re.Pattern[str] | None:
        """How its times may be written out: as a day, a month or a year, never as numbers by themselves."""
        times = [time for time in (self.candidate.valid_from, self.candidate.valid_to) if time is not None]
        shapes = (
            f"{day:%Y-%m-%d}|{day.year}年(?:{day.month}月)?|{day.month}月(?:{day.day}[日号])?|{day.year}"
            for day in times
        )
        return re.compile(rf"(?<!\d)(?:{'|'.join(shapes)})(?!\d)") if times else None
