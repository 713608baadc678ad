"""Dimensions from a TOML file, strictly validated (``configs/dimensions.toml``)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from hermes_memory.core.dimensions import Cardinality, Dimension, Dimensions, SafetyClass, Sensitive
from hermes_memory.core.model import Category, Layer
from hermes_memory.core.values import Wording
from hermes_memory.errors import InvalidConfig

LANGUAGES = frozenset({"zh", "en"})
NAMING = "naming"  # the one freeze class that is not a safety class (SPEC §5)

_REQUIRED = frozenset({"key", "cardinality", "category", "labels", "cues"})
_ALLOWED = _REQUIRED | {
    "kinds",
    "layer", "related", "exclusive", "same", "general", "parts", "levels", "nested", "values_of", "safety", "freeze_class", "avoids",
    "sensitive",
}  # fmt: skip
_LISTS, _SHAPES = ("fillers", "narrow", "apart", "which", "past", "negators"), ("occasions", "favourite")
_WORDS = frozenset({*_LISTS, *_SHAPES})

E = TypeVar("E", bound=StrEnum)


def load_dimensions(source: Path | Traversable) -> Dimensions:
    """Read the ``[words]`` and every ``[[dimension]]`` table of ``source``.

    Raises:
        InvalidConfig: unreadable TOML, an unknown or missing key, a bad value, a doubled key, or a
            ``related`` that names no dimension.
    """
    data = _read(source)
    rows = data["dimension"]
    entries = _as_named([_entry(number, row) for number, row in enumerate(rows)], rows)
    keys = [entry.key for entry in entries]
    if doubled := sorted({key for key in keys if keys.count(key) > 1}):
        raise InvalidConfig("dimension.key", f"occurs twice: {', '.join(doubled)}")
    for entry in entries:
        if lost := sorted(set(entry.related) - set(keys)):
            raise InvalidConfig(f"dimension.{entry.key}.related", f"names no dimension: {', '.join(lost)}")
    return Dimensions(entries, _wording(data.get("words", {})))


def _as_named(entries: list[Dimension], rows: list[Mapping[str, Any]]) -> list[Dimension]:
    """With the values and levels of another dimension where ``values_of`` names one."""
    by_key = {entry.key: entry for entry in entries}
    return [
        _like(entry, by_key.get(str(row["values_of"]))) if "values_of" in row else entry
        for entry, row in zip(entries, rows, strict=True)
    ]


def _like(entry: Dimension, model: Dimension | None) -> Dimension:
    if model is None:
        raise InvalidConfig(f"dimension.{entry.key}.values_of", "names no dimension")
    return replace(entry, same=model.same, levels=model.levels, nested=model.nested)


def _read(source: Path | Traversable) -> Mapping[str, Any]:
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(source.name, str(problem)) from problem
    rows = data.get("dimension")
    if set(data) - {"words"} != {"dimension"} or not isinstance(rows, list) or not rows:
        raise InvalidConfig(source.name, "must hold [[dimension]] tables, [words] and nothing else")
    return data


def _wording(table: object) -> Wording:
    if not isinstance(table, dict) or (set(table) - _WORDS):
        raise InvalidConfig("words", f"must hold {', '.join(sorted(_WORDS))} and nothing else")
    words = {name: _texts(f"words.{name}", table.get(name, [])) for name in _LISTS}
    shapes = {name: _attributes(f"words.{name}", table.get(name, [])) for name in _SHAPES}
    return Wording(
        fillers=words["fillers"],
        narrow=words["narrow"],
        apart=words["apart"],
        which=words["which"],
        past=words["past"],
        negators=words["negators"],
        occasions=shapes["occasions"],
        favourite=shapes["favourite"],
    )


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
        same=_groups(where + ".same", row.get("same", [])),
        general=_texts(where + ".general", row.get("general", [])),
        kinds=_pairs(where + ".kinds", row.get("kinds", [])),
        parts=_attributes(where + ".parts", row.get("parts", [])),
        levels=_patterns(where + ".levels", row.get("levels", [])),
        nested=row.get("nested") is True,
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


def _pairs(where: str, value: object) -> tuple[tuple[str, ...], ...]:
    found = _groups(where, value)
    if not all(len(pair) == 2 for pair in found):
        raise InvalidConfig(where, "must be pairs of a wider value and its kinds")
    return found


def _patterns(where: str, value: object) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text, re.IGNORECASE) for text in _texts(where, value))
    except re.error as problem:
        raise InvalidConfig(where, f"must be regular expressions: {problem}") from None


def _attributes(where: str, value: object) -> tuple[re.Pattern[str], ...]:
    found = _patterns(where, value)
    if not all("what" in pattern.groupindex for pattern in found):
        raise InvalidConfig(where, "must name its attribute in a group 'what'")
    return found


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
