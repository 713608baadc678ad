"""The bounded gate's entry checks (SPEC §4.1.1–5): what may enter at all.

Each check is a function of a candidate and the room it enters; it returns the reason to refuse, or None.
They run in the order of ``ENTRY``; the first refusal counts. Scope, duplicates and conflicts follow in
``core.settle``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hermes_memory.core.candidate import Affirmation, Candidate, SpeechAct
from hermes_memory.core.dimensions import Dimensions, Sensitive
from hermes_memory.core.grounding import Grounding
from hermes_memory.core.model import LIVE, MAX_CONTENT_CHARS, Memory, Role, Source, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Consent, EntryRules
from hermes_memory.core.text import normal
from hermes_memory.core.wellformed import well_formed
from hermes_memory.core.witness import Heard, Known, affirms, borne_out, says_only_yes

BLOCK_OPEN, BLOCK_CLOSE = "<user_memory", "</user_memory>"

# A block may have been torn when it was pasted: what stands before an end without a beginning belongs to one too.
_BLOCK = re.compile(
    rf"(?:{BLOCK_OPEN}|\A(?=(?:(?!{BLOCK_OPEN}).)+{BLOCK_CLOSE})).*?(?:{BLOCK_CLOSE}|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_MASK = re.compile(r"\[[a-z]+\]")
_NOT_BELIEVED = {
    SpeechAct.JOKE: Reason.JOKE,
    SpeechAct.HYPOTHETICAL: Reason.HYPOTHETICAL,
    SpeechAct.IRONY: Reason.IRONY,
    SpeechAct.QUOTATION: Reason.QUOTATION,
    SpeechAct.VENTING: Reason.VENTING,
    SpeechAct.PLANTED_ORDER: Reason.PLANTED_ORDER,
}


def _nothing_known(_: str) -> Iterable[Memory]:
    return ()


@dataclass(frozen=True, slots=True)
class Entrance:
    """What the checks look at besides the candidate: the turns it may rest on, the rules, the user's consent.

    ``talk`` are the turns of each session, oldest first, of every role: what was asked and said before a turn.
    ``known`` gives the user's memories of a dimension, which a correction may speak of.
    """

    turns: Mapping[tuple[str, str], Turn]  # by (session id, message id)
    dimensions: Dimensions
    rules: EntryRules
    grounding: Grounding
    consents: bool = True
    talk: Mapping[str, Sequence[Turn]] = field(default_factory=dict)
    known: Known = _nothing_known

    def turn_of(self, pointing: Candidate | Affirmation) -> Turn | None:
        """The turn that a span points into."""
        return self.turns.get((pointing.span.session_id, pointing.span.message_id))

    def quote_of(self, pointing: Candidate | Affirmation) -> str:
        """The words the span covers; empty when it points nowhere."""
        turn, span = self.turn_of(pointing), pointing.span
        if turn is None or not 0 <= span.start < span.end <= len(turn.content):
            return ""
        return turn.content[span.start : span.end]

    def heard(self, turn: Turn, quote: str) -> Heard:
        """``quote`` of ``turn`` with what was said before it."""
        before = [said for said in self.talk.get(turn.session_id, ()) if said.index < turn.index]
        return Heard(quote, turn, before, self.known, self.grounding, self.dimensions)


Check = Callable[[Candidate, Entrance], Reason | None]


def check_schema(candidate: Candidate, _: Entrance) -> Reason | None:
    """Missing or wrong fields are dropped, never repaired (SPEC §4.1.1)."""
    if not well_formed(candidate):
        return Reason.SCHEMA
    return Reason.TOO_LONG if len(candidate.content) > MAX_CONTENT_CHARS else None


def check_speaker(candidate: Candidate, entrance: Entrance) -> Reason | None:
    """Only the user's own turns are evidence (SPEC §3.3)."""
    turn = entrance.turn_of(candidate)
    return None if turn is not None and turn.role is Role.USER else Reason.NOT_A_USER_TURN


def check_grounding(candidate: Candidate, entrance: Entrance) -> Reason | None:
    """The span stands verbatim in the turn, and the user's words bear the candidate out (SPEC §4.1.2).

    Words inside a block that Hermes itself handed out are no evidence, whoever pastes them.
    """
    turn, quote = entrance.turn_of(candidate), entrance.quote_of(candidate)
    span = candidate.span
    if turn is None or not quote.strip() or touches_block(turn.content, span.start, span.end):
        return Reason.UNGROUNDED
    return None if borne_out(candidate, entrance.heard(turn, quote)) else Reason.UNGROUNDED


def check_privacy(candidate: Candidate, entrance: Entrance) -> Reason | None:
    """Sensitive matters only in the user's own words, with consent; nothing that is a masked secret (§4.1.3)."""
    if not normal(_MASK.sub("", candidate.object)):
        return Reason.PRIVACY
    inferred = candidate.source is Source.INFERRED
    allowed = entrance.consents or entrance.rules.sensitive_consent is not Consent.ASK
    if (allowed and not inferred) or not _is_sensitive(candidate, entrance):
        return None
    return Reason.SENSITIVE_INFERRED if inferred else Reason.NO_CONSENT


def _is_sensitive(candidate: Candidate, entrance: Entrance) -> bool:
    """Whether the dimension is of a sensitive kind, or the words are, whatever dimension is named."""
    if entrance.dimensions.sensitive(candidate.dimension) is not None:
        return True
    texts = [entrance.grounding.read(text) for text in (candidate.content, entrance.quote_of(candidate))]
    return any(entrance.grounding.cue(kind, *texts) for kind in Sensitive)


def check_value(candidate: Candidate, entrance: Entrance) -> Reason | None:
    """Questions, one-off commands and what is of little importance hold nothing worth recalling (§4.1.4)."""
    if candidate.speech_act is SpeechAct.QUESTION:
        return Reason.QUESTION
    if candidate.speech_act is SpeechAct.COMMAND:
        return Reason.COMMAND
    return Reason.LOW_VALUE if candidate.importance < entrance.rules.min_importance else None


def check_speech_act(candidate: Candidate, _: Entrance) -> Reason | None:
    """What was not meant as said, and orders planted as memory, are no facts (SPEC §4.1.5)."""
    return _NOT_BELIEVED.get(candidate.speech_act)


ENTRY: tuple[Check, ...] = (
    check_schema, check_speaker, check_grounding, check_privacy, check_value, check_speech_act,
)  # fmt: skip


def refusal(candidate: Candidate, entrance: Entrance) -> Reason | None:
    """The first reason to refuse ``candidate``, or None if it may enter."""
    return next((reason for check in ENTRY if (reason := check(candidate, entrance))), None)


def affirmation_refusal(affirmation: Affirmation, memory: Memory | None, entrance: Entrance) -> Reason | None:
    """Why a turn does not affirm ``memory``, None where nobody has it: never by a bare "ok", nor by other words (SPEC §5)."""
    turn, quote = entrance.turn_of(affirmation), entrance.quote_of(affirmation)
    if turn is None or turn.role is not Role.USER:
        return Reason.NOT_A_USER_TURN
    if memory is None:
        return Reason.UNKNOWN_MEMORY
    if memory.status not in LIVE:
        return Reason.OUTDATED
    if not quote.strip() or touches_block(turn.content, affirmation.span.start, affirmation.span.end):
        return Reason.UNGROUNDED
    if says_only_yes(entrance.heard(turn, quote)):
        return Reason.FILLER
    return None if affirms(memory, entrance.heard(turn, quote)) else Reason.UNGROUNDED


def touches_block(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` reaches into a recall block pasted into ``text``."""
    return any(found.start() < end and start < found.end() for found in _BLOCK.finditer(text))


def outside_blocks(text: str) -> list[tuple[int, int]]:
    """The stretches of ``text`` around the recall blocks pasted into it, in order."""
    inside = [found.span() for found in _BLOCK.finditer(text)]
    starts, ends = [0, *(end for _, end in inside)], [*(start for start, _ in inside), len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
