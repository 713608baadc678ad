"""TOML files to rules, strictly validated; every regular expression is compiled once, here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from hermes_memory.adapters.rule_extractor.data import (
    Affirming,
    At,
    Ending,
    Endings,
    Grammar,
    Lexicon,
    Pattern,
    Probe,
    Regex,
    Rules,
    Speech,
    Veto,
    Weight,
)
from hermes_memory.adapters.rule_extractor.lasting import CIRCUMSTANCE, Lasting
from hermes_memory.adapters.rule_extractor.regexes import LANGUAGES, alternatives, compiled, either
from hermes_memory.adapters.rule_extractor.worth import Cue, Worth
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.dimensions import Dimension, Dimensions
from hermes_memory.core.model import Category, Intent, Layer, Polarity, Scope
from hermes_memory.errors import InvalidConfig

_MACRO = re.compile(r"@([A-Z]+)@")
_LISTS = frozenset({"classes", "markers", "after"})
_ENUMS: Mapping[str, Any] = {
    "at": At,
    "polarity": Polarity,
    "veto": Veto,
    "act": SpeechAct,
    "intent": Intent,
    "needs": Marker,
    "category": Category,
    "layer": Layer,
    "scope": Scope,
}
_FLAGS = frozenset({"splits", "own", "named", "bare", "subjectless", "place", "whole", "date"})
_NUMBERS = frozenset({"importance", "stability"})
_ROW = frozenset({"regex", "dimension", "predicate", "classify"}) | _LISTS | set(_ENUMS) | _FLAGS | _NUMBERS

_GRAMMAR = (
    "past", "echo", "rather", "amend", "retract", "addressed",
    "lead", "adverb", "break", "tail", "strip", "contrast", "user", "other", "beside", "not_object", "relation",
    "name", "note", "afterthought", "mended",
)  # fmt: skip

Folder = Path | Traversable


def load_rules(folder: Folder, dimensions: Dimensions) -> Rules:
    """Read the whole of ``configs/extraction``.

    Raises:
        InvalidConfig: unreadable TOML, unknown or missing keys, a bad regular expression, or a dimension
            that ``dimensions`` does not know.
    """
    known = {entry.key for entry in _entries(dimensions)}
    lexicon = _lexicon(_read(folder, "lexicon.toml"), known)
    affirming = _read(folder, "affirming.toml")
    return Rules(
        grammar=_grammar(_read(folder, "grammar.toml")),
        speech=_speech(_read(folder, "speech.toml")),
        markers=_markers(_read(folder, "markers.toml")),
        lexicon=lexicon,
        patterns=tuple(
            row
            for language in LANGUAGES
            for row in _patterns(_read(folder, f"{language}.toml"), language, known)
        ),
        probes=tuple(_probe(row, known) for row in affirming["probe"]),
        affirming=Affirming(
            phrase=either("affirming.phrase", affirming["phrase"]),
            denial=either("affirming.denial", affirming["denial"]),
        ),
        endings=_endings(_read(folder, "endings.toml"), known),
        worth=_worth(_read(folder, "worth.toml")),
        lasting=_lasting(_read(folder, "lasting.toml"), known),
        weights=_weights(_read(folder, "weights.toml"), dimensions),
    )


def _entries(dimensions: Dimensions) -> Iterable[Dimension]:
    return dimensions.__iter__()


def _read(folder: Folder, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(name, str(problem)) from problem


def _keys(where: str, table: Mapping[str, Any], wanted: Iterable[str]) -> None:
    if set(table) != set(wanted):
        odd = ", ".join(sorted(set(table) ^ set(wanted)))
        raise InvalidConfig(where, f"unknown or missing: {odd}")


def _grammar(table: Mapping[str, Any]) -> Grammar:
    _keys("grammar", table, _GRAMMAR)
    strip = table["strip"]
    return Grammar(
        echo=either("grammar.echo", table["echo"]),
        rather=either("grammar.rather", table["rather"]),
        amend=either("grammar.amend", table["amend"]),
        addressed=either("grammar.addressed", table["addressed"]),
        retract=either("grammar.retract", table["retract"]),
        past=either("grammar.past", table["past"]),
        lead=either("grammar.lead", table["lead"]),
        adverb=either("grammar.adverb", table["adverb"]),
        clause_break=compiled("grammar.break", table["break"]["any"]),
        tail=compiled("grammar.tail", table["tail"]["any"]),
        strip_content=compiled("grammar.strip.content", strip["content"]),
        strip_object=compiled("grammar.strip.object", strip["object"]),
        strip_object_start=compiled("grammar.strip.object_start", strip["object_start"]),
        contrast=compiled("grammar.contrast", table["contrast"]["any"]),
        not_object=either("grammar.not_object", table["not_object"]),
        user=either("grammar.user", table["user"]),
        other=either("grammar.other", table["other"]),
        beside=either("grammar.beside", table["beside"]),
        relation_zh=compiled("grammar.relation.zh", table["relation"]["zh"]),
        relation_en=compiled("grammar.relation.en", table["relation"]["en"]),
        owner=compiled("grammar.relation.owner", table["relation"]["owner"]),
        named=compiled("grammar.relation.named", table["relation"]["named"]),
        resumed=compiled("grammar.relation.resumed", table["relation"]["resumed"]),
        possessive=compiled("grammar.relation.possessive", table["relation"]["possessive"]),
        name=either("grammar.name", table["name"]),
        note=either("grammar.note", table["note"]),
        afterthought=either("grammar.afterthought", table["afterthought"]),
        mended=either("grammar.mended", table["mended"]),
    )


def _speech(table: Mapping[str, Any]) -> Speech:
    wanted = [field.name for field in fields(Speech)]
    _keys("speech", table, wanted)
    found = {name: either(f"speech.{name}", table[name]) for name in wanted if name != "filler"}
    return Speech(filler=_filler(table["filler"]), **found)


def _filler(table: Mapping[str, Any]) -> Regex:
    """A turn made of filler words only, in any order."""
    zh, en = (alternatives(f"speech.filler.{key}", table[key]) for key in LANGUAGES)
    return compiled("speech.filler", rf"(?:(?:{zh})+|(?:(?:{en})\b\s*)+|(?:(?:{zh})|(?:{en})\b\s*)+)")


def _markers(table: Mapping[str, Any]) -> tuple[tuple[Marker, Regex], ...]:
    _keys("markers", table, tuple(Marker))
    return tuple((marker, either(f"markers.{marker}", table[marker])) for marker in Marker)


def _lexicon(table: Mapping[str, Any], known: set[str]) -> Lexicon:
    _keys("lexicon", table, ("places", "keep_together", "class"))
    classes = []
    for number, row in enumerate(table["class"]):
        where = f"lexicon.class.{number}"
        _keys(where, row, ("dimension", *LANGUAGES))
        _known(where, row["dimension"], known)
        classes.append((row["dimension"], either(where, {key: row[key] for key in LANGUAGES})))
    return Lexicon(
        classes=tuple(classes),
        places=compiled("lexicon.places", table["places"]),
        keep_together=frozenset(table["keep_together"]),
    )


def _known(where: str, dimension: object, known: set[str]) -> None:
    if dimension not in known:
        raise InvalidConfig(where, f"no such dimension: {dimension!r}")


def _patterns(table: Mapping[str, Any], language: str, known: set[str]) -> Iterable[Pattern]:
    _keys(language, table, ("macros", "pattern"))
    for number, row in enumerate(table["pattern"]):
        yield _pattern(f"{language}.pattern.{number}", row, table["macros"], language, known)


def _pattern(
    where: str, row: Mapping[str, Any], macros: Mapping[str, str], language: str, known: set[str]
) -> Pattern:
    if unknown := sorted(set(row) - _ROW):
        raise InvalidConfig(where, f"unknown keys: {', '.join(unknown)}")
    _known(where, row.get("dimension"), known)
    for name in (*row.get("classes", []), *row.get("after", [])):
        _known(where, None if name == "" else name, known | {"*"})
    values: dict[str, Any] = {key: row[key] for key in _FLAGS | _NUMBERS | {"classify"} if key in row}
    values |= {key: _member(f"{where}.{key}", kind, row[key]) for key, kind in _ENUMS.items() if key in row}
    values["classes"], values["after"] = tuple(row.get("classes", ())), tuple(row.get("after", ()))
    values["markers"] = frozenset(
        _member(f"{where}.markers", Marker, name) for name in row.get("markers", ())
    )
    regex = compiled(where, _spaced(_expand(where, row.get("regex"), macros), language))
    return Pattern(
        language=language,
        regex=regex,
        dimension=row["dimension"],
        predicate=row.get("predicate", row["dimension"]),
        **values,
    )


def _member(where: str, kind: Any, value: object) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InvalidConfig(where, f"must be one of {', '.join(kind)}") from None


def _expand(where: str, source: object, macros: Mapping[str, str]) -> object:
    """Replace ``@NAME@`` by the macro, which may use macros itself."""
    if not isinstance(source, str):
        return source
    for _ in range(5):
        if not (names := set(_MACRO.findall(source))):
            break
        if lost := names - set(macros):
            raise InvalidConfig(where, f"no such macro: {', '.join(sorted(lost))}")
        source = _MACRO.sub(lambda hit: f"(?:{macros[hit.group(1)]})", source)
    return source


def _spaced(source: object, language: str) -> object:
    """In Chinese a blank may stand before the object: "我在 Google 上班", "我今年 27 岁"."""
    return source.replace("(?P<o>", r"\s?+(?P<o>") if language == "zh" and isinstance(source, str) else source


def _probe(row: Mapping[str, Any], known: set[str]) -> Probe:
    where = f"affirming.probe.{row.get('dimension')}"
    _keys(where, row, ("dimension", "splits", *LANGUAGES))
    _known(where, row["dimension"], known)
    regex = either(where, {key: row[key] for key in LANGUAGES})
    return Probe(regex=regex, dimension=row["dimension"], predicate=row["dimension"], splits=row["splits"])


_ENDINGS: Mapping[str, Mapping[str, Any]] = {
    "over": {"polarity": Polarity.NEGATIVE, "markers": frozenset({Marker.LASTING_CHANGE})},
    "done": {"polarity": Polarity.NEGATIVE, "markers": frozenset({Marker.LASTING_CHANGE})},
    "against": {"polarity": Polarity.NEGATIVE},
    "again": {"polarity": Polarity.POSITIVE},
}


def _endings(table: Mapping[str, Any], known: set[str]) -> Endings:
    _keys("endings", table, ("keep", "reached", "before", "macros", "fading", "unless", *_ENDINGS))
    for name in (*table["keep"], *table["reached"]):
        _known("endings", name, known)
    only = {"done": frozenset(table["reached"])}
    rows = [
        Ending(
            regex=compiled(where, _expand(where, source, table["macros"])),
            only=only.get(kind, frozenset()),
            **values,
        )
        for kind, values in _ENDINGS.items()
        for language in LANGUAGES
        for number, source in enumerate(table[kind][language])
        if (where := f"endings.{kind}.{language}.{number}")
    ]
    fading = Ending(regex=either("endings.fading", table["fading"]), polarity=Polarity.NEGATIVE)
    unless = either("endings.unless", table["unless"])
    return Endings(tuple(rows), fading, unless, frozenset(table["keep"]), frozenset(table["before"]))


def _worth(table: Mapping[str, Any]) -> Worth:
    _keys("worth", table, ("enough", "cue"))
    cues = []
    for row in table["cue"]:
        where = f"worth.cue.{row.get('name')}"
        _keys(where, {"asked": False, "fixed": False, **row}, ("name", "regex", "points", "asked", "fixed"))
        cues.append(Cue(row["name"], compiled(where, row["regex"]), float(row["points"]), **_switches(row)))
    return Worth(tuple(cues), float(table["enough"]))


def _lasting(table: dict[str, Any], known: set[str]) -> Lasting:
    _keys("lasting", table, ("episode", "dimension", "macros", "shapes", "plain", "own", "passing"))
    macros, of = table["macros"], table["dimension"]
    for kind, dimension in of.items():
        _known(f"lasting.dimension.{kind}", dimension, known)
    if lost := sorted(set(of) - set(table["shapes"])):
        raise InvalidConfig("lasting.dimension", f"no such shapes: {', '.join(lost)}")
    shapes = tuple(
        (of.get(name, CIRCUMSTANCE), compiled(where, _expand(where, alternatives(where, value), macros)))
        for name, value in table["shapes"].items()
        if (where := f"lasting.{name}")
    )
    rest = {name: _in_both(f"lasting.{name}", table[name], macros) for name in ("plain", "own", "passing")}
    return Lasting(shapes, episode=compiled("lasting.episode", table["episode"]), **rest)


def _in_both(where: str, table: Mapping[str, Any], macros: Mapping[str, str]) -> Regex:
    """One regular expression out of a table with the two languages, its macros filled in."""
    _keys(where, table, LANGUAGES)
    return either(where, {key: _expand(where, alternatives(where, table[key]), macros) for key in LANGUAGES})


def _switches(row: Mapping[str, Any]) -> dict[str, bool]:
    return {name: bool(row.get(name, False)) for name in ("asked", "fixed")}


def _weights(table: Mapping[str, Any], dimensions: Dimensions) -> dict[str, Weight]:
    _keys("weights", table, ("default", "dimension"))
    entries = list(_entries(dimensions))
    if lost := sorted(set(table["dimension"]) - {entry.key for entry in entries}):
        raise InvalidConfig("weights.dimension", f"no such dimension: {', '.join(lost)}")
    return {entry.key: _weight(entry, table) for entry in entries}


def _weight(entry: Dimension, table: Mapping[str, Any]) -> Weight:
    row = (
        {"topic": entry.key}
        | table["default"][entry.layer or "event"]
        | table["dimension"].get(entry.key, {})
    )
    _keys(f"weights.{entry.key}", row, ("importance", "stability", "topic"))
    for name in ("importance", "stability"):
        if not 0 <= row[name] <= 1:
            raise InvalidConfig(f"weights.{entry.key}.{name}", "must be between 0 and 1")
    return Weight(importance=float(row["importance"]), stability=float(row["stability"]), topic=row["topic"])
