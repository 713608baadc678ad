"""Reads labelled pairs from a JSONL file (``configs/embedders/pairs.jsonl``), and the rules of the fit from TOML.

A line is ``{"kind": "query" | "pair", "related": true | false, "group": …, "a": …, "b": …}``, or names groups whose
texts may well be related: ``{"kind": "touching", "groups": […]}``, or holds a query by itself:
``{"kind": "asked", "related": true | false, "a": …}``, related if it concerns the user. Other keys are remarks.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from hermes_memory.core.fitting import FitRules
from hermes_memory.core.labelled import Kind, LabelledPair, LabelledPairs
from hermes_memory.errors import InvalidConfig, InvalidInput

TOUCHING, ASKED = "touching", "asked"

_RULES = TypeAdapter(with_config(ConfigDict(extra="forbid"))(FitRules))


def load_pairs(path: Path) -> LabelledPairs:
    """The pairs in the file at ``path``.

    Raises:
        InvalidInput: the file cannot be read, or a line is no labelled pair; names the line, never its text.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"cannot be read: {type(error).__name__}") from None
    rows: list[LabelledPair] = []
    touching: list[frozenset[str]] = []
    asked: list[tuple[str, bool]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path.name} line {number}"
        row = _object(line, where)
        if row.get("kind") == TOUCHING:
            touching.append(_groups(row, where))
        elif row.get("kind") == ASKED:
            asked.append(_asked(row, where))
        else:
            rows.append(_pair(row, where))
    return LabelledPairs(tuple(rows), tuple(touching), tuple(asked))


def load_fit_rules(path: Path) -> FitRules:
    """The rules in the file at ``path``. Raises InvalidConfig when it cannot be read or does not hold together."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        start, centring, held_out = (data.pop(name) for name in ("pair_start", "centring", "held_out"))
        concern = data.pop("concern")
        centring["centring_gain"] = centring.pop("gain")
        return _RULES.validate_python(
            {**data, "pair_start": start["share"], **centring, **held_out, **concern}
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfig(path.name, "cannot be read as TOML") from error
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise InvalidConfig(path.name, f"does not hold together: {type(error).__name__}") from error


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise InvalidInput(where, "is not JSON") from None
    if not isinstance(row, dict):
        raise InvalidInput(where, "is not a JSON object")
    return row


def _groups(row: dict[str, Any], where: str) -> frozenset[str]:
    groups = row.get("groups")
    if not isinstance(groups, list) or not all(isinstance(name, str) for name in groups):
        raise InvalidInput(where, "groups must be a list of names")
    return frozenset(groups)


def _asked(row: dict[str, Any], where: str) -> tuple[str, bool]:
    text, related = row.get("a"), row.get("related")
    if not isinstance(text, str) or not text.strip() or not isinstance(related, bool):
        raise InvalidInput(where, "a must be a text, related true or false")
    return text, related


def _pair(row: dict[str, Any], where: str) -> LabelledPair:
    if row.get("kind") not in list(Kind):
        raise InvalidInput(where, f"kind must be {', '.join(Kind)} or {TOUCHING}")
    if not isinstance(row.get("related"), bool):
        raise InvalidInput(where, "related must be true or false")
    for name in ("group", "a", "b"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise InvalidInput(where, f"{name} must be a text that is not blank")
    return LabelledPair(Kind(row["kind"]), row["related"], row["group"], row["a"], row["b"])
