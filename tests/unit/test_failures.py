"""An exception is told by kind and place, never by what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from hermes_memory.core.failures import MAX_CAUSES, MAX_FRAMES, frames, kinds, told
from hermes_memory.errors import LedgerUnavailable, VersionConflict

SECRET = "what ana said"


def caught(raising: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as raised:
        raising()
    return raised.value


def quoting() -> None:
    json.loads(f'{{"{SECRET}"}}')


def wrapping() -> None:
    try:
        quoting()
    except ValueError as error:
        raise LedgerUnavailable(SECRET) from error


def hiding() -> None:
    try:
        quoting()
    except ValueError:
        raise VersionConflict(1, 2) from None


def while_handling() -> None:
    try:
        quoting()
    except ValueError:
        raise KeyError(SECRET)  # noqa: B904  # the context is what is tested


def deep(left: int = 30) -> None:
    if not left:
        raise RecursionError(SECRET)
    deep(left - 1)


def test_kind_and_place_are_told() -> None:
    text = told(caught(quoting))
    assert re.match(r"JSONDecodeError at json/decoder\.py:\d+ in raw_decode < ", text)
    assert "unit/test_failures.py:" in text
    assert "in quoting" in text


def test_no_words_are_told() -> None:
    for raising in (quoting, wrapping, hiding, while_handling, deep):
        assert SECRET not in told(caught(raising))


def test_of_ours_the_code_is_told_with_what_caused_it() -> None:
    assert kinds(caught(wrapping)) == ["LedgerUnavailable(ledger_unavailable)", "JSONDecodeError"]
    assert kinds(caught(while_handling)) == ["KeyError", "JSONDecodeError"]
    assert kinds(caught(hiding)) == ["VersionConflict(version_conflict)"]


def test_one_that_was_never_raised_has_no_place() -> None:
    assert told(ValueError(SECRET)) == "ValueError"


def test_the_innermost_frames_are_kept() -> None:
    kept = frames(caught(deep))
    assert len(kept) == MAX_FRAMES
    assert all(re.fullmatch(r"unit/test_failures\.py:\d+ in deep", frame) for frame in kept)


def test_of_a_long_or_endless_chain_the_last_are_told() -> None:
    error = first = ValueError()
    for _ in range(10):
        after = ValueError()
        after.__cause__ = error
        error = after
    assert len(kinds(error)) == MAX_CAUSES
    first.__cause__ = second = KeyError()
    second.__cause__ = first
    assert kinds(first) == ["ValueError", "KeyError"]


def test_a_place_does_not_say_where_it_was_installed() -> None:
    import numpy as np

    from hermes_memory.core.ids import check_id

    ours = frames(caught(lambda: check_id(3, "user")))
    assert ours[0].startswith("hermes_memory/core/ids.py:")
    theirs = frames(caught(lambda: np.zeros(3).reshape(2, 2) @ np.ones(3) + np.linalg.inv(np.zeros((2, 2)))))
    assert not any(frame.startswith("/") for frame in theirs)
    inverted = frames(caught(lambda: np.linalg.inv(np.zeros((2, 2)))))
    assert inverted[0].startswith("numpy/linalg/")
