"""Every memory that would be stored from the data sets is looked up in its turn (SPEC §3.3, §4.1.2).

Independent of the entry checks: the span lies in the user's turn, the object stands in it, and each word, character
and number of the content comes from the quote, or from the date that the words name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from bench.persona_chats import SAID_AT, said_turn, utterances
from hermes_memory.adapters.rule_extractor import RuleExtractor
from hermes_memory.core.candidate import Candidate, ExtractionRequest
from hermes_memory.core.model import Role, Scope, Turn
from hermes_memory.core.scope import settled_scope
from hermes_memory.core.text import normal, numbers

ROOT = Path(__file__).parent.parent
DATA_DIR = (ROOT / os.environ.get("DATA_DIR", "../shared/data")).resolve()
Refuses = Callable[[Candidate, Turn], str | None]
Pair = tuple[Turn | None, Turn]  # the assistant's turn before, and the user's

_PIECES = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one data set gave."""

    name: str
    turns: int
    stored: int
    user_scope: int
    refused: int
    ungrounded: int


def sweep(extractor: RuleExtractor, refuses: Refuses, step: int) -> list[Sweep]:
    """Read every ``step``-th turn of every data set that is there."""
    return [
        _one(path.name, pairs(path), extractor, refuses, step)
        for path, pairs in _SETS.items()
        if path.is_dir()
    ]


def ungrounded(candidate: Candidate, turn: Turn) -> bool:
    """Whether anything in the memory does not come from the words its span covers."""
    span = candidate.span
    quote = turn.content[span.start : span.end] if 0 <= span.start < span.end <= len(turn.content) else ""
    if turn.role is not Role.USER or span.message_id != turn.message_id or not quote.strip():
        return True
    if normal(candidate.object) not in normal(quote):
        return True
    said = set(_PIECES.findall(quote.casefold())) | set(numbers(quote))
    date = candidate.valid_from
    if date is not None:
        said |= set(numbers(f"{date:%Y-%m-%d %H:%M}"))
    dated = {number for words in _LABEL.findall(candidate.content) for number in numbers(words)}
    return not set(_PIECES.findall(candidate.content.casefold())) <= said | dated


_LABEL = re.compile(r"[(（]\d{4}-\d\d-\d\d(?: \d\d:\d\d)?[)）]")


def _one(name: str, pairs: Iterator[Pair], extractor: RuleExtractor, refuses: Refuses, step: int) -> Sweep:
    turns = stored = wide = refused = lost = 0
    for number, (before, turn) in enumerate(pairs):
        if number % step:
            continue
        turns += 1
        request = ExtractionRequest(turns=(turn,), context=(before,) if before else ())
        for candidate in extractor.read(request).candidates:
            if refuses(candidate, turn) is not None:
                refused += 1
                continue
            stored += 1
            wide += settled_scope(candidate, None) is Scope.USER
            lost += ungrounded(candidate, turn)
    return Sweep(name, turns, stored, wide, refused, lost)


def _persona(folder: Path) -> Iterator[Pair]:
    for one in utterances(folder / "session_1_valid.jsonl"):
        yield one.before, one.turn


def _locomo(folder: Path) -> Iterator[Pair]:
    """Either speaker is a user; the other's turn before is the assistant's."""
    for path in sorted(folder.glob("*.json")):
        for number, item in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            talk = item["conversation"]
            for key in sorted(talk):
                if isinstance(talk[key], list):
                    yield from _paired(f"{path.stem}-{number}-{key}", [row["text"] for row in talk[key]])


def _paired(session: str, texts: list[str]) -> Iterator[Pair]:
    for index, text in enumerate(texts):
        if text.strip():
            before = said_turn(session, index - 1, texts[index - 1], Role.ASSISTANT) if index else None
            yield before, said_turn(session, index, text)


def _memdaily(folder: Path) -> Iterator[Pair]:
    lines = (folder / "users.jsonl").read_text(encoding="utf-8").splitlines()
    users: Iterator[dict[str, Any]] = (json.loads(line) for line in lines if line.strip())
    rows = chain.from_iterable(user["turns"] for user in users)
    chat = json.loads((folder / "chitchat.json").read_text(encoding="utf-8"))
    for index, row in enumerate(chain(rows, chat)):
        at = datetime.fromisoformat(row["time"]) if row["time"][4] == "-" else SAID_AT
        yield None, said_turn("memdaily", index, row["message"], at=at)


_SETS: dict[Path, Callable[[Path], Iterator[Pair]]] = {
    DATA_DIR / "locomo": _locomo,
    DATA_DIR / "locomo_zh": _locomo,
    DATA_DIR / "memdaily": _memdaily,
    DATA_DIR / "msc_persona": _persona,
}
