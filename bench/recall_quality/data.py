"""The public data as people who say things and questions with gold turns: LoCoMo in two languages, and MemDaily.

Read from ``DATA_DIR`` (default ``../shared/data``); none of it is part of the product. Times without a zone are taken as
UTC. In LoCoMo every turn has its session's time; each following one is given a second more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bench.grounding import DATA_DIR

LOCOMO = DATA_DIR / "locomo" / "locomo10.json"
LOCOMO_ZH = DATA_DIR / "locomo_zh" / "medium_locomo_zh.json"
MEMDAILY = DATA_DIR / "memdaily" / "users.jsonl"

KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = "adversarial"
DEV = frozenset({"conv-26", "conv-30", "conv-41"})  # what parameters may be chosen on

_ID = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_FIGURES = re.compile(r"\d+")
_ZONE = ZoneInfo("Asia/Shanghai")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn. ``written`` is its time as the data writes it; ``speaker`` is "" where nobody is named."""

    id: str
    speaker: str
    text: str
    at: datetime
    written: str

    @property
    def spoken(self) -> str:
        """The text behind its speaker's name."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def dated(self) -> str:
        """``[date] speaker: text``; the text alone where nobody is named."""
        return f"[{self.written}] {self.spoken}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation, in the order it was spoken."""

    id: str
    turns: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of whom, and the turns that answer it."""

    of: str
    text: str
    gold: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class Person:
    """One user of the product: all that is said, and what is asked about it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def turns(self) -> list[Said]:
        """Every turn, oldest session first."""
        return [turn for session in self.sessions for turn in session.turns]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A data set, and what was done to its labels."""

    people: tuple[Person, ...]
    repaired: int = 0  # evidence strings that were not one clean id
    dropped: int = 0  # evidence that names no turn
    unanswerable: int = 0  # questions without evidence


def read_locomo(path: Path, only: Collection[str] | None = None) -> Corpus:
    """LoCoMo as it is published, in either language; the conversations named by ``only``, or all."""
    people: list[Person] = []
    repaired = dropped = unanswerable = 0
    for sample in json.loads(path.read_text(encoding="utf-8")):
        name = sample["sample_id"]
        if only is not None and name not in only:
            continue
        sessions = tuple(_sessions(name, sample["conversation"]))
        known = {turn.id for session in sessions for turn in session.turns}
        questions = []
        for asked in sample["qa"]:
            gold, mended, lost = gold_ids(asked["evidence"], known)
            repaired, dropped, unanswerable = repaired + mended, dropped + lost, unanswerable + (not gold)
            if gold:
                questions.append(Question(name, asked["question"], gold, KINDS[asked["category"]]))
        people.append(Person(name, sessions, tuple(questions)))
    return Corpus(tuple(people), repaired, dropped, unanswerable)


def gold_ids(evidence: Iterable[str], known: Collection[str]) -> tuple[frozenset[str], int, int]:
    """The turns that ``evidence`` names, how many of its strings were repaired, and how many names are of no turn.

    ``"D8:6; D9:17"`` names two, ``"D:11:26"`` and ``"D30:05"`` are misspelt, ``"D"`` names none.
    """
    gold: set[str] = set()
    repaired = dropped = 0
    for piece in evidence:
        found = [f"D{int(session)}:{int(turn)}" for session, turn in _ID.findall(piece)]
        held = [name for name in found if name in known]
        repaired += bool(held) and found != [piece]
        dropped += len(found) - len(held) if found else 1
        gold.update(held)
    return frozenset(gold), repaired, dropped


def read_memdaily(path: Path, step: int = 1) -> Corpus:
    """The messages of every ``step``-th user by time, as one session of a user whom nobody names."""
    people = []
    for line in path.read_text(encoding="utf-8").splitlines()[::step]:
        user = json.loads(line)
        turns = sorted((_message(said) for said in user["turns"]), key=lambda turn: turn.at)
        name = user["user"]
        asked = tuple(
            Question(name, q["question"], frozenset(q["target"]), q["type"]) for q in user["questions"]
        )
        people.append(Person(name, (Session(name, tuple(turns)),), asked))
    return Corpus(tuple(people))


def _sessions(name: str, conversation: dict[str, Any]) -> Iterator[Session]:
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        written = conversation[f"session_{number}_date_time"]
        start = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        yield Session(
            f"{name}-{number}",
            tuple(
                Said(said["dia_id"], said["speaker"], said["text"], start + timedelta(seconds=index), written)
                for index, said in enumerate(_spoken(conversation[f"session_{number}"]))
            ),
        )


def _spoken(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [turn for turn in turns if turn["text"].strip()]


def _message(said: dict[str, Any]) -> Said:
    year, month, day, hour, minute = map(int, _FIGURES.findall(said["time"])[:5])
    when = datetime(year, month, day, hour, minute, tzinfo=_ZONE)
    return Said(said["id"], "", said["message"], when, said["time"])
