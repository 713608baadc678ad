"""Every error of the domain crosses a process boundary whole, and says whether to try again."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory import errors
from hermes_memory.errors import HermesError, InvalidInput, LedgerUnavailable, VersionConflict

E = TypeVar("E", bound=HermesError)
SAMPLES: dict[str, object] = {"str": "words with 汉字", "int": 42, "float": 1.5, "bool": True}


def subclasses(kind: type[HermesError]) -> Iterator[type[HermesError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from subclasses(child)


KINDS = list(subclasses(HermesError))


def an_error(kind: type[HermesError]) -> HermesError:
    """An instance, with an argument of the declared type for each parameter."""
    if kind.__init__ is Exception.__init__:
        return kind()
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    named = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*(SAMPLES[str(p.annotation)] for p in named))


def crossed(error: E, protocol: int = pickle.HIGHEST_PROTOCOL) -> E:
    """The error as another process sees it."""
    back: E = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - our own bytes
    return back


def test_every_class_of_the_module_is_covered() -> None:
    declared = {
        cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__
    }
    assert declared == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_everything(kind: type[HermesError], protocol: int) -> None:
    error = an_error(kind)
    back = crossed(error, protocol)
    assert type(back) is kind
    assert (back.args, vars(back), str(back), back.detail) == (
        error.args,
        vars(error),
        str(error),
        error.detail,
    )
    again = crossed(back, protocol)
    assert str(again) == str(error)  # text that doubles with each crossing was seen in the field


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_argument_is_an_attribute(kind: type[HermesError]) -> None:
    error = an_error(kind)
    assert set(error.args) <= set(vars(error).values())
    assert str(copy.copy(error)) == str(error)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_code_and_retryable_are_of_the_class(kind: type[HermesError]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)
    assert isinstance(kind.retryable, bool)
    assert "code" in vars(kind)


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in KINDS]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not HermesError], ids=lambda kind: kind.__name__
)
def test_an_error_has_words_for_people(kind: type[HermesError]) -> None:
    assert len(an_error(kind).detail) > 5


@given(st.integers(), st.integers(), st.text(), st.text())
def test_any_values_cross_unchanged(expected: int, actual: int, field: str, why: str) -> None:
    conflict = crossed(VersionConflict(expected, actual))
    assert (conflict.expected, conflict.actual, conflict.retryable) == (expected, actual, True)
    invalid = crossed(InvalidInput(field, why))
    assert (invalid.field, invalid.problem, str(invalid)) == (field, why, f"{field}: {why}")
    assert crossed(LedgerUnavailable(why)).why == why
