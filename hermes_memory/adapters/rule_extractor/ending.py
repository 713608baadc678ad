"""Words that end what is known, or take it up again: "烟戒了", "I'm off Zoloft", "back on coffee" (SPEC §6).

Such words name a value and not what it is the value of; that follows from what the user stated before, as in
``mending``. Where nothing that was stated has the value, nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Ending, Pattern, Rules
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.mending import Standing
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.objects import Thing, clean
from hermes_memory.adapters.rule_extractor.opening import Opening, Subject
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER


@dataclass(frozen=True, slots=True)
class Known:
    """What may be ended, newest last, and how its values are compared."""

    standing: list[Standing]
    rules: Rules
    dimensions: Dimensions


def ended(mirror: str, start: int, end: int, opening: Opening, known: Known) -> Reading | None:
    """The denial (or the renewal) that ``mirror[start:end]`` states of something known; None if it is none."""
    if not known.standing:
        return None
    for begin, who in _beginnings(start, opening):
        for ending, thing in _things(mirror, begin, end, known.rules):
            said = mirror[thing.start : thing.end]
            if old := _meant(said, [one for one in known.standing if _may(one, ending, who, known)], known):
                return _reading(ending, old, thing, begin, end, opening)
    return None


def _beginnings(start: int, opening: Opening) -> Iterator[tuple[int, str | None]]:
    """Where the words may begin, and whom they are then about; None: whomever the known thing is about.

    "猫送人了" opens with what reads as a subject: from the very start it is a thing of the user's.
    """
    subject = opening.subject
    yield opening.content, None if subject is None else USER
    if subject is not None:
        yield opening.rest, subject.who
    for attempt in opening.attempts:
        yield attempt.pos, attempt.subject.who if attempt.subject else None


def _things(mirror: str, start: int, end: int, rules: Rules) -> Iterator[tuple[Ending, Thing]]:
    for ending in rules.endings.rows:
        hit = ending.regex.fullmatch(mirror, start, end)
        thing = clean(mirror, *hit.span("o"), rules.grammar) if hit else None
        if thing is not None:
            yield ending, thing


def _may(one: Standing, ending: Ending, who: str | None, known: Known) -> bool:
    return (
        one.polarity is ending.polarity.opposite
        and one.dimension not in known.rules.endings.keep
        and (who is None or one.subject == who)
    )


def _meant(said: str, standing: Iterable[Standing], known: Known) -> Standing | None:
    """The newest statement with just this value, or else with one that names it among other words."""
    reader = known.dimensions.reader
    value, newest = reader.value(said), list(standing)[::-1]
    exact = (one for one in newest if known.dimensions.same(one.dimension, _plain(one.object), said))
    wider = (
        one
        for one in newest
        if _within(value, reader.value(_plain(one.object)))
        or known.dimensions.kind_of((one.dimension,), _plain(one.object), said)
    )
    return next(exact, None) or next(wider, None)


def _plain(words: str) -> str:
    return simplified(words)


def _within(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    size = len(few)
    return bool(size) and any(many[at : at + size] == few for at in range(len(many) - size + 1))


def _reading(
    ending: Ending, old: Standing, thing: Thing, begin: int, end: int, opening: Opening
) -> Reading:
    row = Pattern(
        language="en",
        regex=ending.regex,
        dimension=old.dimension,
        predicate=old.predicate,
        markers=ending.markers,
    )
    mention = opening.subject.mention if opening.subject else ""
    subject = Subject(old.subject, begin, mention)
    return Reading(
        row, old.dimension, thing, subject, True, ending.polarity, ending.veto, begin, end, thing
    )
