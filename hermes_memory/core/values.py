"""What an object names: two spellings of one value, and one value that covers another (SPEC §4.1.8, §6).

An object is read as a row of tokens: a Latin word in the singular, a number, a Chinese character. English and
Chinese both put the head last, so that *coffee* is what *instant coffee* is a kind of, and 蛋 what 鸡蛋 is.
Which words say nothing, and which narrow a statement down, is data (``[words]`` in ``configs/dimensions.toml``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

Tokens = tuple[str, ...]

_HAN = "\u3400-\u9fff\uf900-\ufaff"
_HAN_DIGITS = "零〇一二两兩三四五六七八九十百千万萬"
_TOKEN = re.compile(
    rf"\d+(?:[.,]\d+)*|[{_HAN_DIGITS}]+|[{_HAN}]|[^\W\d_{_HAN}]+(?:['’][^\W\d_]+)?", re.UNICODE
)
_NUMBER = re.compile(rf"\d.*|[{_HAN_DIGITS}]+")
_SINGULAR = (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("s", ""))
_NO_PLURAL = ("ss", "us", "is")  # bass, citrus, tennis
_MIN_PLURAL_CHARS = 4
_MIN_GERUND_CHARS = 6  # "hiking" and "hike", but not "king"
_KEPT_DOUBLE = ("l", "s", "z")  # "selling", "dressing", "buzzing"


@lru_cache(maxsize=8192)
def tokens(text: str) -> Tokens:
    """``text`` as tokens, compatibility- and case-folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(_plain(token) for token in _TOKEN.findall(folded))


def _plain(word: str) -> str:
    """The word without plural, possessive and -ing; comparable, not readable."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) < _MIN_PLURAL_CHARS or not word.isascii() or word.endswith(_NO_PLURAL):
        return word
    if len(word) >= _MIN_GERUND_CHARS and word.endswith("ing"):
        stem = word.removesuffix("ing")
        return stem[:-1] if stem[-1] == stem[-2] not in _KEPT_DOUBLE else stem
    ending = next((pair for pair in _SINGULAR if word.endswith(pair[0])), None)
    return (word.removesuffix(ending[0]) + ending[1] if ending else word).removesuffix("e")


class Terms:
    """A list of values, each given by the words that name it: ``"quiet|peaceful|安静"``."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = tuple(_pattern(value) for value in values)

    def named_in(self, text: str) -> frozenset[int]:
        """The numbers of the values that ``text`` names."""
        if not self._values:
            return frozenset()
        folded = unicodedata.normalize("NFKC", text).casefold()
        return frozenset(number for number, value in enumerate(self._values) if value.search(folded))


def _pattern(value: str) -> re.Pattern[str]:
    """Latin words stand alone and may be plural; Chinese ones stand anywhere."""
    words = [re.escape(unicodedata.normalize("NFKC", word).casefold()) for word in value.split("|")]
    latin = [word for word in words if word.isascii()]
    parts = [word for word in words if not word.isascii()]
    if latin:
        parts.append(rf"(?<![a-z0-9])(?:{'|'.join(latin)})(?:e?s)?(?![a-z0-9])")
    return re.compile("|".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Words that do not name a value but say how to read one.

    ``fillers`` add nothing to an object. ``narrow`` are circumstances to which a liking may be limited ("in the
    evening"); ``apart`` only tell two limited ones from each other ("on planes", "on trains"). ``which`` tell one
    of several alike from the others ("the older"). ``negators`` turn a value round ("without furniture").
    ``past`` says that it was so once. ``occasions`` find such circumstances by their shape ("when I write emails": group ``what``). ``favourite``
    finds what the favourite of something is: its group ``what`` has one value at a time.
    """

    fillers: tuple[str, ...] = ()
    narrow: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    which: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    negators: tuple[str, ...] = ()
    occasions: tuple[re.Pattern[str], ...] = ()
    favourite: tuple[re.Pattern[str], ...] = ()


class Reader:
    """Reads objects with a ``Wording``."""

    def __init__(self, wording: Wording) -> None:
        latin = (word for word in wording.fillers if word.isascii())
        han = sorted((word for word in wording.fillers if not word.isascii()), key=len, reverse=True)
        self._fillers = frozenset(token for word in latin for token in tokens(word))
        self._han = re.compile("|".join(map(re.escape, han)) or r"(?!)")
        self._negators = frozenset(token for word in wording.negators for token in tokens(word))
        self._narrow, self._apart = Terms(wording.narrow), Terms(wording.apart)
        self._which, self._past = Terms(wording.which), Terms(wording.past)
        self._cached = lru_cache(maxsize=8192)(self._value)
        self.favourite, self._occasions = wording.favourite, wording.occasions

    def same_period(self, one: str, other: str) -> bool:
        """Whether both contents tell how it is, or both how it once was."""
        return self.past(one) is self.past(other)

    def past(self, content: str) -> bool:
        """Whether ``content`` tells how it once was."""
        return bool(self._past.named_in(content))

    def same_one(self, one: str, other: str) -> bool:
        """Whether neither content singles out one of several that the other does not mean."""
        return self._which.named_in(one) == self._which.named_in(other)

    def apart(self, one: str, other: str) -> bool:
        """Whether both contents are limited, and to different things."""
        left, right = self._apart.named_in(one), self._apart.named_in(other)
        return bool(left and right) and left.isdisjoint(right)

    def circumstances(self, content: str) -> frozenset[int | Tokens]:
        """What a statement is limited to."""
        found = (hit for shape in self._occasions for hit in shape.finditer(content))
        return self._narrow.named_in(content) | {tokens(hit.group("what")) for hit in found}

    def value(self, text: str) -> Tokens:
        """The tokens of ``text`` that name something; all of them if none does."""
        return self._cached(text)

    def _value(self, text: str) -> Tokens:
        plain = self._han.sub(" ", unicodedata.normalize("NFKC", text))
        words = tokens(plain)
        last = words[-1:] if len(words[-1:] and words[-1]) == 1 else ()  # blood type A is no article
        kept = tuple(token for token in words[: len(words) - len(last)] if token not in self._fillers)
        return kept + last or tokens(text)

    def refines(self, longer: Tokens, shorter: Tokens) -> bool:
        """Whether ``longer`` says more exactly what ``shorter`` says: the same head, nothing turned round."""
        extra = len(longer) - len(shorter)
        return bool(shorter) and extra > 0 and longer[extra:] == shorter and not self.turns(longer[:extra])

    def model_of(self, longer: Tokens, shorter: Tokens) -> bool:
        """Whether ``longer`` is ``shorter`` with a number behind it: a Pixel 7 is a Pixel, 夜跑五公里 is 夜跑."""
        extra = longer[len(shorter) :]
        return (
            bool(shorter and extra)
            and longer[: len(shorter)] == shorter
            and _NUMBER.fullmatch(extra[0]) is not None
        )

    def holds(self, longer: Tokens, shorter: Tokens) -> bool:
        """Whether ``longer`` is ``shorter`` with more words around it: none of them a number or a negation."""
        if longer == shorter:
            return True
        size = len(shorter)
        for start in range(len(longer) - size + 1 if shorter else 0):
            if longer[start : start + size] == shorter:
                extra = longer[:start] + longer[start + size :]
                return not self.turns(extra) and not any(_NUMBER.fullmatch(token) for token in extra)
        return False

    def turns(self, words: Tokens) -> bool:
        """Whether ``words`` hold a negation."""
        return not self._negators.isdisjoint(words)
