"""How statements are compared with the words they rest on: ``configs/words/grounding.toml``, strictly validated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from hermes_memory.adapters.rule_extractor.regexes import LANGUAGES, alternatives, compiled
from hermes_memory.adapters.segmenter import Segmenter, read_stop_words
from hermes_memory.core.dimensions import SafetyClass, Sensitive
from hermes_memory.core.grounding import Grounding, Lexicon
from hermes_memory.errors import InvalidConfig

NAMING = "naming"  # the class of forms of address; the others that may freeze at once are safety classes
_LISTS = ("frame", "copulas", "equal")
_SHAPES = (
    "negators",
    "apart",
    "breaks",
    "resumes",
    "against",
    "kept",
    "limits",
    "corrects",
    "asks",
    "times",
    "bare",
)
_SIZES = ("answer_chars", "answer_words")
_TABLES = {*_LISTS, *_SHAPES, *_SIZES, "figures", "contractions", "cues"}
CUES = frozenset({NAMING, *SafetyClass, *Sensitive})


def load_grounding(source: Path | Traversable) -> Grounding:
    """Read the lists, and the stop words that stand beside them.

    Raises:
        InvalidConfig: unreadable TOML, a table too many or too few, or a value of the wrong kind.
    """
    try:
        tables = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(source.name, str(problem)) from problem
    if set(tables) != _TABLES:
        raise InvalidConfig(source.name, f"must hold {', '.join(sorted(_TABLES))} and nothing else")
    if set(tables["cues"]) != CUES:
        raise InvalidConfig(f"{source.name}.cues", f"must be of {', '.join(sorted(CUES))}")
    cut = Segmenter()  # leaves no word out
    shapes = {name: _shape(f"{source.name}.{name}", tables[name]) for name in _SHAPES}
    lexicon = Lexicon(
        frame=frozenset(_words(f"{source.name}.frame", tables["frame"])),
        copulas=frozenset(_words(f"{source.name}.copulas", tables["copulas"])),
        equal=tuple(frozenset(group) for group in _both(f"{source.name}.equal", tables["equal"])),
        figures=tables["figures"],
        contractions={word: tuple(full) for word, full in tables["contractions"].items()},
        cues={name: _shape(f"{source.name}.cues.{name}", cue) for name, cue in tables["cues"].items()},
        answer_chars=_size(source.name, tables, "answer_chars"),
        answer_words=_size(source.name, tables, "answer_words"),
        **shapes,
    )
    return Grounding(cut.words, cut.plain, lexicon, read_stop_words(Path(str(source)).parent))


def _shape(where: str, table: object) -> re.Pattern[str]:
    if not isinstance(table, dict) or set(table) != set(LANGUAGES):
        raise InvalidConfig(where, "must hold zh and en")
    zh, en = (alternatives(f"{where}.{language}", table[language]) for language in LANGUAGES)
    return compiled(where, [zh, f"(?a:{en})"])  # an English word ends where a Chinese one begins


def _both(where: str, table: object) -> list[Any]:
    if not isinstance(table, dict) or set(table) != set(LANGUAGES):
        raise InvalidConfig(where, "must hold zh and en")
    if not all(isinstance(entries, list) for entries in table.values()):
        raise InvalidConfig(where, "must be lists")
    return [entry for language in LANGUAGES for entry in table[language]]


def _words(where: str, table: object) -> list[str]:
    words = _both(where, table)
    if not all(isinstance(word, str) and word for word in words):
        raise InvalidConfig(where, "must be words")
    return words


def _size(name: str, tables: Mapping[str, Any], key: str) -> int:
    value = tables[key]
    if not isinstance(value, int) or value < 1:
        raise InvalidConfig(f"{name}.{key}", "must be a number above zero")
    return value
