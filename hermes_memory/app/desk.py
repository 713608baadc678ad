"""What a decision is made with: the rules, the present, and a draft of the commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hermes_memory.app.profiling import retaken
from hermes_memory.app.records import change_record
from hermes_memory.app.state import UserState, Words, said_otherwise
from hermes_memory.core.anchors import Anchors
from hermes_memory.core.asking import NOTHING_KNOWN, Asked
from hermes_memory.core.board import Board, Change
from hermes_memory.core.calibration import Calibration
from hermes_memory.core.cohorts import Catalogue
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.daytime import Daytimes
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.grounding import Grounding
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.life import keep_caps
from hermes_memory.core.merging import mend
from hermes_memory.core.model import LIVE, Memory, Turn
from hermes_memory.core.ranking import Yardstick
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import Rules
from hermes_memory.errors import HermesError, NotFound
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.ledger import (
    Alert,
    AuditEntry,
    Commit,
    GrantKind,
    Job,
    OutboxEntry,
    Session,
    Settings,
)

ALERTING = frozenset({Reason.CORE_FULL, Reason.CONTRADICTED_OFTEN})
PARKED = "extraction_parked"


def alert_id_of(key: UserKey, kind: str, about: str) -> str:
    """One alert for each kind and thing: the same again is the same alert."""
    return "alert_" + digest(key.namespace, key.user_id, kind, about)


ReadQuery = Callable[
    [str, datetime, str], Asked
]  # a query's text, the time it is seen from, the user's time zone


def nothing_known(text: str, as_of: datetime, timezone: str) -> Asked:
    """A reader of queries that reads nothing out of them."""
    del text, as_of, timezone
    return NOTHING_KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What stays the same from command to command."""

    rules: Rules
    dimensions: Dimensions
    calibration: Calibration
    words: Words
    grounding: Grounding
    anchors: Anchors
    mask: Callable[[str], str]
    read: ReadQuery = nothing_known
    common: frozenset[str] = frozenset()  # words of everyday use: they weigh less in search
    answers: Mapping[str, Choice] = field(default_factory=dict)  # normal words → what they choose
    daytimes: Daytimes = field(default_factory=Daytimes)
    cohort_values: Catalogue = field(default_factory=dict)

    @property
    def yardstick(self) -> Yardstick:
        """What hits are measured with."""
        return Yardstick(self.calibration, self.rules, self.daytimes, self.common)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One decision's circumstances. ``prepared`` is what the command asked to have looked up beforehand.

    ``seed`` makes the ids of what is made, by default the operation's id. ``fetched`` are vectors that a first
    attempt lacked, from the ledger by memory id; None: it has none.
    """

    policy: Policy
    now: datetime
    epoch: int
    operation_id: str
    actor: str = "user"
    prepared: Any = None
    seed: str | None = None
    fetched: Mapping[str, Vector | None] = field(default_factory=dict)

    @property
    def made_by(self) -> str:
        """What the ids of new things are made of: the same decision makes the same ones."""
        return self.operation_id if self.seed is None else self.seed


@dataclass(frozen=True, slots=True)
class Decision:
    """A commit to make (None: nothing changes), the answer, and an error to raise after the commit.

    Where vectors are ``lacking`` it is void: they are to be fetched by memory id, and the command decided again.
    ``counts`` is what the commit counts for beside its changes, if it is applied now.
    """

    commit: Commit | None
    result: Any
    error: HermesError | None = None
    lacking: frozenset[str] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """A commit in the making."""

    state: UserState
    desk: Desk
    board: Board = field(init=False)
    vectors: dict[str, Vector] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    rewritten: list[Turn] = field(default_factory=list)
    extracted: list[tuple[str, int]] = field(default_factory=list)
    message_hashes: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    settings: Settings | None = None
    erased: set[str] = field(default_factory=set)
    alerts: dict[str, Alert] = field(default_factory=dict)
    seen_to: set[str] = field(default_factory=set)  # alerts that this commit closes
    tally_from: str | None = None
    counts: Counter[str] = field(default_factory=Counter)  # for the figures of quality (SPEC §10)
    _lacking: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.board = Board(self.state.memories, self.desk.now, self.state.tiers)

    def memory(self, memory_id: str) -> Memory:
        """A memory of this user. Raises NotFound."""
        if memory_id not in self.board:
            raise NotFound("memory")
        return self.board[memory_id]

    def session(self, session_id: str) -> Session:
        """A session of this user as it stands in the draft, new if it was not known."""
        known = self.sessions.get(session_id) or self.state.sessions.get(session_id)
        return known or Session(id=session_id, started_at=self.desk.now, last_at=self.desk.now)

    def open_sessions(self) -> frozenset[str]:
        """The conversations that go on, as it stands in the draft."""
        known = {**self.state.sessions, **self.sessions}
        return frozenset(session.id for session in known.values() if not session.ended)

    def change_settings(self, **changes: Any) -> None:
        """Replace fields of the user's settings."""
        self.settings = replace(self.settings or self.state.settings, **changes)

    def current_settings(self) -> Settings:
        """The settings as they stand in the draft."""
        return self.settings or self.state.settings

    def erase(self, memory_id: str) -> None:
        """Grant the physical removal of a memory; ``board.delete`` takes it out."""
        self.erased.add(memory_id)

    def tidy(self) -> None:
        """Mend merged records whose parts have changed, and bring the tiers back under their caps (SPEC §4.2)."""
        vectors, dissolved = mend(self.board, self.vector_of)
        self.vectors |= vectors
        self.erased |= dissolved
        rules, seed = self.desk.policy.rules, self.desk.made_by
        self.vectors |= keep_caps(self.board, rules, seed, self.vector_of)

    def parts(self) -> Iterator[Memory]:
        """The parts of merged records as they stand in the draft."""
        for part_id in dict.fromkeys([*self.state.parts, *self.board.touched_ids]):
            part = self.board.get(part_id)
            if part is not None and part.merged_into is not None:
                yield part

    def take_up(self, *, everything: bool = False) -> int:
        """Bring the slots of the user model up to date (SPEC §8); how many came, went or rest on others now."""
        before = self.current_settings().profile
        rules = self.desk.policy.rules.profile
        after = retaken(self.board, self.parts(), before, rules, everything=everything)
        if after is None:
            return 0
        self.change_settings(profile=after)
        return len([name for name in {*before, *after} if before.get(name) != after.get(name)])

    def _forget_habits(self) -> None:
        """A habit that rests on what is deleted goes with it; the night counts anew."""
        habits = self.current_settings().behavior
        kept = {
            name: slot for name, slot in habits.items() if self.board.deleted.isdisjoint(slot["memory_ids"])
        }
        if len(kept) < len(habits):
            self.change_settings(behavior=kept)

    def vector_of(self, memory_id: str) -> Vector | None:
        """The vector of a memory; one that has to be fetched first makes the decision void."""
        if memory_id in self.vectors:
            return self.vectors[memory_id]
        if not self.state.elsewhere(memory_id):
            return self.state.vector(memory_id)
        if memory_id not in self.desk.fetched:
            self._lacking.add(memory_id)
        return self.desk.fetched.get(memory_id)

    def decide(self, result: Any = None, error: HermesError | None = None) -> Decision:
        """The finished commit with its answer; or what it lacks, so that all that lives then has its vector."""
        commit = self.commit(result)
        for memory in commit.memories:
            if memory.status in LIVE and self.state.elsewhere(memory.id):
                self.vector_of(memory.id)
        return Decision(commit, result, error, frozenset(self._lacking), self.counts)

    def commit(self, result: Any = None) -> Commit:
        """The draft as one commit on the version that was read."""
        self.take_up()
        self._forget_habits()
        changed = self.board.changed
        stored = {memory.id for memory in changed}
        grants = dict.fromkeys(self.board.opened & stored, GrantKind.UNFREEZE)
        return Commit(
            key=self.state.key,
            expected_version=self.state.version,
            epoch=self.desk.epoch,
            operation_id=self.desk.operation_id,
            at=self.desk.now,
            result=result,
            memories=changed,
            vectors={memory_id: vector for memory_id, vector in self.vectors.items() if memory_id in stored},
            deleted=tuple(sorted(self.board.deleted)),
            grants=grants | dict.fromkeys(self.erased, GrantKind.ERASE),
            sessions=tuple(self.sessions.values()),
            turns=tuple(self.turns),
            rewritten=tuple(self.rewritten),
            message_hashes=self.message_hashes,
            extracted=tuple(self.extracted),
            jobs=tuple(self.jobs.values()),
            audit=tuple(self._audit(change) for change in self.board.changes),
            outbox=self._outbox(changed),
            alerts=tuple(self.alerts.values()) + tuple(self._alerts()),
            seen_to=tuple(sorted(self.seen_to)),
            tally_from=self.tally_from,
            settings=self.settings,
        )

    def records(self) -> list[dict[str, Any]]:
        """The changes so far, JSON-ready."""
        return [change_record(change) for change in self.board.changes]

    def _audit(self, change: Change) -> AuditEntry:
        return AuditEntry(
            at=self.desk.now,
            op=change.op.value,
            reason=change.reason.value,
            actor=self.desk.actor,
            memory_id=change.memory_id,
            message_id=change.message_id,
            before=change.before,
            after=change.after,
            version=self.state.version + 1,
        )

    def _alerts(self) -> Iterator[Alert]:
        """What the gates could not settle and an operator should look at (SPEC §4.2, §5)."""
        for change in self.board.changes:
            if change.reason in ALERTING and change.memory_id is not None:
                alert_id = alert_id_of(self.state.key, change.reason.value, change.memory_id)
                yield Alert(
                    id=alert_id, kind=change.reason.value, at=self.desk.now, memory_id=change.memory_id
                )

    def _outbox(self, changed: tuple[Memory, ...]) -> tuple[OutboxEntry, ...]:
        known = self.state.memories
        puts = [
            OutboxEntry(
                op="put" if memory.status in LIVE or memory.archived_at else "remove", memory_id=memory.id
            )
            for memory in changed
            if memory.id in self.vectors
            or memory.id not in known
            or memory.status is not known[memory.id].status
            or said_otherwise(known[memory.id], memory)
        ]
        return (
            *puts,
            *(OutboxEntry(op="remove", memory_id=memory_id) for memory_id in sorted(self.board.deleted)),
        )


Handler = Callable[[UserState, Any, Desk], Decision]
Handlers = Mapping[type, Handler]
