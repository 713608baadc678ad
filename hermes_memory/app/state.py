"""A user's state in memory: the last commit, and what makes it quick to search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from hermes_memory.core.bm25 import WordIndex
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.fusion import Places
from hermes_memory.core.life import may_return
from hermes_memory.core.lookup import Lookup
from hermes_memory.core.model import LIVE, EvidenceKind, Lock, Memory, Status, Tier, Turn
from hermes_memory.core.ranking import Shelf, always_on, directs
from hermes_memory.core.vectors import VectorTable
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.ledger import AccessCount, Commit, Job, Session, Snapshot

Words = Callable[[str], tuple[str, ...]]

QUOTES = 3  # of a memory's utterances the last ones are searched
NOTHING_FETCHED: Mapping[str, Vector | None] = {}


class UserState:
    """What the ledger holds of a user, mirrored. Only ``apply`` changes it, with a commit that succeeded.

    Args:
        snapshot: The state as read from the ledger.
        words: The segmenter.
        dimension: Length of the vectors.
        window: How many turns of a conversation are kept for context.
        archive_vectors: Whether the vectors of archived memories are kept too. Without them a long-term index is
            searched in their place, and what needs one takes it from the ledger.
    """

    def __init__(
        self, snapshot: Snapshot, words: Words, dimension: int, window: int, *, archive_vectors: bool = True
    ) -> None:
        self._words, self._window, self.archive_vectors = words, window, archive_vectors
        self.key = snapshot.key
        self.version = snapshot.version
        self._lookup: Lookup | None = None
        self.generation = snapshot.generation
        self.settings = snapshot.settings
        self.memories: dict[str, Memory] = {}
        self.live: dict[str, Memory] = {}
        self.tiers: dict[Tier, dict[str, Memory]] = {tier: {} for tier in Tier}
        self.slots: dict[str, dict[str, Memory]] = {}
        self.rivals: dict[str, Memory] = {}
        self.places = Places()
        self.shelf = Shelf(
            self.live, VectorTable(dimension), WordIndex(), self.slots, self.rivals, self.places
        )
        self.resting: dict[str, Memory] = {}
        self.archive = Shelf(self.resting, VectorTable(dimension), WordIndex(), {}, {})
        self._elsewhere: set[str] = set()
        self.parts: dict[str, Memory] = {}
        self.always: dict[str, Memory] = {}
        self.style: dict[str, Memory] = {}
        self.frozen: dict[str, Memory] = {}
        self.sessions: dict[str, Session] = {session.id: session for session in snapshot.sessions}
        self.turns: dict[tuple[str, int], Turn] = {}
        self.jobs: dict[str, Job] = {job.id: job for job in snapshot.jobs}
        self.access: dict[str, AccessCount] = {}
        self.tally: dict[str, Counter[str]] = {day: Counter(of) for day, of in snapshot.tally.items()}
        self.counted: dict[str, Counter[str]] = {}
        self.asked: set[str] = {session.id for session in snapshot.sessions if session.asked}
        for memory in snapshot.memories:
            self._place(memory, snapshot.vectors.get(memory.id))
        for turn in snapshot.turns:
            self.turns[turn.session_id, turn.index] = turn
        self._trim()

    def lookup(self, dimensions: Dimensions) -> Lookup:
        """What a statement may concern; made when the first one is settled, for a recall needs none."""
        if self._lookup is None:
            self._lookup = Lookup(dimensions, self.memories.values())
        return self._lookup

    def standing(self) -> Iterator[Memory]:
        """What slots and summaries are made of: the live memories, and the parts of merged ones (SPEC §3.2)."""
        yield from self.live.values()
        yield from (part for part in self.parts.values() if part.merged_into in self.live)

    @property
    def pending(self) -> list[Turn]:
        """Turns that wait for extraction, in the order they came."""
        return [turn for turn in self.turns.values() if turn.pending]

    def window(self, session_id: str) -> list[Turn]:
        """The last turns of a conversation, oldest first."""
        return self.held(session_id)[-self._window :]

    def held(self, session_id: str) -> list[Turn]:
        """All turns of a conversation that are in memory, oldest first: the window and what is not folded yet."""
        return [turn for turn in self.turns.values() if turn.session_id == session_id]

    def apply(self, commit: Commit, fetched: Mapping[str, Vector | None] = NOTHING_FETCHED) -> None:
        """Mirror a commit that the ledger has accepted; ``fetched`` are the vectors that it was decided with."""
        self.version = commit.expected_version + 1
        for memory in commit.memories:
            vector = commit.vectors.get(memory.id)
            self._place(memory, fetched.get(memory.id) if vector is None else vector)
        for memory_id in commit.deleted:
            self._remove(memory_id)
        self.sessions |= {session.id: session for session in commit.sessions}
        self.asked |= {session.id for session in commit.sessions if session.asked}
        for turn in (*commit.turns, *commit.rewritten):
            self.turns[turn.session_id, turn.index] = turn
        for place in commit.extracted:
            if place in self.turns:
                self.turns[place] = replace(self.turns[place], pending=False)
        self.jobs |= {job.id: job for job in commit.jobs}
        self.jobs = {job_id: job for job_id, job in self.jobs.items() if job.pending_turns > 0}
        if commit.settings is not None:
            self.settings = commit.settings
        if commit.tally_from is not None:
            self.tally = {day: of for day, of in self.tally.items() if day >= commit.tally_from}
        self._trim()

    def note_access(self, memory_ids: list[str], now: datetime) -> None:
        """Count recalls aside: a recall is never a commit (ARCHITECTURE §2)."""
        for memory_id in memory_ids:
            count = self.access[memory_id].count if memory_id in self.access else 0
            self.access[memory_id] = AccessCount(count + 1, now)

    def take_access(self) -> dict[str, AccessCount]:
        """The counts since the last call, to be written down."""
        counts, self.access = self.access, {}
        return counts

    def count(self, counts: Mapping[str, int], now: datetime) -> None:
        """Count what happened, aside from the version as the recalls are; the day is UTC's."""
        happened = {name: number for name, number in counts.items() if number}
        if happened:
            day = now.astimezone(UTC).date().isoformat()
            for held in (self.tally, self.counted):
                held.setdefault(day, Counter()).update(happened)

    def take_counted(self) -> dict[str, Counter[str]]:
        """What was counted since the last call, to be written down."""
        counted, self.counted = self.counted, {}
        return counted

    def put_back_counted(self, counted: Mapping[str, Counter[str]]) -> None:
        """What could not be written waits for the next time."""
        for day, counts in counted.items():
            self.counted.setdefault(day, Counter()).update(counts)

    def put_back_access(self, counts: Mapping[str, AccessCount]) -> None:
        """Counts that could not be written wait for the next time."""
        for memory_id, seen in counts.items():
            newer = self.access.get(memory_id, AccessCount(0, seen.last_at))
            self.access[memory_id] = AccessCount(seen.count + newer.count, newer.last_at)

    def count_access(self, counts: Mapping[str, AccessCount]) -> None:
        """Mirror counts that were written into the memories."""
        for memory_id, seen in counts.items():
            if memory := self.memories.get(memory_id):
                total = memory.access_count + seen.count
                self._place(memory.with_(access_count=total, last_access_at=seen.last_at), None)

    def inherit(self, before: UserState) -> None:
        """Take over what only the memory knows from the state that this one replaces; nothing from an erased one."""
        if before.generation == self.generation:
            self.access = before.access
            self.counted = before.counted
            for day, counts in self.counted.items():
                self.tally.setdefault(day, Counter()).update(counts)
            self.asked |= before.asked

    def cost_bytes(self) -> int:
        """A rough size, for the memory budget of a host."""
        rows = len(self.shelf.vectors) + len(self.archive.vectors)
        return (
            20_000
            + rows * self.shelf.vectors.dimension * 4
            + 4_000 * len(self.memories)
            + 1_000 * len(self.turns)
        )

    def vector(self, memory_id: str) -> Vector | None:
        """The vector of a memory that lives or rests, shape (dimension,); None also where it is ``elsewhere``."""
        live = self.shelf.vectors.get(memory_id)
        return self.archive.vectors.get(memory_id) if live is None else live

    def elsewhere(self, memory_id: str) -> bool:
        """Whether the memory rests and has a vector that only the ledger and the index hold."""
        return memory_id in self._elsewhere

    def _place(self, memory: Memory, vector: Vector | None) -> None:
        before = self.memories.get(memory.id)
        self.memories[memory.id] = memory
        if self._lookup is not None:
            self._lookup.put(memory)
        if vector is None and (memory.status in LIVE) != (memory.id in self.live):
            vector = self.vector(memory.id)  # it changes its shelf
        if memory.status in LIVE:
            self._bury(memory.id)
            self._keep_live(memory, before, vector)
        else:
            self._unshelve(memory.id)
            self._keep_resting(memory, vector)

    def _keep_live(self, memory: Memory, before: Memory | None, vector: Vector | None) -> None:
        if before is not None and before.tier is not memory.tier:
            self.tiers[before.tier].pop(memory.id, None)
        self.live[memory.id] = self.tiers[memory.tier][memory.id] = memory
        if vector is not None:
            self.shelf.vectors.put(memory.id, vector)
        if before is None or said_otherwise(before, memory) or memory.id not in self.shelf.words:
            self.shelf.words.put(memory.id, self._words(memory.content), self._own_words(memory))
        if before is not None and before.dimension != memory.dimension:
            self._leave_slot(before)
        self.slots.setdefault(memory.dimension, {})[memory.id] = memory
        if before is None or before.evidence != memory.evidence or memory.id not in self.places:
            self.places.put(memory.id, ((piece.session_id, piece.turn_index) for piece in memory.evidence))
        _keep(self.always, memory, wanted=always_on(memory))
        _keep(self.style, memory, wanted=directs(memory))
        _keep(self.frozen, memory, wanted=memory.lock is Lock.FROZEN)
        _keep(self.rivals, memory, wanted=memory.rival_of is not None)

    def _keep_resting(self, memory: Memory, vector: Vector | None) -> None:
        """Archived: parts of merged records by id, and what recall may bring back as if it were active."""
        if memory.status is not Status.ARCHIVED:
            self._bury(memory.id)
            return
        if vector is not None and self.archive_vectors:
            self.archive.vectors.put(memory.id, vector)
        elif vector is not None:
            self._elsewhere.add(memory.id)
        self.archive.words.put(memory.id, self._words(memory.content), self._own_words(memory))
        _keep(self.parts, memory, wanted=memory.merged_into is not None)
        _keep(self.resting, memory.with_(status=Status.ACTIVE), wanted=may_return(memory))

    def _own_words(self, memory: Memory) -> Iterator[str]:
        return own_words(memory, self._words)

    def _bury(self, memory_id: str) -> None:
        self.archive.vectors.remove(memory_id)
        self._elsewhere.discard(memory_id)
        self.archive.words.remove(memory_id)
        self.resting.pop(memory_id, None)
        self.parts.pop(memory_id, None)

    def _unshelve(self, memory_id: str) -> None:
        if (memory := self.live.pop(memory_id, None)) is not None:
            self.tiers[memory.tier].pop(memory_id, None)
            self._leave_slot(memory)
        self.shelf.vectors.remove(memory_id)
        self.shelf.words.remove(memory_id)
        self.places.remove(memory_id)
        self.always.pop(memory_id, None)
        self.style.pop(memory_id, None)
        self.rivals.pop(memory_id, None)
        self.frozen.pop(memory_id, None)

    def _leave_slot(self, memory: Memory) -> None:
        slot = self.slots.get(memory.dimension, {})
        slot.pop(memory.id, None)
        if not slot:
            self.slots.pop(memory.dimension, None)

    def _remove(self, memory_id: str) -> None:
        self._unshelve(memory_id)
        self._bury(memory_id)
        if self._lookup is not None:
            self._lookup.remove(memory_id)
        self.memories.pop(memory_id, None)
        self.access.pop(memory_id, None)

    def _trim(self) -> None:
        """Drop turns that are neither pending nor of an open conversation and not folded yet."""
        self.turns = {
            place: turn for place, turn in self.turns.items()
            if turn.pending or _unfolded(turn, self.sessions.get(turn.session_id))
        }  # fmt: skip


def own_words(memory: Memory, words: Words) -> Iterator[str]:
    """The user's words behind a memory since it was last put in other words: the lesser field of the search."""
    said = memory.evidence[-QUOTES:]
    edits = [number for number, piece in enumerate(said) if piece.kind is EvidenceKind.EDIT]
    return (word for piece in said[edits[-1] if edits else 0 :] for word in words(piece.quote))


def said_otherwise(before: Memory, after: Memory) -> bool:
    """Whether what is searched by words has changed."""
    return before.content != after.content or before.evidence != after.evidence


def _unfolded(turn: Turn, session: Session | None) -> bool:
    return session is not None and not session.ended and turn.index >= session.summary.upto


def _keep(shelf: dict[str, Memory], memory: Memory, *, wanted: bool) -> None:
    if wanted:
        shelf[memory.id] = memory
    else:
        shelf.pop(memory.id, None)
