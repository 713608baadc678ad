"""``configs/words/asking.toml`` to a reader, strictly validated; every expression is compiled once, here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from hermes_memory.adapters.query_reader.data import (
    AskingWords,
    Calendar,
    Edge,
    EntityWords,
    ErrandRule,
    ErrandWords,
    Feast,
    Join,
    Regex,
    TimeRule,
    TimeWords,
    WantWords,
    Words,
)
from hermes_memory.adapters.query_reader.reader import QueryReader
from hermes_memory.adapters.query_reader.resolving import RESOLVE
from hermes_memory.adapters.rule_extractor.regexes import alternatives
from hermes_memory.core.asking import Errand, Want
from hermes_memory.errors import InvalidConfig

_MACRO = re.compile("@([A-Z0-9]+)@")
_HAN = re.compile("[\u3400-\u9fff]")
_WORD_TABLES = {
    "UNIT": "units", "MONTH": "months", "WEEKDAY": "weekdays", "SEASON": "seasons", "FEAST": "feasts", "NEAR": "near",
    "NIGHT": "nights", "PART": "parts", "NUMBER": "numbers", "VAGUE": "vague",
}  # fmt: skip
_BLANKS = "[\\s,.!?~…。、;:'\"^\u2600-\u27bf\ufe0f\U0001f300-\U0001faff-]*"  # and pictures
_ERRAND_KEYS = {"start", "anywhere", "whole", "subject", "about", "named", "asks", "veto"}

T = TypeVar("T")


def load_query_reader(path: Path | Traversable) -> QueryReader:
    """The reader by the words and patterns of a file.

    Raises:
        InvalidConfig: unreadable TOML, a table or key too many or too few, or a bad regular expression.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(path.name, str(problem)) from problem
    try:
        return QueryReader(_Loader(data, path.name).words())
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InvalidConfig(path.name, f"lacks or misspells something: {problem!r}") from problem


class _Loader:
    """Holds the file while its parts are compiled."""

    def __init__(self, data: Mapping[str, Any], name: str) -> None:
        self._data = data
        self._name = name
        self._hints: list[tuple[str, ...]] = []
        self._macros = {
            key: alternatives(f"{name}.names.{key}", value) for key, value in data["names"].items()
        }
        for macro, table in _WORD_TABLES.items():
            words = sorted(_words(data[table]), key=len, reverse=True)
            self._macros[macro] = "|".join(map(re.escape, words))
        self._macros["WISHES"] = "|".join(data["user"]["wish_en"] + data["user"]["wish_zh"])
        self._macros["OPENERS"] = "|".join(data["wants"]["openers"])

    def words(self) -> AskingWords:
        data = self._data
        _only(self._name, data, {
            "max_chars", "first_year", "last_year", "most_years", "nearest_days", "edges", "steps", "time", "joins",
            "past", "user", "names", "errands", "errand", "entities", "wants", *_WORD_TABLES.values(),
        })  # fmt: skip
        wants = {want: self._want(want, data["wants"][want]) for want in Want}
        _only(f"{self._name}.wants", data["wants"], {*Want, "openers"})
        return AskingWords(
            max_chars=int(data["max_chars"]),
            time=self._time(),
            past=self._words("past", [*data["past"]["en"], *data["past"]["zh"]]),
            errands=self._errands(),
            entities=self._entities(),
            wants=wants,
        )

    # ------------------------------------------------------------------------------------------- expressions

    def _regex(self, where: str, source: object) -> Regex:
        text = alternatives(f"{self._name}.{where}", source)
        for _ in range(3):  # names may hold names
            text = _MACRO.sub(lambda found: self._named(where, found[1]), text)
        try:
            return re.compile(text)
        except re.error as problem:
            raise InvalidConfig(f"{self._name}.{where}", f"{problem} in {source!r}") from problem

    def _named(self, where: str, macro: str) -> str:
        if macro not in self._macros:
            raise InvalidConfig(f"{self._name}.{where}", f"@{macro}@ stands for nothing")
        return self._macros[macro]

    def _words(self, where: str, sources: Iterable[str], *, at_words: bool = False) -> Words:
        """By script: an alternative with a Chinese character in it is never tried on a text that has none.

        ``at_words``: the others are tried only where a word begins or ends, which is much cheaper.
        """
        split = [part for source in sources for part in self._parts(source)]
        zh = [source for source in split if _HAN.search(source) or re.search("@Z[A-Z]+@", source)]
        en = [source for source in split if source not in zh]
        if at_words:
            en = [rf"\b(?:{'|'.join(en)})"]
        return Words(
            self._regex(f"{where}.zh", zh) if zh else None, self._regex(f"{where}.en", en) if en else None
        )

    def _parts(self, source: str) -> list[str]:
        wishes = self._data["user"]
        return [*wishes["wish_en"], *wishes["wish_zh"]] if source == "@WISHES@" else [source]

    def _want(self, want: Want, row: Mapping[str, Any]) -> WantWords:
        _only(f"{self._name}.wants.{want}", row, {"hint", "zh", "en"})
        return WantWords(tuple(row["hint"]), self._words(f"wants.{want}", [row["zh"], row["en"]]))

    # ------------------------------------------------------------------------------------------------- times

    def _time(self) -> TimeWords:
        time, joins = self._data["time"], self._data["joins"]
        return TimeWords(
            calendar=self._calendar(),
            rules=[self._time_rule(number, row) for number, row in enumerate(time["rule"])],
            hints=self._hints,
            hint=Words(
                self._regex("time.hint_zh", time["hint_zh"]), self._regex("time.hint_en", time["hint_en"])
            ),
            habit=self._words("time.habit", time["habit"]),
            edges=[self._edge(name, row) for name, row in self._data["edges"].items()],
            joins={name: self._join(name, joins[name]) for name in ("before", "after", "since")},
            between=self._regex("joins.between", joins["between"]),
            opens=self._regex("joins.opens", joins["opens"]),
            apart=self._regex("joins.apart", joins["apart"]),
        )

    def _time_rule(self, number: int, row: Mapping[str, Any]) -> TimeRule:
        where = f"time.rule[{number}]"
        _only(f"{self._name}.{where}", row, {"kind", "language", "hint", "regex"})
        if row["kind"] not in RESOLVE:
            raise InvalidConfig(f"{self._name}.{where}.kind", f"must be one of {', '.join(RESOLVE)}")
        hints = tuple(word for hint in row["hint"] for word in self._hinted(hint))
        if hints not in self._hints:
            self._hints.append(hints)
        regex = self._regex(where, row["regex"])
        return TimeRule(
            row["kind"], row.get("language"), self._hints.index(hints), regex, "lead" in regex.groupindex
        )

    def _hinted(self, hint: str) -> Iterable[str]:
        macro = _MACRO.fullmatch(hint)
        return sorted(_words(self._data[_WORD_TABLES[macro[1]]])) if macro else [hint]

    def _calendar(self) -> Calendar:
        data, time = self._data, self._data["time"]
        return Calendar(
            units=_by_word(data["units"], str),
            months=_by_word(data["months"], int),
            weekdays=_by_word(data["weekdays"], int),
            seasons=_by_word(data["seasons"], int),
            steps=_by_word(data["steps"], int),
            near=_by_word(data["near"], int),
            nights={word: (int(days), str(part)) for word, (days, part) in data["nights"].items()},
            parts={word: tuple(row["hours"]) for row in data["parts"].values() for word in row["words"]},
            numbers={word: tuple(pair) for word, pair in data["numbers"].items()},
            vague={word: tuple(pair) for word, pair in data["vague"].items()},
            feasts={word: _feast(row) for row in data["feasts"].values() for word in row["words"]},
            ahead=frozenset(time["ahead"]),
            nearest=frozenset(time["nearest"]),
            slack_days=dict(time["slack_days"]),
            same_time_days=int(time["same_time_days"]),
            nearest_days=int(data["nearest_days"]),
            most_years=int(data["most_years"]),
            first_year=int(data["first_year"]),
            last_year=int(data["last_year"]),
        )

    def _edge(self, name: str, row: Mapping[str, Any]) -> Edge:
        _only(f"{self._name}.edges.{name}", row, {"share", "before", "after"})
        low, high = row["share"]
        return Edge((float(low), float(high)), tuple(row.get("before", ())), tuple(row["after"]))

    def _join(self, name: str, row: Mapping[str, Any]) -> Join:
        where = f"joins.{name}"
        return Join(self._regex(where, row["before"]), self._regex(where, row["after"]))

    # ----------------------------------------------------------------------------------------- errands, names

    def _errands(self) -> ErrandWords:
        table, user = self._data["errands"], self._data["user"]
        return ErrandWords(
            rules=[self._errand(Errand(name)) for name in table["order"]],
            contracted=self._regex("errands.contracted", table["contracted"]),
            expanded=str(table["expanded"]),
            opens=self._regex("errands.opens", table["opens"]),
            payload=self._regex("errands.payload", table["payload"]),
            user=self._words("user.self", user["self"]),
            polite=self._words("user.polite", user["polite"]),
            telling=self._words("user.telling", user["telling"]),
            wish=self._words("user.wish", [*user["wish_en"], *user["wish_zh"]], at_words=True),
            life=self._words("user.life", [*user["life_en"], *user["life_zh"]], at_words=True),
        )

    def _errand(self, errand: Errand) -> ErrandRule:
        row, where = self._data["errand"][errand], f"errand.{errand}"
        _only(f"{self._name}.{where}", row, _ERRAND_KEYS)
        whole = "|".join(sorted(row.get("whole", ()), key=len, reverse=True))
        return ErrandRule(
            errand,
            self._words(f"{where}.start", row["start"]),
            self._words(f"{where}.anywhere", row["anywhere"]),
            # atomic: each piece is taken once, however the rest goes on
            self._regex(f"{where}.whole", rf"(?>{_BLANKS}(?:{whole})(?![a-z']){_BLANKS})+$")
            if whole
            else None,
            self._regex(f"{where}.subject", row["subject"]) if "subject" in row else None,
            self._regex(f"{where}.about", row["about"]) if "about" in row else None,
            self._words(f"{where}.named", row.get("named", ())),
            self._words(f"{where}.asks", row.get("asks", ())),
            self._words(f"{where}.veto", row["veto"]),
        )

    def _entities(self) -> EntityWords:
        row = self._data["entities"]
        _only(
            f"{self._name}.entities",
            row,
            {"quoted", "number", "exact", "han_latin", "capital", "capitals_common"},
        )
        return EntityWords(
            quoted=self._regex("entities.quoted", row["quoted"]),
            exact=self._regex("entities.exact", row["exact"]),
            number=self._regex("entities.number", row["number"]),
            latin=self._regex("entities.han_latin", row["han_latin"]),
            capital=self._regex("entities.capital", row["capital"]),
            common=frozenset(row["capitals_common"]),
        )


def _only(where: str, table: Mapping[str, Any], allowed: Iterable[str]) -> None:
    if odd := sorted(set(table) - {str(key) for key in allowed}):
        raise InvalidConfig(where, f"knows no {', '.join(odd)}")


def _words(table: Mapping[str, Any]) -> set[str]:
    """The words of a table: under each key, in a row's ``words``, or the keys themselves."""
    found: set[str] = set()
    for key, value in table.items():
        if isinstance(value, dict):
            found |= set(value["words"])
        else:
            found |= set(value) if all(isinstance(one, str) for one in value) else {key}
    return found


def _by_word(table: Mapping[str, Any], read: Callable[[str], T]) -> dict[str, T]:
    return {word: read(key) for key, words in table.items() for word in words}


def _feast(row: Mapping[str, Any]) -> Feast:
    at = row.get("at")
    return Feast((at[0], at[1]) if at else None, tuple(row.get("on", ())), int(row["days"]))
