"""Dimensions from a TOML file, strictly validated (``configs/dimensions.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from hermes_memory.core.dimensions import Cardinality, Dimension, Dimensions, SafetyClass, Sensitive
from hermes_memory.core.model import Category, Layer
from hermes_memory.errors import InvalidConfig

LANGUAGES = frozenset({"zh", "en"})
NAMING = "naming"  # the one freeze class that is not a safety class (SPEC §5)

_REQUIRED = frozenset({"key", "cardinality", "category", "labels", "cues"})
_ALLOWED = _REQUIRED | {"layer", "related", "exclusive", "safety", "freeze_class", "avoids", "sensitive"}

E = TypeVar("E", bound=StrEnum)


def load_dimensions(source: Path | Traversable) -> Dimensions:
    """Read every ``[[dimension]]`` table of ``source``.

    Raises:
        InvalidConfig: unreadable TOML, an unknown or missing key, a bad value, a doubled key, or a
            ``related`` that names no dimension.
    """
    entries = [_entry(number, row) for number, row in enumerate(_rows(source))]
    keys = [entry.key for entry in entries]
    if doubled := sorted({key for key in keys if keys.count(key) > 1}):
        raise InvalidConfig("dimension.key", f"occurs twice: {', '.join(doubled)}")
    for entry in entries:
        if lost := sorted(set(entry.related) - set(keys)):
            raise InvalidConfig(f"dimension.{entry.key}.related", f"names no dimension: {', '.join(lost)}")
    return Dimensions(entries)


def _rows(source: Path | Traversable) -> list[Mapping[str, Any]]:
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(source.name, str(problem)) from problem
    rows = data.get("dimension")
    if set(data) != {"dimension"} or not isinstance(rows, list) or not rows:
        raise InvalidConfig(source.name, "must hold [[dimension]] tables and nothing else")
    return rows


def _entry(number: int, row: Mapping[str, Any]) -> Dimension:
    key = row.get("key")
    where = f"dimension.{key if isinstance(key, str) and key else number}"
    if unknown := sorted(set(row) - _ALLOWED):
        raise InvalidConfig(where, f"unknown keys: {', '.join(unknown)}")
    if missing := sorted(_REQUIRED - set(row)):
        raise InvalidConfig(where, f"lacks {', '.join(missing)}")
    return Dimension(
        key=_text(where + ".key", key),
        cardinality=_member(where + ".cardinality", Cardinality, row["cardinality"]),
        category=_member(where + ".category", Category, row["category"]),
        layer=_optional(where + ".layer", Layer, row.get("layer")),
        labels=_labels(where + ".labels", row["labels"]),
        cues=_cues(where + ".cues", row["cues"]),
        related=_texts(where + ".related", row.get("related", [])),
        exclusive=_groups(where + ".exclusive", row.get("exclusive", [])),
        safety=_optional(where + ".safety", SafetyClass, row.get("safety")),
        freeze_class=_freeze_class(where + ".freeze_class", row.get("freeze_class")),
        avoids=row.get("avoids") is True,
        sensitive=_optional(where + ".sensitive", Sensitive, row.get("sensitive")),
    )


def _text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidConfig(where, "must be a non-empty text")
    return value


def _texts(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidConfig(where, "must be a list of texts")
    return tuple(_text(where, item) for item in value)


def _groups(where: str, value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise InvalidConfig(where, "must be a list of groups")
    return tuple(_texts(where, group) for group in value)


def _member(where: str, kind: type[E], value: object) -> E:
    try:
        return kind(str(value))
    except ValueError:
        raise InvalidConfig(where, f"must be one of {', '.join(kind)}") from None


def _optional(where: str, kind: type[E], value: object) -> E | None:
    return None if value is None else _member(where, kind, value)


def _table(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != LANGUAGES:
        raise InvalidConfig(where, f"must hold exactly {', '.join(sorted(LANGUAGES))}")
    return value


def _labels(where: str, value: object) -> dict[str, str]:
    return {language: _text(where, label) for language, label in _table(where, value).items()}


def _cues(where: str, value: object) -> dict[str, tuple[str, ...]]:
    return {language: _texts(where, words) for language, words in _table(where, value).items()}


def _freeze_class(where: str, value: object) -> str | None:
    known = {NAMING, *SafetyClass}
    if value is None or (isinstance(value, str) and value in known):
        return None if value is None else str(value)
    raise InvalidConfig(where, f"must be one of {', '.join(sorted(known))}")
