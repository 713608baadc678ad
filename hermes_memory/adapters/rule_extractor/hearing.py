"""What the rules hear in a turn, clause by clause, whatever it states: for a reader that states things itself.

The floor under a language model (SPEC §4.1.5–7): speech act, markers, whom a clause is about, dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.clauses import Clause, Sentence, quoted, sentences
from hermes_memory.adapters.rule_extractor.data import Rules
from hermes_memory.adapters.rule_extractor.marking import inherited, markers_in
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.opening import Opener, Subject
from hermes_memory.adapters.rule_extractor.speech import Tone, bare, is_question, listen
from hermes_memory.adapters.rule_extractor.when import Moment, find_moment
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.model import Turn

_TITLE = re.compile(r"《[^《》\n]{1,100}》")
_CJK = re.compile(r"[一-鿿]")
_STANDING = frozenset({Marker.HABITUAL, Marker.LASTING_CHANGE})  # an order in such words is no one-off


@dataclass(frozen=True, slots=True)
class HeardClause:
    """``content[start:end]`` of a turn. ``said``: where its content begins, behind "对了，" and "Well,".

    ``subject``: whom it names; ``carried``: whom it would be about if it names nobody, None for the user.
    """

    start: int
    end: int
    said: int
    sentence: Sentence
    markers: frozenset[Marker]
    subject: Subject | None
    carried: Subject | None
    asks: bool
    orders: bool
    addressed: bool  # about the one who is spoken to


class Heard:
    """One turn, heard. Offsets point into ``turn.content``."""

    def __init__(self, turn: Turn, rules: Rules) -> None:
        self.turn = turn
        self.mirror = simplified(turn.content)
        self._rules = rules
        parts = tuple(sentences(self.mirror, rules.grammar.clause_break))
        self._tone: Tone = listen(self.mirror, parts, rules.speech, rules.grammar)
        self.clauses = tuple(self._clauses(parts))
        self._marked = (*quoted(self.mirror), *(hit.span() for hit in _TITLE.finditer(self.mirror)))

    @property
    def filler(self) -> bool:
        """Whether it holds nothing but greetings, thanks and the like."""
        return self.is_filler(0, len(self.mirror))

    def is_filler(self, start: int, end: int) -> bool:
        """The same of a stretch."""
        words = bare(self.mirror[start:end])
        return not words or self._rules.speech.filler.fullmatch(words) is not None

    def clause_at(self, offset: int) -> HeardClause | None:
        """The clause that holds ``offset``; of what joins two clauses, the one behind it."""
        return next((clause for clause in self.clauses if offset < clause.end), None)

    def act_at(self, offset: int) -> SpeechAct:
        """What the user does with the words there."""
        return self._tone.at(offset)

    def moment(self, start: int, end: int, markers: frozenset[Marker]) -> Moment | None:
        """The first date named there, seen from when it was said; a habit has none."""
        if Marker.HABITUAL in markers:
            return None  # "every Friday" is not a date
        return find_moment(self.mirror, start, end, self.turn.created_at, self.turn.timezone)

    def past(self, start: int, end: int, markers: frozenset[Marker]) -> bool:
        """Whether the words tell what was, and need not be so now."""
        if Marker.LASTING_CHANGE in markers:
            return False
        return self._rules.grammar.past.search(self.mirror[start:end]) is not None

    def tells(self, start: int, end: int, question: str = "") -> bool:
        """Whether words that no pattern types say something of a life (SPEC §4.1.4). ``question``: asked just before."""
        words = self.mirror[start:end]
        if self._rules.lasting.dimension(words, alone=True) is not None:
            return True
        if _CJK.search(words):
            return self._rules.grammar.note.search(words) is not None
        return self._rules.worth.keeps(words, question)

    def within_marks(self, start: int, end: int) -> bool:
        """Whether the stretch lies wholly within quotation marks, or in a title."""
        return any(a < start and end < b for a, b in self._marked)

    def habit(self, start: int, end: int) -> bool:
        """Whether a condition there is on something real ("if I eat dairy I get cramps")."""
        return self._rules.speech.habit_condition.search(self.mirror, start, end) is not None

    def names_somebody(self, start: int, end: int) -> bool:
        """Whether the user, or somebody of theirs, is named there."""
        grammar = self._rules.grammar
        words = (grammar.user, grammar.relation_zh)
        if any(regex.search(self.mirror, start, end) for regex in words):
            return True
        return _OWN.search(self.mirror, start, end) is not None

    def user_between(self, start: int, end: int) -> bool:
        """Whether the user is named there."""
        return self._rules.grammar.user.search(self.mirror, start, end) is not None

    def last_relation(self, start: int, end: int) -> tuple[int, int] | None:
        """The last person related to the user that is named there."""
        hits = [*self._rules.grammar.relation_zh.finditer(self.mirror, start, end)]
        hits += [
            hit for hit in self._rules.grammar.relation_en.finditer(self.mirror, start, end) if _whole(hit)
        ]
        return max((hit.span() for hit in hits), default=None)

    # --- clause by clause

    def _clauses(self, parts: tuple[Sentence, ...]) -> Iterator[HeardClause]:
        opener = Opener(self._rules.grammar)
        spoken_of: Subject | None = None  # the last person other than the user
        topic: Subject | None = None  # whom the sentence before was about, if not the user
        for part in parts:
            whole = self._markers(part.start, part.end)
            before: frozenset[Marker] = frozenset()
            subject: Subject | None = None
            addressed = False
            for clause in part.clauses:
                opening = opener.read(self.turn.content, self.mirror, clause.start, clause.end, spoken_of)
                own = self._markers(clause.start, clause.end)
                named = opening.subject is not None
                markers = inherited(own, whole, before, named)
                before = own if named else markers
                carried = subject or (topic if _CJK.search(self.mirror, clause.start, clause.end) else None)
                subject = opening.subject or subject
                to_you = self._rules.grammar.addressed.match(self.mirror, clause.start, clause.end)
                addressed = to_you is not None or (addressed and not named)
                if opening.subject is not None and not opening.subject.is_user:
                    spoken_of = opening.subject
                yield HeardClause(
                    clause.start,
                    clause.end,
                    min(opening.content, clause.end),
                    part,
                    markers,
                    opening.subject,
                    carried,
                    is_question(self.mirror, part, clause, self._rules.speech),
                    self._orders(clause, opening.content, markers),
                    addressed,
                )
            if subject is not None:
                topic = None if subject.is_user else subject

    def _markers(self, start: int, end: int) -> frozenset[Marker]:
        return markers_in(self.mirror, start, end, self._rules.markers)

    def _orders(self, clause: Clause, content: int, markers: frozenset[Marker]) -> bool:
        said, speech = self.mirror[content : clause.end], self._rules.speech
        ordered = speech.command.match(said) or speech.task.match(said)
        return ordered is not None and not markers & _STANDING


_OWN = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b|[我咱俺]|本人", re.IGNORECASE)


def _whole(hit: re.Match[str]) -> bool:
    """Whether an English word was found and not a part of one."""
    text, (start, end) = hit.string, hit.span()
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
