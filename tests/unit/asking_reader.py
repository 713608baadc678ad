"""The shipped reader, as the tests use it: a Wednesday in Shanghai, 16 August 2023, half past six in the evening."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from hermes_memory.adapters.query_reader import QueryReader, load_query_reader
from hermes_memory.core.asking import Asked

NOW = datetime(2023, 8, 16, 10, 30, tzinfo=UTC)
PLACE = "Asia/Shanghai"


@cache
def shipped() -> QueryReader:
    return load_query_reader(files("configs") / "words" / "asking.toml")


def read(text: str, as_of: datetime = NOW, timezone: str = PLACE) -> Asked:
    return shipped().read(text, as_of, timezone)


def spans(text: str, as_of: datetime = NOW, timezone: str = PLACE) -> list[str]:
    """The periods in short: days, or hours where they are no whole days."""
    found = []
    for period in read(text, as_of, timezone).periods:
        whole = period.start.hour == period.end.hour == period.start.minute == period.end.minute == 0
        form = "%Y-%m-%d" if whole else "%Y-%m-%d %H:%M"
        found.append(f"{period.start:{form}} to {period.end:{form}}")
    return found
