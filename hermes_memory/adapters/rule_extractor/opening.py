"""How a clause opens: discourse particles, adverbs and dates, and whom it is about (SPEC §4.1.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import At, Grammar
from hermes_memory.adapters.rule_extractor.when import date_at
from hermes_memory.core.model import USER

_EN_OWN = re.compile(r"(?:my|our)\s+", re.IGNORECASE)
_EN_SIDE = re.compile(
    r"(?:(?:little|younger|older|elder|eldest|youngest|oldest|big|old|new|best|good|close|dear|late|twin|half|"
    r"step|\d+[- ]year[- ]old|two|three|four|dear|lovely|ex)[ -])*",
    re.IGNORECASE,
)
_EN_NAME = re.compile(r",?\s+(?-i:(?!I\b)[A-Z][a-z]+)(?=[\s',]|$)")
_POSSESSIVE = re.compile(r"'s\s+|(?<=s)'\s+")
_SPACE = re.compile(r"[\s,，、]*")
_CJK = re.compile(r"[一-鿿]")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a clause is about: the user, or another as the user named them."""

    who: str
    start: int
    mention: str = ""  # the words that named them: "My friend Jo"

    @property
    def is_user(self) -> bool:
        """Whether it is the user."""
        return self.who == USER

    @property
    def unknown(self) -> bool:
        """Whether it is a "he" or 她 of whom nobody was named before: nobody later on can tell who it was."""
        return not self.is_user and not self.mention


@dataclass(frozen=True, slots=True)
class Attempt:
    """A place where patterns of one kind may begin, and whom they would be about."""

    at: At
    pos: int
    subject: Subject | None  # None: nobody is named


@dataclass(frozen=True, slots=True)
class Opening:
    """The start of a clause's content, the attempts in order, and the subject named, if any."""

    content: int
    attempts: tuple[Attempt, ...]
    subject: Subject | None
    rest: int  # where the predicate would begin; the clause's end if there is none


class Opener:
    """Reads the opening of clauses."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def read(self, text: str, mirror: str, start: int, end: int, carried: Subject | None) -> Opening:
        """``carried`` is the last person spoken of, for "she" and "他"."""
        content = self.skip_leads(mirror, start, end)
        begin = self.skip_adverbs(mirror, content, end)
        attempts = [Attempt(At.CLAUSE, begin, Subject(USER, begin))]
        owned = _EN_OWN.match(mirror, begin, end)
        if owned:
            attempts.append(Attempt(At.POSSESSIVE, owned.end(), Subject(USER, begin)))
        subject, after = self._subject(text, mirror, begin, end, carried)
        if subject is not None and (of := _POSSESSIVE.match(mirror, after, end)):
            attempts.append(Attempt(At.POSSESSIVE, of.end(), subject))
        rest = self.skip_adverbs(mirror, after, end)
        if not (owned and subject is None):
            attempts.append(Attempt(At.PREDICATE, rest, subject))
        if subject is not None and (of := self._grammar.possessive.match(mirror, rest, end)):
            attempts.append(Attempt(At.PREDICATE, self.skip_adverbs(mirror, of.end(), end), subject))
        if subject is None and not owned and (later := self._later_user(mirror, begin, end)):
            subject = Subject(USER, later[0])
            rest = self.skip_adverbs(mirror, later[1], end)
            attempts.append(Attempt(At.PREDICATE, rest, subject))
        return Opening(content, tuple(attempts), subject, rest)

    def skip_leads(self, mirror: str, start: int, end: int) -> int:
        """Past "对了，", "Just so you know,": words that say nothing."""
        at = _SPACE.match(mirror, start, end).end()  # type: ignore[union-attr]
        while (hit := self._grammar.lead.match(mirror, at, end)) and hit.end() > at:
            at = hit.end()
        return at

    def skip_adverbs(self, mirror: str, start: int, end: int) -> int:
        """Past adverbs, dates and blanks, which stay in the content."""
        at = _SPACE.match(mirror, start, end).end()  # type: ignore[union-attr]
        while True:
            stop = date_at(mirror, at, end)
            if stop == at and (hit := self._grammar.adverb.match(mirror, at, end)):
                stop = hit.end()
            stop = _SPACE.match(mirror, stop, end).end()  # type: ignore[union-attr]
            if stop <= at:
                return at
            at = stop

    def _subject(
        self, text: str, mirror: str, begin: int, end: int, carried: Subject | None
    ) -> tuple[Subject | None, int]:
        grammar = self._grammar
        for found in (self._zh_other(text, mirror, begin, end), self._en_other(text, mirror, begin, end)):
            if found:
                return found
        if hit := grammar.user.match(mirror, begin, end):
            return Subject(USER, begin), hit.end()
        if hit := grammar.other.match(mirror, begin, end):
            return carried or Subject(text[begin : hit.end()], begin), hit.end()
        if hit := grammar.name.match(mirror, begin, end):
            return _other(text, begin, begin, hit.end())
        return None, begin

    def _zh_other(self, text: str, mirror: str, begin: int, end: int) -> tuple[Subject, int] | None:
        grammar = self._grammar
        own = grammar.owner.match(mirror, begin, end).end()  # type: ignore[union-attr]
        hit = grammar.relation_zh.match(mirror, own, end)
        if hit is None:
            return None
        start, stop = hit.start(), self._chained(mirror, hit.end(), end)
        if named := grammar.named.match(mirror, stop, end):
            start, stop = named.span()
        subject, stop = _other(text, begin, start, stop)
        return subject, grammar.resumed.match(mirror, stop, end).end()  # type: ignore[union-attr]

    def _chained(self, mirror: str, stop: int, end: int) -> int:
        """Past further relations: "我老公的同事", "我同学妈妈"."""
        of = self._grammar.possessive.match(mirror, stop, end)
        further = self._grammar.relation_zh.match(mirror, of.end() if of else stop, end)
        return further.end() if further else stop

    def _en_other(self, text: str, mirror: str, begin: int, end: int) -> tuple[Subject, int] | None:
        own = _EN_OWN.match(mirror, begin, end)
        if own is None:
            return None
        side = _EN_SIDE.match(mirror, own.end(), end).end()  # type: ignore[union-attr]
        hit = self._grammar.relation_en.match(mirror, side, end)
        if (
            hit is None
            or (hit.end() < end and mirror[hit.end()].isalnum())
            or mirror[hit.end() : end].lower().startswith(" and i ")
        ):
            return None
        named = _EN_NAME.match(mirror, hit.end(), end)
        stop = named.end() if named else hit.end()
        return _other(text, begin, hit.end() if named else hit.start(), stop)

    def _later_user(self, mirror: str, begin: int, end: int) -> tuple[int, int] | None:
        """A 我 after other words ("这次装修我预算有限"), unless they speak of someone else."""
        at = mirror.find("我", begin, min(end, begin + 14))
        if at <= begin or self._grammar.beside.search(mirror, begin, at) or not _CJK.match(mirror, begin):
            return None
        hit = self._grammar.user.match(mirror, at, end)
        return (at, hit.end()) if hit else None


def _other(text: str, begin: int, start: int, end: int) -> tuple[Subject, int]:
    """The person named by ``text[start:end]``, mentioned from ``begin`` on."""
    return Subject(text[start:end].strip(" ,"), begin, text[begin:end]), end
