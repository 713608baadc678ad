"""Checksums and forms that a finding must have besides its shape.

A check takes the words that a shape found and says how many of them, from the first on, are the secret; 0: none.
``stdnum.<module>`` in ``configs/privacy.toml`` names a module of python-stdnum; the others stand in ``CHECKS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from importlib import import_module

from stdnum import iban, luhn, numdb
from stdnum.cn import ric

Check = Callable[[str], int]

_NOT_ALNUM = re.compile(r"[^0-9A-Za-z]")
_IBAN_FORM = re.compile(r"(\d+)!")
_LIBRARY = "stdnum."

_CENTURIES = {"18", "19", "20"}  # of anybody who is written about
_HK_WEIGHTS = (9, 8, 7, 6, 5, 4, 3, 2, 1)
_TW_WEIGHTS = (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)
_TW_LETTERS = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_SG_WEIGHTS = (2, 7, 6, 5, 4, 3, 2)
_SG_LETTERS = {
    "S": (0, "JZIHGFEDCBA"),
    "T": (4, "JZIHGFEDCBA"),
    "F": (0, "XWUTRQPNMLK"),
    "G": (4, "XWUTRQPNMLK"),
}


def compact(text: str) -> str:
    """Letters and digits only, in capitals."""
    return _NOT_ALNUM.sub("", text).upper()


def _whole(is_valid: Callable[[str], bool]) -> Check:
    return lambda text: len(text) if is_valid(text) else 0


def mixed(text: str) -> bool:
    """Looks made by a machine: letters and digits together."""
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def varied(text: str) -> bool:
    """Is no row of one and the same digit, as in an example."""
    return len(set(compact(text))) > 1


def document(text: str) -> bool:
    """Has as many digits as the number of a document."""
    return 5 <= sum(char.isdigit() for char in text) <= 18  # no country's is shorter or longer


def cn_id(text: str) -> bool:
    """A citizen's number: check character and date of birth. Districts come and go, so they are not looked up."""
    number = compact(text)
    try:
        date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    return number[6:8] in _CENTURIES and bool(ric.calc_check_digit(number) == number[-1])


def tw_id(text: str) -> bool:
    """Taiwan: a letter worth two digits, nine digits, weighted sum divisible by ten."""
    letter = _TW_LETTERS.index(text[0]) + 10
    digits = [letter // 10, letter % 10, *(int(char) for char in text[1:])]
    return sum(digit * weight for digit, weight in zip(digits, _TW_WEIGHTS, strict=True)) % 10 == 0


def hk_id(text: str) -> bool:
    """Hong Kong: one or two letters, six digits, a check character in brackets; weighted sum divisible by eleven."""
    number = compact(text)
    values = [36] * (9 - len(number)) + [int(char, 36) for char in number[:-1]]
    last = 10 if number[-1] == "A" else int(number[-1])
    return (sum(v * w for v, w in zip([*values, last], _HK_WEIGHTS, strict=True))) % 11 == 0


def sg_id(text: str) -> bool:
    """Singapore: a letter for the kind and century, seven digits, a check letter."""
    offset, letters = _SG_LETTERS[text[0]]
    return (
        letters[(offset + sum(int(d) * w for d, w in zip(text[1:8], _SG_WEIGHTS, strict=True))) % 11]
        == text[8]
    )


def iban_length(text: str) -> int:
    """An account's number is as long as its country says; words behind it may look like more of it."""
    wanted = _iban_length(text[:2].upper())
    seen = 0
    for index, char in enumerate(text):
        seen += char.isalnum()
        if wanted and seen == wanted:
            number = compact(text[: index + 1])
            return index + 1 if iban.is_valid(number, check_country=False) else 0
    return 0


@cache
def _iban_length(country: str) -> int:
    form: Mapping[str, str] = numdb.get("iban").info(country)[0][1]
    return sum(map(int, _IBAN_FORM.findall(form["bban"]))) + 4 if form else 0


def card_check(brands: Mapping[str, tuple[re.Pattern[str], frozenset[int]]]) -> Check:
    """A payment card: first digits and length of a brand, Luhn's checksum. What follows it (date, code) is cut off."""

    def check(text: str) -> int:
        ends = [index + 1 for index, char in enumerate(text) if char.isdigit()]
        digits = compact(text)
        lengths = {n for first, sizes in brands.values() if first.match(digits) for n in sizes}
        for length in sorted(lengths, reverse=True):
            if length <= len(digits) and (length == len(digits) or ends[length] - ends[length - 1] > 1):
                number = digits[:length]
                if varied(number) and luhn.is_valid(number):
                    return ends[length - 1]
        return 0

    return check


CHECKS: Mapping[str, Check] = {
    "mixed": _whole(mixed),
    "varied": _whole(varied),
    "document": _whole(document),
    "cn_id": _whole(cn_id),
    "tw_id": _whole(tw_id),
    "hk_id": _whole(hk_id),
    "sg_id": _whole(sg_id),
    "iban": iban_length,
}


def library_check(name: str) -> Check | None:
    """The check of a module of python-stdnum, ``stdnum.us.ssn``; None if there is no such module."""
    if not name.startswith(_LIBRARY):
        return None
    try:
        module = import_module(name)
    except ImportError:
        return None
    if not hasattr(module, "is_valid"):
        return None
    return _whole(lambda text: bool(module.is_valid(text) or module.is_valid(compact(text))))
