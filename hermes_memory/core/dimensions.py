"""Dimensions: the decision a statement bears on, and what conflict detection groups by (S3 §5.2).

The entries are data (``configs/dimensions.toml``); this module gives them their type and look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from hermes_memory.core.model import Category, Layer
from hermes_memory.core.values import Reader, Terms, Tokens, Wording


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
    most one can hold at a time even when the dimension is multi-valued; a value may have several words
    (``"quiet|安静"``). ``same`` holds groups of objects that are one value. ``general`` are objects that stand for
    the whole dimension: who has no *pets* has no cat. ``kinds`` are pairs of a wider value and what are kinds of
    it: who has no *dog* has no beagle. ``parts`` find attributes in a content that hold one value
    each, named by their group ``what`` (the blood type among the body's measures). ``levels`` find in an object
    of which kind it is (a country, a city): values of two kinds never contradict. ``nested``: values lie in
    each other, and may be named with what they lie in ("湖南长沙"). ``freeze_class``
    names the ``freeze.immediate`` class it belongs to, if any (a safety class, or ``naming``). ``avoids``: the
    label itself says that the objects are unwanted. ``sensitive``: why it is never
    inferred, where the safety class does not say so already.
    """

    key: str
    cardinality: Cardinality
    category: Category
    layer: Layer | None
    labels: dict[str, str]
    cues: dict[str, tuple[str, ...]]
    related: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    same: tuple[tuple[str, ...], ...] = ()
    general: tuple[str, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    parts: tuple[re.Pattern[str], ...] = ()
    levels: tuple[re.Pattern[str], ...] = ()
    nested: bool = False
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

    def __init__(self, entries: Iterable[Dimension], wording: Wording | None = None) -> None:
        self._by_key = {entry.key: entry for entry in entries}
        self._named_by: dict[str, set[str]] = {}  # key → those that name it as related
        for entry in self:
            for other in entry.related:
                self._named_by.setdefault(other, set()).add(entry.key)
        self.reader = Reader(wording or Wording())
        self._values = {key: _Values(entry, self.reader) for key, entry in self._by_key.items()}
        self._canonical: dict[str, set[Tokens]] = {}  # words → the values they stand for, in any dimension
        for values in self._values.values():
            for words, value in values.same.items():
                self._canonical.setdefault(words, set()).add(value)
        self._heads = lru_cache(maxsize=4096)(self._heads_now)
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

    def relatives(self, key: str) -> frozenset[str]:
        """The key itself and every one that is related to it."""
        named = self._by_key[key].related if key in self._by_key else ()
        return frozenset({key, *named, *self._named_by.get(key, ())})

    def heads(self, text: str) -> frozenset[str]:
        """The last words of what an object names, in its own words and in those of every dimension that knows it.

        Two objects that are the same, of which one says the other more exactly, or is known as its kind, share one.
        """
        return self._heads(text)

    def _heads_now(self, text: str) -> frozenset[str]:
        plain = self.reader.value(text)
        known = self._canonical.get("".join(plain), ())
        pairs = (pair for values in self._values.values() for pair in values.kinds)
        wider = (value for names, kinds in pairs if kinds.named_in(text) for value in names)
        return frozenset(value[-1] if value else "" for value in (plain, *known, *wider))

    def words(self, text: str) -> frozenset[str]:
        """The words of what an object names, in its own words and in those of every dimension that knows it."""
        plain = self.reader.value(text)
        known = self._canonical.get("".join(plain), ())
        return frozenset(word for value in (plain, *known) for word in value or ("",)) | self.heads(text)

    def related(self, left: str, right: str) -> bool:
        """Whether two keys are the same dimension or name each other as related."""
        if left == right:
            return True
        one, other = self._by_key.get(left), self._by_key.get(right)
        return bool((one and right in one.related) or (other and left in other.related))

    def value(self, key: str, text: str) -> Tokens:
        """What an object names within a dimension: equal for two spellings of one value."""
        plain = self.reader.value(text)
        return self._values[key].same.get("".join(plain), plain) if key in self._values else plain

    def same(self, key: str, left: str, right: str) -> bool:
        """Whether two objects of a dimension name one value; a place also with what it lies in."""
        one, other = self.value(key, left), self.value(key, right)
        if one == other:
            return True
        entry = self._by_key.get(key)
        return bool(entry and entry.nested) and (
            self.reader.refines(one, other) or self.reader.refines(other, one)
        )

    def akin(self, key: str, new: str, old: str) -> bool:
        """Whether ``old`` holds the words of ``new``: perhaps the same in fewer words, which the meaning decides."""
        return self.reader.holds(self.value(key, old), self.value(key, new))

    def general(self, key: str, text: str) -> bool:
        """Whether an object stands for the whole dimension."""
        return key in self._values and self.value(key, text) in self._values[key].general

    def kind_of(self, keys: Iterable[str], narrow: str, wide: str) -> bool:
        """Whether ``narrow`` is known to be a kind of ``wide`` in one of the dimensions."""
        value = self.reader.value(wide)
        pairs = (pair for key in keys if key in self._values for pair in self._values[key].kinds)
        return any(value in names and bool(kinds.named_in(narrow)) for names, kinds in pairs)

    def finer(self, key: str, left: str, right: str) -> bool:
        """Whether one of two values of a known dimension only says more exactly, or of another kind, what is so."""
        one, other = self.value(key, left), self.value(key, right)
        if self.reader.refines(one, other) or self.reader.refines(other, one):
            return True
        entry = self._by_key[key]
        within = one[: len(other)] == other or other[: len(one)] == one  # "湖南长沙" and "湖南"
        return (entry.nested and within) or _level(entry, left) != _level(entry, right)

    def exclude(self, left: str, right: str, one: str, other: str) -> bool:
        """Whether the objects ``one`` of dimension ``left`` and ``other`` of ``right`` cannot both hold."""
        groups = {
            id(group): group
            for key in (left, right)
            if key in self._values
            for group in self._values[key].exclusive
        }
        named = ((group.named_in(one), group.named_in(other)) for group in groups.values())
        return any(new and old and not new & old for new, old in named)

    def chooses(self, key: str, text: str) -> bool:
        """Whether an object names a value of an exclusive group, of its dimension or of a related one."""
        known = (self._values[one] for one in self.relatives(key) if one in self._values)
        return any(group.named_in(text) for values in known for group in values.exclusive)

    def attributes(self, key: str, content: str) -> frozenset[Tokens]:
        """The attributes named in ``content`` that hold one value at a time."""
        entry = self._by_key.get(key)
        parts = (*(entry.parts if entry else ()), *self.reader.favourite)
        found = (hit for part in parts for hit in part.finditer(content))
        return frozenset(self.reader.value(hit.group("what") or "") for hit in found)


class _Values:
    """How the objects of one dimension are compared."""

    def __init__(self, entry: Dimension, reader: Reader) -> None:
        self.same = {
            "".join(reader.value(word)): reader.value(group[0]) for group in entry.same for word in group
        }
        self.kinds = tuple(
            (frozenset(reader.value(word) for word in wide.split("|")), Terms([narrow]))
            for wide, narrow in entry.kinds
        )
        self.exclusive = tuple(Terms(group) for group in entry.exclusive)
        plain = (reader.value(word) for word in entry.general)
        self.general = frozenset(self.same.get("".join(word), word) for word in plain)


def _level(entry: Dimension, text: str) -> int:
    """The number of the first level that ``text`` is of; one more for those that none finds."""
    hits = (number for number, level in enumerate(entry.levels) if level.search(text))
    return next(hits, len(entry.levels))
