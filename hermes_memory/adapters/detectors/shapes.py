"""The shapes of secrets, read from ``configs/privacy.toml`` and strictly validated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from hermes_memory.adapters.detectors.checks import CHECKS, Check, card_check, library_check
from hermes_memory.errors import InvalidConfig

KINDS = frozenset({"id", "card", "iban", "secret", "password", "code", "address"})
TOKEN = r"\[(?:" + "|".join(sorted(KINDS)) + r")\]"  # what stands for an earlier finding

_PART = re.compile(r"@([a-z_]+)@")
_REGEXES, _LISTS = ("regex", "link", "value", "before", "not_after"), ("labels", "starts", "needs", "unless")
_ALLOWED = frozenset({"kind", "check", *_REGEXES, *_LISTS})
_FORMS = (frozenset({"regex"}), frozenset({"labels", "value"}), frozenset({"starts", "value"}))
_WORD_GOES_ON = r"(?![A-Za-z0-9_@#$%^&*+-])"  # "wrong" is no password, "wrong-42" may be one

Checks = Callable[[str], Check | None]


@dataclass(frozen=True, slots=True)
class Shape:
    """One row of ``configs/privacy.toml``.

    Without ``labels`` the regex is sought anywhere; with them it is matched behind each one. Its group ``x``, if it
    has one, is the secret, ``before`` what belongs to it in front. It counts unless none of ``needs`` (or no digit) is in the text,
    it begins with ``unless`` or ``not_after`` ends just before it.
    """

    kind: str
    regex: re.Pattern[str]
    labels: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    check: Check | None = None
    before: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    not_after: re.Pattern[str] | None = None


def load_shapes(source: Path | Traversable | None = None) -> tuple[Shape, ...]:
    """The shapes of ``source``; of ``configs/privacy.toml`` if none is named.

    Raises:
        InvalidConfig: unreadable TOML, an unknown key, kind, part or check, or a bad regular expression.
    """
    place = files("configs") / "privacy.toml" if source is None else source
    try:
        data = tomllib.loads(place.read_text(encoding="utf-8"))
        rows, parts, brands = data["shape"], dict(data.get("part", {})), data.get("card", {})
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as problem:
        raise InvalidConfig(place.name, str(problem)) from problem
    parts |= {
        "token": TOKEN,
        "char": f"(?:(?!{TOKEN})[!-~])",
    }  # a mask; a character of a word and not of a mask
    card = card_check({name: _brand(name, row) for name, row in brands.items()})

    def checks(name: str) -> Check | None:
        return card if name == "card" else CHECKS.get(name) or library_check(name)

    return tuple(
        _Row(f"privacy.shape.{number}", row, parts, checks).shape() for number, row in enumerate(rows)
    )


def _brand(name: str, row: Mapping[str, Any]) -> tuple[re.Pattern[str], frozenset[int]]:
    try:
        return re.compile(row["first"]), frozenset(map(int, row["lengths"]))
    except (re.error, KeyError, TypeError, ValueError) as problem:
        raise InvalidConfig(f"privacy.card.{name}", "must hold first and lengths") from problem


@dataclass(frozen=True, slots=True)
class _Row:
    """One table of the file on its way to a shape."""

    where: str
    row: Mapping[str, Any]
    parts: Mapping[str, str]
    checks: Checks

    def shape(self) -> Shape:
        kind, keys = self.row.get("kind"), set(self.row)
        if kind not in KINDS:
            raise self._wrong("kind", f"must be one of {', '.join(sorted(KINDS))}")
        if keys - _ALLOWED or sum(form <= keys for form in _FORMS) != 1:
            raise self._wrong("", "must hold regex, or labels and value, or starts and value, and known keys")
        starts = self._texts("starts")
        labels = tuple(label.lower() for label in self._texts("labels"))
        return Shape(
            kind=kind,
            regex=self._main(starts, labels),
            labels=labels,
            needs=tuple(word.lower() for word in self._texts("needs") or starts),
            check=self._check(),
            before=self._before("before"),
            unless=self._unless(),
            not_after=self._before("not_after"),
        )

    def _main(self, starts: tuple[str, ...], labels: tuple[str, ...]) -> re.Pattern[str]:
        if starts:
            return self._compiled(
                "value", f"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, starts))}){self._text('value')}"
            )
        if labels:
            return self._compiled("value", f"(?i:{self._text('link')})(?P<x>{self._text('value')})")
        return self._compiled("regex", self._text("regex"))

    def _check(self) -> Check | None:
        if (name := self.row.get("check")) is None:
            return None
        if (check := self.checks(str(name))) is None:
            raise self._wrong(
                "check", f"must be card, one of {', '.join(sorted(CHECKS))}, or a module of stdnum"
            )
        return check

    def _unless(self) -> re.Pattern[str] | None:
        """Words that a secret does not begin with; Latin ones as whole words."""
        words = self._texts("unless")
        if not words:
            return None
        whole = "|".join(word for word in words if word.isascii()) or "(?!)"
        begin = "|".join(word for word in words if not word.isascii()) or "(?!)"
        return self._compiled("unless", rf"(?i:(?:{whole}){_WORD_GOES_ON}|(?:{begin}))")

    def _before(self, key: str) -> re.Pattern[str] | None:
        return self._compiled(key, rf"(?:{self._text(key)})\Z") if key in self.row else None

    def _compiled(self, key: str, regex: str) -> re.Pattern[str]:
        try:
            return re.compile(_PART.sub(lambda part: self.parts[part[1]], regex))
        except KeyError as lost:
            raise self._wrong(key, f"names a part that is not there: {lost}") from None
        except re.error as problem:
            raise self._wrong(key, str(problem)) from problem

    def _text(self, key: str) -> str:
        value = self.row.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, "must be a text")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        values = self.row.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise self._wrong(key, "must be a list of texts")
        return tuple(values)

    def _wrong(self, key: str, problem: str) -> InvalidConfig:
        return InvalidConfig(f"{self.where}.{key}".rstrip("."), problem)
