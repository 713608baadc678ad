"""Secrets and strong identifiers, found by shape and checksum (SPEC §4.1.3). Port: ``Detector``."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from stdnum import iban, luhn
from stdnum.cn import ric
from stdnum.in_ import aadhaar
from stdnum.us import ssn

from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.detector import Found

_KINDS = frozenset({"id", "card", "iban", "secret", "password", "address"})
_MASKED = re.compile(r"\[(?:" + "|".join(sorted(_KINDS)) + r")\]")  # what stands for an earlier finding
_NO_PASSWORD = re.compile(  # "my password is wrong"
    r"not|too|wrong|incorrect|weak|strong|the|a|an|required|correct|expired|in|on|stored|my|your|very|"
    r"being|secure|forgotten|lost|so|what|hard|easy|invalid|reset|needed|missing|always|never|going|"
    r"getting|no|gone|still|changed|different|safe|broken|set|something|nothing|unknown|protected|same|"
    r"important|case-sensitive|and|but|or|for|with|that|this|it|is|was|are|private|public|there|here|by|"
    r"as|at|of|to|from",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[ .\-]")
_STREET_FALSE = re.compile(
    r"(?i)\b(?:in|at|on|of|the|and|years?|days?|weeks?|hours?|minutes?|miles?|km|people|times|cats|dogs|per|"
    r"from|is|was|with|to)\b"
)


def _digits(text: str) -> str:
    return _SEPARATORS.sub("", text)


def _mixed(text: str) -> bool:
    """Looks random: letters and digits, or a long hexadecimal or base64 run."""
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def _card(text: str) -> bool:
    digits = _digits(text)
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and bool(luhn.is_valid(digits))


def _document(text: str) -> bool:
    return 5 <= sum(char.isdigit() for char in text) <= 18


def _password(text: str) -> bool:
    words = text.strip("\"'“”").split()
    if not words or text[0] in "[<(":
        return False
    return len(words) >= 4 or not _NO_PASSWORD.fullmatch(words[0].strip(".,;!?"))


def _tw_id(text: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    digits = [letter // 10, letter % 10, *(int(char) for char in text[1:])]
    weights = [1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1]
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=True)) % 10 == 0


def _street(text: str) -> bool:
    return not _STREET_FALSE.search(text.split(maxsplit=1)[-1])


CHECKS: Mapping[str, Callable[[str], bool]] = {
    "mixed": _mixed,
    "card": _card,
    "document": _document,
    "password": _password,
    "ascii_password": lambda text: text[0] not in "[<(",
    "cn_id": lambda text: bool(ric.is_valid(_digits(text).upper())),
    "us_ssn": lambda text: bool(ssn.is_valid(text)),
    "aadhaar": lambda text: bool(aadhaar.is_valid(_digits(text))),
    "iban": lambda text: bool(iban.is_valid(text)),
    "tw_id": _tw_id,
    "street": _street,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One row of ``configs/privacy.toml``."""

    kind: str
    regex: re.Pattern[str]
    check: str | None


class SecretDetector:
    """Finds what must never be stored; full-width digits and invisible characters are no way around it."""

    def __init__(self, shapes: tuple[Shape, ...] | None = None) -> None:
        self._shapes = load_shapes() if shapes is None else shapes

    def find(self, text: str) -> list[Found]:
        """All findings, in order, not overlapping; offsets point into ``text`` as given.

        What one finding hid may show once it is masked, so the look is repeated on the masked text.
        """
        plain, origin = _normalised(text)
        found: list[Found] = []
        while hits := list(self._pass(plain)):
            for start, end, kind in sorted(hits, reverse=True):
                found.append(Found(origin[start], origin[end - 1] + 1, kind))
                token = f"[{kind}]"
                plain = plain[:start] + token + plain[end:]
                origin[start:end] = [origin[start]] * len(token)
        return sorted(found, key=lambda item: item.start)

    def _pass(self, plain: str) -> Iterator[tuple[int, int, str]]:
        taken = [hit.span() for hit in _MASKED.finditer(plain)]
        for shape in self._shapes:
            for hit in shape.regex.finditer(plain):
                span = _span(shape, hit)
                if span and _free(span, taken):
                    taken.append(span)
                    yield (*span, shape.kind)


def _span(shape: Shape, hit: re.Match[str]) -> tuple[int, int] | None:
    start, end = hit.span("x") if "x" in hit.re.groupindex else hit.span()
    words = hit.string[start:end]
    end -= len(words) - len(words.rstrip(" ,，"))
    if start >= end:
        return None
    if shape.check == "iban":
        return _iban_span(hit.string, start, end)
    check = CHECKS[shape.check] if shape.check else None
    return (start, end) if check is None or check(hit.string[start:end]) else None


def _iban_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Words behind an IBAN may look like more of it: the longest valid beginning counts."""
    for stop in range(end, start + 14, -1):
        if not text[stop - 1].isspace() and CHECKS["iban"](text[start:stop]):
            return start, stop
    return None


def _free(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return all(span[1] <= start or end <= span[0] for start, end in taken)


def _normalised(text: str) -> tuple[str, list[int]]:
    """Narrow digits and letters, no invisible characters; and where each character came from."""
    if text.isascii():
        return text, list(range(len(text)))
    chars: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        narrow = _narrow(char)
        if narrow:
            chars.append(narrow)
            origin.append(index)
    return "".join(chars), origin


def _narrow(char: str) -> str:
    """One plain character, or nothing for an invisible one."""
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category == "Cf" or "\ufe00" <= char <= "\ufe0f" or char == "\u034f":
        return ""
    if category in {"Nd", "No"} and (value := unicodedata.digit(char, None)) is not None:
        return str(value)
    if category in {"Pd", "Zs"}:
        return "-" if category == "Pd" else " "
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() and plain.isalnum() else char


def load_shapes(source: Path | Traversable | None = None) -> tuple[Shape, ...]:
    """The shapes of ``source``; of ``configs/privacy.toml`` if none is named.

    Raises:
        InvalidConfig: unreadable TOML, an unknown key, kind or check, or a bad regular expression.
    """
    place = files("configs") / "privacy.toml" if source is None else source
    try:
        rows = tomllib.loads(place.read_text(encoding="utf-8"))["shape"]
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as problem:
        raise InvalidConfig(place.name, str(problem)) from problem
    return tuple(_shape(number, row) for number, row in enumerate(rows))


def _shape(number: int, row: Mapping[str, Any]) -> Shape:
    where = f"privacy.shape.{number}"
    if not {"kind", "regex"} <= set(row) <= {"kind", "regex", "check"}:
        raise InvalidConfig(where, "must hold kind, regex and perhaps check")
    if row["kind"] not in _KINDS:
        raise InvalidConfig(where + ".kind", f"must be one of {', '.join(sorted(_KINDS))}")
    if row.get("check") is not None and row["check"] not in CHECKS:
        raise InvalidConfig(where + ".check", f"must be one of {', '.join(sorted(CHECKS))}")
    try:
        return Shape(row["kind"], re.compile(row["regex"], re.DOTALL), row.get("check"))
    except re.error as problem:
        raise InvalidConfig(where + ".regex", str(problem)) from problem
