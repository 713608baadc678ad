"""A settlement: what the two gates make of one extraction, on the then current state (SPEC §4.1, §5, §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from hermes_memory.core.board import Board, Op
from hermes_memory.core.bounded import Entrance, affirmation_refusal, refusal
from hermes_memory.core.candidate import Affirmation, Candidate, Extraction
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
from hermes_memory.core.decay import DAY_S
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.entry import (
    Entry,
    Vector,
    as_kept,
    counts_as_said,
    evidence_of,
    first_memory,
    is_over,
    met_again_scope,
    other_period,
    same_place,
    scene_of,
)
from hermes_memory.core.frozen import confirm, freeze, freezes_at_once, source_confidence
from hermes_memory.core.ids import digest
from hermes_memory.core.life import may_return
from hermes_memory.core.merging import release
from hermes_memory.core.model import (
    LIVE,
    Affirmed,
    Category,
    Granularity,
    Lock,
    Memory,
    Scope,
    Source,
    Status,
    Tier,
    Turn,
)
from hermes_memory.core.reasons import REASONS, Reason
from hermes_memory.core.rules import Rules
from hermes_memory.core.scope import passing, settled_scope, wider
from hermes_memory.core.text import same_name
from hermes_memory.core.transitions import LockEvent, StatusEvent
from hermes_memory.core.witness import declares, earned

Similar = Callable[[Vector, str], float]  # (candidate's vector, memory id) → calibrated similarity in [0, 1]
Near = Callable[[str, Candidate], Sequence[str]]  # (hash, candidate) → memory ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a settlement needs to know besides the candidates.

    ``seed`` makes the ids of new memories: the same operation gives the same ids. ``similar`` compares a new
    vector with a stored memory on the calibrated scale. ``near`` nominates the memories that may say the same or
    the opposite (``Lookup.near``); without it all are looked at.
    """

    namespace: str
    user_id: str
    seed: str
    rules: Rules
    dimensions: Dimensions
    entrance: Entrance
    similar: Similar
    near: Near | None = None


class Settlement:
    """Runs candidates through the gates on a board and gathers new vectors and questions."""

    def __init__(self, board: Board, around: Surroundings) -> None:
        self.board, self.around, self.rules = board, around, around.rules
        self.vectors: dict[str, Vector] = {}
        self.asked: list[ConfirmationRequest] = []
        self.restated: list[tuple[str, Turn]] = []  # memories that a turn plainly said again, or affirmed
        self._made = 0
        self._nominated: tuple[Candidate, Sequence[str]] | None = None  # of the candidate looked at last
        self._breath: Sequence[Candidate] = ()  # all that is said, where one message says two sides

    def run(self, extraction: Extraction, vectors: Sequence[Vector]) -> None:
        """Settle every candidate in order, then the affirmations and what the extractor itself refused."""
        self._breath = extraction.candidates
        for candidate, vector in zip(extraction.candidates, vectors, strict=True):
            self._enter(candidate, vector, extraction.extractor)
        for affirmation in extraction.affirmations:
            self._affirm(affirmation)
        for refused in extraction.refusals:
            self.board.log(Op.REFUSED, REASONS.get(refused.reason, Reason.SCHEMA), None, refused.message_id)

    def _enter(self, candidate: Candidate, vector: Vector, extractor: str) -> None:
        entrance = self.around.entrance
        reason = refusal(candidate, entrance)
        turn = entrance.turn_of(candidate)
        if reason or turn is None:
            self._refuse(reason or Reason.NOT_A_USER_TURN, turn)
            return
        candidate = as_kept(earned(candidate, entrance.heard(turn, entrance.quote_of(candidate))))
        entry = Entry(
            candidate,
            turn,
            vector,
            evidence_of(candidate, turn, extractor),
            settled_scope(candidate, turn.scene),
        )
        if twin := self._twin(entry):
            self._again(twin, entry)
        elif disputed := self._disputed(entry):
            self._dispute(disputed, entry)
        else:
            self._add(entry, Reason.NEW)

    def _refuse(self, reason: Reason, turn: Turn | None) -> None:
        """Log a refusal; an id of no turn is anybody's words and is not kept."""
        self.board.log(Op.REFUSED, reason, None, turn.message_id if turn else None)

    # repetition (SPEC §4.1.8)

    def _twin(self, entry: Entry) -> Memory | None:
        hashed = entry.hash
        found = [memory for memory in self._near(entry) if self._says_the_same(entry, hashed, memory)]
        rank = {Status.ACTIVE: 0, Status.REVIEW: 1, Status.ARCHIVED: 2}
        return min(found, key=lambda memory: rank[memory.status], default=None)

    def _near(self, entry: Entry) -> list[Memory]:
        """What may say the same or the opposite, oldest first."""
        if self.around.near is None:
            return list(self.board)
        if self._nominated is None or self._nominated[0] is not entry.candidate:
            self._nominated = entry.candidate, self.around.near(entry.hash, entry.candidate)
        nominated = dict.fromkeys(self._nominated[1]) | dict.fromkeys(
            memory.id for memory in self.board.touched
        )
        return [memory for memory_id in nominated if (memory := self.board.get(memory_id)) is not None]

    def _says_the_same(self, entry: Entry, hashed: str, memory: Memory) -> bool:
        candidate = entry.candidate
        if memory.status is Status.SUPERSEDED or memory.granularity is Granularity.SPAN:
            return False
        if memory.polarity is not candidate.polarity or is_over(memory, candidate, entry.turn):
            return False
        if (memory.category is Category.EVENT) != (candidate.category is Category.EVENT):
            return False
        if memory.content_hash == hashed:
            protects = self.around.dimensions.safety(candidate.dimension) is not None
            return not other_period(candidate, memory) and (memory.safety or not protects)
        if memory.dimension != candidate.dimension or not same_name(memory.subject, candidate.subject):
            return False
        objects = candidate.dimension, candidate.object, memory.object
        if other_period(candidate, memory) or not self.around.dimensions.akin(*objects):
            return False
        if candidate.category is not Category.EVENT and self.around.dimensions.same(*objects):
            return True
        return self._similar(entry.vector, memory.id) >= self.rules.entry.duplicate_similarity

    def _similar(self, vector: Vector, memory_id: str) -> float:
        if memory_id in self.vectors:
            return float(np.dot(vector, self.vectors[memory_id]) > 0.999)
        return self.around.similar(vector, memory_id)

    def _again(self, twin: Memory, entry: Entry) -> None:
        """Said before. What rises from the archive or to a wider scope passes the conflict gate first."""
        if any(same_place(piece, entry.evidence) for piece in twin.evidence):
            return
        if not self._opposes(twin):
            twin = twin.with_(rival_of=None)
        elsewhere = entry.turn.session_id not in {piece.session_id for piece in twin.evidence}
        if elsewhere and self._formal(twin, entry):
            entry = replace(entry, scope=met_again_scope(entry))
        entry = self._as_far_as_before(twin, entry)
        disputed = self._disputed(entry) if _rises(twin, entry.scope) else []
        if disputed:
            self._dispute(disputed, replace(entry, twin=twin))
        else:
            self._repeat(twin, entry, later=elsewhere and self._soon(twin, entry))

    def _as_far_as_before(self, twin: Memory, entry: Entry) -> Entry:
        """What rests for want of room is not narrowed by a passing mention, unless it is disputed now."""
        before = replace(entry, scope=twin.scope)
        rests = twin.merged_into is not None or may_return(twin)
        return before if rests and wider(twin.scope, entry.scope) and not self._disputed(before) else entry

    def _soon(self, twin: Memory, entry: Entry) -> bool:
        """Whether it is said again after the last time, and before a rival would have expired (SPEC §6)."""
        passed_s = (entry.turn.created_at - twin.stated_at).total_seconds()
        sure = counts_as_said(entry.candidate, twin, self.rules)
        return sure and 0 < passed_s <= self.rules.life.rival_days * DAY_S

    def _formal(self, twin: Memory, entry: Entry) -> bool:
        """An inference becomes formal once enough conversations, within days, brought it (SPEC §4.3, cool-down)."""
        life, turn = self.rules.life, entry.turn
        if Source.INFERRED not in {twin.source, entry.candidate.source}:
            return True
        near = {
            piece.session_id
            for piece in twin.evidence
            if abs((turn.created_at - piece.created_at).total_seconds()) <= life.cooldown_days * DAY_S
        }
        return len(near | {turn.session_id}) >= life.cooldown_conversations

    def _repeat(self, twin: Memory, entry: Entry, *, later: bool) -> None:
        message_id = entry.evidence.message_id
        if _answers(entry.candidate, self.rules):
            self.restated.append((twin.id, entry.turn))
        twin = self._bring_back(twin, entry)
        twin = self.board.put(twin.with_(evidence=(*twin.evidence, entry.evidence)))
        self.board.log(Op.REINFORCED, Reason.DUPLICATE, twin, message_id)
        if _rises(twin, entry.scope):
            twin = self.board.put(twin.with_(scope=entry.scope, scene=scene_of(entry.scope, entry.turn)))
        twin = self._confirm(self._freeze_at_once(twin, entry), entry)
        if twin.rival_of:
            self._press(twin, entry, later=later)
        else:
            self._end_rivals_of(twin, entry)

    def _confirm(self, twin: Memory, entry: Entry) -> Memory:
        turn = entry.turn
        if not counts_as_said(entry.candidate, twin, self.rules):
            return twin
        said = Affirmed(session_id=turn.session_id, message_id=turn.message_id, at=turn.created_at)
        return confirm(self.board, twin, said, self.rules, explicit=False)

    def _bring_back(self, twin: Memory, entry: Entry) -> Memory:
        """End a review; what was archived begins again in the working tier, as far as it reaches now."""
        message_id = entry.evidence.message_id
        if twin.status is Status.ARCHIVED:
            self.vectors[twin.id] = entry.vector
            scene = twin.scene if entry.scope is twin.scope else scene_of(entry.scope, entry.turn)
            fresh = twin.with_(rival_of=None, scope=entry.scope, scene=scene, tier=Tier.WORKING)
            fresh = self.board.status(
                fresh, StatusEvent.REACTIVATE, Op.REACTIVATED, Reason.SAID_AGAIN, message_id
            )
            self._outlive(fresh, entry)
            return self.board.put(fresh.with_(updated_at=max(twin.updated_at, entry.turn.created_at)))
        if twin.status is Status.REVIEW and twin.lock is not Lock.FROZEN:
            return self.board.status(twin, StatusEvent.MENTION, Op.REACTIVATED, Reason.MENTIONED, message_id)
        return twin

    def _press(self, rival: Memory, entry: Entry, *, later: bool) -> None:
        """A rival is said again: a correction, or a later session, gives it the old one's place (SPEC §6)."""
        old = self.board[rival.rival_of or ""]
        if not comparable(entry.candidate, old, entry.scope, entry.turn) or self._said_beside(old, entry):
            return
        resolution = resolve(self._dispute_with(old, entry))
        if resolution.outcome is Outcome.REPLACE or (resolution.outcome is Outcome.RIVAL and later):
            self._supersede(old, entry, Reason.RIVAL_CONFIRMED)
            self._succeed(rival, old, entry)
        elif resolution.outcome is Outcome.ASK and later:
            self._count_contradiction(old, entry.evidence.message_id)
            self._ask(old, rival, resolution.reason)

    def _said_beside(self, old: Memory, entry: Entry) -> bool:
        """Whether the same message says the old one too: what is said in one breath stands together."""
        here = entry.candidate.span
        return any(
            (other.span.session_id, other.span.message_id) == (here.session_id, here.message_id)
            and self._says_the_same(replace(entry, candidate=other), "", old)
            for other in self._breath
            if other is not entry.candidate and other.dimension == old.dimension
        )

    def _succeed(self, rival: Memory, old: Memory, entry: Entry) -> None:
        """The rival stands for itself now, and reaches as far as the old one did."""
        reach = {} if rival.lock is Lock.FROZEN else {"scope": old.scope, "scene": old.scene}
        heir = self.board.put(rival.with_(rival_of=None, **reach))
        self._hand_on({old.id}, heir, entry.candidate)

    def _opposes(self, memory: Memory) -> bool:
        """Whether it is the rival of something that still stands."""
        old = self.board.get(memory.rival_of or "")
        return old is not None and old.status in {Status.ACTIVE, Status.REVIEW}

    def _end_rivals_of(self, standing: Memory, entry: Entry) -> None:
        """The old one is said again: what contradicted it before is archived."""
        message_id = entry.evidence.message_id
        for rival in [memory for memory in self.board.live() if memory.rival_of == standing.id]:
            if rival.safety or standing.safety:  # never automatic: the question decides
                continue
            if rival.lock is not Lock.FROZEN and rival.stated_at < entry.turn.created_at:
                self.board.status(rival, StatusEvent.ARCHIVE, Op.ARCHIVED, Reason.OLD_SAID_AGAIN, message_id)

    # contradiction (SPEC §6)

    def _disputed(self, entry: Entry) -> list[tuple[Memory, Resolution]]:
        found = []
        for held in self._near(entry):
            if held.granularity is Granularity.SPAN:  # for reference only; its parts are looked at
                continue
            if not self._stands(held) or self._opposes(held) or disjoint(entry.candidate, held):
                continue
            if not contradicts(entry.candidate, held, self.around.dimensions):
                continue
            memory = held.with_(status=Status.ACTIVE) if held.merged_into else held
            if not comparable(entry.candidate, memory, entry.scope, entry.turn):
                continue
            found.append((memory, resolve(self._dispute_with(memory, entry))))
        return found

    def _stands(self, memory: Memory) -> bool:
        """Whether it is live; a part of a merged record stands as if it were alone (SPEC §3.2)."""
        merged = self.board.get(memory.merged_into) if memory.merged_into else memory
        return merged is not None and merged.status in LIVE

    def _dispute_with(self, memory: Memory, entry: Entry) -> Dispute:
        sure = source_confidence(entry.candidate, self.rules)
        said_at = entry.turn.created_at
        return Dispute(entry.candidate, memory, said_at, sure, self.rules, self.around.dimensions)

    def _dispute(self, disputed: list[tuple[Memory, Resolution]], entry: Entry) -> None:
        """The most careful outcome decides what becomes of the new statement; each old one gets its own."""
        message_id = entry.evidence.message_id
        disputed = [(self._apart_from_record(old, entry), resolution) for old, resolution in disputed]
        order = (Outcome.PAST, Outcome.ASK, Outcome.KEEP, Outcome.RIVAL, Outcome.REPLACE)
        memory, first = min(disputed, key=lambda pair: order.index(pair[1].outcome))
        if first.outcome is Outcome.KEEP:
            self.board.log(Op.REFUSED, first.reason, memory, message_id)
        elif first.outcome is Outcome.PAST:
            self._add_past(memory, entry)
        elif first.outcome is Outcome.REPLACE:
            for old, resolution in disputed:
                self._supersede(old, entry, resolution.reason)
            made = self._add(entry, first.reason)
            ended = [old for old, _ in disputed]
            made = self._note_corrections(made, ended) if first.reason is Reason.CORRECTION else made
            self._hand_on({old.id for old in ended}, made, entry.candidate)
        else:
            self._add_rival(memory, entry, first)

    def _note_corrections(self, heir: Memory, ended: Iterable[Memory]) -> Memory:
        """What was corrected more than twice is negative: it is kept in sight (SPEC §3.1, S2 §4.4)."""
        corrected = 1 + max(old.attributes.get("corrected", 0) for old in ended)
        if heir.lock is Lock.FROZEN:
            return heir
        negative = heir.negative or corrected > self.rules.locks.corrections_bear
        counted = {**heir.attributes, "corrected": corrected}
        return self.board.put(heir.with_(negative=negative, attributes=counted))

    def _apart_from_record(self, old: Memory, entry: Entry) -> Memory:
        """What is disputed leaves the record it was merged into."""
        if old.merged_into is None:
            return old
        return release(self.board, self.board[old.id], entry.evidence.message_id)

    def _add_past(self, current: Memory, entry: Entry) -> None:
        made = self._make(
            entry, status=Status.SUPERSEDED, valid_to=entry.candidate.valid_to or current.stated_at
        )
        self.board.log(Op.ADDED, Reason.PAST_PERIOD, made, entry.evidence.message_id)

    def _add_rival(self, old: Memory, entry: Entry, resolution: Resolution) -> None:
        message_id = entry.evidence.message_id
        near = Scope.SCENE if entry.turn.scene else Scope.SESSION
        protected = resolution.outcome is Outcome.ASK
        scope = near if not protected and wider(entry.scope, near) else entry.scope
        if entry.twin is not None and entry.twin.status in LIVE and wider(entry.twin.scope, scope):
            scope = entry.twin.scope  # what holds in a scene goes on holding there
        made = self._make(entry, rival_of=old.id, scope=scope)
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
        if counted.contradictions % self.rules.locks.review_contradictions == 0:
            self.board.log(
                Op.CONFLICT, Reason.CONTRADICTED_OFTEN, old, message_id
            )  # an operator's to look at
        self.board.put(counted)

    def _supersede(self, old: Memory, entry: Entry, reason: Reason) -> None:
        message_id = entry.evidence.message_id
        ended = self.board.status(old, StatusEvent.SUPERSEDE, Op.SUPERSEDED, reason, message_id)
        if ended.valid_to is None and ended.category is not Category.PREFERENCE:
            self.board.put(ended.with_(valid_to=entry.turn.created_at))

    def _hand_on(self, ended: set[str], heir: Memory, candidate: Candidate) -> None:
        """Rivals of what has ended go on as the heir's where they contradict it; else they stand alone."""
        for rival in [m for m in self.board.live() if m.rival_of in ended and m.id != heir.id]:
            still = rival.lock is not Lock.FROZEN and contradicts(candidate, rival, self.around.dimensions)
            self.board.put(rival.with_(rival_of=heir.id if still else None))

    # new memories

    def _add(self, entry: Entry, reason: Reason) -> Memory:
        made = self._make(entry)
        self._outlive(made, entry)
        op = Op.ADDED if entry.twin is None else Op.REINFORCED
        self.board.log(op, reason, made, entry.evidence.message_id)
        return self._freeze_at_once(made, entry)

    def _outlive(self, made: Memory, entry: Entry) -> None:
        """What rests in the archive and is contradicted now has had its time: recall wakes it no more (SPEC §6)."""
        for held in self._near(entry) if not passing(entry.candidate) else ():
            if held.safety or not may_return(held) or disjoint(entry.candidate, held):
                continue
            if wider(held.scope, made.scope) or held.stated_at > entry.turn.created_at:
                continue
            if contradicts(entry.candidate, held, self.around.dimensions):
                past = self.board.revision(held, Reason.NEWEST_WINS, entry.evidence.message_id)
                self.board.put(held.with_(history=(*held.history, past)))
                self.board.log(Op.SUPERSEDED, Reason.NEWEST_WINS, held, entry.evidence.message_id)

    def _freeze_at_once(self, memory: Memory, entry: Entry) -> Memory:
        freeze_class = self.around.dimensions.freeze_class(memory.dimension)
        if memory.lock is not Lock.PENDING or memory.rival_of or memory.granularity is Granularity.SPAN:
            return memory
        entrance = self.around.entrance
        heard = entrance.heard(entry.turn, entry.evidence.quote)
        literal = freeze_class is not None and declares(entry.candidate, freeze_class, heard)
        if not freezes_at_once(entry.candidate, memory.scope, freeze_class if literal else None, self.rules):
            return memory
        event, message_id = LockEvent.FREEZE_AT_ONCE, entry.evidence.message_id
        return freeze(self.board, memory, event, Reason.IMMEDIATE, self.rules, message_id)

    def _make(self, entry: Entry, **changes: object) -> Memory:
        if entry.twin is not None:
            return self._raise(entry.twin, entry, changes)
        self._made += 1
        around = self.around
        memory_id = "mem_" + digest(around.namespace, around.user_id, around.seed, str(self._made))
        safety = around.dimensions.safety(entry.candidate.dimension) is not None
        owner = (around.namespace, around.user_id)
        memory = first_memory(entry, memory_id, owner, self.rules, safety=safety).with_(**changes)
        memory = memory.with_(scene=scene_of(memory.scope, entry.turn))
        self.vectors[memory.id] = entry.vector
        return self.board.put(memory)

    def _raise(self, twin: Memory, entry: Entry, changes: Mapping[str, object]) -> Memory:
        """What is known, and contested, is said again: it takes the part that the dispute gives it."""
        twin = twin.with_(evidence=(*twin.evidence, entry.evidence))
        if changes.get("status") is Status.SUPERSEDED:  # an older period: one more witness, and it rests
            return self.board.put(twin)
        before = self._bring_back(twin, entry)
        twin = before.with_(**({"scope": entry.scope} | dict(changes)))
        scene = before.scene if twin.scope is before.scope else scene_of(twin.scope, entry.turn)
        return self._confirm(self.board.put(twin.with_(scene=scene)), entry)

    def _affirm(self, affirmation: Affirmation) -> None:
        """Count an explicit affirmation of what the user has, by words about it."""
        turn, memory = self.around.entrance.turn_of(affirmation), self.board.get(affirmation.memory_id)
        reason = affirmation_refusal(affirmation, memory, self.around.entrance)
        if reason or turn is None or memory is None:
            self._refuse(reason or Reason.NOT_A_USER_TURN, turn)
            return
        said = Affirmed(session_id=turn.session_id, message_id=turn.message_id, at=turn.created_at)
        self.restated.append((memory.id, turn))
        self.board.log(Op.REINFORCED, Reason.AFFIRMED, memory, turn.message_id)
        confirm(self.board, memory, said, self.rules, explicit=True)


def _answers(candidate: Candidate, rules: Rules) -> bool:
    """Whether the words are plain enough to settle a question: neither for the moment nor in a mood (SPEC §5)."""
    sure = source_confidence(candidate, rules) >= rules.locks.change_confidence
    return sure and not passing(candidate) and not candidate.emotional


def _rises(twin: Memory, scope: Scope) -> bool:
    """Whether saying it again brings it back from the archive or lets it reach further."""
    if twin.status is Status.ARCHIVED:
        return True
    return twin.lock is not Lock.FROZEN and not twin.rival_of and wider(scope, twin.scope)
