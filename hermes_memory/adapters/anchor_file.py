"""Anchors from a TOML file, strictly validated (``configs/words/anchors.toml``)."""

from __future__ import annotations

import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path

from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.adapters.rule_extractor.regexes import LANGUAGES, compiled
from hermes_memory.core.anchors import Anchors, Kind
from hermes_memory.errors import InvalidConfig


def load_anchors(source: Path | Traversable) -> Anchors:
    """Read one table for each kind, with expressions for both languages.

    Raises:
        InvalidConfig: unreadable TOML, a table too many or too few, or no regular expression that takes characters.
    """
    try:
        tables = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(source.name, str(problem)) from problem
    if set(tables) != set(Kind):
        raise InvalidConfig(source.name, f"must hold the tables {', '.join(Kind)} and nothing else")
    for kind, table in tables.items():
        if not isinstance(table, dict) or set(table) != set(LANGUAGES):
            raise InvalidConfig(f"{source.name}.{kind}", "must hold zh and en")
    zh, en = (
        {kind: _pattern(f"{source.name}.{kind}.{language}", tables[kind][language]) for kind in Kind}
        for language in LANGUAGES
    )
    return Anchors(zh, en)


def _pattern(where: str, expressions: object) -> Regex:
    pattern = compiled(where, expressions)
    if pattern.match(""):
        raise InvalidConfig(where, "must not match nothing")
    return pattern
