"""Regular expressions of the rule files: alternatives as lists, no exponential matching."""

from __future__ import annotations

import re

from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.errors import InvalidConfig

LANGUAGES = ("zh", "en")


def compiled(where: str, source: object) -> Regex:
    """A regular expression, or a list of alternatives, without regard to case.

    Raises:
        InvalidConfig: it is none.
    """
    text = alternatives(where, source)
    try:
        return re.compile(_atomic(text), re.IGNORECASE)
    except re.error as problem:
        raise InvalidConfig(where, f"{problem} in {source!r}") from problem


def _atomic(source: str) -> str:
    """Make every repeated group ``(?:…)*`` atomic, so that no text can make matching take exponential time."""
    opened: list[int] = []
    repeated: list[int] = []
    at, inside_set = 0, False
    while at < len(source):
        char = source[at]
        if char == "\\":
            at += 2
            continue
        if inside_set:
            inside_set = char != "]"
        elif char == "[":
            inside_set = True
            at += 1 if source[at + 1 : at + 2] == "]" else 0
        elif char == "(":
            opened.append(at)
        elif char == ")" and opened:
            start = opened.pop()
            if source.startswith("(?:", start) and source[at + 1 : at + 2] in {"*", "+"}:
                repeated.append(start)
        at += 1
    chars = list(source)
    for start in repeated:
        chars[start + 2] = ">"
    return "".join(chars)


def alternatives(where: str, value: object) -> str:
    """A text, or a list of texts read as alternatives."""
    if isinstance(value, list) and value and all(isinstance(item, str) and item for item in value):
        return "|".join(value)
    if isinstance(value, str) and value:
        return value
    raise InvalidConfig(where, "must be a regular expression or a list of alternatives")


def either(where: str, table: object) -> Regex:
    """One regular expression out of a table with the two languages."""
    if not isinstance(table, dict) or set(table) != set(LANGUAGES):
        raise InvalidConfig(where, "must hold zh and en")
    return compiled(where, "|".join(f"(?:{alternatives(where, table[key])})" for key in LANGUAGES))
