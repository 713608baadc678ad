"""Whether a sentence that no pattern types is worth keeping in the user's own words (SPEC §4.1.4, §7.6).

A sum of points: each cue that stands in the words adds its own, once. Cheap, readable, and the span stays verbatim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cue:
    """A sign that words tell, or do not tell, something about a life. ``asked``: sought in the question before.

    ``fixed``: points set by hand, since the dialogues from which the others are fitted hold no such talk.
    """

    name: str
    regex: re.Pattern[str]
    points: float
    asked: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Worth:
    """The cues and the points from which on a sentence is kept."""

    cues: tuple[Cue, ...]
    enough: float

    def signs(self, words: str, question: str) -> list[Cue]:
        """The cues found; ``question`` is what the assistant asked just before, or empty."""
        return [cue for cue in self.cues if cue.regex.search(question if cue.asked else words)]

    def keeps(self, words: str, question: str) -> bool:
        """Whether the points suffice."""
        return sum(cue.points for cue in self.signs(words, question)) >= self.enough
