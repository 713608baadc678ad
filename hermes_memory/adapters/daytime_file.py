"""Named times from a TOML file, strictly validated (``configs/words/daytime.toml``)."""

from __future__ import annotations

import tomllib
from datetime import time
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from hermes_memory.core.daytime import Daytimes, When
from hermes_memory.errors import InvalidConfig

_Word = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _When(_Strict):
    name: _Word
    kind: _Word
    words: Annotated[tuple[_Word, ...], Field(min_length=1)]
    asked: tuple[_Word, ...] = ()
    hours: tuple[time, time] | None = None
    weekdays: tuple[Annotated[int, Field(ge=1, le=7)], ...] = ()
    months: tuple[Annotated[int, Field(ge=1, le=12)], ...] = ()

    @model_validator(mode="after")
    def _says_when(self) -> _When:
        if self.hours is None and not self.weekdays and not self.months:
            raise ValueError("says of no hours, weekdays or months")
        return self


class _Document(_Strict):
    time: tuple[_When, ...]
    ignored: tuple[_Word, ...] = ()
    between: tuple[_Word, ...] = ()
    southern: tuple[_Word, ...] = ()


def load_daytimes(source: Path | Traversable) -> Daytimes:
    """Read every ``[[time]]``.

    Raises:
        InvalidConfig: unreadable TOML, an unknown key, a value out of range, or a name that is given twice.
    """
    try:
        document = _Document.model_validate(tomllib.loads(source.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidConfig(source.name, str(problem)) from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        raise InvalidConfig(f"{source.name}.{'.'.join(map(str, first['loc']))}", first["msg"]) from None
    names = [row.name for row in document.time]
    if len(names) != len(set(names)):
        raise InvalidConfig(source.name, "names a time twice")
    times = (_when(row) for row in document.time)
    return Daytimes(times, document.ignored, document.between, document.southern)


def _when(row: _When) -> When:
    return When(
        name=row.name,
        kind=row.kind,
        words=row.words,
        asked=row.asked,
        hours=row.hours,
        weekdays=frozenset(row.weekdays),
        months=frozenset(row.months),
    )
