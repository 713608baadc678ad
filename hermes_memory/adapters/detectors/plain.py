"""Text as the shapes read it: narrow digits and letters, plain spaces and dashes, nothing invisible."""

from __future__ import annotations

import unicodedata

_MOST_CACHED = (
    50_000  # far more than any language writes with; a text of every character there is stays harmless
)


class _Narrow(dict[int, str]):
    """A table for ``str.translate``: one plain character for each, or nothing for an invisible one."""

    def __missing__(self, point: int) -> str:
        narrow = _narrow(chr(point))
        if len(self) < _MOST_CACHED:
            self[point] = narrow
        return narrow


_TABLE = _Narrow()
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def normalised(text: str) -> tuple[str, list[int]]:
    """The plain text, and where in ``text`` each of its characters stood."""
    if text.isascii():
        return text, list(range(len(text)))
    plain = text.translate(_TABLE)
    if len(plain) == len(text):
        return plain, list(range(len(text)))
    return plain, [index for index, char in enumerate(text) if _TABLE[ord(char)]]


def lowered(plain: str) -> str:
    """``plain`` in small Latin letters, of the same length whatever else it holds."""
    return plain.translate(_LOWER)


def _narrow(char: str) -> str:
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
    return plain if len(plain) == 1 and plain.isascii() and plain.isprintable() else char
