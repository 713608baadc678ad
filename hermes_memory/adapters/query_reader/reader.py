"""A query's text to what it asks."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, tzinfo

from hermes_memory.adapters.query_reader.data import AskingWords, Form
from hermes_memory.adapters.query_reader.entities import EntityFinder
from hermes_memory.adapters.query_reader.errands import ErrandReader
from hermes_memory.adapters.query_reader.periods import Found, PeriodFinder
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.when import zone
from hermes_memory.core.asking import Asked, Period
from hermes_memory.core.words import normal

_DAY_S = 86_400


class QueryReader:
    """Reads queries by rules; holds no state between them.

    A query says the same in traditional characters, in full width and in other case; names by their capitals alone are
    found only where they are written so.
    """

    def __init__(self, words: AskingWords) -> None:
        self._words = words
        self._periods = PeriodFinder(words.time)
        self._errands = ErrandReader(words.errands)
        self._entities = EntityFinder(words.entities)
        simplified("")  # loads its table now and not within a request
        self._utc = zone("UTC")  # likewise its file, and while it is held here nobody reads that again

    def read(self, text: str, as_of: datetime, timezone: str) -> Asked:
        """What ``text`` asks, its times seen from ``as_of`` (aware) in the user's time zone; unknown zones are UTC."""
        cased = _plain(text[: self._words.max_chars])
        form = Form.of(simplified(normal(cased)).strip())
        if not form.text:
            return Asked()
        said = as_of if as_of.tzinfo is not None else as_of.replace(tzinfo=UTC)
        found, past = self._times(form, said, zone(timezone))
        task = self._errands.read(form, about_past=past)
        return Asked(
            periods=found.periods,
            about_past=past,
            errand=task.errand,
            personal=task.personal,
            entities=self._entities.find(cased, form.text, found.rest.text),
            wants=tuple(want for want, words in self._words.wants.items() if words.found_in(found.rest)),
        )

    def _times(self, form: Form, said: datetime, where: tzinfo) -> tuple[Found, bool]:
        """The periods, and whether the query is about the past; the "before" of a date alone does not make it so."""
        past = self._words.past.found_in(form)
        found = self._periods.find(form, said, where, back=past)
        if past and found.periods and not self._words.past.found_in(found.rest):
            found, past = self._periods.find(form, said, where, back=False), False
        return found, past or any(_is_past(period, said) for period in found.periods)


def _plain(text: str) -> str:
    """Narrow, simplified letters and plain quotes; capitals stay."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return simplified(unicodedata.normalize("NFKC", valid))


def _is_past(period: Period, said: datetime) -> bool:
    """Whether it lies behind, or reaches from there to the present day and no further."""
    start, end, now = period.start.timestamp(), period.end.timestamp(), said.timestamp()
    return end <= now or (start <= now - _DAY_S and end <= now + _DAY_S)
