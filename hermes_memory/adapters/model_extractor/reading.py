"""A model's answer to candidates, affirmations and refusals: nothing of it is believed that the turns do not say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hermes_memory.adapters.model_extractor.affirmations import affirmation
from hermes_memory.adapters.model_extractor.contract import Answer, Correction, Statement
from hermes_memory.adapters.model_extractor.floor import Floor, Hearing
from hermes_memory.adapters.model_extractor.prompt import MAX_TURN_CHARS, Sheet
from hermes_memory.core.candidate import Affirmation, Candidate, ExtractionRequest, Marker, Refusal
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import MAX_CONTENT_CHARS, Category, Role, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.text import normal

_CHANGES = frozenset({Marker.CORRECTION, Marker.LASTING_CHANGE})


@dataclass(slots=True)
class Read:
    """What an answer came to."""

    candidates: list[Candidate] = field(default_factory=list)
    affirmations: list[Affirmation] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, turn: Turn, reason: Reason) -> None:
        """Note why something about a turn is not believed."""
        self.refusals.append(Refusal(turn.message_id, reason, turn.session_id))


class Reader:
    """Reads answers; holds no state between them."""

    def __init__(self, floor: Floor, dimensions: Dimensions) -> None:
        self._floor, self._dimensions = floor, dimensions

    def read(self, answer: Answer, sheet: Sheet, request: ExtractionRequest, hearing: Hearing) -> Read:
        """All that is believed of ``answer``, and a reason for all that is not; every user turn is accounted for."""
        into = Read()
        made = [
            self._statement(number, answer, sheet, request, hearing, into)
            for number in range(len(answer.statements))
        ]
        self._corrections(answer, made, sheet, request, into)
        kept = [
            (said, candidate) for said, candidate in zip(answer.statements, made, strict=True) if candidate
        ]
        into.candidates = _unique(_apart(kept))
        for said in answer.confirmations:
            turn = _turn_of(said.turn, said.quote, sheet, request)
            memory = sheet.memories.get(said.memory)
            if memory is None:
                into.refuse(_anchor(said.turn, sheet, request), Reason.UNKNOWN_MEMORY)
            elif isinstance(turn, Reason):
                into.refuse(_anchor(said.turn, sheet, request), turn)
            else:
                found = affirmation(said, memory, turn, hearing, self._floor)
                if isinstance(found, Reason):
                    into.refuse(turn, found)
                elif found not in into.affirmations:
                    into.affirmations.append(found)
        account(into, sheet, request, hearing)
        return into

    def _statement(
        self,
        number: int,
        answer: Answer,
        sheet: Sheet,
        request: ExtractionRequest,
        hearing: Hearing,
        into: Read,
    ) -> Candidate | None:
        said = answer.statements[number]
        turn = _turn_of(said.turn, said.quote, sheet, request)
        found = turn if isinstance(turn, Reason) else self._floor.candidate(said, turn, hearing)
        if isinstance(found, Reason):
            into.refuse(_anchor(said.turn, sheet, request), found)
            return None
        return found

    def _corrections(
        self,
        answer: Answer,
        made: list[Candidate | None],
        sheet: Sheet,
        request: ExtractionRequest,
        into: Read,
    ) -> None:
        for said in answer.corrections:
            if said.statement > len(answer.statements):
                into.refuse(_anchor("", sheet, request), Reason.SCHEMA)
                continue
            turn = _anchor(answer.statements[said.statement - 1].turn, sheet, request)
            if said.memory not in sheet.memories:
                into.refuse(turn, Reason.UNKNOWN_MEMORY)
            elif (candidate := made[said.statement - 1]) is not None:
                corrected = self._corrected(candidate, said, sheet)
                if corrected is None:
                    into.refuse(turn, Reason.UNGROUNDED)
                else:
                    made[said.statement - 1] = corrected

    def _corrected(self, candidate: Candidate, said: Correction, sheet: Sheet) -> Candidate | None:
        """The candidate on the memory's own dimension, so that both meet; None where no words of change stand."""
        memory = sheet.memories[said.memory]
        if not candidate.markers & _CHANGES or candidate.subject != memory.subject:
            return None
        if not self._dimensions.related(candidate.dimension, memory.dimension):
            return None
        same_kind = candidate.category is memory.category and candidate.category is not Category.EVENT
        return replace(candidate, dimension=memory.dimension) if same_kind else candidate


def account(into: Read, sheet: Sheet, request: ExtractionRequest, hearing: Hearing) -> None:
    """A reason for each user turn of which nothing is kept and nothing was said, and for what was not read."""
    spans = [one.span for one in into.candidates] + [one.span for one in into.affirmations]
    spoken = {(span.session_id, span.message_id) for span in spans}
    spoken |= {(one.session_id, one.message_id) for one in into.refusals}
    for turn in request.turns:
        if turn.role is not Role.USER:
            continue
        if turn in sheet.clipped:
            into.refuse(turn, Reason.TOO_LONG)
        elif (turn.session_id, turn.message_id) not in spoken:
            into.refuse(turn, Reason.FILLER if hearing.of(turn).filler else Reason.LOW_VALUE)


def _turn_of(alias: str, quote: str, sheet: Sheet, request: ExtractionRequest) -> Turn | Reason:
    """The user turn that an alias stands for; words that are the assistant's are nobody's evidence."""
    turn = sheet.turns.get(alias)
    if turn is not None and turn.role is not Role.USER:
        return Reason.NOT_A_USER_TURN
    words = normal(quote)
    if turn is not None and words and words in normal(turn.content[:MAX_TURN_CHARS]):
        return turn
    others = (one for one in (*request.context, *request.turns) if one.role is not Role.USER)
    if words and any(words in normal(one.content) for one in others):
        return Reason.NOT_A_USER_TURN
    return Reason.UNGROUNDED


def _anchor(alias: str, sheet: Sheet, request: ExtractionRequest) -> Turn:
    """The turn under which a refusal is reported: the one named if it is the user's, else the first that is."""
    named = sheet.turns.get(alias)
    if named is not None and named.role is Role.USER:
        return named
    return next((turn for turn in request.turns if turn.role is Role.USER), request.turns[0])


def _apart(made: list[tuple[Statement, Candidate]]) -> list[Candidate]:
    """Two statements of one sentence whose contents were left to us say what each quotes: the same words twice are one."""
    told: set[str] = set()
    apart: list[Candidate] = []
    for said, candidate in made:
        quote = said.quote.strip()
        again = candidate.content in told and not said.content and len(quote) <= MAX_CONTENT_CHARS
        apart.append(replace(candidate, content=quote) if again else candidate)
        told.add(apart[-1].content)
    return apart


def _unique(candidates: list[Candidate]) -> list[Candidate]:
    """Without what is said twice."""
    kept: dict[tuple[object, ...], Candidate] = {}
    for one in candidates:
        key = (
            one.span.session_id,
            one.span.message_id,
            one.subject,
            one.dimension,
            normal(one.object),
            one.polarity,
        )
        kept.setdefault(key, one)
    return list(kept.values())
