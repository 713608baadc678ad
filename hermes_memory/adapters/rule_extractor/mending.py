"""A correction that names the old value and not what it is the value of: "No wait, it's Porto, not Lisbon" (SPEC §6).

What "it" is follows from the old value: the known memory, or the earlier statement of the same conversation, that has
it as its object. Without one nothing is read; a value alone names no dimension.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hermes_memory.adapters.rule_extractor.data import Pattern, Rules
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.objects import clean
from hermes_memory.adapters.rule_extractor.opening import Subject
from hermes_memory.core.candidate import Candidate, Marker
from hermes_memory.core.model import Category, Memory, Polarity, Status
from hermes_memory.core.text import normal, numbers


@dataclass(frozen=True, slots=True)
class Standing:
    """Something that was said or is known: whose, what, and its value."""

    subject: str
    dimension: str
    predicate: str
    object: str
    content: str
    polarity: Polarity


def standing_in(said: Iterable[Candidate | Memory]) -> list[Standing]:
    """What was said or is known and holds at present, the newest last."""
    return [
        Standing(one.subject, one.dimension, one.predicate, one.object, one.content, one.polarity)
        for one in said
        if one.category is not Category.EVENT
        and (isinstance(one, Candidate) or one.status in (Status.ACTIVE, Status.REVIEW))
    ]


def mended(
    mirror: str, start: int, end: int, standing: list[Standing], rules: Rules
) -> tuple[Reading, Standing] | None:
    """The new value in ``mirror[start:end]``, in the dimension of the old one; None if there is no such pair."""
    hit = rules.grammar.mended.fullmatch(mirror, start, end) if standing else None
    if hit is None:
        return None
    side = "1" if hit.group("new1") else "2"
    new = clean(mirror, *hit.span(f"new{side}"), rules.grammar)
    old = clean(mirror, *hit.span(f"old{side}"), rules.grammar)
    if new is None or old is None:
        return None
    before = _folded(mirror[old.start : old.end])
    found = next((one for one in reversed(standing) if _folded(one.object) == before), None)
    if found is None:
        return None
    row = Pattern(
        language="en",
        regex=rules.grammar.mended,
        dimension=found.dimension,
        predicate=found.predicate,
        markers=frozenset({Marker.CORRECTION}),
    )
    subject = Subject(found.subject, start)
    return Reading(row, found.dimension, new, subject, True, Polarity.POSITIVE, False, start, end, new), found


def restated(old: Standing, new: str) -> str:
    """The old statement with the new value, "I live in Porto"; empty where that would bring in more than words."""
    if old.content.count(old.object) != 1:
        return ""
    rest = old.content.replace(old.object, "")
    return "" if numbers(rest) else old.content.replace(old.object, new)


def _folded(words: str) -> str:
    return normal(simplified(words))
