"""Markers of a clause, and what it inherits from the clauses before it (SPEC §4.1.7)."""

from __future__ import annotations

from hermes_memory.adapters.rule_extractor.data import Regex
from hermes_memory.core.candidate import Marker

_WHOLE_SENTENCE = frozenset({Marker.CORRECTION, Marker.CONDITIONAL})
_CARRIED = frozenset({Marker.TEMPORARY, Marker.HEDGED, Marker.LASTING_CHANGE})


def markers_in(
    mirror: str, start: int, end: int, table: tuple[tuple[Marker, Regex], ...]
) -> frozenset[Marker]:
    """Every marker whose words stand in ``mirror[start:end]``."""
    words = mirror[start:end]
    return frozenset(marker for marker, regex in table if regex.search(words))


def inherited(
    own: frozenset[Marker], sentence: frozenset[Marker], before: frozenset[Marker], names_subject: bool
) -> frozenset[Marker]:
    """A correction or condition covers its sentence; the rest reaches clauses that name nobody anew."""
    reach = own | (sentence & _WHOLE_SENTENCE)
    return reach if names_subject else reach | (before & _CARRIED)
