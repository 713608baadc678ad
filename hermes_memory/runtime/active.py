"""One awake user: a mailbox for commands, reads of the last commit, and the extraction beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from hermes_memory.app.commands import (
    Ask,
    Command,
    EndIdleSessions,
    EraseUser,
    Export,
    Ingest,
    ListAudit,
    MarkAsked,
    Recall,
)
from hermes_memory.app.desk import Desk, Policy
from hermes_memory.app.handlers import decide
from hermes_memory.app.ingest import after_erasure
from hermes_memory.app.recall import recall
from hermes_memory.app.records import audit_record, job_record, turn_record
from hermes_memory.app.state import UserState
from hermes_memory.app.views import VIEWS, decode_cursor, encode_cursor
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import (
    HermesError,
    InvalidInput,
    NotFound,
    Overloaded,
    SessionOwned,
    VersionConflict,
)
from hermes_memory.ports.clock import Clock
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.ledger import Commit, Job, JobStatus, Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.prepare import prepare

log = logging.getLogger(__name__)

ENDED = {JobStatus.DONE, JobStatus.FAILED}
MAX_REPLAYS = 8  # a commit that loses this many races in a row gives up


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every awake user of a host shares."""

    ledger: Ledger
    distiller: Distiller
    policy: Policy
    clock: Clock
    metrics: Metrics
    dimension: int
    epoch: int
    max_waiting: int


@dataclass(slots=True)
class _Watch:
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: int = 0


class ActiveUser:
    """A user's aggregate with its mailbox. Made by ``wake``; one for each user and host."""

    def __init__(self, around: Surroundings, state: UserState) -> None:
        self.around, self.state = around, state
        self.key: UserKey = state.key
        self._mailbox = asyncio.Lock()
        self._waiting = 0
        self._stale = False
        self._watched: dict[str, _Watch] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.used_at = around.clock.now()
        self.changed = asyncio.Event()  # something was committed: the extraction looks again

    @classmethod
    async def wake(cls, key: UserKey, around: Surroundings) -> ActiveUser:
        """Take ownership of the user in the ledger and read the state."""
        return cls(around, await cls._read(key, around))

    @staticmethod
    async def _read(key: UserKey, around: Surroundings) -> UserState:
        snapshot = await around.ledger.activate(key, around.epoch)
        policy = around.policy
        return UserState(snapshot, policy.words, around.dimension, policy.rules.window.turns)

    @property
    def quiet(self) -> bool:
        """Whether nothing waits, runs or is watched, so that it can be put to sleep."""
        return not (self._waiting or self._mailbox.locked() or self._tasks or self._watched)

    # commands

    async def execute(
        self, command: Command, operation_id: str, *, actor: str = "user", again: bool = False
    ) -> Any:
        """Decide, commit and apply one command, alone; after a lost race decide anew on the newer state.

        ``again`` says that the operation may have been applied before.
        """
        if self._waiting >= self.around.max_waiting:
            raise Overloaded(1.0)
        self._waiting += 1
        self.used_at = self.around.clock.now()
        try:
            async with self._mailbox:
                return await self._run(command, operation_id, actor, again)
        finally:
            self._waiting -= 1

    async def _run(self, command: Command, operation_id: str, actor: str, again: bool) -> Any:
        repeats = again or isinstance(command, Ingest)  # clients repeat messages, and an erased user may not revive
        if repeats and (known := await self.around.ledger.operation(self.key, operation_id)):
            if known.result is None and isinstance(command, Ingest):
                return after_erasure(command)
            return known.result
        if isinstance(command, EraseUser):
            return await self._erase(operation_id)
        for _ in range(MAX_REPLAYS):
            await self._refresh()
            try:
                return await self._attempt(command, operation_id, actor)
            except VersionConflict:
                self._stale = True
        raise Overloaded(1.0)

    async def _attempt(self, command: Command, operation_id: str, actor: str) -> Any:
        prepared = await prepare(self.key, self.state, command, self.around)
        desk = Desk(
            policy=self.around.policy, now=self.around.clock.now(), epoch=self.around.epoch,
            operation_id=operation_id, actor=actor, prepared=prepared,
        )  # fmt: skip
        decision = decide(self.state, command, desk)
        if decision.commit is not None:
            result = await self._commit(decision.commit)
            if decision.error is not None:
                raise decision.error
            return result
        if decision.error is not None:
            raise decision.error
        return decision.result

    async def _commit(self, commit: Commit) -> Any:
        self._stale = True  # until we know: a cancelled or failed call may have been applied
        receipt = await self.around.ledger.commit(commit)
        if receipt.replayed:
            return receipt.result
        self.state.apply(commit)
        self._stale = False
        self._count(commit)
        self._tell(commit.jobs)
        return commit.result

    def _count(self, commit: Commit) -> None:
        for entry in commit.audit:
            self.around.metrics.count("hermes_changes_total", op=entry.op, reason=entry.reason)

    def _tell(self, jobs: tuple[Job, ...]) -> None:
        for job in jobs:
            if job.status in ENDED and (watch := self._watched.get(job.id)):
                watch.ended.set()
        self.changed.set()

    async def _refresh(self) -> None:
        if self._stale:
            self.state = await self._read(self.key, self.around)
            self._stale = False

    async def _erase(self, operation_id: str) -> dict[str, Any]:
        for _ in range(MAX_REPLAYS):
            await self._refresh()
            try:
                receipt = await self.around.ledger.erase(
                    self.key, self.state.version, self.around.epoch, operation_id, self.around.clock.now()
                )
            except VersionConflict:
                self._stale = True
                continue
            self._stale = True
            await self._refresh()
            self.changed.set()
            for watch in self._watched.values():
                watch.ended.set()
            counts = ("memories", "vectors", "turns", "audit", "jobs", "profile_slots")
            return {
                "erased": {name: getattr(receipt, name) for name in counts},
                "remaining": receipt.remaining,
            }
        raise Overloaded(1.0)

    # queries

    async def ask(self, query: Ask) -> dict[str, Any]:
        """Answer from the last commit, without the mailbox."""
        self.used_at = self.around.clock.now()
        if self._stale and not self._mailbox.locked():
            async with self._mailbox:
                await self._refresh()
        if isinstance(query, Recall):
            return await self._recall(query)
        if isinstance(query, ListAudit):
            return await self._audit(query)
        answer = VIEWS[type(query)](self.state, query, self.around.policy)
        if isinstance(query, Export):
            answer["turns"] = [turn_record(turn) for turn in await self.around.ledger.turns(self.key)]
            answer["audit"] = [
                audit_record(entry) for entry in await self.around.ledger.audit(self.key, 0, 1_000_000)
            ]
        return answer

    async def _recall(self, query: Recall) -> dict[str, Any]:
        if query.session_id is not None and query.session_id not in self.state.sessions:
            owner = await self.around.ledger.session_owner(self.key.namespace, query.session_id)
            if owner not in {None, self.key.user_id}:
                raise SessionOwned
        now = self.around.clock.now()
        recalled = recall(self.state, query, self.around.policy, now)
        self.state.note_access(list(recalled.shown), now)
        if recalled.asked and query.session_id:
            self.state.asked.add(query.session_id)
            asked = MarkAsked(session_id=query.session_id, request_id=recalled.asked)
            self.spawn(self.execute(asked, f"asked:{recalled.asked}:{query.session_id}"))
        return recalled.answer

    async def _audit(self, query: ListAudit) -> dict[str, Any]:
        after = decode_cursor(query.cursor) if query.cursor else "0"
        if not after.isdecimal():
            raise InvalidInput("cursor", "is not one that this API gave")
        entries = await self.around.ledger.audit(self.key, int(after), query.limit + 1)
        shown = entries[: query.limit]
        more = encode_cursor(str(shown[-1].seq)) if len(entries) > query.limit else None
        return {"audit": [audit_record(entry) for entry in shown], "next_cursor": more}

    # jobs

    async def wait(self, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """The job's record once it has ended; None when ``timeout_s`` is over first. Raises NotFound."""
        job = self.state.jobs.get(job_id)
        if job is not None and job.status not in ENDED and not await self._watch(job_id, timeout_s):
            return None
        found = await self.around.ledger.job(self.key.namespace, job_id)
        if found is None or found[0] != self.key:
            raise NotFound("job")
        return job_record(found[1])

    async def _watch(self, job_id: str, timeout_s: float) -> bool:
        watch = self._watched.setdefault(job_id, _Watch())
        watch.watchers += 1
        self.changed.set()
        try:
            await asyncio.wait_for(watch.ended.wait(), timeout_s)
        except TimeoutError:
            return False
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                self._watched.pop(job_id, None)
        return True

    def watched(self, job_id: str | None) -> bool:
        """Whether somebody waits for the job, so that its batch should close at once."""
        return job_id in self._watched

    # life

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside the caller; failures are logged, and it ends with the user."""
        task = asyncio.create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except HermesError as error:
            log.warning("background work of %s failed: %s", self.key.hashed, error.code)

    async def end_idle_sessions(self) -> None:
        """Close conversations that went silent (SPEC §4.2)."""
        if any(not session.ended for session in self.state.sessions.values()):
            now = self.around.clock.now()
            await self.execute(
                EndIdleSessions(), f"idle:{self.state.version}:{now.timestamp():.0f}", actor="clock"
            )

    async def flush(self) -> None:
        """Write the access counts down."""
        counts = self.state.take_access()
        if counts:
            await self.around.ledger.touch(self.key, self.around.epoch, counts)

    async def sleep(self) -> None:
        """Stop what runs beside and write down what is only in memory."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.flush()
