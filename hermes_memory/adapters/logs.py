"""Logs without content: one event a line, as JSON or as text.

An event of ours tells codes, names of hosts, and users as hashes; its call sites are held to that by a test. What others
log is not ours to vouch for: of them only warnings and worse are let through, with the template instead of the filled
in text, and without a text that was put together before it was logged. An exception is told by its kind and its place,
never by what it says (``core.failures``).
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from hermes_memory.core.failures import frames, kinds

OURS = ("hermes_memory", "hermes_cli", "actors", "serve_app", "jobs")
FIELDS = ("user", "request_id", "code", "route", "method", "status", "ms")  # what a call site may add
WITHHELD = "(a text of its own, withheld)"

Format = Literal["text", "json"]


def configure(form: Format, level: str, process: str) -> None:
    """Let this process log to its standard error, and nowhere else. ``process`` names it in every line."""
    root = logging.getLogger()
    root.handlers[:] = [handler(form, process)]
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def handler(form: Format, process: str) -> logging.Handler:
    """Writes to standard error what may be told."""
    made = logging.StreamHandler(sys.stderr)
    made.setFormatter(JsonLines(process) if form == "json" else TextLines(process))
    made.addFilter(may_be_told)
    return made


def is_ours(name: str) -> bool:
    """Whether a logger is one of this project's."""
    return name.partition(".")[0] in OURS


def may_be_told(record: logging.LogRecord) -> bool:
    """Everything of ours, and what others warn of."""
    return is_ours(record.name) or record.levelno >= logging.WARNING


def event_of(record: logging.LogRecord, process: str) -> dict[str, Any]:
    """The record as JSON-ready fields, in the order in which they are written."""
    ours = is_ours(record.name)
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    event: dict[str, Any] = {
        "time": at.replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "process": process,
        "event": _said(record) if ours else _template(record),
    }
    if ours:
        event |= {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}
    else:
        event["place"] = f"{record.module}:{record.lineno}"
    if record.exc_info and record.exc_info[1] is not None:
        event |= {"error": kinds(record.exc_info[1]), "at": frames(record.exc_info[1])}
    return event


def _said(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (
        TypeError,
        ValueError,
    ):  # a call site of ours that does not fit: the standard library would print both
        return _template(record)


def _template(record: logging.LogRecord) -> str:
    """What stands in the other's source, if it can be told from what was put into it."""
    return record.msg if record.args and isinstance(record.msg, str) else WITHHELD


class JsonLines(logging.Formatter):
    """One JSON object a line, ASCII, so that nothing in it can end the line."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        return json.dumps(event_of(record, self._process))


class TextLines(logging.Formatter):
    """The same for eyes: time, level, logger, event, then what else there is."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        event = event_of(record, self._process)
        head = [event.pop(name) for name in ("time", "level", "logger")]
        text = event.pop("event").replace("\n", " ")
        return " ".join([*head, text, *(f"{name}={_plain(value)}" for name, value in event.items())])


def _plain(value: Any) -> str:
    return " < ".join(value) if isinstance(value, list) else str(value)
