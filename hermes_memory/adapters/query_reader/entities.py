"""What in a query is worth an exact match: names, quotations, identifiers, dates, amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_memory.adapters.query_reader.data import EntityWords
from hermes_memory.core.text import language
from hermes_memory.core.words import normal

_SENTENCE_START = re.compile(r"(?:^|[.!?。！？\n]\s?)[\s\"“'(]*$")
_POSSESSIVE = re.compile(r"'s?$")
_MARKED = re.compile("[0-9@]|http")  # without one of these nothing is exact and nothing is an amount
_START_REACH = 4  # characters before a word that show whether a sentence begins with it
_MOST = 16


class EntityFinder:
    """Finds entities by the expressions of the file; holds no state between texts."""

    def __init__(self, words: EntityWords) -> None:
        self._words = words

    def find(self, cased: str, folded: str, timeless: str) -> tuple[str, ...]:
        """The entities, each once, in normal form.

        ``cased`` has the capitals, ``folded`` is the search form, ``timeless`` what is left of it without the words
        that name periods: a year is no number to be matched.
        """
        found = [*self._quoted(cased), *self._matched(folded, timeless), *self._capitals(cased)]
        if language(cased) == "zh":
            found += [normal(hit[0]) for hit in self._words.latin.finditer(cased)]
        names = dict.fromkeys(name.strip() for name in found)
        return tuple(name for name in names if name and name not in self._words.common)[:_MOST]

    def _quoted(self, cased: str) -> Iterator[str]:
        for hit in self._words.quoted.finditer(cased):
            yield normal(next(group for group in hit.groups() if group is not None))

    def _matched(self, folded: str, timeless: str) -> Iterator[str]:
        if not _MARKED.search(folded):
            return
        for pattern, text in ((self._words.exact, folded), (self._words.number, timeless)):
            for hit in pattern.finditer(text):
                yield hit[0].rstrip(".")

    def _capitals(self, cased: str) -> Iterator[str]:
        """Capitalised words inside a sentence; at its beginning only what no plain word would look like."""
        if not any(char.islower() for char in cased):
            return  # all in capitals: they say nothing
        for hit in self._words.capital.finditer(cased):
            words = hit[0].split(" ")
            starts = (
                _SENTENCE_START.search(cased[max(0, hit.start() - _START_REACH) : hit.start()]) is not None
            )
            while words and words[0].casefold().rstrip("'") in self._words.common:
                words, starts = words[1:], False
            if words and (not starts or len(words) > 1 or words[0].endswith("'s")):
                yield normal(_POSSESSIVE.sub("", " ".join(words)))
