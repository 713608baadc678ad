"""The object of a statement: cleaned, classified, split into atoms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Grammar, Lexicon, Pattern

_JOINTS = re.compile(
    r"\s*(?:、|，|,|以及|和|与|跟|及|/|&|\band\b|\bor\b)\s*(?:and\s+|or\s+|和)?", re.IGNORECASE
)
_MASK = re.compile(r"\[[a-z]+\]")
_CJK = re.compile(r"[一-鿿]")
_LATIN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
_MAX_OBJECT_CHARS = 120  # longer is a story, not a value
_MAX_ITEM_CJK = 7
_MAX_ITEM_WORDS = 3


@dataclass(frozen=True, slots=True)
class Thing:
    """``text[start:end]`` is an object; ``corrects`` says that another value was denied beside it."""

    start: int
    end: int
    corrects: bool = False


def clean(mirror: str, start: int, end: int, grammar: Grammar, whole: bool = False) -> Thing | None:
    """Trim articles, particles and afterthoughts; None if nothing that names a value is left."""
    corrects, end = False, word_end(mirror, end)
    if hit := grammar.contrast.search(mirror[start:end]):
        corrects = True
        start, end = (start + hit.end(), end) if hit.start() == 0 else (start, start + hit.start())
    if hit := grammar.strip_object_start.match(mirror, start, end):
        start = hit.end()
    while start < end and (hit := grammar.strip_object.search(mirror[start:end])):
        if start + hit.start() == end:
            break
        end = start + hit.start()
    while start < end and mirror[start].isspace():
        start += 1
    if not start < end <= start + _MAX_OBJECT_CHARS or _MASK.search(mirror, start, end):
        return None
    if not whole and grammar.not_object.match(mirror[start:end]):
        return None
    return Thing(start, end, corrects)


def word_end(text: str, end: int) -> int:
    """``end``, or the end of the Latin word or number that it would cut in two."""
    while 0 < end < len(text) and _LATIN.match(text[end - 1]) and _LATIN.match(text[end]):
        end += 1
    return end


def city_of(mirror: str, thing: Thing, lexicon: Lexicon) -> Thing:
    """Keep the city of a longer place ("上海浦东" → "上海"); the words stay in the content."""
    hit = lexicon.places.search(mirror, thing.start, thing.end)
    if hit is None or hit.start() - thing.start > 3:
        end = thing.end - 1 if mirror[thing.end - 1] == "市" and thing.end - thing.start > 2 else thing.end
        return Thing(thing.start, end, thing.corrects)
    return Thing(hit.start(), hit.end(), thing.corrects)


def atoms(mirror: str, thing: Thing, pattern: Pattern, lexicon: Lexicon, grammar: Grammar) -> list[Thing]:
    """One thing or several: "花生和虾" is two allergies, "rock and roll" one liking."""
    words = mirror[thing.start : thing.end]
    if not pattern.splits or words.lower() in lexicon.keep_together:
        return [thing]
    items, at = [], thing.start
    for hit in _JOINTS.finditer(mirror, thing.start, thing.end):
        items.append((at, hit.start()))
        at = hit.end()
    items.append((at, thing.end))
    things = [clean(mirror, start, end, grammar) for start, end in items if start < end]
    kept = [item for item in things if item is not None]
    last = mirror[items[-1][0] : items[-1][1]]
    attributive = "的" in last or "一起" in last  # "安静、不打扰人的服务" is one thing
    if (
        attributive
        or len(kept) < max(2, len(items))
        or not all(_short(mirror[item.start : item.end]) for item in kept)
    ):
        return [thing]
    return [Thing(item.start, item.end, thing.corrects) for item in kept]


def _short(words: str) -> bool:
    return len(words) <= _MAX_ITEM_CJK if _CJK.search(words) else len(words.split()) <= _MAX_ITEM_WORDS


def dimension_of(mirror: str, thing: Thing, hit: re.Match[str], pattern: Pattern, lexicon: Lexicon) -> str:
    """The pattern's dimension, or the one that the lexicon gives the object where the pattern allows."""
    if not pattern.classes:
        return pattern.dimension
    named = hit.group(pattern.classify) if pattern.classify != "o" else None
    kind = lexicon.kind(named or mirror[thing.start : thing.end])
    allowed = kind is not None and ("*" in pattern.classes or kind in pattern.classes)
    return kind if kind is not None and allowed else pattern.dimension
