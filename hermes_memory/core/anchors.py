"""What the summary of a conversation must not lose: the four anchors, found by words and by form (SPEC §3.4, S4 §3.1).

Things (numbers, dates, places, names) stand for themselves; words (preferences and what users say of themselves,
moods and changes of mind, promises and tasks) need the clause around them. The expressions are data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hermes_memory.core.sentences import Stretch, asks, clauses

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[^\W\d_\u3400-\u9fff\uf900-\ufaff]")


class Kind(StrEnum):
    """What an anchor is; the names are those of the tables in the file."""

    NUMBER = "number"
    DATE = "date"
    PLACE = "place"
    NAME = "name"
    PREFERENCE = "preference"
    ABOUT = "about"
    MOOD = "mood"
    PROMISE = "promise"
    VOW = "vow"  # a promise or an open task in an assistant's sentence
    SELF = "self"  # no anchor: the words by which users speak of themselves


THINGS = (Kind.NUMBER, Kind.DATE, Kind.PLACE, Kind.NAME)
WORDS = (Kind.PREFERENCE, Kind.ABOUT, Kind.MOOD, Kind.PROMISE)
_OF_USER, _OF_ASSISTANT = (*WORDS, *THINGS), (Kind.VOW,)
_STATED = {Kind.PREFERENCE, Kind.ABOUT, Kind.MOOD}  # a question about others states none of them

Patterns = Mapping[Kind, re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Anchor:
    """``sentence[start:end]`` is one; of a word the stretch is the word alone."""

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Anchors:
    """The expressions by language; a text is read by those whose letters it has."""

    zh: Patterns
    en: Patterns

    def marks(self, sentence: str, *, assistant: bool = False) -> bool:
        """Whether a sentence holds an anchor; of an assistant's only what it promises or leaves to do counts."""
        return next(self.find(sentence, _OF_ASSISTANT if assistant else _OF_USER), None) is not None

    def find(self, sentence: str, kinds: Sequence[Kind] = _OF_USER) -> Iterator[Anchor]:
        """The anchors of these kinds, kind by kind."""
        read = self._of(sentence)
        about_others = asks(sentence) and not any(patterns[Kind.SELF].search(sentence) for patterns in read)
        for patterns in read:
            for kind in kinds:
                if not (about_others and kind in _STATED):
                    for found in patterns[kind].finditer(sentence):
                        yield Anchor(kind, *found.span())

    def cores(self, sentence: str, clause_chars: int, *, assistant: bool = False) -> list[Stretch]:
        """What must stay when a sentence shrinks: things as they stand, words with at most ``clause_chars`` around.

        The stretches are in order and do not touch; all of the sentence's anchors lie in them.
        """
        words = _OF_ASSISTANT if assistant else WORDS
        stretches = [(anchor.start, anchor.end) for anchor in self.find(sentence, THINGS)]
        parts = list(clauses(sentence))
        for anchor in self.find(sentence, words):
            stretches += _around(anchor, parts, clause_chars)
        return _joined(stretches)

    def _of(self, text: str) -> list[Patterns]:
        chinese = _CJK.search(text) is not None
        latin = _LATIN.search(text) is not None
        return [*([self.zh] if chinese else []), *([self.en] if latin or not chinese else [])]


def _around(anchor: Anchor, parts: list[Stretch], clause_chars: int) -> Iterator[Stretch]:
    """The word with its clauses, or with the nearest characters of clauses that are too long."""
    yield anchor.start, anchor.end
    room = max(0, clause_chars - (anchor.end - anchor.start))
    for start, end in parts:
        if start < anchor.end and anchor.start < end:
            low, high = max(start, anchor.start - room // 3), min(end, anchor.end + room)
            whole = end - start <= clause_chars
            yield (start, end) if whole else (low, min(high, low + clause_chars))


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for start, end in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
