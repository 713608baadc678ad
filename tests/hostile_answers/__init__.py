"""Answers of no model, written by hand: wrong ones, of which nothing may get in, and right ones, which must."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_FLOOD = 10_000
_PIECE = {"quote": "The kettle is loud", "turn": "T1", "object": "kettle", "dimension": "note"}


@dataclass(frozen=True)
class Case:
    """One conversation and what a model answers to its last turn; ``known`` is told, and read rightly, before it."""

    id: str
    kind: str
    text: str
    answer: Any
    before: tuple[str, ...] = ()  # what the assistant said just before
    known: tuple[dict[str, Any], ...] = ()
    finish: str = "stop"
    opinion: str = "yes"  # to each statement, when asked a second time
    reason: str = ""  # wrong ones: the code under which it is refused
    expect: tuple[dict[str, Any], ...] = field(default=())  # right ones: what is in the store then

    @property
    def said(self) -> str:
        """The text of the answer."""
        return written(self.answer)


def written(answer: Any) -> str:
    """An answer as text: ``@word*n`` is the word n times, ``@flood`` ten thousand statements."""
    if isinstance(answer, str) and answer.startswith("@flood"):
        return json.dumps({"statements": [_PIECE] * _FLOOD})
    if isinstance(answer, str) and answer.startswith("@"):
        word, count = answer[1:].split("*")
        return word * int(count)
    return answer if isinstance(answer, str) else json.dumps(_spelled(answer), ensure_ascii=False)


def _spelled(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _spelled(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_spelled(value) for value in node]
    return written(node) if isinstance(node, str) and node.startswith("@") else node


def cases(name: str) -> list[Case]:
    """The cases of ``name``.jsonl in this folder."""
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_case(json.loads(line)) for line in lines]


def _case(given: dict[str, Any]) -> Case:
    lists = ("before", "known", "expect")
    values: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in given.items()}
    return Case(**values)
