"""Whom a statement is about: what the model says, held against whom the words name (SPEC §4.1.6)."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_memory.adapters.model_extractor.locating import occurrences
from hermes_memory.adapters.rule_extractor import Heard, HeardClause
from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.adapters.rule_extractor.opening import Subject
from hermes_memory.core.model import USER
from hermes_memory.core.text import normal


@dataclass(frozen=True, slots=True)
class People:
    """``user``: words for the user; ``same``: groups of words for one kind of person; ``relative``: what follows is theirs."""

    user: frozenset[str]
    same: tuple[frozenset[str], ...]
    relative: Regex

    def is_user(self, name: str) -> bool:
        """Whether a model means the user by it."""
        return normal(name) in self.user

    def same_person(self, left: str, right: str) -> bool:
        """Whether both may be one person, the user or another."""
        users = self.is_user(left), self.is_user(right)
        return all(users) or (not any(users) and self.alike(left, right))

    def alike(self, left: str, right: str) -> bool:
        """Whether two names may be of one person: "my sister Emma" and "Emma", "mother" and 妈."""
        one, other = normal(left), normal(right)
        if not one or not other:
            return False
        return one in other or other in one or any(one in group and other in group for group in self.same)


def whose(claimed: str, clause: HeardClause, heard: Heard, at: int, people: People) -> str | None:
    """The subject of a statement whose object begins ``at`` in ``clause``, in the user's words; None if it is another's."""
    named = _nearest(clause, heard, at, people)
    of_user = people.is_user(claimed)
    if named is None or named.is_user:
        return USER if of_user else _other(claimed, clause, heard, at, people)
    if of_user:
        begun = max(clause.said, named.start + len(named.mention))
        return USER if heard.user_between(begun, at) else None
    if people.alike(claimed, named.who) or people.alike(claimed, named.mention):
        return named.who
    return _mentioned(claimed, heard, 0 if named.unknown else clause.said, at)


def _nearest(clause: HeardClause, heard: Heard, at: int, people: People) -> Subject | None:
    """Whom the words before ``at`` are about: "I have a sister who …" is about her."""
    relation = heard.last_relation(clause.said, at)
    if relation and people.relative.match(heard.mirror, relation[1], at):
        who = heard.turn.content[slice(*relation)]
        return Subject(who, relation[0], who)
    return clause.subject or clause.carried


def _other(claimed: str, clause: HeardClause, heard: Heard, at: int, people: People) -> str | None:
    """Somebody else in a clause that opens with the user or with nobody: named before, and not the user again since."""
    free = clause.subject is None  # nobody is named: then who was spoken of before in the turn will do
    start = 0 if free else clause.said
    spans = occurrences(heard.turn.content, claimed, [(start, at)], case=False)
    if not spans:
        kin = heard.last_relation(start, at)
        if kin is None or not people.alike(claimed, heard.turn.content[slice(*kin)]):
            return None
        spans = [kin]
    begin, end = spans[-1]
    return None if heard.user_between(end, at) else heard.turn.content[begin:end]


def _mentioned(claimed: str, heard: Heard, start: int, at: int) -> str | None:
    spans = occurrences(heard.turn.content, claimed, [(start, at)], case=False)
    return heard.turn.content[slice(*spans[-1])] if spans else None
