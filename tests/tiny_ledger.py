"""A ledger in a dictionary and a person who lives on it: the decide, commit, apply loop without any I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hermes_memory.app.commands import Command, Edit, Incoming, Ingest, Recall, Settle
from hermes_memory.app.desk import Decision, Desk, Policy
from hermes_memory.app.handlers import decide
from hermes_memory.app.recall import Recalled, recall
from hermes_memory.app.state import UserState
from hermes_memory.core.candidate import Affirmation, Candidate, Extraction, Refusal, Span
from hermes_memory.core.model import MEANING_FIELDS, Lock, Memory, Turn
from hermes_memory.errors import MemoryFrozen, VersionConflict
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.ledger import AuditEntry, Commit, Job, Receipt, Session, Settings, Snapshot
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW
from tests.small_world import Said, policy, vector, vectors, words


class TinyLedger:
    """Keeps one user. Checks as the port says: the operation id, the version, frozen rows without a grant."""

    def __init__(self) -> None:
        self.version, self.generation = 0, 0
        self.memories: dict[str, Memory] = {}
        self.vectors: dict[str, Vector] = {}
        self.sessions: dict[str, Session] = {}
        self.turns: dict[tuple[str, int], Turn] = {}
        self.jobs: dict[str, Job] = {}
        self.messages: dict[tuple[str, str], tuple[str, str]] = {}
        self.settings = Settings()
        self.audit: list[AuditEntry] = []
        self.operations: dict[str, Receipt] = {}

    def commit(self, commit: Commit) -> Receipt:
        if known := self.operations.get(commit.operation_id):
            return replace(known, replayed=True)
        if commit.expected_version != self.version:
            raise VersionConflict(commit.expected_version, self.version)
        self._guard(commit)
        self.version += 1
        self.memories |= {memory.id: memory for memory in commit.memories}
        self.vectors |= commit.vectors
        for memory_id in commit.deleted:
            self.memories.pop(memory_id, None)
            self.vectors.pop(memory_id, None)
        self.sessions |= {session.id: session for session in commit.sessions}
        self.turns |= {(turn.session_id, turn.index): turn for turn in commit.turns}
        for turn in commit.rewritten:
            place = (turn.session_id, turn.index)
            if place in self.turns:
                self.turns[place] = replace(turn, pending=self.turns[place].pending)
        for place in commit.extracted:
            self.turns[place] = replace(self.turns[place], pending=False)
        self.jobs |= {job.id: job for job in commit.jobs}
        self.messages |= commit.message_hashes
        self.settings = commit.settings or self.settings
        self.audit += commit.audit
        receipt = Receipt(self.version, False, commit.result)
        self.operations[commit.operation_id] = receipt
        return receipt

    def _guard(self, commit: Commit) -> None:
        for memory in commit.memories:
            stored = self.memories.get(memory.id)
            if stored is None or stored.lock is not Lock.FROZEN or memory.id in commit.grants:
                continue
            if any(getattr(stored, name) != getattr(memory, name) for name in MEANING_FIELDS):
                raise MemoryFrozen(memory.id)
        for memory_id in commit.deleted:
            stored = self.memories.get(memory_id)
            if stored and stored.lock is Lock.FROZEN and memory_id not in commit.grants:
                raise MemoryFrozen(memory_id)

    def snapshot(self) -> Snapshot:
        open_sessions = {session.id for session in self.sessions.values() if not session.ended}
        kept = [turn for turn in self.turns.values() if turn.pending or turn.session_id in open_sessions]
        return Snapshot(
            key=KEY, version=self.version, generation=self.generation, memories=tuple(self.memories.values()),
            vectors=dict(self.vectors), sessions=tuple(self.sessions.values()), settings=self.settings,
            turns=tuple(sorted(kept, key=lambda turn: (turn.received_at, turn.session_id, turn.index))),
            jobs=tuple(job for job in self.jobs.values() if job.pending_turns > 0),
        )  # fmt: skip

    def documents(self, memory_ids: Iterable[str]) -> list[tuple[Memory, Vector]]:
        """Those of the memories that exist and have a vector."""
        return [
            (self.memories[i], self.vectors[i])
            for i in memory_ids
            if i in self.memories and i in self.vectors
        ]

    def seen(self, command: Ingest) -> dict[str, tuple[str, str]]:
        """The known ones among the ids of a request."""
        ids = [message.id for message in command.messages if message.id is not None]
        return {
            i: self.messages[command.session_id, i] for i in ids if (command.session_id, i) in self.messages
        }


class Person:
    """One user's aggregate over a TinyLedger; time stands still unless ``pass_time`` moves it.

    ``fetched`` are the vectors that the last decision lacked, where the state holds none of the archive.
    """

    def __init__(
        self, with_policy: Policy | None = None, now: datetime = NOW, *, archive_vectors: bool = True
    ) -> None:
        self.archive_vectors, self.fetched = archive_vectors, dict[str, Vector | None]()
        self.policy, self.now = with_policy or policy(), now
        self.ledger = TinyLedger()
        self.operations = (f"op-{number}" for number in itertools.count(1))
        self.last: Commit | None = None
        self.state = self._wake()

    def _wake(self) -> UserState:
        return UserState(
            self.ledger.snapshot(), words, EMBEDDER.dimension, self.policy.rules.window.turns,
            archive_vectors=self.archive_vectors,
        )  # fmt: skip

    def begin(self) -> None:
        """Forget the last commit, so that ``last`` tells what the next command did."""
        self.last = None

    def restart(self) -> None:
        """Wake up from what is stored."""
        self.state = self._wake()

    def pass_time(self, **units: float) -> None:
        self.now += timedelta(**units)

    def desk(self, operation_id: str, prepared: Any = None, actor: str = "user") -> Desk:
        return Desk(
            policy=self.policy,
            now=self.now,
            epoch=1,
            operation_id=operation_id,
            actor=actor,
            prepared=prepared,
        )

    def decide(self, command: Command, prepared: Any = None, operation_id: str | None = None) -> Decision:
        """What the command would do now."""
        if isinstance(command, Ingest):
            prepared = self.ledger.seen(command)
        desk = self.desk(operation_id or next(self.operations), prepared)
        self.fetched = {}
        while (decision := decide(self.state, command, replace(desk, fetched=self.fetched))).lacking:
            found = {memory.id: vector for memory, vector in self.ledger.documents(decision.lacking)}
            self.fetched |= {memory_id: found.get(memory_id) for memory_id in decision.lacking}
        return decision

    def act(self, command: Command, prepared: Any = None, operation_id: str | None = None) -> Any:
        """Decide, commit, apply; the answer, or the error that the decision carries."""
        decision = self.decide(command, prepared, operation_id)
        self.last = decision.commit
        if decision.commit is not None:
            self.ledger.commit(decision.commit)
            self.state.apply(decision.commit, self.fetched)
        if decision.error is not None:
            raise decision.error
        return decision.result

    # saying things

    def ingest(self, *said: Said, now: bool = False) -> Any:
        """Send the turns of one session; statement times are those of the turns."""
        first = said[0].turn
        return self.act(
            Ingest(
                session_id=first.session_id, timezone="UTC", scene=first.scene,
                messages=tuple(
                    Incoming(
                        role=one.turn.role, content=one.turn.content, id=one.turn.message_id,
                        created_at=None if now else one.turn.created_at,
                    )
                    for one in said
                ),
            )
        )  # fmt: skip

    def settle_command(self, *said: Said, refusals: tuple[Refusal, ...] = ()) -> Settle:
        """What an extractor that read ``said`` asks for, on the turns that wait."""
        candidates: list[Candidate] = [candidate for one in said for candidate in one.candidates]
        affirmations: list[Affirmation] = [affirmation for one in said for affirmation in one.affirmations]
        extraction = Extraction(
            extractor="test-1",
            candidates=tuple(candidates),
            affirmations=tuple(affirmations),
            refusals=refusals,
        )
        return Settle(
            turns=tuple((turn.session_id, turn.index) for turn in self.state.pending),
            distilled=Distilled(extraction, vectors(candidate.content for candidate in candidates)),
            generation=self.state.generation,
        )

    def tell(self, *said: Said) -> Any:
        """Send turns and settle what is waiting."""
        self.ingest(*said)
        return self.act(self.settle_command(*said))

    def remember(self, said: Said) -> Memory:
        """Tell one thing; the memory that is new because of it."""
        before = set(self.state.memories)
        self.tell(said)
        (made,) = set(self.state.memories) - before
        return self.state.memories[made]

    # asking

    def memory(self, memory_id: str) -> Memory:
        return self.state.memories[memory_id]

    def recall(self, query: str = "?", **over: Any) -> dict[str, Any]:
        return self.recalled(query, **over).answer

    def recalled(self, query: str, **over: Any) -> Recalled:
        wanted = Recall(query=query, vector=vector(query), words=words(query), **over)
        return recall(self.state, wanted, self.policy, self.now)

    def edit(self, memory: Memory, prepared: Any = None, **changes: Any) -> Any:
        values: dict[str, Any] = {"memory_id": memory.id, "expected_version": memory.version} | changes
        return self.act(Edit(**values), prepared)


def span_of(turn: Turn) -> Span:
    return Span(turn.message_id, 0, len(turn.content), turn.session_id)
