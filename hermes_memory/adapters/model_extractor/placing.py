"""Where a statement stands in a turn: found in the text, in its whole clauses (SPEC §3.3)."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_memory.adapters.model_extractor.locating import occurrences
from hermes_memory.adapters.model_extractor.prompt import MAX_TURN_CHARS
from hermes_memory.adapters.rule_extractor import Heard, HeardClause
from hermes_memory.core.bounded import outside_blocks
from hermes_memory.core.candidate import SpeechAct
from hermes_memory.core.model import Turn


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands: its clauses, and its object within them."""

    heard: Heard
    clauses: tuple[HeardClause, ...]
    clause: HeardClause  # the one that holds the object
    start: int
    end: int
    object_start: int
    object_end: int
    quoted: bool  # all that is quoted stands in quotation marks of the user's

    @property
    def turn(self) -> Turn:
        """The turn."""
        return self.heard.turn

    @property
    def thing(self) -> str:
        """The object as the user wrote it."""
        return self.turn.content[self.object_start : self.object_end]


def placed(quote: str, thing: str, heard: Heard) -> Place | None:
    """Where a quote stands, in its whole clauses, with ``thing`` within them: in words that are meant, else the first."""
    spans = quoted_at(quote, heard)
    spans = [span for span in spans if not heard.within_marks(*span)] or spans
    found = [place for span in spans if (place := _widened(thing, heard, *span)) is not None]
    meant = (place for place in found if heard.act_at(place.object_start) is SpeechAct.STATEMENT)
    return next(meant, found[0] if found else None)


def quoted_at(quote: str, heard: Heard) -> list[tuple[int, int]]:
    """Where a quote stands in what a model was shown of a turn."""
    text = heard.turn.content[:MAX_TURN_CHARS]
    return occurrences(text, quote, outside_blocks(text))


def _widened(thing: str, heard: Heard, start: int, end: int) -> Place | None:
    """A quote in its whole clauses: what it leaves out ("not", "my sister") is part of what was said."""
    clauses = tuple(clause for clause in heard.clauses if clause.start < end and start < clause.end)
    if not clauses:
        return None
    quoted = heard.within_marks(start, end)
    start, end = min(start, clauses[0].said), max(end, clauses[-1].end)
    things = occurrences(heard.turn.content, thing, [(start, end)], case=False)
    if not things:  # words of the object that stand apart: "allergic … to nuts"; the gate looks at each
        words = thing.split()
        things = (
            occurrences(heard.turn.content, words[-1], [(start, end)], case=False) if len(words) > 1 else []
        )
    things = [
        span for span in things if _is_whole(heard.turn.content, *span)
    ] or things  # "Al" is none of "call"
    held = ((clause, span) for span in things for clause in clauses if span[0] < clause.end)
    first = next(held, None)
    if first is None:
        return None
    return Place(heard, clauses, first[0], start, end, *first[1], quoted)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no Latin word is cut at either end."""
    edges = (text[start - 1 : start + 1] if start else "", text[end - 1 : end + 1])
    return not any(
        len(edge) == 2 and all(char.isalnum() and char < "\u0250" for char in edge) for edge in edges
    )


def is_own(place: Place) -> bool:
    """Whether the sentence names the user or somebody of theirs."""
    sentence = place.clause.sentence
    named = place.heard.names_somebody(sentence.start, sentence.end)
    about = place.clause.subject or place.clause.carried
    return named or (about is not None and not about.unknown)  # "It's raining" names nobody


def is_chinese(place: Place) -> bool:
    """Chinese leaves out who is meant."""
    return any("一" <= char <= "鿿" for char in place.heard.mirror[place.clause.start : place.clause.end])
