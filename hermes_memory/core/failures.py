"""An exception told without what it says: its kind, its code and its place, never its words or anybody's values."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import PurePath

from hermes_memory.errors import HermesError

MAX_FRAMES, MAX_CAUSES = 12, 4  # the innermost of them
HOME = "hermes_memory"


def told(error: BaseException) -> str:
    """``ZeroDivisionError at hermes_memory/core/decay.py:31 in weight < …``, then what caused it.

    Messages of exceptions quote values: a parser the text that it could not read, a store the row. Ours say no
    content, but they wrap others.
    """
    return " <- ".join(_one(each) for each in _chain(error))


def kinds(error: BaseException) -> list[str]:
    """The exception's kind and those of its causes, the first cause last; of ours with the code."""
    return [_kind(each) for each in _chain(error)]


def frames(error: BaseException) -> list[str]:
    """Where it was raised, innermost first: file, line and function."""
    stack = traceback.extract_tb(error.__traceback__)
    return [f"{_place(one.filename)}:{one.lineno} in {one.name}" for one in reversed(stack)][:MAX_FRAMES]


def _one(error: BaseException) -> str:
    at = " < ".join(frames(error))
    return f"{_kind(error)} at {at}" if at else _kind(error)


def _kind(error: BaseException) -> str:
    name = type(error).__name__
    return f"{name}({error.code})" if isinstance(error, HermesError) else name


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, as a traceback would tell it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen and len(seen) < MAX_CAUSES:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _place(filename: str) -> str:
    """The end of a path that says which module it is, without where it was installed."""
    parts = PurePath(filename).parts
    for mark in ("site-packages", HOME):
        if mark in parts:
            at = len(parts) - 1 - parts[::-1].index(mark)
            return "/".join(parts[at + (mark == "site-packages") :])
    return "/".join(parts[-2:])
