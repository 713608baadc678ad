"""What is told and asked, by topic: made up, Chinese and English half each.

One JSON row for each topic and language: ``statements`` as people make them to an assistant, ``questions`` with the
numbers of the statements they are ``about``, and ``others``: sentences of the same field that no question of the topic
is about. Topics of one ``group`` touch each other: none of them is ever told beside a topic of its own group.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.telling import Message
from hermes_memory.core.ids import digest

FILE = Path(__file__).parent / "topics.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """``about`` are the ids of the statements that answer it best."""

    id: str
    text: str
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """Statements and other sentences by message id."""

    name: str
    group: str
    language: str
    statements: tuple[Message, ...]
    questions: tuple[Question, ...]
    others: tuple[Message, ...]


def topics(path: Path = FILE) -> list[Topic]:
    """All topics of both languages. Raises ValueError for a question about a statement that is not there."""
    with path.open(encoding="utf-8") as lines:
        return [_topic(json.loads(line)) for line in lines if line.strip()]


def beside(found: Sequence[Topic], group: str, language: str) -> list[Message]:
    """What may be told beside the topics of a group: everything of all other groups, well mixed, always alike."""
    elsewhere = [topic for topic in found if topic.language == language and topic.group != group]
    told = [message for topic in elsewhere for message in (*topic.statements, *topic.others)]
    return sorted(told, key=lambda message: digest(message[0]))


def _topic(row: dict[str, Any]) -> Topic:
    name, said = row["topic"], row["statements"]
    questions = [
        Question(
            f"{row['lang']}.{name}.{n}", asked["ask"], tuple(_statement(name, i) for i in asked["about"])
        )
        for n, asked in enumerate(row["questions"])
    ]
    if any(i not in range(len(said)) for asked in row["questions"] for i in asked["about"]):
        raise ValueError(f"{name}: a question is about a statement that is not there")
    statements = tuple((_statement(name, i), text) for i, text in enumerate(said))
    return Topic(
        name, row["group"], row["lang"], statements, tuple(questions), tuple(_others(name, row["others"]))
    )


def _statement(topic: str, number: int) -> str:
    return f"{topic}.{number}"


def _others(topic: str, patterns: Sequence[dict[str, Any]]) -> Iterator[Message]:
    for n, pattern in enumerate(patterns):
        for k, value in enumerate(pattern["of"]):
            yield f"{topic}.other-{n}-{k}", pattern["say"].format(value)
