"""What a model takes for the affirmation of a known memory, held against the words (SPEC §5)."""

from __future__ import annotations

from hermes_memory.adapters.model_extractor.contract import Confirmation
from hermes_memory.adapters.model_extractor.floor import Floor, Hearing
from hermes_memory.adapters.model_extractor.locating import occurrences
from hermes_memory.adapters.model_extractor.placing import Place, placed, quoted_at
from hermes_memory.adapters.model_extractor.subjects import whose
from hermes_memory.adapters.rule_extractor import Heard
from hermes_memory.adapters.rule_extractor.affirming import names
from hermes_memory.adapters.rule_extractor.speech import REASON_OF
from hermes_memory.core.candidate import Affirmation, Marker, Span
from hermes_memory.core.model import LIVE, USER, Memory, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.text import normal

_CHANGES = frozenset({Marker.CORRECTION, Marker.LASTING_CHANGE})


def affirmation(
    said: Confirmation, memory: Memory, turn: Turn, hearing: Hearing, floor: Floor
) -> Affirmation | Reason:
    """That a user turn affirms a memory in words that name it, or why it does not. A bare "ok" affirms nothing."""
    heard = hearing.of(turn)
    spans = quoted_at(said.quote, heard)
    if not spans:
        return Reason.UNGROUNDED
    if all(heard.is_filler(start, end) for start, end in spans):
        return Reason.FILLER
    place = placed(said.quote, memory.object, heard) or _by_head(said.quote, memory, heard)
    if place is None:
        return Reason.UNGROUNDED
    refused = _refusal(memory, place, hearing, floor)
    return refused or Affirmation(memory.id, Span(turn.message_id, place.start, place.end, turn.session_id))


def _by_head(quote: str, memory: Memory, heard: Heard) -> Place | None:
    """The place of words that name the object by its first word only."""
    if not names(heard.mirror, memory):
        return None
    head = next(
        (
            word
            for word in memory.object.split()
            if occurrences(heard.mirror, word, [(0, len(heard.mirror))], case=False)
        ),
        "",
    )
    return placed(quote, head, heard) if head else None


def _refusal(memory: Memory, place: Place, hearing: Hearing, floor: Floor) -> Reason | None:
    heard, clause = place.heard, place.clause
    act = heard.act_at(place.object_start)
    if act in REASON_OF:
        return REASON_OF[act]
    if clause.asks:
        return Reason.QUESTION
    if Marker.CONDITIONAL in clause.markers:
        return Reason.HYPOTHETICAL
    if Marker.HEDGED in clause.markers:
        return Reason.NOT_SURE_ENOUGH
    people = floor.rules.people
    claimed = USER if memory.subject == USER else memory.subject
    subject = whose(claimed, clause, heard, place.object_start, people)
    about = subject is not None and (subject == memory.subject or people.alike(subject, memory.subject))
    if not about or memory.status not in LIVE or clause.markers & _CHANGES:
        return Reason.UNGROUNDED
    if not _says_it(memory, place, floor):
        return Reason.UNGROUNDED
    return Reason.UNGROUNDED if _denies(memory, place, hearing, floor) else None


def _says_it(memory: Memory, place: Place, floor: Floor) -> bool:
    """Whether more is said than the object's name: "my train stops in Leeds" is not "I live in Leeds"."""
    heard, clause, read = place.heard, place.clause, floor.grounding.read
    said = read(heard.turn.content[clause.said : clause.end])
    before = read(heard.turn.content[clause.said : place.object_start])
    after = read(heard.turn.content[place.object_end : clause.end])
    if floor.rules.still.search(heard.mirror, clause.sentence.start, clause.sentence.end):
        return True
    cue = floor.rules.cues.get(memory.dimension)
    if cue is not None and cue.search(heard.mirror, clause.said, clause.end):
        return True
    if floor.grounding.shares(memory.content, said, beside=read(memory.object)):
        return True
    return not (floor.grounding.telling(before) or floor.grounding.telling(after))


def _denies(memory: Memory, place: Place, hearing: Hearing, floor: Floor) -> bool:
    """Whether the words say the opposite of the memory, or that it is over."""
    heard, clause = place.heard, place.clause
    if heard.past(clause.start, clause.end, clause.markers):
        return True
    thing = normal(memory.object)
    readings = hearing.readings(place.turn, clause.start, clause.end)
    opposed = (
        reading.dimension == memory.dimension
        and reading.polarity is not memory.polarity
        and (normal(reading.object) in thing or thing in normal(reading.object))
        for reading in readings
    )
    said, known = (
        floor.grounding.read(text) for text in (place.turn.content[clause.start : clause.end], memory.content)
    )
    return any(opposed) or floor.grounding.negated(said) != floor.grounding.negated(known)
