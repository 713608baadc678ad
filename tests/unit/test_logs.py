"""Logs: one event a line, without content, whoever logs it and however it goes wrong."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters import logs
from hermes_memory.adapters.logs import OURS, WITHHELD, configure, handler
from hermes_memory.errors import LedgerUnavailable

LEVELS = {"debug", "info", "warning", "error", "critical", "exception", "log"}
ROOT = Path(__file__).parents[2]
SECRET = "我对花生过敏, said ana"


@pytest.fixture
def kept() -> Iterator[None]:
    """The suite's own handlers and levels come back."""
    root = logging.getLogger()
    handlers, levels = list(root.handlers), {name: logging.getLogger(name).level for name in OURS}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def written(form: logs.Format, name: str, level: int, text: Any, *args: object, **more: Any) -> str:
    """What a record comes out as; nothing if it is held back."""
    record = logging.LogRecord(name, level, "/somewhere/place.py", 7, text, args, more.pop("exc_info", None))
    record.__dict__.update(more)
    writer = handler(form, "host-0")
    return writer.format(record) if writer.filter(record) else ""


def as_json(*args: Any, **more: Any) -> dict[str, Any]:
    line = written("json", *args, **more)
    assert "\n" not in line
    assert line.isascii()
    event: dict[str, Any] = json.loads(line)
    return event


def failed(cause: Exception | None = None) -> tuple[Any, Any, Any]:
    try:
        if cause is None:
            raise ValueError(SECRET)
        raise LedgerUnavailable(SECRET) from cause
    except (ValueError, LedgerUnavailable) as error:
        return type(error), error, error.__traceback__


def test_an_event_is_one_object() -> None:
    event = as_json(
        "hermes_memory.runtime.host", logging.WARNING, "host %s lost its lease", "host-0", user="abc", request_id="req_1"
    )  # fmt: skip
    assert event.pop("time").endswith("Z")
    assert event == {
        "level": "WARNING", "logger": "hermes_memory.runtime.host", "process": "host-0",
        "event": "host host-0 lost its lease", "user": "abc", "request_id": "req_1",
    }  # fmt: skip


def test_only_published_fields_are_written() -> None:
    assert "content" not in as_json("serve_app", logging.INFO, "request", content=SECRET, status=200)
    assert SECRET not in written("text", "serve_app", logging.INFO, "request", content=SECRET)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", ["hermes_memory.runtime.active", "asyncio"])
@pytest.mark.parametrize("cause", [None, ValueError(SECRET)])
def test_an_exception_is_told_by_kind_and_place(
    form: logs.Format, name: str, cause: Exception | None
) -> None:
    line = written(form, name, logging.ERROR, "it failed", exc_info=failed(cause))
    assert "ana" not in line
    assert "花生" not in line
    assert "\\u82b1" not in line
    assert ("LedgerUnavailable(ledger_unavailable)" if cause else "ValueError") in line
    assert "unit/test_logs.py:" in line


def test_of_others_warnings_are_told_without_what_was_filled_in() -> None:
    event = as_json("weaviate", logging.WARNING, "could not read %s", SECRET)
    assert (event["event"], event["place"]) == ("could not read %s", "place:7")
    assert as_json("httpx", logging.ERROR, f"could not read {SECRET}")["event"] == WITHHELD
    assert as_json("asyncio", logging.ERROR, ValueError(SECRET))["event"] == WITHHELD


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_of_others_nothing_less_is_told(level: int) -> None:
    assert written("json", "httpx", level, "POST /v1/users/%s", "ana") == ""
    assert written("json", "hermes_memory_of_others", level, "x") == ""
    assert written("json", "hermes_memory", level, "x")


def test_text_is_a_line_too() -> None:
    line = written("text", "serve_app.measuring", logging.INFO, "request\nof two", status=200, ms=1.5)
    assert line.endswith("INFO serve_app.measuring request of two process=host-0 status=200 ms=1.5")
    assert "\n" not in line


def test_a_broken_call_site_is_told_without_its_values() -> None:
    """A template that does not fit its values: the standard library would print both."""
    assert "ana" not in written("json", "hermes_memory", logging.WARNING, "%d turns", SECRET)


@pytest.mark.usefixtures("kept")
def test_a_process_logs_to_its_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "INFO", "host-1")
    logging.getLogger("hermes_memory.runtime").debug("no")
    logging.getLogger("hermes_memory.runtime").info("yes")
    logging.getLogger("httpx").info("no")
    logging.getLogger("httpx").warning("yes: %s", SECRET)
    out, err = capsys.readouterr()
    assert out == ""
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["yes", "yes: %s"]
    assert {json.loads(line)["process"] for line in err.splitlines()} == {"host-1"}


@pytest.mark.usefixtures("kept")
def test_configured_again_it_writes_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "INFO", "a")
    configure("text", "WARNING", "b")
    logging.getLogger("actors.host").warning("once")
    assert capsys.readouterr().err.count("once") == 1


# the call sites


def logging_calls() -> Iterator[tuple[str, ast.Call]]:
    for package in OURS:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    of = node.func.value
                    named = isinstance(of, ast.Name) and of.id in {"log", "_log", "logger"}
                    if named and node.func.attr in LEVELS:
                        yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def test_no_call_site_logs_what_an_exception_says() -> None:
    """``log.exception`` and ``exc_info`` print messages and values where the application configures its own logs."""
    calls = list(logging_calls())
    assert len(calls) > 15
    for where, call in calls:
        assert isinstance(call.func, ast.Attribute)
        assert call.func.attr != "exception", where
        assert "exc_info" not in {keyword.arg for keyword in call.keywords}, where
        template = call.args[0]
        assert isinstance(template, ast.Constant), f"{where}: the template must not be put together"
        for value in call.args[1:]:
            assert not (isinstance(value, ast.Name) and value.id in {"error", "failure", "exc", "e"}), where
