"""Whether what stands in a profile is what people wrote down, and whether what they wrote down stands there.

**Supported.** A statement behind a slot is supported when a gold fact says the same: half of the content words of its
object (of its content, where the object has none) stand in the fact, or half of the fact's stand in the statement, and
both are denied or neither is. A clause of a fact is a fact as well. The fact may be of the line that the statement quotes (``supported``) or of any line of
the same person (``ever``): people wrote a fact down once, where it came up first.
A daily-life message is its own fact: a statement from it is supported when the message is mapped to a layer at all;
chit-chat is not judged.

**Reaching.** A gold fact of identity, restriction or preference was extracted when a memory with a layer that rests on
its line covers it (``bench.persona_chats``: half of its content words), whatever the memory's lock, scope or status; it
reaches the profile when the statements behind the slots cover it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.persona_chats import ENOUGH, content_words, covered
from bench.profile_quality.gold import WANTED, layer_of
from bench.profile_quality.play import Answer, Kept, Modelled

_DENIES = re.compile(r"\b(?:not|no|never|none|hate|dislike|can't stand|cant stand|unable)\b|n't\b")

_CLAUSE = re.compile(r",| but | and | because ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Judged:
    """One statement behind a slot. ``supported`` is None where nobody labelled the line."""

    who: str
    layer: str
    said: str  # dimension, content and quote
    facts: tuple[str, ...]
    quoted: bool
    supported: bool | None
    ever: bool | None
    same_layer: bool | None


@dataclass(frozen=True, slots=True)
class Reached:
    """One gold fact of a wanted layer that was extracted."""

    who: str
    layer: str
    fact: str
    reached: bool
    kept: str  # the memories that cover it, with scope, lock and status


def statements(one: Modelled) -> Iterator[Judged]:
    """Every statement behind a slot of a user, judged."""
    labelled = {line.id: line.facts for line in one.talker.lines}
    every = tuple(fact for facts in labelled.values() for fact in facts or ())
    for answer in one.answers:
        memory = answer.memory
        if memory is None:
            yield Judged(one.talker.name, answer.layer, answer.dimension, (), False, False, False, None)
            continue
        lines = [labelled[line] for line in sorted(memory.lines) if line in labelled]
        facts = tuple(fact for line in lines for fact in line or ())
        known = any(line is not None for line in lines)
        here = _says(memory, facts, one.talker.chinese) if known else None
        yield Judged(
            who=one.talker.name,
            layer=answer.layer,
            said=f"{answer.dimension}: {memory.content} “{' / '.join(memory.quotes)}”",
            facts=facts,
            quoted=_quoted(memory, one),
            supported=here,
            ever=here if one.talker.chinese or not known else _says(memory, every, chinese=False),
            same_layer=_agrees(answer, facts, one.talker.chinese) if here else None,
        )


def reaching(one: Modelled) -> Iterator[Reached]:
    """Every gold fact of a wanted layer that was extracted, and whether it reached the profile."""
    shown = [text for answer in one.answers if answer.memory for text in _texts([answer.memory])]
    behind = {answer.memory.id for answer in one.answers if answer.memory}
    for line in one.talker.lines:
        typed = [m for m in one.memories.values() if m.layer is not None and line.id in m.lines]
        for fact in line.facts or ():
            layer = layer_of(fact, one.talker.chinese)
            if layer not in WANTED or not typed:
                continue
            if one.talker.chinese:  # the message is its own fact
                reached = any(m.id in behind for m in typed)
            elif covered(fact, list(_texts(typed))):
                reached = bool(covered(fact, shown))
            else:
                continue
            kept = "; ".join(
                f"{m.content} [{m.subject} {m.layer} {m.scope} {m.lock} {m.status}]" for m in typed
            )
            yield Reached(one.talker.name, layer, fact, reached, kept)


def _says(memory: Kept, facts: tuple[str, ...], chinese: bool) -> bool:
    if chinese:
        return any(layer_of(fact, chinese=True) != "none" for fact in facts)
    return any(_same(memory, part) for fact in facts for part in (fact, *_CLAUSE.split(fact)))


def _same(memory: Kept, fact: str) -> bool:
    said = content_words(memory.object) or content_words(memory.content)
    told = content_words(fact)
    if not said or not told or _denied(memory.content) != _denied(fact):
        return False
    within = len(said & told) >= ENOUGH * len(said)
    return within or bool(covered(fact, list(_texts([memory]))))


def _denied(text: str) -> bool:
    return _DENIES.search(text.lower().replace("’", "'")) is not None


def _agrees(answer: Answer, facts: tuple[str, ...], chinese: bool) -> bool:
    return answer.layer in {layer_of(fact, chinese) for fact in facts}


def _quoted(memory: Kept, one: Modelled) -> bool:
    said = [line.text for line in one.talker.lines if line.id in memory.lines]
    return bool(memory.quotes) and all(any(quote in text for text in said) for quote in memory.quotes)


def _texts(memories: Iterable[Kept]) -> Iterator[str]:
    for memory in memories:
        yield memory.content
        yield memory.object
