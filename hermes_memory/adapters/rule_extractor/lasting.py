"""Which sentences that no pattern types tell of lasting circumstances: health, home, kin, habits (SPEC §4.1.7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

CIRCUMSTANCE = "circumstance"  # what lasts and has no dimension of its own
NOTE = "note"  # what may last: kept in the user's own words, and fades as episodes do


@dataclass(frozen=True, slots=True)
class Lasting:
    """Shapes of lasting circumstances, of plain declarations, words that say whose they are, and what passes."""

    shapes: tuple[tuple[str, re.Pattern[str]], ...]  # dimension, what calls for it
    plain: re.Pattern[str]
    own: re.Pattern[str]
    passing: re.Pattern[str]
    episode: re.Pattern[str]  # of Chinese words of today: something happens in them

    def dimension(self, words: str, *, alone: bool) -> str | None:
        """What ``words`` bear on, by the first shape that stands in them; None if it is not theirs, or if it passes.

        ``alone``: they are a whole sentence; a plain declaration is then a note that reaches as far, whatever it tells.
        """
        if self.passing.search(words) or not self.own.search(words):
            return None
        found = next((of for of, regex in self.shapes if regex.search(words)), None)
        return NOTE if found is None and alone and self.plain.search(words) else found
