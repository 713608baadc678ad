"""Whether the user's words bear a candidate out: what it says, of whom, when, and whether it is so (SPEC §4.1.2).

What is asked of the quote is that nothing in the candidate is another's: no word, number or name, no turned negation.
The assistant's question just before may supply the predicate of a short answer, and a correction may leave unsaid what
an earlier turn, or the memory that it corrects, has said (SPEC §3.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hermes_memory.core.candidate import Candidate
from hermes_memory.core.grounding import Grounding, Reading
from hermes_memory.core.model import USER, Category, Memory, Polarity, Role, Turn
from hermes_memory.core.text import normal, same_name

Known = Callable[[str], Iterable[Memory]]  # dimension → the user's memories of it

_LABEL = re.compile(r"\s*[(（]\d{4}(?:-\d\d){0,2}(?: \d\d:\d\d)?[)）]$")  # a day that was resolved by rule
_DAY = re.compile(r"\d{4}(?:-\d\d){0,2}(?: \d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said around a candidate's span: its turn, the turns of the session before it, and what is known."""

    quote: str
    turn: Turn
    before: Sequence[Turn]
    known: Known
    grounding: Grounding

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
    read = heard.grounding.read
    statement = _Statement(
        candidate,
        heard,
        read(_LABEL.sub("", candidate.content)),
        read(candidate.object),
        read(heard.quote),
        read(heard.turn.content),
    )
    return all(
        holds()
        for holds in (
            statement.names_the_object, statement.is_timed, statement.counts, statement.is_about, statement.names,
            statement.is_said,
        )
    )  # fmt: skip


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
        known = self.quote.figures | self._of_dates()
        return not self._ground.strange_figures(self.content, known)

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
            self._ground.stands(name, self.turn) or (_DAY.fullmatch(name) and self._tells_time())
            for name in self.candidate.entities
        )

    def is_said(self) -> bool:
        """The words of the content were said, and whether it is so as they say."""
        question = self._ground.read(self.heard.question())
        sources = [self.quote, question]
        if not self._ground.strange(self.content, sources):
            return not self._ground.equates(self.content, self.thing, sources) and self._agrees(question)
        return any(
            not self._ground.strange(self.content, [self.quote, source]) and self._agrees(source)
            for source in self._corrected()
        )

    def _agrees(self, source: Reading) -> bool:
        """Whether the content negates what the quote negates, and nothing else."""
        ground, negated = self._ground, self._ground.negated(self.content)
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
        if self.candidate.polarity is Polarity.NEGATIVE:
            against = ground.lexicon.against
            return any(ground.negated(text) or against.search(text.plain) for text in (self.quote, source))
        if self.candidate.category is Category.EVENT:
            return True  # what happened contradicts nothing
        regions = ground.around(self.thing, self.content)
        return not all(ground.negated(self.content, start, end) for start, end in regions) or ground.negated(
            self.thing
        )

    def _corrected(self) -> Iterator[Reading]:
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

    def _of_dates(self) -> frozenset[str]:
        times = (self.candidate.valid_from, self.candidate.valid_to)
        named = (self._ground.read(f"{time:%Y %m %d %H %M}").figures for time in times if time is not None)
        return frozenset(figure for figures in named for figure in figures)
