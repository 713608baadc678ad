"""Labelled pairs of texts: what a calibration is fitted to (SPEC §7.3).

A pair of kind ``query`` holds what somebody asks and a memory that bears on it or does not; one of kind ``pair``
holds two statements that say the same or, on one topic, something different. ``group`` names what a query and
its memories are about: a query is unrelated to the memories of every other group, unless the two groups touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hermes_memory.core.text import language
from hermes_memory.errors import InvalidInput

Texts = tuple[str, str]  # (query, memory), or (statement, statement)


class Kind(StrEnum):
    """What is compared."""

    QUERY = "query"
    PAIR = "pair"


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, and whether they are related (``query``) or say the same (``pair``)."""

    kind: Kind
    related: bool
    group: str
    a: str
    b: str

    @property
    def texts(self) -> Texts:
        """Both."""
        return self.a, self.b


@dataclass(frozen=True)
class LabelledPairs:
    """All pairs. Each of ``touching`` holds groups whose texts may well be related, and so count neither way.

    ``asked`` are queries by themselves: without any, nothing is learnt of whether a query concerns its user.
    """

    rows: tuple[LabelledPair, ...]
    touching: tuple[frozenset[str], ...] = ()
    asked: tuple[tuple[str, bool], ...] = ()  # queries, and whether each concerns the user

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Every query once, sorted."""
        return tuple(sorted({row.a for row in self._of(Kind.QUERY)}))

    @cached_property
    def passages(self) -> tuple[str, ...]:
        """Every memory and statement once, sorted."""
        return tuple(sorted({row.b for row in self.rows} | {row.a for row in self._of(Kind.PAIR)}))

    @cached_property
    def groups(self) -> dict[str, str]:
        """Text → group, of queries and of the memories that are related to one."""
        rows = self._of(Kind.QUERY)
        return {row.a: row.group for row in rows} | {row.b: row.group for row in rows if row.related}

    @cached_property
    def languages(self) -> dict[str, str]:
        """Text → language, of all of them."""
        return {text: language(text) for text in (*self.queries, *self.passages)}

    @cached_property
    def recalls(self) -> tuple[list[Texts], list[Texts]]:
        """Related and unrelated (query, memory): those that say so, and what follows from the groups."""
        rows = self._of(Kind.QUERY)
        related = {row.texts for row in rows if row.related}
        unrelated = {row.texts for row in rows if not row.related}
        known = {row.b: row.group for row in rows if row.related}
        for query in self.queries:
            group = self.groups[query]
            unrelated |= {(query, text) for text, other in known.items() if not self._touch(group, other)}
        return sorted(related), sorted(unrelated - related)

    @cached_property
    def statements(self) -> tuple[list[Texts], list[Texts]]:
        """The same statement in two wordings, and different statements on one topic."""
        rows = self._of(Kind.PAIR)
        return [row.texts for row in rows if row.related], [row.texts for row in rows if not row.related]

    def check(self, least_pairs: int, least_groups: int) -> None:
        """Raises InvalidInput when there is too little to fit anything to."""
        names = (
            "related queries in one language", "unrelated queries in one language", "same statements",
            "different statements",
        )  # fmt: skip
        alike = (self.one_language(side) for side in self.recalls)
        for name, found in zip(names, (*alike, *self.statements), strict=True):
            if len(found) < least_pairs:
                raise InvalidInput("pairs", f"{len(found)} {name}; at least {least_pairs} are needed")
        for label in (True, False) if self.asked else ():
            if (found_asked := sum(wanted is label for _, wanted in self.asked)) < least_pairs:
                what = "that concern the user" if label else "that do not"
                raise InvalidInput(
                    "pairs", f"{found_asked} queries {what}; at least {least_pairs} are needed"
                )
        if (groups := len(set(self.groups.values()))) < least_groups:
            raise InvalidInput("pairs", f"{groups} groups; at least {least_groups} are needed")

    def one_language(self, pairs: Sequence[Texts]) -> list[Texts]:
        """The pairs whose two texts are in the same language."""
        return [pair for pair in pairs if self.languages[pair[0]] == self.languages[pair[1]]]

    def _of(self, kind: Kind) -> list[LabelledPair]:
        return [row for row in self.rows if row.kind is kind]

    def _touch(self, group: str, other: str) -> bool:
        return group == other or any({group, other} <= near for near in self.touching)
