"""Reads what a user may reply to a confirmation request: ``configs/words/answers.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources.abc import Traversable

from hermes_memory.core.confirmation import Choice
from hermes_memory.core.text import normal
from hermes_memory.errors import InvalidConfig


def load_answers(path: Traversable) -> Mapping[str, Choice]:
    """Normal form of a reply → what it chooses.

    Raises:
        InvalidConfig: A choice is unknown, or one reply stands for two.
    """
    found: dict[str, Choice] = {}
    for name, replies in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if name not in set(Choice):
            raise InvalidConfig(f"answers.{name}", f"must be one of {', '.join(Choice)}")
        for reply in replies:
            if found.setdefault(normal(reply), Choice(name)) is not Choice(name):
                raise InvalidConfig(f"answers.{name}", f"repeats {reply!r} of another choice")
    return found
