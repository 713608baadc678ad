"""Which sentences that no pattern types tell of lasting circumstances: health, home, kin, habits (SPEC §4.1.7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

CIRCUMSTANCE = "circumstance"  # the dimension of what lasts and has no dimension of its own


@dataclass(frozen=True, slots=True)
class Lasting:
    """Shapes of lasting circumstances by kind, words that say whose they are, and words of what passes."""

    shapes: tuple[tuple[str, re.Pattern[str]], ...]
    own: re.Pattern[str]
    passing: re.Pattern[str]

    def kind(self, words: str) -> str | None:
        """The first kind whose shape stands in ``words``; None if none does, if it is not theirs, or if it passes."""
        if self.passing.search(words) or not self.own.search(words):
            return None
        return next((name for name, regex in self.shapes if regex.search(words)), None)
