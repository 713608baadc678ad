"""Where a model's words stand in a turn: found by us, character by character, never taken from the model (SPEC §3.3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

_ALIKE = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "「": '"', "」": '"', "…": "…"}
)
MOST = 8  # places of the same words that are looked at
_NOTHING = frozenset({"Cf", "Cc", "Cs"})  # marks without a width, and controls


def occurrences(
    text: str, words: str, within: Sequence[tuple[int, int]], *, case: bool = True
) -> list[tuple[int, int]]:
    """The stretches of ``text`` that say ``words``, inside one of ``within``: verbatim ones, else folded ones; the first few.

    Folded: runs of white space are one space, wide letters narrow, curly quotes straight, marks without a width gone;
    without ``case`` also capitals small. The offsets are those of ``text`` itself.
    """
    if case and words.strip() and (exact := [*islice(_exact(text, words.strip(), within), MOST)]):
        return exact
    sought, _ = _folded(words, case=case)
    sought = sought.strip()
    if not sought:
        return []
    spans = (span for start, end in within for span in _found(text, start, end, sought, case=case))
    return [*islice(spans, MOST)]


def _exact(text: str, words: str, within: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in within:
        at = text.find(words, start, end)
        while at >= 0:
            yield at, at + len(words)
            at = text.find(words, at + 1, end)


def _found(text: str, start: int, end: int, sought: str, *, case: bool) -> Iterator[tuple[int, int]]:
    folded, places = _folded(text[start:end], case=case)
    at = folded.find(sought)
    while at >= 0:
        yield start + places[at], start + places[at + len(sought) - 1] + 1
        at = folded.find(sought, at + 1)


def _folded(text: str, *, case: bool) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters the place of the one it stems from."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for part in _fold(char, case=case):
            if part != " " or (chars and chars[-1] != " "):
                chars.append(part)
                places.append(place)
    return "".join(chars), places


def _fold(char: str, *, case: bool) -> str:
    if char.isspace():
        return " "
    if unicodedata.category(char) in _NOTHING:
        return ""
    plain = unicodedata.normalize("NFKC", char).translate(_ALIKE)
    return plain if case else plain.casefold()
