"""What the user is doing with the words: stretches of a turn that are not plain statements (SPEC §4.1.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.clauses import Clause, Sentence, quoted
from hermes_memory.adapters.rule_extractor.data import Grammar, Speech
from hermes_memory.core.candidate import SpeechAct
from hermes_memory.core.reasons import Reason

REASON_OF = {
    SpeechAct.JOKE: Reason.JOKE,
    SpeechAct.HYPOTHETICAL: Reason.HYPOTHETICAL,
    SpeechAct.IRONY: Reason.IRONY,
    SpeechAct.QUOTATION: Reason.QUOTATION,
    SpeechAct.VENTING: Reason.VENTING,
    SpeechAct.QUESTION: Reason.QUESTION,
    SpeechAct.COMMAND: Reason.COMMAND,
    SpeechAct.PLANTED_ORDER: Reason.PLANTED_ORDER,
}
SILENT = frozenset({SpeechAct.PLANTED_ORDER, SpeechAct.COMMAND, SpeechAct.QUESTION})  # nothing is read there
_FILLER_EDGE = " \t\n\r，,。.！!？?~～…、;；:：\"'“”()（）😀😂🤣😊👍🙏❤️😄😅🎉"
_ORDER = (
    SpeechAct.PLANTED_ORDER,
    SpeechAct.COMMAND,
    SpeechAct.JOKE,
    SpeechAct.HYPOTHETICAL,
    SpeechAct.QUOTATION,
    SpeechAct.IRONY,
    SpeechAct.VENTING,
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """``mirror[start:end]`` is one speech act."""

    start: int
    end: int
    act: SpeechAct


class Tone:
    """The speech acts of one turn, by offset."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = sorted(stretches, key=lambda stretch: _ORDER.index(stretch.act))

    def at(self, offset: int) -> SpeechAct:
        """The act of the words at ``offset``."""
        hits = (item.act for item in self._stretches if item.start <= offset < item.end)
        return next(hits, SpeechAct.STATEMENT)


def listen(mirror: str, parts: Sequence[Sentence], speech: Speech, grammar: Grammar) -> Tone:
    """Find every stretch of ``mirror`` that is not a plain statement."""
    found = [
        *_material(mirror, parts, speech),
        *_jokes(mirror, parts, speech),
        *_vents(mirror, parts, speech),
    ]
    for part in parts:
        found += _of_sentence(mirror, part, speech)
    found += [
        Stretch(a, b, SpeechAct.QUOTATION) for a, b in quoted(mirror) if grammar.user.search(mirror, a, b)
    ]
    return Tone(found)


def _of_sentence(mirror: str, part: Sentence, speech: Speech) -> Iterator[Stretch]:
    a, b = part.start, part.end
    if speech.planted.search(mirror, a, b):
        yield Stretch(a, b, SpeechAct.PLANTED_ORDER)
    if speech.absurd.search(mirror, a, b):
        yield Stretch(a, b, SpeechAct.JOKE)
    if speech.irony.search(mirror, a, b):
        yield Stretch(a, b, SpeechAct.IRONY)
    if (hit := speech.quotation.search(mirror, a, b)) and not speech.vouched.search(mirror, a, b):
        yield Stretch(_clause_start(part, hit.start()), b, SpeechAct.QUOTATION)
    hit = speech.hypothetical.search(mirror, a, b)
    if hit and (part.asks or not speech.habit_condition.search(mirror, hit.end(), b)):
        closes = hit.end() >= b  # "… 就好了": the wish stands at the end and covers all
        yield Stretch(a if closes else _clause_start(part, hit.start()), b, SpeechAct.HYPOTHETICAL)


def _clause_start(part: Sentence, offset: int) -> int:
    starts = [clause.start for clause in part.clauses if clause.start <= offset]
    return max(starts, default=part.start)


def _material(mirror: str, parts: Sequence[Sentence], speech: Speech) -> Iterator[Stretch]:
    """What follows "translate:" is text to work on, not the user speaking."""
    for part in parts:
        hit = speech.task.match(mirror, part.start, part.end)
        if hit is None:
            continue
        starts = [
            at for mark in ':：\n“"' if (at := mirror.find(mark, hit.end())) >= 0 and at <= part.end + 1
        ]
        if starts:
            yield Stretch(min(starts), len(mirror), SpeechAct.COMMAND)
            return


def _jokes(mirror: str, parts: Sequence[Sentence], speech: Speech) -> Iterator[Stretch]:
    """A joke is announced (what follows) or taken back (what went before)."""
    hit = speech.joke.search(mirror)
    if hit is None:
        return
    index = next((n for n, part in enumerate(parts) if part.start <= hit.start() < part.end), None)
    if index is None:
        return
    before = mirror[parts[index].start : hit.start()]
    if index == 0 and len(before.strip("哈嘿 ,，!！")) < 4:
        serious = speech.serious.search(mirror, hit.end())
        yield Stretch(parts[index].start, serious.start() if serious else len(mirror), SpeechAct.JOKE)
        return
    first = index if len(before.strip()) >= 4 else max(0, index - 1)
    yield Stretch(parts[first].start, hit.end(), SpeechAct.JOKE)


def _vents(mirror: str, parts: Sequence[Sentence], speech: Speech) -> Iterator[Stretch]:
    """An outburst, and the shouts and rhetorical questions around it."""
    hot = [bool(speech.venting.search(mirror, part.start, part.end)) for part in parts]
    if not any(hot):
        return
    for part, itself in zip(parts, hot, strict=True):
        if itself or part.shouts or part.asks:
            yield Stretch(part.start, part.end, SpeechAct.VENTING)


def is_question(mirror: str, part: Sentence, clause: Clause, speech: Speech) -> bool:
    """Whether this clause asks; earlier clauses of an asking sentence may still state something."""
    if speech.question.search(mirror[clause.start : clause.end]):
        return True
    if speech.tag.search(mirror[part.start : part.end]) and (part.asks or ord(mirror[part.end - 1]) > 127):
        return True
    return part.asks and clause is part.clauses[-1]


def bare(mirror: str) -> str:
    """The words without marks and faces at their edges: what is looked at for being mere filler."""
    return " ".join(mirror.translate({ord(char): " " for char in _FILLER_EDGE}).split())
