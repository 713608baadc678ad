"""Hosts on one ledger in simulated time, with a distiller that does as it is told."""

from __future__ import annotations

import asyncio
import functools
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.commands import Incoming, Ingest, ListMemories, Recall
from hermes_memory.core.candidate import Candidate, Extraction, ExtractionRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role, Turn
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import EmbedderInfo, Vectors
from hermes_memory.ports.ledger import Commit, Receipt, Snapshot
from hermes_memory.runtime.active import ActiveUser
from hermes_memory.runtime.extraction import BatchRules
from hermes_memory.runtime.host import HostRules, UserHost
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.testing.builders import EMBEDDER, KEY
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan, FaultyLedger
from hermes_memory.testing.sim_clock import SimClock
from tests.small_world import a_candidate, policy, vector, vectors, words

T = TypeVar("T")

POLICY = policy()  # read from its file here: inside an event loop that would block
ENOUGH_TURNS = 12  # of the loop, for a chain of tasks that wake each other
PATIENCE_S = 10.0  # of real time; what is waited for takes milliseconds

BATCH = BatchRules(
    turns=3, chars=100, delay_s=5.0, context_turns=4, known=8, attempts=3, backoff_s=2.0, parked_retry_s=900.0
)  # fmt: skip
RULES = HostRules(
    idle_s=3_600.0,
    memory_budget_bytes=10**9,
    lease_s=30.0,
    housekeeping_s=10.0,
    max_waiting=8,
    max_in_flight=1_000,
    batch=BATCH,
)


async def until(true: Callable[[], object]) -> None:
    """Yield until ``true()``: the ledger works on threads of its own."""
    give_up = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < give_up, "it never came true"
        await asyncio.sleep(0)


async def soon(work: asyncio.Task[Any]) -> Any:
    """The result of a task that needs no more simulated time."""
    done, _ = await asyncio.wait({work}, timeout=PATIENCE_S)
    assert done, "it never ended"
    return work.result()


def about_pets(turn: Turn) -> tuple[Candidate, ...]:
    """One memory for each user turn; pets live side by side."""
    return (a_candidate(turn, dimension="pet"),) if turn.role is Role.USER else ()


@dataclass
class Distiller:
    """Proposes what ``propose`` says for each turn. ``open`` lets it answer; ``failures`` come first."""

    propose: Callable[[Turn], tuple[Candidate, ...]] = about_pets
    open: asyncio.Event = field(default_factory=asyncio.Event)
    failures: list[Exception] = field(default_factory=list)
    requests: list[ExtractionRequest] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    def __post_init__(self) -> None:
        self.open.set()

    @property
    def read(self) -> list[list[str]]:
        """The contents of each batch."""
        return [[turn.content for turn in request.turns] for request in self.requests]

    async def distil(self, request: ExtractionRequest) -> Distilled:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1
        if self.failures:
            raise self.failures.pop(0)
        found = tuple(candidate for turn in request.turns for candidate in self.propose(turn))
        return Distilled(
            Extraction(extractor="test-1", candidates=found), vectors(one.content for one in found)
        )

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return vectors(texts)


class Counts:
    """Metrics as a Counter."""

    def __init__(self) -> None:
        self.of: defaultdict[str, float] = defaultdict(float)
        self.told: defaultdict[tuple[str, ...], float] = defaultdict(float)  # with the labels' values

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.of[name] += amount
        self.told[name, *labels.values()] += amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.of[name] += 1

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.of[name] = value


class Watched:
    """A ledger whose commits can be held up; counts calls, notes every version that a commit gave."""

    def __init__(self, store: SqliteLedger, faulty: FaultyLedger) -> None:
        self.store, self.faulty = store, faulty
        self.let = asyncio.Event()
        self.let.set()
        self.calls: Counter[str] = Counter()
        self.under_way = 0  # calls, without those that are held up
        self.idle = asyncio.Event()
        self.versions: list[int] = []
        self.unreadable: set[UserKey] = set()

    async def commit(self, commit: Commit) -> Receipt:
        self.calls["commit"] += 1
        await self.let.wait()
        receipt = await self._counted(self.faulty.commit(commit))
        if not receipt.replayed:
            self.versions.append(receipt.version)
        return receipt

    async def activate(self, key: UserKey, epoch: int) -> Snapshot:
        self.calls["activate"] += 1
        if key in self.unreadable:
            raise ValueError("a row that nobody can read")
        return await self._counted(self.faulty.activate(key, epoch))

    async def _counted(self, call: Awaitable[T]) -> T:
        self.under_way += 1
        self.idle.clear()
        try:
            return await call
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.idle.set()

    def __getattr__(self, name: str) -> Any:
        work = getattr(self.faulty, name)

        @functools.wraps(work)
        async def counted(*args: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return await self._counted(work(*args, **named))

        return counted


class World:
    """One store, one clock, and as many hosts as a test starts."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hermes.db"
        self.clock = SimClock()
        self.distiller = Distiller()
        self.counts = Counts()
        self.plan = FaultPlan()
        self.ledgers: dict[str, Watched] = {}
        self.hosts: list[UserHost] = []
        self._numbers = itertools.count()

    def host(self, name: str = "a", *, batch: dict[str, Any] | None = None, **changes: Any) -> UserHost:
        """A host that is not started. ``changes`` are host rules, or ``share``, ``policy`` and ``embedder``."""
        share = changes.pop("share", None)
        with_policy, embedder = changes.pop("policy", POLICY), changes.pop("embedder", EMBEDDER)
        distiller = changes.pop("distiller", self.distiller)
        rules = replace(RULES, **changes, batch=replace(BATCH, **(batch or {})))
        store = SqliteLedger(self.path, synchronous="NORMAL")
        ledger: Any = Watched(store, FaultyLedger(store, self.plan, self.clock))
        self.ledgers[name] = ledger
        info: EmbedderInfo = embedder
        made = UserHost(name, ledger, distiller, info, with_policy, rules, self.clock, self.counts, share)
        self.hosts.append(made)
        return made

    async def start(self, name: str = "a", **changes: Any) -> UserHost:
        made = self.host(name, **changes)
        await made.start()
        return made

    async def stop(self, host: UserHost) -> None:
        self.hosts.remove(host)
        await host.stop()

    async def crash(self, host: UserHost) -> None:
        """Everything of the host ends as it stands: nothing is written down."""
        self.hosts.remove(host)
        tasks = [*host._loops]
        for awake in host._awake.values():
            tasks += [task for task in (awake.extraction._task, *awake.user._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await host._ledger.close()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in steps, so that work on the ledger's threads keeps up with it."""
        end = self.clock.now() + timedelta(seconds=seconds)
        await self.settle()
        while self.clock.now() < end:
            due = min((due for due, _, sleeper in self.clock._sleepers if not sleeper.done()), default=end)
            await self.clock.advance(max(0.0, (min(due, end) - self.clock.now()).total_seconds()))
            await self.settle()

    async def settle(self) -> None:
        """Yield until nothing is under way in the ledgers' threads and everyone waits for something."""
        turns = 0
        while turns < ENOUGH_TURNS:
            await asyncio.sleep(0)
            turns += 1
            for ledger in self.ledgers.values():
                if ledger.under_way:
                    await ledger.idle.wait()
                    turns = 0

    def awake(self, host: UserHost, key: UserKey = KEY) -> ActiveUser:
        return host._awake[key].user

    async def memories(self, host: UserHost, key: UserKey = KEY) -> list[dict[str, Any]]:
        page = await host.ask(key, ListMemories(filters={}, limit=200))
        found: list[dict[str, Any]] = page["memories"]
        return found

    async def contents(self, host: UserHost, key: UserKey = KEY) -> set[str]:
        return {memory["content"] for memory in await self.memories(host, key)}

    async def say(self, host: UserHost, *texts: str, session: str = "s1", key: UserKey = KEY) -> str:
        """Say it without waiting; the job's id."""
        operation_id = f"say-{next(self._numbers)}"
        accepted: dict[str, str] = await host.execute(key, said(*texts, session=session), operation_id)
        return accepted["job_id"]

    async def remember(
        self, host: UserHost, *texts: str, session: str = "s1", key: UserKey = KEY
    ) -> dict[str, Any]:
        """Say it and wait until it is settled; the job's record."""
        job = await host.wait(key, await self.say(host, *texts, session=session, key=key), 60)
        assert job is not None
        assert job["status"] == "done", job
        return job

    def weather(self, rate: float, name: str = "a") -> None:
        """From now on calls to the host's ledger are refused at this rate."""
        self.ledgers[name].faulty._plan = FaultPlan(rates={Fault.FAIL_BEFORE: rate})


@asynccontextmanager
async def a_world(folder: Path) -> AsyncIterator[World]:
    world = World(folder)
    try:
        yield world
    finally:
        world.distiller.open.set()
        for name, ledger in world.ledgers.items():
            world.weather(0.0, name)
            ledger.let.set()
        for host in world.hosts:
            await host.stop()


def said(*texts: str, session: str = "s1", ids: Sequence[str | None] = ()) -> Ingest:
    """The command that takes in user messages."""
    named = [*ids, *[None] * (len(texts) - len(ids))]
    messages = tuple(Incoming(role=Role.USER, content=t, id=i) for t, i in zip(texts, named, strict=True))
    return Ingest(session_id=session, messages=messages, timezone="UTC")


def about(query: str, session: str | None = None) -> Recall:
    """A recall."""
    return Recall(query=query, vector=vector(query), words=words(query), session_id=session)


def users(host: UserHost) -> LocalUsers:
    return LocalUsers(host)
