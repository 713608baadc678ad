"""Which sentences that no pattern types tell of lasting circumstances: health, home, kin, habits (SPEC §4.1.7)."""

from __future__ import annotations

import re
from dataclasses import dataclass

CIRCUMSTANCE = "circumstance"  # the dimension of what lasts and has no dimension of its own


@dataclass(frozen=True, slots=True)
class Lasting:
    """Shapes of lasting circumstances by kind, and the words of what passes."""

    shapes: tuple[tuple[str, re.Pattern[str]], ...]
    passing: re.Pattern[str]

    def kind(self, words: str) -> str | None:
        """The first kind whose shape stands in ``words``; None if there is none, or if something passes there."""
        if self.passing.search(words):
            return None
        return next((name for name, regex in self.shapes if regex.search(words)), None)
