"""Persona chats: English dialogues in which people wrote down, per utterance, what there was to remember.

One JSON line per dialogue: ``dialog`` is a list of ``{id, text, persona_text?}``; ``persona_text`` holds one sentence per
fact, and an utterance without it holds nothing to remember. Every utterance is read as a user turn, with the other
speaker's utterance before it as the assistant's turn.

**Coverage.** A labelled fact is covered when at least half of its content words occur in the union of contents and
objects of what was stored from that utterance. Content words are letters and digits in lower case, stemmed (Snowball,
English), without the words of ``STOP``: function words and the few verbs in which any such sentence is wrapped ("I
have", "I like"). Short forms are written out ("i've" is "i have"), numbers up to twelve are figures. A fact without
content words is not counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import snowballstemmer

from hermes_memory.core.model import Role, Turn

SAID_AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
ENOUGH = 0.5
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}  # fmt: skip
SHORT = (
    ("n't", " not"),
    ("'m", " am"),
    ("'re", " are"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'d", " would"),
)
_WORD = re.compile(r"[a-z0-9]+")
STOP = frozenset(
    _WORD.findall(
        """a an the i me my mine myself we us our you your he him his she her it its they them their this that these those
    there here who which what when where why how and or but so because if as than then of in on at to for from with by
    about into over up out off down not no never nor is am are was were be been being do does did done have has had get
    got will would can could may might should must go going like love enjoy really very also too just some any all more
    much many lot one thing now used use"""
    )
)
_FACTS = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One user turn, the assistant's turn before it, and what people say is to be remembered of it."""

    dialogue: int
    turn: Turn
    before: Turn | None
    facts: tuple[str, ...]


def utterances(path: Path) -> list[Utterance]:
    """All utterances of the file, in order."""
    found: list[Utterance] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            found += _dialogue(number, json.loads(line)["dialog"])
    return found


def halves(found: Sequence[Utterance]) -> tuple[list[Utterance], list[Utterance]]:
    """The first half of the dialogues, on which rules are developed, and the second, which only measures."""
    middle = (found[-1].dialogue + 1) // 2
    return [one for one in found if one.dialogue < middle], [one for one in found if one.dialogue >= middle]


def _dialogue(number: int, said: Sequence[dict[str, str]]) -> Iterator[Utterance]:
    for index, row in enumerate(said):
        before = (
            said_turn(f"d{number}", index - 1, said[index - 1]["text"], Role.ASSISTANT) if index else None
        )
        labels = row.get("persona_text") or ""
        facts = tuple(part.strip() for part in _FACTS.split(labels) if part.strip())
        yield Utterance(number, said_turn(f"d{number}", index, row["text"]), before, facts)


def said_turn(session: str, index: int, content: str, role: Role = Role.USER, at: datetime = SAID_AT) -> Turn:
    """One turn of a conversation."""
    return Turn(
        session_id=session, index=index, message_id=f"m{index}", role=role, content=content, created_at=at,
        received_at=at, timezone="UTC",
    )  # fmt: skip


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry a sentence."""
    folded = text.lower().replace("’", "'")
    for short, written in SHORT:
        folded = folded.replace(short, written)
    words = (_NUMBERS.get(word, word) for word in _WORD.findall(folded) if word not in STOP)
    return frozenset(_stem(word) for word in words if len(word) > 1 or word.isdigit())


def covered(fact: str, stored: Sequence[str]) -> bool | None:
    """Whether the stored texts say enough of the fact; None if it has no content words."""
    wanted = content_words(fact)
    if not wanted:
        return None
    said = frozenset().union(*(content_words(text) for text in stored))
    return len(wanted & said) >= ENOUGH * len(wanted)


@cache
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")
