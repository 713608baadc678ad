"""One awake user: a mailbox for commands, reads of the last commit, and the extraction beside it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import Any

from hermes_memory.app.cohorts import defaults_for
from hermes_memory.app.commands import (
    Ask,
    BringBack,
    Command,
    EndIdleSessions,
    EraseUser,
    Export,
    GetProfile,
    Ingest,
    ListAudit,
    Maintain,
    MarkAsked,
    Recall,
)
from hermes_memory.app.desk import Desk, Policy
from hermes_memory.app.handlers import decide
from hermes_memory.app.ingest import idle_before, outdated, repeated
from hermes_memory.app.recall import (
    Found,
    Recalled,
    assemble,
    find,
    looked_at_again,
    looked_further,
    probe,
    recall,
)
from hermes_memory.app.records import audit_record, job_record, turn_record
from hermes_memory.app.state import UserState
from hermes_memory.app.tallying import tallied
from hermes_memory.app.views import VIEWS, decode_cursor, encode_cursor
from hermes_memory.core.failures import told
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.knowledge import KnowledgeShelf
from hermes_memory.core.model import USER
from hermes_memory.core.tally import of_recall
from hermes_memory.errors import (
    Fenced,
    HermesError,
    InvalidInput,
    LeaseLost,
    NotFound,
    Overloaded,
    SessionOwned,
    VersionConflict,
)
from hermes_memory.ports.clock import Clock
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.ledger import Commit, ErasureReceipt, JobStatus, Ledger
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.cohorts import Cohorts
from hermes_memory.runtime.counting import count_commit, count_recall, count_tally
from hermes_memory.runtime.long_term import LongTerm
from hermes_memory.runtime.nights import run_night
from hermes_memory.runtime.packs import Packs
from hermes_memory.runtime.prepare import prepare, read_ahead
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.runtime.watching import Watches
from hermes_memory.runtime.zones import Zones

log = logging.getLogger(__name__)

ENDED = {JobStatus.DONE, JobStatus.FAILED}
MAX_SEQ_DIGITS = 18  # more do not fit the ledger's numbers
MAX_REPLAYS = 8  # a commit that loses this many races in a row gives up
OWN_WORK = {"extraction", "clock", "recall"}  # never turned away: what a full mailbox waits for is among it


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every awake user of a host shares."""

    ledger: Ledger
    distiller: Distiller
    policy: Policy
    clock: Clock
    metrics: Metrics
    packs: Packs
    cohorts: Cohorts
    zones: Zones
    dimension: int
    epoch: int
    max_waiting: int
    second_look: SecondLook | None = None
    long_term: LongTerm | None = None  # None: users hold the vectors of their archive themselves
    nudge: Callable[[UserKey], None] = lambda _: None  # a commit of the user has something for the index


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One command in the mailbox; ``ahead`` is what the model made of it before its turn came."""

    command: Command
    operation_id: str
    actor: str
    again: bool
    ahead: Any


class ActiveUser:
    """A user's aggregate with its mailbox. Made by ``wake``; one for each user and host.

    ``closed`` once another host owns the user or this one has put the user to sleep: commands and waits that come
    too late raise LeaseLost, and whoever wants the user wakes a new one.
    """

    def __init__(self, around: Surroundings, state: UserState) -> None:
        self.around, self.state = around, state
        self.key: UserKey = state.key
        self._mailbox = asyncio.Lock()
        self._waiting = 0
        self._stale = False
        self.closed = False
        self.watches = Watches(around.clock)
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
        return UserState(
            snapshot, policy.words, around.dimension, policy.rules.window.turns,
            archive_vectors=around.long_term is None,
        )  # fmt: skip

    @property
    def quiet(self) -> bool:
        """Whether nothing waits, runs or is watched, so that it can be put to sleep."""
        return not (self.busy or self._stale or self._tasks or self.watches)

    @property
    def waiting(self) -> int:
        """Commands that have not begun."""
        return self._waiting - self._mailbox.locked() if self._waiting else 0

    @property
    def busy(self) -> bool:
        """Whether a command runs or waits."""
        return bool(self._waiting) or self._mailbox.locked()

    # commands

    async def execute(
        self, command: Command, operation_id: str, *, actor: str = "user", again: bool = False
    ) -> Any:
        """Decide, commit and apply one command, alone; after a lost race decide anew on the newer state.

        ``again`` says that the operation may have been applied before.
        """
        if actor not in OWN_WORK:
            if self._waiting >= self.around.max_waiting:
                raise Overloaded(1.0)
            self.used_at = self.around.clock.now()
        self._waiting += 1
        try:
            ahead = await read_ahead(self.state, command, self.around)
            call = _Call(command=command, operation_id=operation_id, actor=actor, again=again, ahead=ahead)
            if isinstance(command, Maintain):
                await self._flush()  # ageing looks at the access counts
                return await run_night(command, operation_id, partial(self._portion, call))
            async with self._mailbox:
                return await self._run(call)
        except Fenced:
            self.close()
            raise
        finally:
            self._waiting -= 1

    async def _portion(self, call: _Call, command: Maintain, operation_id: str) -> Any:
        """One decision of a night: whoever waits in the mailbox comes first."""
        async with self._mailbox:
            return await self._run(replace(call, command=command, operation_id=operation_id))

    async def _run(self, call: _Call) -> Any:
        for _ in range(MAX_REPLAYS):
            await self._refresh()
            try:
                if isinstance(call.command, EraseUser):
                    return await self._erase(call.operation_id)
                if (known := await self._known(call)) is not None:
                    return known
                return await self._attempt(call)
            except VersionConflict:
                self._stale = True
        raise Overloaded(1.0)

    async def _known(self, call: _Call) -> Any:
        """The first answer of an operation that was applied before; None to decide it.

        Clients repeat messages, so those are always looked up: an erased user may not revive. A commit that went
        with an error has no answer: decided again, it is a replay and raises the error again.
        """
        if not (call.again or isinstance(call.command, Ingest)):
            return None
        known = await self.around.ledger.operation(self.key, call.operation_id)
        if known is None:
            return None
        if isinstance(call.command, Ingest) and not (call.again and known.result):
            return repeated(call.command, known.result)
        return known.result

    async def _attempt(self, call: _Call) -> Any:
        prepared = call.ahead or await prepare(self.key, self.state, call.command, self.around)
        desk = Desk(
            policy=self.around.policy, now=self.around.clock.now(), epoch=self.around.epoch,
            operation_id=call.operation_id, actor=call.actor, prepared=prepared,
        )  # fmt: skip
        decision = decide(self.state, call.command, desk)
        while decision.lacking:
            desk = replace(desk, fetched={**desk.fetched, **await self._vectors(decision.lacking)})
            decision = decide(self.state, call.command, desk)
        result = decision.result
        if decision.commit is not None:
            result = await self._commit(decision.commit, desk.fetched, decision.counts)
        if decision.error is not None:
            raise decision.error
        return result

    async def _vectors(self, memory_ids: Iterable[str]) -> dict[str, Vector | None]:
        """The vectors of archived memories from the ledger; None for one that has none."""
        ids = sorted(memory_ids)
        found = {memory.id: vector for memory, vector in await self.around.ledger.documents(self.key, ids)}
        return {memory_id: found.get(memory_id) for memory_id in ids}

    async def _commit(
        self, commit: Commit, fetched: Mapping[str, Vector | None], counts: Mapping[str, int]
    ) -> Any:
        self._stale = True  # until we know: a cancelled or failed call may have been applied
        receipt = await self.around.ledger.commit(commit)
        if commit.outbox:
            self.around.nudge(self.key)
        if receipt.replayed:
            return receipt.result
        tally = tallied(self.state, commit)
        tally.update(counts)
        self.state.apply(commit, fetched)
        self._tally(tally, commit.at)
        self._stale = False
        count_commit(self.around.metrics, commit)
        self.watches.end(job.id for job in commit.jobs if job.status in ENDED)
        self.changed.set()
        return commit.result

    def _tally(self, counts: Mapping[str, int], at: datetime) -> None:
        self.state.count(counts, at)
        count_tally(self.around.metrics, counts)

    async def _refresh(self) -> None:
        """Read the state again if it may be behind the ledger, and tell those who wait for what happened there."""
        if self.closed:
            raise LeaseLost
        if self._stale:
            before = self.state
            self.state = await self._read(self.key, self.around)
            self._stale = False
            self.state.inherit(before)
            jobs = self.state.jobs
            self.watches.end(i for i in self.watches if i not in jobs or jobs[i].status in ENDED)
            self.changed.set()

    async def _erase(self, operation_id: str) -> dict[str, Any]:
        version = self.state.version
        self._stale = True  # until we know
        receipt = await self.around.ledger.erase(
            self.key, version, self.around.epoch, operation_id, self.around.clock.now()
        )
        self.around.nudge(self.key)
        await self._refresh()
        return _erasure(receipt)

    async def catch_up(self) -> None:
        """Make sure that the state is the ledger's, after a call of which no answer came."""
        if self._stale:
            async with self._mailbox:
                await self._refresh()

    # queries

    async def ask(self, query: Ask) -> dict[str, Any]:
        """Answer from the last commit, without the mailbox."""
        self.used_at = self.around.clock.now()
        if not self._mailbox.locked():
            await self.catch_up()
        if isinstance(query, Recall):
            return await self._recall(query)
        if isinstance(query, ListAudit):
            return await self._audit(query)
        answer = VIEWS[type(query)](self.state, query, self.around.policy)
        if isinstance(query, GetProfile) and query.subject == USER:
            answer |= self._defaults
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
        around = self.around
        zone = await around.zones.of(query.timezone)
        now = around.clock.now()
        if around.second_look is None and around.long_term is None:
            recalled = recall(self.state, query, around.policy, now, self._packs, zone)
        else:
            recalled = await self._recalled_with_help(query, now, zone)
        if "profile" in query.include:
            recalled.answer.update(self._defaults)
        count_recall(around.metrics, recalled.answer)
        hits = sum(not one["always"] for one in recalled.answer["memories"])
        self._tally(of_recall(hits, disputed=recalled.disputed), now)
        self.state.note_access(list(recalled.shown), now)
        if recalled.asked and query.session_id:
            self.state.asked.add(query.session_id)
            asked = MarkAsked(session_id=query.session_id, request_id=recalled.asked)
            operation_id = f"asked:{recalled.asked}:{query.session_id}"
            self.spawn(self.execute(asked, operation_id, actor="recall"))
        if recalled.returned:
            operation_id = f"back:{self.state.version}:{digest(*recalled.returned)}"
            self.spawn(self.execute(BringBack(memory_ids=recalled.returned), operation_id, actor="recall"))
        return recalled.answer

    @property
    def _defaults(self) -> dict[str, Any]:
        """What others have in common, beside a profile that says little (S2 §7.2); nothing for most."""
        given = defaults_for(self.state, self.around.cohorts.of(self.key.namespace), self.around.policy)
        return {"defaults": given} if given else {}

    @property
    def _packs(self) -> KnowledgeShelf | None:
        return self.around.packs.of(self.key.namespace)

    async def _recalled_with_help(self, query: Recall, now: datetime, zone: tzinfo | None) -> Recalled:
        """A recall with an index or a reranker; what is committed meanwhile counts, above all what was erased."""
        look, policy = self.around.second_look, self.around.policy
        if look is None:
            found = await self._find(query, now, zone)
            return assemble(self.state, query, found, policy, now, self._packs)
        found = await self._find(query, now, zone, look.candidates)
        seen, started = self._seen, time.perf_counter()
        relevances = await look.at(query.query, found.hits, self.around.metrics)
        took_s = time.perf_counter() - started
        if self.closed:
            raise LeaseLost
        if self._seen != seen:
            found = await self._find(query, now, zone, look.candidates)
        found = looked_at_again(found, relevances, took_s)
        return assemble(self.state, query, found, policy, now, self._packs)

    async def _find(self, query: Recall, now: datetime, zone: tzinfo | None, candidates: int = 0) -> Found:
        """What is found in the state as it is when this returns; an index is asked for what is not in the actor."""
        long_term, policy = self.around.long_term, self.around.policy
        found = find(self.state, query, policy, now, zone, candidates)
        if long_term is None or not (found.lacking or long_term.rules.always):
            return found
        seen, started = self._seen, time.perf_counter()
        asked = probe(self.state, found.query, policy)
        nominated = await long_term.nominate(self.key, asked, self._rests, self.around)
        took_s = time.perf_counter() - started
        if self.closed:
            raise LeaseLost
        if nominated is None and self._seen == seen:
            return looked_further(found, took_s, None)
        again = find(self.state, query, policy, now, zone, candidates, nominated)
        return looked_further(again, took_s, None if nominated is None else found)

    @property
    def _seen(self) -> tuple[UserState, int]:
        """What a query has seen: another state, or a later version, is seen anew."""
        return self.state, self.state.version

    def _rests(self, memory_id: str) -> bool:
        return self.state.elsewhere(memory_id)

    async def _audit(self, query: ListAudit) -> dict[str, Any]:
        after = decode_cursor(query.cursor) if query.cursor else "0"
        if not (after.isascii() and after.isdecimal() and len(after) <= MAX_SEQ_DIGITS):
            raise InvalidInput("cursor", "is not one that this API gave")
        entries = await self.around.ledger.audit(self.key, int(after), query.limit + 1)
        shown = entries[: query.limit]
        more = encode_cursor(str(shown[-1].seq)) if len(entries) > query.limit else None
        return {"audit": [audit_record(entry) for entry in shown], "next_cursor": more}

    # jobs

    async def wait(self, job_id: str, timeout_s: float) -> dict[str, Any] | None:
        """The job's record once it has ended; None when ``timeout_s`` is over or the user was put to sleep first.

        Raises NotFound.
        """
        await self.catch_up()
        job = self.state.jobs.get(job_id)
        if job is not None and job.status not in ENDED:
            self.changed.set()  # the extraction sees, once this waits, that somebody does
            if not await self.watches.wait(job_id, timeout_s):
                return None
        found = await self.around.ledger.job(self.key.namespace, job_id)
        if found is None or found[0] != self.key:
            raise NotFound("job")
        return job_record(found[1]) if found[1].status in ENDED else None

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
            log.warning("background work failed: %s", error.code, extra={"user": self.key.hashed})
        except Exception as error:  # noqa: BLE001
            log.error("background work failed: %s", told(error), extra={"user": self.key.hashed})

    async def tidy(self) -> None:
        """Close conversations that went silent and write the access counts down; not while commands run."""
        if not self.busy:
            await self.catch_up()
            await self._end_idle_sessions()
            await self._flush()

    async def _end_idle_sessions(self) -> None:
        """Close conversations without a message for the configured minutes (SPEC §4.2)."""
        now, life = self.around.clock.now(), self.around.policy.rules.life
        before = idle_before(now, life)
        idle = any(
            not session.ended and session.last_at <= before for session in self.state.sessions.values()
        )
        if idle or outdated(self.state, now, life):
            operation_id = f"idle:{self.state.version}:{now.timestamp():.0f}"
            await self.execute(EndIdleSessions(), operation_id, actor="clock")

    async def _flush(self) -> None:
        """Write the access counts down. In the mailbox: a commit or a reload in between would count them twice."""
        async with self._mailbox:
            counts, tally = self.state.take_access(), self.state.take_counted()
            if not (counts or tally):
                return
            try:
                await self.around.ledger.touch(self.key, self.around.epoch, counts, tally)
            except HermesError:
                self.state.put_back_access(counts)
                self.state.put_back_counted(tally)
                raise
            self.state.count_access(counts)

    def close(self) -> None:
        """Let nothing begin any more, and let those go who wait."""
        self.closed = True
        self.watches.end(self.watches)

    async def sleep(self) -> None:
        """Let what runs beside end, close, and write down what is only in memory."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.close()
        await self._flush()


def _erasure(receipt: ErasureReceipt) -> dict[str, Any]:
    counts = ("memories", "vectors", "turns", "audit", "jobs", "profile_slots")
    return {"erased": {name: getattr(receipt, name) for name in counts}, "remaining": receipt.remaining}
