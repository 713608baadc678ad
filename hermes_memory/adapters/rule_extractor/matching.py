"""Patterns against one clause: what it states, with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from hermes_memory.adapters.rule_extractor.data import At, Pattern, Rules, Veto
from hermes_memory.adapters.rule_extractor.objects import Thing, atoms, city_of, clean, dimension_of, word_end
from hermes_memory.adapters.rule_extractor.opening import Attempt, Opener, Opening, Subject
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.model import USER, Polarity

_MAX_PER_CLAUSE = 4
_CJK = re.compile(r"[一-鿿]")
_LATIN = re.compile(r"[A-Za-z]{2}|\bI\b")


@dataclass(frozen=True, slots=True)
class Reading:
    """One statement found: ``mirror[start:end]`` are the words that carry it."""

    pattern: Pattern
    dimension: str
    thing: Thing
    subject: Subject
    named: bool  # the clause itself names the subject
    polarity: Polarity
    negative: bool
    start: int
    end: int
    whole: Thing  # the object before it was split into atoms

    @property
    def listed(self) -> bool:
        """Whether it is one of several objects of the same words."""
        return self.thing != self.whole and self.pattern.splits


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a clause before its words are matched."""

    text: str  # the turn as it was written
    markers: frozenset[Marker]
    dated: bool
    carried: Subject | None  # of the clause before, in the same sentence
    follows: bool  # a clause with a subject went before, in the same sentence
    behind: str = ""  # the dimension just read, for tails


class Matcher:
    """Tries the rows in order at every attempt; the first hit wins, then reading goes on behind it."""

    def __init__(self, rules: Rules, opener: Opener) -> None:
        self._rules = rules
        self._opener = opener
        self._rows = {
            (language, at): tuple(row for row in rules.patterns if row.language == language and row.at is at)
            for language in ("zh", "en")
            for at in At
        }

    def read(self, mirror: str, opening: Opening, end: int, setting: Setting) -> list[Reading]:
        """All statements of the clause that ends at ``end``."""
        languages = self._languages(mirror[opening.content : end])
        found: list[Reading] = []
        for attempt, stop in product(opening.attempts, self._stops(mirror, opening.content, end)):
            if hit := self._first(mirror, attempt, stop, setting, languages):
                found += hit
                break
        while found and len(found) < _MAX_PER_CLAUSE and found[-1].end < end:
            more = self._go_on(mirror, found[-1], end, setting, languages)
            if not more:
                break
            found += more
        return found

    def _stops(self, mirror: str, start: int, end: int) -> list[int]:
        """Where a statement may end: with the clause, before "now" and "as you know", before an afterthought."""
        found = self._rules.grammar.afterthought.finditer(mirror, start, end)
        return [end, *sorted((hit.start() for hit in found), reverse=True)]

    @staticmethod
    def _languages(words: str) -> tuple[str, ...]:
        return tuple(name for name, regex in (("zh", _CJK), ("en", _LATIN)) if regex.search(words))

    def _go_on(
        self, mirror: str, last: Reading, end: int, setting: Setting, languages: tuple[str, ...]
    ) -> list[Reading]:
        """Chinese runs statements together: "我叫小王今年28岁在深圳做设计师"; English adds: "a nurse in Leeds"."""
        at = self._opener.skip_adverbs(mirror, last.end, end)
        if at >= end:
            return []
        place = At.PREDICATE if last.pattern.language == "zh" else At.TAIL
        attempt = Attempt(place, at, last.subject)
        return self._first(mirror, attempt, end, replace(setting, behind=last.dimension), languages)

    def _first(
        self, mirror: str, attempt: Attempt, end: int, setting: Setting, languages: tuple[str, ...]
    ) -> list[Reading]:
        for language in languages:
            for row in self._rows[language, attempt.at]:
                if not self._fits(row, attempt, setting):
                    continue
                hit = row.regex.match(mirror, attempt.pos, end)
                if hit and (found := list(self._readings(mirror, hit, row, attempt, setting))):
                    return found
        return []

    @staticmethod
    def _fits(row: Pattern, attempt: Attempt, setting: Setting) -> bool:
        if row.needs and row.needs not in setting.markers:
            return False
        if row.date and not setting.dated:
            return False
        if row.after and setting.behind not in row.after:
            return False
        if row.subjectless:
            return attempt.subject is None
        if row.named and attempt.subject is None:
            return False
        if attempt.subject is not None or row.language == "zh":
            return True
        return row.bare or setting.follows

    def _readings(
        self, mirror: str, hit: re.Match[str], row: Pattern, attempt: Attempt, setting: Setting
    ) -> Iterator[Reading]:
        whole = self._object(mirror, hit, row)
        if whole is None:
            return
        named = attempt.subject is not None
        subject = attempt.subject or setting.carried or Subject(USER, attempt.pos)
        if row.own or row.act is SpeechAct.DIRECTIVE:
            subject, named = Subject(USER, attempt.pos), True
        if "s" in row.regex.groupindex and hit.group("s"):
            words = setting.text[hit.start("s") : hit.end("s")]
            subject, named = Subject(words, hit.start("s"), words), True
        denied = any(value for name, value in hit.groupdict().items() if name.startswith("neg"))
        polarity = row.polarity.opposite if denied and row.polarity is Polarity.POSITIVE else row.polarity
        negative = row.veto is Veto.ALWAYS or (row.veto is Veto.NEGATED and denied)
        things = atoms(mirror, whole, row, self._rules.lexicon, self._rules.grammar)
        for thing in things:
            dimension = dimension_of(mirror, thing, hit, row, self._rules.lexicon)
            yield Reading(
                row,
                dimension,
                thing,
                subject,
                named,
                polarity,
                negative,
                hit.start(),
                word_end(mirror, hit.end()),
                whole,
            )

    def _object(self, mirror: str, hit: re.Match[str], row: Pattern) -> Thing | None:
        group = next((name for name in ("o", "o2") if name in row.regex.groupindex and hit.group(name)), None)
        if row.whole or group is None:
            return clean(mirror, hit.start(), hit.end(), self._rules.grammar, whole=True)
        thing = clean(mirror, *hit.span(group), self._rules.grammar)
        return city_of(mirror, thing, self._rules.lexicon) if thing and row.place else thing
