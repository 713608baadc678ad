"""The reference pages and the code say the same: routes, reasons, configuration keys, error codes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from hermes_memory import errors
from hermes_memory.config import load_settings
from hermes_memory.core.reasons import Reason
from hermes_memory.errors import HermesError
from serve_app.api import create_app
from serve_app.problems import HTTP_PROBLEMS, STATUS, TooLarge, status_of
from tests.docs import diagrams

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def rows(page: str, until: str = "\0") -> Iterator[list[str]]:
    """The cells of every table row of a page whose first cell is code or a method, up to a heading."""
    for line in (REFERENCE / page).read_text("utf-8").partition(until)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and re.match(r"`|[A-Z]+$", cells[0]):
            yield cells


def kinds(kind: type[HermesError] = HermesError) -> Iterator[type[HermesError]]:
    """The domain's errors, and those of the HTTP layer."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ in {errors.__name__, TooLarge.__module__}:
            yield from kinds(below)


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_routes() -> None:
    def never() -> Any:
        raise AssertionError

    app = create_app(never, load_settings().api)
    document = app.openapi()["paths"]
    there = {(method.upper(), path) for path, methods in document.items() for method in methods}
    described = [(method, path.strip("`")) for method, path, *_ in rows("http.md", "## Not there yet")]
    assert len(described) == len(set(described))
    assert set(described) == there
    missing = {(method, path.strip("`")) for method, path, *_ in rows("http.md")} - set(described)
    assert missing
    assert not missing & there


def test_every_route_is_in_the_document() -> None:
    app = create_app(lambda: pytest.fail("not started"), load_settings().api)
    hidden = [
        route.path for route in app.routes if isinstance(route, APIRoute) and not route.include_in_schema
    ]
    assert hidden == []


def test_reasons() -> None:
    described = [code.strip("`") for code, _ in rows("reasons.md")]
    assert described == [reason.value for reason in Reason]  # in the same order


def test_configuration() -> None:
    actual: dict[str, Any] = {}
    for name in ("defaults.toml", "embedded.toml"):
        actual |= dict(flat(tomllib.loads((ROOT / "configs" / name).read_text("utf-8"))))
    described = {key.strip("`"): default.strip("`") for key, default, *_ in rows("configuration.md")}
    assert set(described) == set(actual)
    for key, default in described.items():
        assert tomllib.loads(f"x = {default}")["x"] == actual[key], key


def test_error_codes() -> None:
    known = {kind.code: (str(status_of(kind)), "yes" if kind.retryable else "no") for kind in kinds()}
    known |= {code: (str(status), "no") for status, (code, _) in HTTP_PROBLEMS.items()}
    described = [(code.strip("`"), (status, retryable)) for code, status, retryable, _ in rows("errors.md")]
    assert len(described) == len(dict(described))
    assert dict(described) == known
    assert [status for _, (status, _) in described] == sorted(status for _, (status, _) in described)


def test_every_error_has_a_status_of_its_own() -> None:
    assert set(STATUS) == set(kinds())


def test_the_diagrams_are_those_of_the_tables() -> None:
    """Repair: python -m tests.docs.diagrams."""
    page = diagrams.PAGE.read_text(encoding="utf-8")
    assert not list(diagrams.missing(page))
    assert diagrams.with_diagrams(page) == page
