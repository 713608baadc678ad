"""Conversations of the public data, as a product's user would have them: who speaks first is the user."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from bench.grounding import DATA_DIR
from bench.recall_quality.data import LOCOMO, LOCOMO_ZH, Said, read_locomo

PERSONA = DATA_DIR / "msc_persona" / "session_1_valid.jsonl"
PAIRED = frozenset({"conv-26", "conv-30"})  # the two conversations that there are in both languages
PAUSE_S = (30.0, 60.0)  # between two exchanges
BETWEEN_SESSIONS_S = 3_600.0
SEED = 7

Speaker = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn."""

    role: Speaker
    text: str


Session = tuple[Message, ...]
Post = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """All that one user says in one or more sessions."""

    user: str
    sessions: tuple[Session, ...]

    @property
    def messages(self) -> list[Message]:
        """Every message, oldest first."""
        return [message for session in self.sessions for message in session]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Conversations of one kind and language."""

    name: str
    talks: tuple[Talk, ...]

    @property
    def turns(self) -> int:
        """Messages of either side."""
        return sum(len(talk.messages) for talk in self.talks)

    @property
    def user_turns(self) -> int:
        """Messages of the users."""
        return sum(message.role == "user" for talk in self.talks for message in talk.messages)


def read(*, quick: bool) -> list[DataSet]:
    """The first sessions of two conversations of LoCoMo in both languages, and short English chats."""
    sessions, chats = (2, 8) if quick else (8, 40)
    return [
        DataSet("LoCoMo, English", tuple(locomo(LOCOMO, sessions))),
        DataSet("LoCoMo, Chinese", tuple(locomo(LOCOMO_ZH, sessions))),
        DataSet("persona chats, English", tuple(persona(PERSONA, chats))),
    ]


def exchanges(session: Session) -> Iterator[Post]:
    """The session in posts: what the user says until the assistant has answered; it may begin with the assistant."""
    post: list[Message] = []
    for message in session:
        if post and message.role == "user" and post[-1].role == "assistant":
            yield tuple(post)
            post = []
        post.append(message)
    if post:
        yield tuple(post)


def pauses(seed: int = SEED) -> Iterator[float]:
    """How long somebody takes to read and to write, again and again, in seconds."""
    drawn = random.Random(seed)  # the same in every run
    while True:
        yield drawn.uniform(*PAUSE_S)


def locomo(path: Path, sessions: int | None = None) -> Iterator[Talk]:
    """The paired conversations of LoCoMo, their first ``sessions``."""
    for person in read_locomo(path, PAIRED).people:
        first = person.sessions[0].turns[0].speaker
        said = tuple(_session(session.turns, first) for session in person.sessions[:sessions])
        yield Talk(f"{path.stem}-{person.name}", said)


def _session(turns: Sequence[Said], user: str) -> Session:
    return tuple(Message("user" if turn.speaker == user else "assistant", turn.text) for turn in turns)


def persona(path: Path, chats: int) -> Iterator[Talk]:
    """The first ``chats`` persona chats."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(islice(lines, chats)):
            rows = [row for row in json.loads(line)["dialog"] if row["text"].strip()]
            first = rows[0]["id"]
            said = tuple(Message("user" if row["id"] == first else "assistant", row["text"]) for row in rows)
            yield Talk(f"persona-{number}", (said,))
