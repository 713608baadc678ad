"""The conversations, and to which layer of the user model each labelled fact belongs.

Persona chats: each of the two speakers of a dialogue is a user, with the other's utterance as the assistant's turn;
the facts of an utterance are its sentences of ``persona_text``. Daily life (``memdaily``): the messages of roles, events
and items are their own labels; its chit-chat has none and is not judged. The mapping is ``layers.toml``: heads read in
a fixed order, no model.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from bench.extraction_zh import ZONE
from bench.grounding import DATA_DIR
from bench.persona_chats import SHORT, Utterance, utterances

PERSONA = DATA_DIR / "msc_persona" / "session_1_valid.jsonl"
DAILY = DATA_DIR / "memdaily" / "users.jsonl"
WANTED = frozenset({"identity", "restriction", "preference"})
_HEADS = Path(__file__).parent / "layers.toml"


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a user, what the other one said before it, and its labels; None: nobody labelled it."""

    id: str
    text: str
    at: datetime
    before: str | None
    facts: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Talker:
    """One user with all that was said."""

    name: str
    half: int  # 0: rules are made on it; 1: only measured
    chinese: bool
    lines: tuple[Line, ...]


def layer_of(fact: str, chinese: bool = False) -> str:
    """identity, restriction, preference, style, context; ``other`` (not of the user), ``none`` (an episode, a wish)."""
    text = fact.strip().lower().replace("’", "'")
    for short, written in SHORT:
        text = text.replace(short, written)
    for layer, heads in _heads()["chinese" if chinese else "english"].items():
        if any(head.search(text) for head in heads):
            return layer
    return "none"


def talkers(every: int = 1) -> list[Talker]:
    """All users of both data sets, or each ``every``-th."""
    return [*_persona(every), *(_daily(every) if DAILY.exists() else ())]


def _persona(every: int) -> list[Talker]:
    said: dict[tuple[int, int], list[Utterance]] = {}
    last = 0
    for one in utterances(PERSONA):
        said.setdefault((one.dialogue, one.turn.index % 2), []).append(one)
        last = one.dialogue
    return [
        Talker(f"p{number}-{side}", int(number >= (last + 1) // 2), False, tuple(map(_line, rows)))
        for (number, side), rows in said.items()
        if number % every == 0
    ]


def _line(one: Utterance) -> Line:
    before = one.before.content if one.before else None
    return Line(f"u{one.turn.index}", one.turn.content, one.turn.created_at, before, one.facts)


def _daily(every: int) -> list[Talker]:
    rows = [json.loads(line) for line in DAILY.read_text(encoding="utf-8").splitlines()]
    return [
        _person(row, int(number >= len(rows) // 2)) for number, row in enumerate(rows) if number % every == 0
    ]


def _person(row: Mapping[str, Sequence[Mapping[str, str]]], half: int) -> Talker:
    lines = (
        Line(
            turn["id"].replace(":", "-"), turn["message"], _when(turn["time"]), None,
            None if turn["id"].startswith("x:") else (turn["message"],),
        )
        for turn in row["turns"]
    )  # fmt: skip
    return Talker(f"d-{row['user']}", half, True, tuple(sorted(lines, key=lambda line: line.at)))


def _when(text: str) -> datetime:
    """From "2024年04月02日 周二 21:11", or from ISO format."""
    if "年" not in text:
        return datetime.fromisoformat(text)
    year, month, day, hour, minute = map(int, re.findall(r"\d+", text)[:5])
    return datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(ZONE))


@cache
def _heads() -> Mapping[str, Mapping[str, Sequence[re.Pattern[str]]]]:
    known = tomllib.loads(_HEADS.read_text(encoding="utf-8"))
    return {
        language: {layer: tuple(map(re.compile, part[layer])) for layer in part["order"]}
        for language, part in known.items()
    }
