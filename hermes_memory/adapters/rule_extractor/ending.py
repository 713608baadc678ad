"""Words that end what is known, or take it up again: "烟戒了", "I'm off Zoloft", "back on coffee" (SPEC §6).

Such words name a value and not what it is the value of; that follows from what the user stated before, as in
``mending``. Where nothing that was stated has the value, nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hermes_memory.adapters.rule_extractor.clauses import Clause
from hermes_memory.adapters.rule_extractor.data import Ending, Pattern, Rules
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.mending import Standing
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.objects import Thing, clean
from hermes_memory.adapters.rule_extractor.opening import Opening, Subject
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import USER, Polarity
from hermes_memory.core.values import tokens

_OWN = re.compile(r"\b(?:my|me)\b|我", re.IGNORECASE)
_MIN_HEAD = 3  # letters of a word that names something by itself


@dataclass(frozen=True, slots=True)
class Known:
    """What may be ended, newest last, and how its values are compared."""

    standing: list[Standing]
    rules: Rules
    dimensions: Dimensions


def ended(mirror: str, end: int, opening: Opening, known: Known) -> list[Reading]:
    """The denial (or the renewal) that a clause up to ``end`` states of something known, and what replaces it."""
    for begin, who in _beginnings(mirror, end, opening):
        for ending, thing, new in _things(mirror, begin, end, known.rules):
            said = mirror[thing.start : thing.end]
            if old := _meant(said, [one for one in known.standing if _may(one, ending, who, known)], known):
                core = (
                    _named(old, mirror, thing.start, thing.end, known) if _longer(said, old, known) else None
                )
                over = _reading(ending, old, core or thing, begin, end, opening)
                return [over] if new is None else [over, _successor(over, new)]
    return []


def faded(
    mirror: str,
    start: int,
    clause: Clause,
    opening: Opening,
    carried: Subject | None,
    known: Known,
) -> list[Reading]:
    """The same where a clause ends what its sentence, from ``start`` on, has named."""
    endings = known.rules.endings
    begin, end = clause.start, clause.end
    words = mirror[begin:end]
    if not endings.fading.regex.search(words):
        return []
    for one in reversed(known.standing):
        thing = _named(one, mirror, start, end, known)
        if thing and _may(one, endings.fading, None, known) and _about(one, opening, carried, thing):
            return [_reading(endings.fading, one, thing, min(begin, thing.start), end, opening)]
    return []


def _named(one: Standing, mirror: str, start: int, end: int, known: Known) -> Thing | None:
    """Where the sentence names the value, or the head of it."""
    value = known.dimensions.reader.value(_plain(one.object))
    words = _plain(one.object).lower()
    forms = [re.escape(words)]
    if value and value[-1].isascii():
        forms += [rf"\b{re.escape(value[-1])}\w{{0,3}}\b"] if len(value[-1]) >= _MIN_HEAD else []
    elif value:
        forms += [re.escape("".join(value)), re.escape("".join(value)[-2:])]
    for form in forms:
        if hit := re.compile(form, re.IGNORECASE).search(mirror, start, end):
            return Thing(*hit.span())
    return None


def _about(one: Standing, opening: Opening, carried: Subject | None, thing: Thing) -> bool:
    """Whether the clause is about whom the known thing is about: named, carried on, or the thing itself."""
    subject = opening.subject or carried
    if subject is None or subject.start <= thing.start < subject.start + max(len(subject.mention), 1):
        return one.subject == USER
    return one.subject == subject.who


def _beginnings(mirror: str, end: int, opening: Opening) -> Iterator[tuple[int, str | None]]:
    """Where the words may begin, and whom they are then about; None: whomever the known thing is about.

    "猫送人了" opens with what reads as a subject: from the very start it is a thing of the user's.
    """
    subject = opening.subject
    yield opening.content, None if subject is None else USER
    if subject is not None:
        yield opening.rest, subject.who
        if _OWN.search(mirror, opening.rest, end):
            yield opening.rest, USER  # "they swapped my amlodipine for losartan"
    for attempt in opening.attempts:
        yield attempt.pos, attempt.subject.who if attempt.subject else None


def _things(mirror: str, start: int, end: int, rules: Rules) -> Iterator[tuple[Ending, Thing, Thing | None]]:
    for ending in rules.endings.rows:
        hit = ending.regex.fullmatch(mirror, start, end)
        thing = clean(mirror, *hit.span("o"), rules.grammar) if hit else None
        if thing is not None:
            new = clean(mirror, *hit.span("n"), rules.grammar) if hit and _named_new(hit) else None
            yield ending, thing, new


def _named_new(hit: re.Match[str]) -> bool:
    return "n" in hit.re.groupindex and hit.group("n") is not None


def _may(one: Standing, ending: Ending, who: str | None, known: Known) -> bool:
    return (
        one.polarity is ending.polarity.opposite
        and one.dimension not in known.rules.endings.keep
        and (not ending.only or one.dimension in ending.only)
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
        or _longer(said, one, known)
        or known.dimensions.kind_of((one.dimension,), _plain(one.object), said)
    )
    return next(exact, None) or next(wider, None)


def _longer(said: str, old: Standing, known: Known) -> bool:
    """Whether a verb stands before the value: "need insulin"."""
    reader = known.dimensions.reader
    words, value = reader.value(said), reader.value(_plain(old.object))
    verbs = {word for verb in known.rules.endings.before for word in tokens(verb)}
    return bool(value) and words[1:] == value and words[0] in verbs


def _plain(words: str) -> str:
    return simplified(words)


def _within(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    size = len(few)
    return bool(size) and any(many[at : at + size] == few for at in range(len(many) - size + 1))


def _successor(over: Reading, new: Thing) -> Reading:
    """The statement of what takes the place of what is over."""
    return replace(over, thing=new, whole=new, polarity=Polarity.POSITIVE, negative=False)


def _reading(ending: Ending, old: Standing, thing: Thing, begin: int, end: int, opening: Opening) -> Reading:
    row = Pattern(
        language="en",
        regex=ending.regex,
        dimension=old.dimension,
        predicate=old.predicate,
        markers=ending.markers,
    )
    mention = opening.subject.mention if opening.subject else ""
    subject = Subject(old.subject, begin, mention)
    return Reading(row, old.dimension, thing, subject, True, ending.polarity, ending.veto, begin, end, thing)
