"""Finds what must never be stored; full-width digits and invisible characters are no way around it.

Every look costs a time that grows with the text's length and no faster: shapes are bounded, begin at a boundary, and
most are not even tried because none of their words is there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from hermes_memory.adapters.detectors.plain import lowered, normalised
from hermes_memory.adapters.detectors.shapes import TOKEN, Shape, load_shapes
from hermes_memory.ports.detector import Found

_MASKED = re.compile(TOKEN)
_DIGIT = re.compile("[0-9]")
_LOOK_BACK = 32  # characters in front of a finding that may speak against it
_NAME = 12  # characters in front of a finding that may belong to it
_SHORT = 4  # a label of so few letters is part of other words: "pin", "spinning"

Span = tuple[int, int]


class SecretDetector:
    """Finds secrets and strong identifiers by ``shapes``; of two that overlap the earlier shape counts."""

    def __init__(self, shapes: tuple[Shape, ...] | None = None) -> None:
        self._shapes = load_shapes() if shapes is None else shapes

    def find(self, text: str) -> list[Found]:
        """All findings, in order, not overlapping; offsets point into ``text`` as given.

        What one finding hid may show once it is masked, so the look is repeated on the masked text.
        """
        plain, origin = normalised(text)
        found: list[Found] = []
        while hits := self._look(plain):
            found += (Found(origin[start], origin[end - 1] + 1, kind) for start, end, kind in hits)
            plain, origin = _masked(plain, origin, hits)
        return sorted(found, key=lambda item: item.start)

    def _look(self, plain: str) -> list[tuple[int, int, str]]:
        """What one look finds, in order."""
        low = lowered(plain)
        masks = [hit.span() for hit in _MASKED.finditer(plain)]
        bare = _MASKED.sub(lambda hit: " " * len(hit[0]), low) if masks else low  # a mask is nobody's label
        taken = _Taken(masks)
        hits = []
        for shape in self._shapes:
            spans = _labelled(shape, plain, bare) if shape.labels else _anywhere(shape, plain, low)
            hits += [(*span, shape.kind) for span in spans if taken.take(span)]
        return sorted(hits)


class _Taken:
    """Spans that do not overlap, in order."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = list(spans)

    def take(self, span: Span) -> bool:
        """Take ``span`` if it is free."""
        at = bisect_left(self._spans, span)
        if (at < len(self._spans) and self._spans[at][0] < span[1]) or (
            at and self._spans[at - 1][1] > span[0]
        ):
            return False
        self._spans.insert(at, span)
        return True


def _masked(plain: str, origin: list[int], hits: list[tuple[int, int, str]]) -> tuple[str, list[int]]:
    """The text as it reads with ``hits`` masked, and where its characters came from."""
    words: list[str] = []
    places: list[int] = []
    at = 0
    for start, end, kind in hits:
        token = f"[{kind}]"
        words += (plain[at:start], token)
        places += origin[at:start]
        places += [origin[start]] * len(token)
        at = end
    return "".join((*words, plain[at:])), places + origin[at:]


def _anywhere(shape: Shape, plain: str, low: str) -> Iterator[Span]:
    if not (any(word in low for word in shape.needs) if shape.needs else _DIGIT.search(low)):
        return
    at = 0
    while hit := shape.regex.search(plain, at):
        span = _span(shape, hit)
        at = max(span[1], hit.start() + 1) if span else hit.start() + 1
        if span:
            yield span


def _labelled(shape: Shape, plain: str, low: str) -> Iterator[Span]:
    for label in shape.labels:
        at = low.find(label)
        while at >= 0:
            end = _label_end(label, low, at)
            hit = shape.regex.match(plain, end) if end else None
            span = _span(shape, hit) if hit else None
            if span:
                yield span
            at = low.find(label, span[1] if span else at + 1)


def _label_end(label: str, low: str, at: int) -> int:
    """Where the words behind a label begin; 0 if it is only a part of another word."""
    end = at + len(label)
    if not label[-1].isascii():
        return end
    if len(label) <= _SHORT and at and low[at - 1].isascii() and low[at - 1].isalnum():
        return 0
    end += low.startswith("s", end)
    return 0 if "a" <= low[end : end + 1] <= "z" else end


def _span(shape: Shape, hit: re.Match[str]) -> Span | None:
    """What of a hit is the secret, if it is one."""
    start, end = hit.span("x" if "x" in hit.re.groupindex else 0)
    if shape.unless and shape.unless.match(hit.string, start):
        return None
    if shape.not_after and shape.not_after.search(hit.string, max(0, start - _LOOK_BACK), start):
        return None
    if shape.check:
        end = start + shape.check(hit.string[start:end])
    if shape.before:
        grown = shape.before.search(hit.string, max(0, start - _NAME), start)
        start = grown.start("x" if "x" in shape.before.groupindex else 0) if grown else end
    return (start, end) if start < end else None
