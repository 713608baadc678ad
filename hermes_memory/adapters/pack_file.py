"""Knowledge packs from JSONL, strictly validated: a header line, then one entry a line (docs/reference/knowledge-packs.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import from_json

from hermes_memory.core.daytime import Daytimes
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.knowledge import Entry, Pack
from hermes_memory.core.model import MAX_CONTENT_CHARS
from hermes_memory.core.rules import KnowledgeRules
from hermes_memory.errors import InvalidInput

TIMES = ("daytime", "week", "season")

_Language = Literal["zh", "en"]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
_Word = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"\S")]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS, pattern=r"\S")]
_Words = tuple[_Word, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(_Strict):
    """The first line of a pack."""

    format: Literal["hermes-knowledge/1"]
    name: _Name
    version: _Name
    languages: Annotated[tuple[_Language, ...], Field(min_length=1)]
    licence: _Word
    title: Annotated[str, StringConstraints(max_length=200)] = ""


class When(_Strict):
    """At which times and in which scenes an entry is shown."""

    daytime: _Words = ()
    week: _Words = ()
    season: _Words = ()
    scene: _Words = ()


class Line(_Strict):
    """Every further line of a pack."""

    id: _Name
    content: Annotated[dict[_Language, _Text], Field(min_length=1)]
    cues: dict[_Language, _Words] = {}
    topics: _Words = ()
    dimensions: _Words = ()
    when: When = When()

    @model_validator(mode="after")
    def _speaks_its_cues(self) -> Line:
        if extra := set(self.cues) - set(self.content):
            raise ValueError(f"has cues but no content in {', '.join(sorted(extra))}")
        return self


_Row = TypeVar("_Row", bound=BaseModel)


def read_pack(path: Path, dimensions: Dimensions, daytimes: Daytimes, rules: KnowledgeRules) -> Pack:
    """The pack in a file; blank lines are skipped.

    Raises:
        InvalidInput: the file cannot be read or is too large, or a line, named by its number, breaks the format.
    """
    try:
        size = path.stat().st_size
        if size > rules.pack_bytes:
            raise InvalidInput(path.name, f"has more than {rules.pack_bytes} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(path.name, f"cannot be read: {problem}") from None
    return parse_pack(text, path.name, dimensions, daytimes, rules)


def parse_pack(
    text: str, name: str, dimensions: Dimensions, daytimes: Daytimes, rules: KnowledgeRules
) -> Pack:
    """As ``read_pack``, of the text itself; ``name`` is what an error calls it."""
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise InvalidInput(name, "is empty")
    header = _parsed(Header, first, name)
    entries: dict[str, Entry] = {}
    for number, line in lines:
        row = _parsed(Line, (number, line), name)
        if row.id in entries:
            raise _wrong(name, number, f"repeats the id {row.id}")
        if len(entries) == rules.pack_entries:
            raise _wrong(name, number, f"is beyond the {rules.pack_entries} entries that a pack may have")
        for problem in _problems(row, header, dimensions, daytimes):
            raise _wrong(name, number, problem)
        entries[row.id] = _entry(row)
    if not entries:
        raise InvalidInput(name, "has no entries")
    return Pack(
        name=header.name,
        version=header.version,
        languages=header.languages,
        licence=header.licence,
        title=header.title,
        entries=tuple(entries.values()),
    )


def _parsed(kind: type[_Row], line: tuple[int, str], name: str) -> _Row:
    number, text = line
    try:
        return kind.model_validate(_object(text))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _wrong(name, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
    except ValueError as problem:
        raise _wrong(name, number, f"is not JSON: {problem}") from None


def _object(text: str) -> Any:
    return from_json(text, allow_inf_nan=False)


def _problems(row: Line, header: Header, dimensions: Dimensions, daytimes: Daytimes) -> Iterator[str]:
    if extra := set(row.content) - set(header.languages):
        yield f"speaks {', '.join(sorted(extra))}, which the header does not name"
    yield from (f"dimensions: {key} is not known" for key in row.dimensions if key not in dimensions)
    for kind in TIMES:
        known: Iterable[str] = daytimes.names(kind)
        yield from (
            f"when.{kind}: {word} is not known" for word in getattr(row.when, kind) if word not in known
        )


def _entry(row: Line) -> Entry:
    limits = {kind: frozenset(getattr(row.when, kind)) for kind in TIMES if getattr(row.when, kind)}
    return Entry(
        id=row.id,
        content={str(language): text for language, text in row.content.items()},
        cues={str(language): cues for language, cues in row.cues.items()},
        topics=row.topics,
        dimensions=row.dimensions,
        limits=limits,
        scenes=frozenset(row.when.scene),
    )


def _wrong(name: str, number: int, problem: str) -> InvalidInput:
    return InvalidInput(f"{name}, line {number}", problem)
