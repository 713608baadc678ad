"""Configuration keys from the command line: ``recall.threshold=0.5``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

ASKED = frozenset(
    {"recall", "fusion", "reranker", "knowledge", "briefing"}
)  # sections that only a recall reads


def overrides_of(pairs: Sequence[str]) -> dict[str, Any]:
    """The sections that ``section.key=value`` pairs make; a value is TOML, or a bare word.

    Raises:
        ValueError: a pair is not of that form, or two name the same key.
    """
    return tomllib.loads("\n".join(map(_line, pairs)))


def only_asked(pairs: Sequence[str]) -> bool:
    """Whether nothing but recall reads these keys."""
    return set(overrides_of(pairs)) <= ASKED


def _line(pair: str) -> str:
    key, equals, value = pair.partition("=")
    if not equals or "." not in key:
        raise ValueError(f"{pair!r} is not section.key=value")
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        value = f"'{value.strip()}'"
    return f"{key.strip()} = {value}"
