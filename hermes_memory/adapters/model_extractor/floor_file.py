"""Reads ``configs/extraction/floor.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from hermes_memory.adapters.model_extractor.subjects import People
from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.core.text import normal
from hermes_memory.errors import InvalidConfig


@dataclass(frozen=True, slots=True)
class FloorRules:
    """Shapes of words, and who is who.

    ``nobody``: what is about nobody; ``unreal``: words before what is not so; ``theirs``: how a clause opens that is not
    about who the user is, ``anybody``: nor about them at all; ``done``: what has happened; ``elsewhere``: what makes a guarded word
    somebody else's; ``things``, ``figure``: what has no illness, and is none; ``longer``,
    ``behind``: of which an object may be no part; ``persons``, ``named_by``: who is so, and says so; ``over``: what was; ``joint``: between two statements of a clause; ``lesser``, ``excepted``, ``doubled``: before what is not said of it;
    ``wished``: before what is no fact yet; ``told``: behind what is no answer; ``still``: what says that something goes on;
    ``standing``: an order that holds from now on; ``cues``: of a dimension, words of which one
    stands in what bears on it; ``beside``: words that do if the value follows right behind them.
    """

    nobody: Regex
    unreal: Regex
    theirs: Regex
    anybody: Regex
    done: Regex
    standing: Regex
    still: Regex
    elsewhere: Regex
    things: Regex
    figure: Regex
    longer: Regex
    behind: Regex
    persons: Regex
    named_by: Regex
    joint: Regex
    over: Regex
    lesser: Regex
    excepted: Regex
    doubled: Regex
    wished: Regex
    told: Regex
    people: People
    cues: Mapping[str, Regex]
    beside: Mapping[str, Regex]


def load_floor(path: Traversable) -> FloorRules:
    """The rules in the file at ``path``. Raises InvalidConfig."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        same = tuple(frozenset(map(normal, group.split("|"))) for group in data["same"]["groups"])
        people = People(frozenset(map(normal, data["same"]["user"])), same, _regex(data["relative"]))
        cues = {key: _regex(cue) for key, cue in data["cue"].items()}
        beside = {key: _regex(cue) for key, cue in data["beside"].items()}
        shapes = {
            name: _regex(data[name])
            for name in (
                "nobody",
                "unreal",
                "theirs",
                "anybody",
                "done",
                "standing",
                "still",
                "elsewhere",
                "things",
                "figure",
                "longer",
                "behind",
                "persons",
                "named_by",
                "joint",
                "over",
                "lesser",
                "excepted",
                "doubled",
                "wished",
                "told",
            )
        }
        return FloorRules(**shapes, people=people, cues=cues, beside=beside)
    except (
        OSError,
        UnicodeDecodeError,
        tomllib.TOMLDecodeError,
        KeyError,
        TypeError,
        AttributeError,
        re.error,
    ) as error:
        raise InvalidConfig(path.name, "cannot be read as the rules of the floor") from error


def _regex(of: Mapping[str, Any]) -> Regex:
    return re.compile(f"{of['zh']}|{of['en']}", re.IGNORECASE)
