"""A settlement: what the two gates make of one extraction, on the then current state (SPEC §4.1, §5, §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from hermes_memory.core.board import Board, Op
from hermes_memory.core.bounded import Entrance, refusal, touches_block
from hermes_memory.core.candidate import Affirmation, Candidate, Extraction, SpeechAct
from hermes_memory.core.confirmation import ConfirmationRequest, ask
from hermes_memory.core.conflicts import (
    Dispute,
    Outcome,
    Resolution,
    comparable,
    contradicts,
    disjoint,
    resolve,
)
from hermes_memory.core.decay import days_between
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.frozen import confirm, freeze, freezes_at_once, source_confidence, start_confidence
from hermes_memory.core.ids import digest
from hermes_memory.core.model import (
    Affirmed,
    Category,
    Evidence,
    Lock,
    Memory,
    Scope,
    Source,
    Status,
    Tier,
    Turn,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Rules
from hermes_memory.core.scope import settled_scope, wider
from hermes_memory.core.text import content_hash, normal
from hermes_memory.core.transitions import LockEvent, StatusEvent

Vector = NDArray[np.float32]
Similar = Callable[[Vector, str], float]  # (candidate's vector, memory id) → calibrated similarity in [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a settlement needs to know besides the candidates.

    ``seed`` makes the ids of new memories: the same operation gives the same ids. ``similar`` compares a new
    vector with a stored memory on the calibrated scale.
    """

    namespace: str
    user_id: str
    seed: str
    rules: Rules
    dimensions: Dimensions
    entrance: Entrance
    similar: Similar


class Settlement:
    """Runs candidates through the gates on a board and gathers new vectors and questions."""

    def __init__(self, board: Board, around: Surroundings) -> None:
        self.board, self.around, self.rules = board, around, around.rules
        self.vectors: dict[str, Vector] = {}
        self.asked: list[ConfirmationRequest] = []
        self._made = 0

    def run(self, extraction: Extraction, vectors: Sequence[Vector]) -> None:
        """Settle every candidate in order, then the affirmations and what the extractor itself refused."""
        for candidate, vector in zip(extraction.candidates, vectors, strict=True):
            self._enter(candidate, vector, extraction.extractor)
        for affirmation in extraction.affirmations:
            self._affirm(affirmation, extraction.extractor)
        for refused in extraction.refusals:
            self.board.log(Op.REFUSED, Reason(refused.reason), None, refused.message_id)

    def _enter(self, candidate: Candidate, vector: Vector, extractor: str) -> None:
        message_id = candidate.span.message_id
        reason = refusal(candidate, self.around.entrance)
        turn = self.around.entrance.turn_of(candidate)
        if reason or turn is None:
            self.board.log(Op.REFUSED, reason or Reason.NOT_A_USER_TURN, None, message_id)
            return
        candidate = _as_kept(candidate)
        entry = _Entry(
            candidate,
            turn,
            vector,
            self._evidence(candidate, turn, extractor),
            settled_scope(candidate, turn.scene),
        )
        if twin := self._twin(entry):
            self._again(twin, entry)
        elif disputed := self._disputed(entry):
            self._dispute(disputed, entry)
        else:
            self._add(entry, Reason.NEW)

    # repetition (SPEC §4.1.8)

    def _twin(self, entry: _Entry) -> Memory | None:
        hashed = entry.hash
        found = [memory for memory in self.board if self._says_the_same(entry, hashed, memory)]
        rank = {Status.ACTIVE: 0, Status.REVIEW: 1, Status.ARCHIVED: 2}
        return min(found, key=lambda memory: rank[memory.status], default=None)

    def _says_the_same(self, entry: _Entry, hashed: str, memory: Memory) -> bool:
        candidate = entry.candidate
        if (
            memory.status is Status.SUPERSEDED
            or memory.merged_into
            or memory.polarity is not candidate.polarity
        ):
            return False
        if (memory.category is Category.EVENT) != (candidate.category is Category.EVENT):
            return False
        if memory.content_hash == hashed:
            protects = self.around.dimensions.safety(candidate.dimension) is not None
            return not _other_period(candidate, memory) and (memory.safety or not protects)
        if normal(memory.subject) != normal(candidate.subject) or memory.dimension != candidate.dimension:
            return False
        objects = candidate.dimension, candidate.object, memory.object
        if _other_period(candidate, memory) or not self.around.dimensions.akin(*objects):
            return False
        if candidate.category is not Category.EVENT and self.around.dimensions.same(*objects):
            return True
        return self._similar(entry.vector, memory.id) >= self.rules.entry.duplicate_similarity

    def _similar(self, vector: Vector, memory_id: str) -> float:
        if memory_id in self.vectors:
            return float(np.dot(vector, self.vectors[memory_id]) > 0.999)
        return self.around.similar(vector, memory_id)

    def _again(self, twin: Memory, entry: _Entry) -> None:
        """Said before. What rises from the archive or to a wider scope passes the conflict gate first."""
        if any(_same_place(piece, entry.evidence) for piece in twin.evidence):
            return
        if not self._opposes(twin):
            twin = twin.with_(rival_of=None)
        elsewhere = entry.turn.session_id not in {piece.session_id for piece in twin.evidence}
        if elsewhere:
            entry = replace(entry, scope=_met_again_scope(entry))
        disputed = self._disputed(entry) if _rises(twin, entry.scope) else []
        if disputed:
            self._dispute(disputed, replace(entry, twin=twin))
        else:
            self._repeat(twin, entry, later=elsewhere and entry.turn.created_at > twin.stated_at)

    def _repeat(self, twin: Memory, entry: _Entry, *, later: bool) -> None:
        message_id = entry.evidence.message_id
        twin = self._bring_back(twin, entry)
        twin = self.board.put(twin.with_(evidence=(*twin.evidence, entry.evidence)))
        self.board.log(Op.REINFORCED, Reason.DUPLICATE, twin, message_id)
        if _rises(twin, entry.scope):
            twin = self.board.put(twin.with_(scope=entry.scope, scene=_scene(entry.scope, entry.turn)))
        twin = self._confirm(self._freeze_at_once(twin, entry), entry)
        if twin.rival_of:
            self._press(twin, entry, later=later)
        else:
            self._end_rivals_of(twin, entry)

    def _confirm(self, twin: Memory, entry: _Entry) -> Memory:
        turn = entry.turn
        said = Affirmed(session_id=turn.session_id, message_id=turn.message_id, at=turn.created_at)
        return confirm(self.board, twin, said, self.rules, explicit=False)

    def _bring_back(self, twin: Memory, entry: _Entry) -> Memory:
        """End a review; what was archived begins again in the working tier, as far as it reaches now."""
        message_id = entry.evidence.message_id
        if twin.status is Status.ARCHIVED:
            self.vectors[twin.id] = entry.vector
            scene = _scene(entry.scope, entry.turn)
            fresh = twin.with_(rival_of=None, scope=entry.scope, scene=scene, tier=Tier.WORKING)
            return self.board.status(
                fresh, StatusEvent.REACTIVATE, Op.REACTIVATED, Reason.SAID_AGAIN, message_id
            )
        if twin.status is Status.REVIEW and twin.lock is not Lock.FROZEN:
            return self.board.status(twin, StatusEvent.MENTION, Op.REACTIVATED, Reason.MENTIONED, message_id)
        return twin

    def _press(self, rival: Memory, entry: _Entry, *, later: bool) -> None:
        """A rival is said again: a correction, or a later session, gives it the old one's place (SPEC §6)."""
        old = self.board[rival.rival_of or ""]
        resolution = resolve(self._dispute_with(old, entry))
        if resolution.outcome is Outcome.REPLACE or (resolution.outcome is Outcome.RIVAL and later):
            self._supersede(old, entry, Reason.RIVAL_CONFIRMED)
            self._succeed(rival, old, entry)
        elif resolution.outcome is Outcome.ASK and later:
            self._count_contradiction(old, entry.evidence.message_id)
            self._ask(old, rival, resolution.reason)

    def _succeed(self, rival: Memory, old: Memory, entry: _Entry) -> None:
        """The rival stands for itself now, and reaches as far as the old one did."""
        reach = {} if rival.lock is Lock.FROZEN else {"scope": old.scope, "scene": old.scene}
        heir = self.board.put(rival.with_(rival_of=None, **reach))
        self._hand_on({old.id}, heir, entry.candidate)

    def _opposes(self, memory: Memory) -> bool:
        """Whether it is the rival of something that still stands."""
        old = self.board.get(memory.rival_of or "")
        return old is not None and old.status in {Status.ACTIVE, Status.REVIEW}

    def _end_rivals_of(self, standing: Memory, entry: _Entry) -> None:
        """The old one is said again: what contradicted it before is archived."""
        message_id = entry.evidence.message_id
        for rival in [memory for memory in self.board if memory.rival_of == standing.id]:
            live = rival.status in {Status.ACTIVE, Status.REVIEW} and rival.lock is not Lock.FROZEN
            if live and rival.stated_at <= entry.turn.created_at:
                self.board.status(rival, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.OLD_SAID_AGAIN, message_id)

    # contradiction (SPEC §6)

    def _disputed(self, entry: _Entry) -> list[tuple[Memory, Resolution]]:
        found = []
        for memory in self.board:
            if self._opposes(memory) or not comparable(entry.candidate, memory, entry.scope, entry.turn):
                continue
            if disjoint(entry.candidate, memory):
                continue
            if not contradicts(entry.candidate, memory, self.around.dimensions):
                continue
            found.append((memory, resolve(self._dispute_with(memory, entry))))
        return found

    def _dispute_with(self, memory: Memory, entry: _Entry) -> Dispute:
        sure = source_confidence(entry.candidate, self.rules)
        said_at = entry.turn.created_at
        return Dispute(entry.candidate, memory, said_at, sure, self.rules, self.around.dimensions)

    def _dispute(self, disputed: list[tuple[Memory, Resolution]], entry: _Entry) -> None:
        """The most careful outcome decides what becomes of the new statement; each old one gets its own."""
        message_id = entry.evidence.message_id
        order = (Outcome.PAST, Outcome.ASK, Outcome.KEEP, Outcome.RIVAL, Outcome.REPLACE)
        memory, first = min(disputed, key=lambda pair: order.index(pair[1].outcome))
        if first.outcome is Outcome.KEEP:
            self.board.log(Op.REFUSED, first.reason, memory, message_id)
        elif first.outcome is Outcome.PAST:
            self._add_past(memory, entry)
        elif first.outcome is Outcome.REPLACE:
            for old, resolution in disputed:
                self._supersede(old, entry, resolution.reason)
            self._hand_on({old.id for old, _ in disputed}, self._add(entry, first.reason), entry.candidate)
        else:
            self._add_rival(memory, entry, first)

    def _add_past(self, current: Memory, entry: _Entry) -> None:
        made = self._make(
            entry, status=Status.SUPERSEDED, valid_to=entry.candidate.valid_to or current.stated_at
        )
        self.board.log(Op.ADDED, Reason.PAST_PERIOD, made, entry.evidence.message_id)

    def _add_rival(self, old: Memory, entry: _Entry, resolution: Resolution) -> None:
        message_id = entry.evidence.message_id
        near = Scope.SCENE if entry.turn.scene else Scope.SESSION
        protected = resolution.outcome is Outcome.ASK
        made = self._make(entry, rival_of=old.id, scope=entry.scope if protected else near)
        self.board.log(Op.RIVAL, resolution.reason, made, message_id)
        self._count_contradiction(old, message_id, weaken=resolution.weaken)
        if protected:
            self._ask(old, made, resolution.reason)

    def _ask(self, old: Memory, new: Memory, reason: Reason) -> None:
        now = self.board.now
        lasts_s = self.rules.conflicts.confirmation_days * 86_400
        expires_at = datetime.fromtimestamp(now.timestamp() + lasts_s, tz=now.tzinfo)
        request_id = "ask_" + digest(self.around.seed, old.id, new.id)
        self.asked.append(ask(request_id, old, new, reason.value, now, expires_at))

    def _count_contradiction(self, old: Memory, message_id: str, *, weaken: bool = False) -> None:
        counted = old.with_(contradictions=old.contradictions + 1)
        if weaken and old.lock is not Lock.FROZEN:
            counted = counted.with_(confidence=old.confidence - self.rules.locks.step)
        self.board.log(Op.CONFLICT, Reason.WEAK_RIVAL if weaken else Reason.ASK_FIRST, old, message_id)
        self.board.put(counted)

    def _supersede(self, old: Memory, entry: _Entry, reason: Reason) -> None:
        message_id = entry.evidence.message_id
        ended = self.board.status(old, StatusEvent.SUPERSEDE, Op.SUPERSEDED, reason, message_id)
        if ended.valid_to is None and ended.category is not Category.PREFERENCE:
            self.board.put(ended.with_(valid_to=entry.turn.created_at))

    def _hand_on(self, ended: set[str], heir: Memory, candidate: Candidate) -> None:
        """Rivals of what has ended go on as the heir's where they contradict it; else they stand alone."""
        for rival in [m for m in self.board if m.rival_of in ended and m.id != heir.id]:
            still = rival.lock is not Lock.FROZEN and contradicts(candidate, rival, self.around.dimensions)
            self.board.put(rival.with_(rival_of=heir.id if still else None))

    # new memories

    def _add(self, entry: _Entry, reason: Reason) -> Memory:
        made = self._make(entry)
        op = Op.ADDED if entry.twin is None else Op.REINFORCED
        self.board.log(op, reason, made, entry.evidence.message_id)
        return self._freeze_at_once(made, entry)

    def _freeze_at_once(self, memory: Memory, entry: _Entry) -> Memory:
        freeze_class = self.around.dimensions.freeze_class(memory.dimension)
        if memory.lock is not Lock.PENDING or memory.rival_of:
            return memory
        if not freezes_at_once(entry.candidate, memory.scope, freeze_class, self.rules):
            return memory
        event, message_id = LockEvent.FREEZE_AT_ONCE, entry.evidence.message_id
        return freeze(self.board, memory, event, Reason.IMMEDIATE, self.rules, message_id)

    def _make(self, entry: _Entry, **changes: object) -> Memory:
        candidate, turn = entry.candidate, entry.turn
        if entry.twin is not None:
            return self._raise(entry.twin, entry, changes)
        self._made += 1
        memory = Memory(
            id="mem_" + digest(self.around.namespace, self.around.user_id, self.around.seed, str(self._made)),
            namespace=self.around.namespace,
            user_id=self.around.user_id,
            category=candidate.category,
            layer=candidate.layer,
            subject=candidate.subject,
            predicate=candidate.predicate,
            object=candidate.object,
            dimension=candidate.dimension,
            polarity=candidate.polarity,
            negative=candidate.negative,
            granularity=candidate.granularity,
            content=candidate.content,
            content_hash=entry.hash,
            topic=candidate.topic or candidate.dimension,
            entities=candidate.entities,
            scope=entry.scope,
            source=candidate.source,
            intent=candidate.intent,
            emotional=candidate.emotional,
            confidence=start_confidence(candidate.source, self.rules),
            source_confidence=source_confidence(candidate, self.rules),
            stability=candidate.stability,
            importance=candidate.importance,
            safety=self.around.dimensions.safety(candidate.dimension) is not None,
            valid_from=candidate.valid_from,
            valid_to=candidate.valid_to,
            created_at=turn.created_at,
            updated_at=turn.created_at,
            evidence=(entry.evidence,),
        ).with_(**changes)
        memory = memory.with_(scene=_scene(memory.scope, turn))
        self.vectors[memory.id] = entry.vector
        return self.board.put(memory)

    def _raise(self, twin: Memory, entry: _Entry, changes: Mapping[str, object]) -> Memory:
        """What is known, and contested, is said again: it takes the part that the dispute gives it."""
        twin = twin.with_(evidence=(*twin.evidence, entry.evidence))
        if changes.get("status") is Status.SUPERSEDED:  # an older period: one more witness, and it rests
            return self.board.put(twin)
        twin = self._bring_back(twin, entry).with_(**({"scope": entry.scope} | dict(changes)))
        return self._confirm(self.board.put(twin.with_(scene=_scene(twin.scope, entry.turn))), entry)

    def _evidence(self, candidate: Candidate, turn: Turn, extractor: str) -> Evidence:
        span = candidate.span
        return Evidence(
            session_id=turn.session_id,
            turn_index=turn.index,
            message_id=turn.message_id,
            role=turn.role,
            quote=turn.content[span.start : span.end],
            start=span.start,
            end=span.end,
            created_at=turn.created_at,
            intent=candidate.intent,
            kind=turn.kind,
            extractor=extractor,
        )

    def _affirm(self, affirmation: Affirmation, extractor: str) -> None:
        """Count an explicit affirmation, unless it points at nothing or into a pasted block."""
        span = affirmation.span
        turn = self.around.entrance.turns.get((span.session_id, span.message_id))
        if turn is None or turn.role != "user" or affirmation.memory_id not in self.board:
            return
        if (
            touches_block(turn.content, span.start, span.end)
            or not turn.content[span.start : span.end].strip()
        ):
            return
        memory = self.board[affirmation.memory_id]
        if memory.status not in {Status.ACTIVE, Status.REVIEW}:
            return
        said = Affirmed(session_id=turn.session_id, message_id=turn.message_id, at=turn.created_at)
        self.board.log(Op.REINFORCED, Reason.AFFIRMED, memory, turn.message_id)
        confirm(self.board, memory, said, self.rules, explicit=True)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A candidate that the entry checks let in, with what it becomes part of."""

    candidate: Candidate
    turn: Turn
    vector: Vector
    evidence: Evidence
    scope: Scope
    twin: Memory | None = None  # what says the same already, while the statement is contested

    @property
    def hash(self) -> str:
        return content_hash(self.candidate.subject, self.candidate.polarity, self.candidate.content)


def _as_kept(candidate: Candidate) -> Candidate:
    """A one-off opinion is an EVENT whatever the extractor calls it (SPEC §4.1.5)."""
    if candidate.speech_act is not SpeechAct.OPINION:
        return candidate
    return replace(candidate, category=Category.EVENT, layer=None)


def _rises(twin: Memory, scope: Scope) -> bool:
    """Whether saying it again brings it back from the archive or lets it reach further."""
    if twin.status is Status.ARCHIVED:
        return True
    return twin.lock is not Lock.FROZEN and not twin.rival_of and wider(scope, twin.scope)


def _met_again_scope(entry: _Entry) -> Scope:
    """How far it reaches once met in a second session: an inference is then as good as a declaration."""
    return settled_scope(replace(entry.candidate, source=Source.EXPLICIT), entry.turn.scene)


def _scene(scope: Scope, turn: Turn) -> str | None:
    return turn.scene if scope is Scope.SCENE else None


def _same_place(left: Evidence, right: Evidence) -> bool:
    return (left.session_id, left.message_id) == (right.session_id, right.message_id)


def _other_period(candidate: Candidate, memory: Memory) -> bool:
    """Whether both are dated and the dates differ: two appointments, two stays, not one said twice."""
    new, old = candidate.valid_from, memory.valid_from
    if new is None or old is None:
        return False
    return days_between(min(new, old), max(new, old)) >= 1
