"""Words as search sees them: normal forms that need no dictionary (SPEC §7.1, ARCHITECTURE §3).

Two spellings of one thing give one token: full-width and compatibility forms, case, thousands separators,
written dates, Chinese numerals before a unit of time or age. Cutting Chinese into words and stemming English
need libraries and are in ``adapters.segmenter``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator
from enum import StrEnum

_HAN = "\u3005\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_NUMERALS = "零〇一二两兩三四五六七八九十百千"
# a run is looked at once, from its beginning: else a long one without a unit takes the square of its length
_NUMERAL = re.compile(f"(?<![{_NUMERALS}])[{_NUMERALS}]++(?=[年月日号號岁歲点點])")
_ZH_DATE = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号號]")
_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})++(?:(?![\d,])|(?P<more>\d*))")  # "more" makes it a list
_PIECES = re.compile(
    rf"""(?P<whole> [a-z0-9._%+-]{{1,64}}@[a-z0-9-]+(?:\.[a-z0-9-]+)+  # e-mail address
        | https?://[^\s{_HAN}<>"'，。；）】]+
        | \d{{4}}-\d{{2}}-\d{{2}} (?!\d)                            # date
        | \d{{1,2}}:\d{{2}} (?![\d:])                               # time of day
        | \d+(?:\.\d+)?%? (?![^\W_{_HAN}]))                         # number
      | (?P<han> [{_HAN}]+)
      | (?P<word> (?:[^\W_{_HAN}])+ (?:'[^\W\d_{_HAN}]+)?)""",
    re.VERBOSE,
)


class Kind(StrEnum):
    """What a piece of text needs next."""

    WHOLE = "whole"  # taken as it is: a number, date, time, address
    WORD = "word"  # an alphabetic word, to be stemmed
    HAN = "han"  # a run of Chinese (or Japanese), to be cut


def normal(text: str) -> str:
    """``text`` in NFKC, casefolded, with numbers and dates in one spelling each."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is nothing to search for
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    text = _NUMERAL.sub(lambda match: _arabic(match[0]), text)
    text = _THOUSANDS.sub(_joined, text)
    text = _ZH_DATE.sub(_iso, text)
    return _DATE.sub(_iso, text)


def pieces(text: str) -> Iterator[tuple[Kind, str]]:
    """The pieces of a text already in its ``normal`` form, in order; punctuation is dropped."""
    for match in _PIECES.finditer(text):
        yield Kind(match.lastgroup or ""), match[0].rstrip(".,;:!?)")


def without(words: Iterable[str], stop_words: Container[str]) -> tuple[str, ...]:
    """``words`` less the ``stop_words``, in order."""
    return tuple(word for word in words if word and word not in stop_words)


def _joined(match: re.Match[str]) -> str:
    return match[0] if match["more"] is not None else match[0].replace(",", "")


def _iso(match: re.Match[str]) -> str:
    year, month, day = match[1], int(match[2]), int(match[3])
    if 1 <= month <= 12 and 1 <= day <= 31:
        return f" {year}-{month:02}-{day:02} "
    return match[0]


def _arabic(numeral: str) -> str:
    """A Chinese numeral below ten thousand in digits; digit by digit where it names no unit (二〇二四)."""
    if not any(char in _UNITS for char in numeral):
        return "".join(str(_DIGITS[char]) for char in numeral)
    total, digit = 0, 0
    for char in numeral:
        if char in _UNITS:
            total, digit = total + (digit or 1) * _UNITS[char], 0
        else:
            digit = _DIGITS[char]
    return str(total + digit)
