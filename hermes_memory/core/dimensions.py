"""Dimensions: the decision a statement bears on, and what conflict detection groups by (S3 §5.2).

The entries are data (``configs/dimensions.toml``); this module gives them their type and look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermes_memory.core.model import Category, Layer


class Cardinality(StrEnum):
    """Whether a subject can hold one value at a time, or several that coexist."""

    SINGLE = "single"
    MULTI = "multi"


class SafetyClass(StrEnum):
    """Why a statement carries the safety flag (SPEC §3.1)."""

    ALLERGY = "allergy"
    ILLNESS = "illness"
    MEDICATION = "medication"
    RELIGIOUS_TABOO = "religious_taboo"
    FINANCIAL = "financial"
    LEGAL = "legal"
    RED_LINE = "red_line"


class Sensitive(StrEnum):
    """What may be kept in the user's own words only, never concluded (SPEC §4.1.3)."""

    HEALTH = "health"
    RELIGION = "religion"
    GOVERNMENT = "government"


_SENSITIVE_BY_CLASS = {
    SafetyClass.ALLERGY: Sensitive.HEALTH,
    SafetyClass.ILLNESS: Sensitive.HEALTH,
    SafetyClass.MEDICATION: Sensitive.HEALTH,
    SafetyClass.RELIGIOUS_TABOO: Sensitive.RELIGION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension.

    ``labels`` maps a language (``zh``, ``en``) to the words the briefing puts before the object.
    ``cues`` are words of a query that call for this slot. ``exclusive`` holds groups of values of which at
    most one can hold at a time even when the dimension is multi-valued. ``freeze_class`` names the
    ``freeze.immediate`` class it belongs to, if any (a safety class, or ``naming``). ``avoids``: the label itself
    says that the objects are unwanted. ``sensitive``: why it is never inferred, where the safety class does not
    say so already.
    """

    key: str
    cardinality: Cardinality
    category: Category
    layer: Layer | None
    labels: dict[str, str]
    cues: dict[str, tuple[str, ...]]
    related: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    safety: SafetyClass | None = None
    freeze_class: str | None = None
    avoids: bool = False
    sensitive: Sensitive | None = None

    @property
    def single(self) -> bool:
        """Whether a subject holds one value at a time."""
        return self.cardinality is Cardinality.SINGLE


class Dimensions:
    """All known dimensions by key. An unknown key reads as an open, multi-valued one."""

    def __init__(self, entries: Iterable[Dimension]) -> None:
        self._by_key = {entry.key: entry for entry in entries}
        self._named_by: dict[str, set[str]] = {}  # key → those that name it as related
        for entry in self:
            for other in entry.related:
                self._named_by.setdefault(other, set()).add(entry.key)
        self._cue_words: dict[str, set[str]] = {}  # one Latin word: stands by itself in a query
        self._cue_parts: dict[str, list[tuple[str, str]]] = {}  # others: anywhere in it; by first letter
        for entry in self:
            for cue in (cue.casefold() for cues in entry.cues.values() for cue in cues):
                if cue.isascii() and " " not in cue:
                    self._cue_words.setdefault(cue, set()).add(entry.key)
                else:
                    self._cue_parts.setdefault(cue[0], []).append((cue, entry.key))

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._by_key.values())

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def get(self, key: str) -> Dimension | None:
        """The dimension, or None when the key is an open one."""
        return self._by_key.get(key)

    def single(self, key: str) -> bool:
        """Whether a subject holds one value of it at a time."""
        return (entry := self._by_key.get(key)) is not None and entry.single

    def safety(self, key: str) -> SafetyClass | None:
        """The safety class, if statements of this dimension carry the safety flag."""
        return entry.safety if (entry := self._by_key.get(key)) else None

    def sensitive(self, key: str) -> Sensitive | None:
        """Why statements of this dimension are never inferred (SPEC §4.1.3): its own mark, or its safety class."""
        if (entry := self._by_key.get(key)) is None:
            return None
        return entry.sensitive or (_SENSITIVE_BY_CLASS.get(entry.safety) if entry.safety else None)

    def freeze_class(self, key: str) -> str | None:
        """The ``freeze.immediate`` class of this dimension, if any."""
        return entry.freeze_class if (entry := self._by_key.get(key)) else None

    def called_by(self, query: str) -> set[str]:
        """The dimensions that a query calls for by one of their cue words."""
        folded = query.casefold()
        called = {
            key
            for start in range(len(folded))
            for cue, key in self._cue_parts.get(folded[start], ())
            if folded.startswith(cue, start)
        }
        for word in re.findall(r"[^\W_]+", folded):
            called |= self._cue_words.get(word, set())
        return called

    def avoids(self, key: str) -> bool:
        """Whether the label of a dimension already says that its objects are unwanted."""
        return (entry := self._by_key.get(key)) is not None and entry.avoids

    def label(self, key: str, language: str) -> str:
        """The words that stand before an object of this dimension in the briefing; empty for an open one."""
        return entry.labels.get(language, "") if (entry := self._by_key.get(key)) else ""

    def rivalling(self, key: str) -> frozenset[str]:
        """The dimensions whose statements may contradict one of ``key`` without naming the same object."""
        entry = self._by_key.get(key)
        if entry is None or not (entry.single or entry.exclusive):
            return frozenset()
        return frozenset({key, *entry.related, *self._named_by.get(key, ())})

    def related(self, left: str, right: str) -> bool:
        """Whether two keys are the same dimension or name each other as related."""
        if left == right:
            return True
        one, other = self._by_key.get(left), self._by_key.get(right)
        return bool((one and right in one.related) or (other and left in other.related))
