"""A turn to sentences, a sentence to clauses; all offsets point into the turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Regex

# What is longer than 600 characters, or holds 20 spaces in a row, is no sentence: it is cut there, so that a text made to
# be slow costs its length and not the square of it.
_SENTENCE = re.compile(
    r"""(?:(?!\s{20})(?:[^。！？!?；;…\n.]|\.(?!\s|$|[一-鿿“”"'])|(?<=\b[A-Z])\.(?!\s+(?:i|my|we|our|he|she|they|it|you|the)\b)|(?<=[ap]\.m)\.(?=\s+[a-z])
        |(?<=\bmr)\.|(?<=\bdr)\.|(?<=\bms)\.|(?<=\bst)\.|(?<=\bmrs)\.|(?<=\bvs)\.|(?<=\be\.g)\.|(?<=\bi\.e)\.)){1,600}
        (?:[。！？!?；;…\n.~～]+[”"’')）]?)*""",
    re.IGNORECASE | re.VERBOSE,
)
_MARK = re.compile(r"[。！？!?；;…\n.~～”\"’')）\s]*$")
_QUOTED = re.compile(
    r"“[^”\n]{1,300}”|\"[^\"\n]{1,300}\"|(?<!\w)'[^'\n]{2,300}'(?!\w)|```.*?(?:```|$)|^>.*$", re.S | re.M
)
_QUERY = ("?", "？")
_SHOUT = ("!", "！")


@dataclass(frozen=True, slots=True)
class Clause:
    """``mirror[start:end]`` without the words that joined it to its neighbours."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: its body without closing marks, and what the marks were."""

    start: int
    end: int
    asks: bool
    shouts: bool
    clauses: tuple[Clause, ...]


def sentences(mirror: str, clause_break: Regex) -> Iterator[Sentence]:
    """The sentences of a (simplified) turn, in order."""
    for hit in _SENTENCE.finditer(mirror):
        start, end = hit.span()
        body_end = start + _MARK.search(mirror[start:end]).start()  # type: ignore[union-attr]
        while start < body_end and mirror[start].isspace():
            start += 1
        if start >= body_end:
            continue
        marks = mirror[body_end:end]
        yield Sentence(
            start,
            body_end,
            any(mark in marks for mark in _QUERY),
            any(mark in marks for mark in _SHOUT),
            tuple(_clauses(mirror, start, body_end, clause_break)),
        )


def _clauses(mirror: str, start: int, end: int, clause_break: Regex) -> Iterator[Clause]:
    at = start
    for hit in clause_break.finditer(mirror, start, end):
        if hit.start() > at:
            yield Clause(at, hit.start())
        at = hit.end()
    if at < end:
        yield Clause(at, end)


def quoted(mirror: str) -> tuple[tuple[int, int], ...]:
    """The stretches that stand in quotation marks, code fences or mail quotes."""
    return tuple(hit.span() for hit in _QUOTED.finditer(mirror))
