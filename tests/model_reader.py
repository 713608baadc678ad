"""What a good language model would answer about simple turns, and a person who says such turns."""

from __future__ import annotations

import json
from typing import Any

ANIMALS = ("cat", "dog", "parrot", "hamster", "rabbit", "tortoise", "gecko", "ferret")


def sentence(number: int) -> str:
    """Something to remember, another for each number; the rules understand it too."""
    return f"I have a {ANIMALS[number % len(ANIMALS)]} called Rex{number}."


def read(body: dict[str, Any]) -> str:
    """The answer to a request of chat completions: every user turn is a pet, every statement is supported."""
    asked, _ = json.JSONDecoder().raw_decode(body["messages"][-1]["content"])  # a repair says more behind it
    if "statements" in asked:
        return json.dumps({"verdicts": ["yes"] * len(asked["statements"])})
    said = [
        {"quote": turn["text"], "turn": turn["t"], "object": _object(turn["text"]), "dimension": "pet"}
        for turn in asked["turns"]
        if turn["who"] == "user"
    ]
    return json.dumps({"statements": said} if said else {"nothing": True})


def _object(text: str) -> str:
    return text.removeprefix("I have a ").removesuffix(".")
