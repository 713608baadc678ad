"""Conversations through a host in simulated time, and through mem0 in a process of its own, before the same endpoint."""

from __future__ import annotations

import asyncio
import functools
import json
import tempfile
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from socket import socket
from typing import Any

from bench.extraction_calls.answers import OurAnswers, PeerAnswers
from bench.extraction_calls.recorder import DIMENSION, listening, recording, url_of
from bench.extraction_calls.talks import BETWEEN_SESSIONS_S, DataSet, Post, Talk, exchanges, pauses
from bench.peers.venv import Call, environment
from bench.report import ROOT
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.commands import Incoming, Ingest
from hermes_memory.app.desk import Policy
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.candidate import ExtractionRequest, Usage
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.ports.ledger import Ledger
from hermes_memory.runtime.host import HostRules, UserHost
from hermes_memory.testing.sim_clock import SimClock
from hermes_memory.wiring import (
    build_distiller,
    build_embedder,
    build_ledger,
    build_policy,
    host_rules,
    let_go,
)

PATIENCE_S = 60.0  # of real time, for one batch
LOOPS = 12  # of the event loop, for a chain of tasks that wake each other
AFTER_S = 600.0  # simulated, until the last batch has closed
# Nothing here bears on how turns are gathered into batches: nobody falls asleep, and the clock has less to wake.
QUIET = {
    "ledger": {"synchronous": "NORMAL"},
    "actors": {"lease_s": 1e6, "housekeeping_s": 1e6, "idle_s": 1e9},
}
MODEL = "recorded"


class Pace(StrEnum):
    """How messages arrive."""

    EXCHANGES = "an exchange in each post"
    SESSIONS = "a session in one post"


@dataclass(slots=True)
class Played:
    """What a replay came to."""

    system: str
    data: str
    pace: Pace
    turns: int
    user_turns: int
    adds: int = 0
    calls: list[Call] = field(default_factory=list)
    stored: int = 0
    usage: Usage = field(default_factory=Usage)
    fell_back: int = 0
    version: str = ""


class Busy:
    """Counts the calls that are under way outside of simulated time: in the ledger's threads, at the endpoint."""

    def __init__(self) -> None:
        self.under_way = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def during(self, call: Awaitable[Any]) -> Any:
        """The call's result, counted while it is under way."""
        self.under_way += 1
        self.idle.clear()
        try:
            return await call
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.idle.set()

    async def settle(self) -> None:
        """Return once everyone waits for simulated time."""
        turns = 0
        while turns < LOOPS:
            await asyncio.sleep(0)
            turns += 1
            if self.under_way:
                await asyncio.wait_for(self.idle.wait(), PATIENCE_S)
                turns = 0

    async def pass_time(self, clock: SimClock, seconds: float) -> None:
        """Let simulated time pass, each step once what goes on outside of it has ended."""
        end = clock.now() + timedelta(seconds=seconds)
        await self.settle()
        while clock.now() < end:
            due = min((due for due, _, sleeper in clock._sleepers if not sleeper.done()), default=end)
            await clock.advance(max(0.0, (min(due, end) - clock.now()).total_seconds()))
            await self.settle()


class CountedLedger:
    """A ledger whose calls are seen by ``busy``."""

    def __init__(self, ledger: Ledger, busy: Busy) -> None:
        self._ledger, self._busy = ledger, busy

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._ledger, name)

        @functools.wraps(work)
        async def counted(*args: Any, **named: Any) -> Any:
            return await self._busy.during(work(*args, **named))

        return counted


class CountedDistiller:
    """A distiller whose work is seen by ``busy``; the endpoint is told what is being read."""

    def __init__(self, distiller: Distiller, busy: Busy, answers: OurAnswers, played: Played) -> None:
        self._distiller, self._busy, self._answers, self._played = distiller, busy, answers, played

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """As the distiller within does."""
        self._answers.request = request
        distilled: Distilled = await self._busy.during(self._distiller.distil(request))
        self._played.usage += distilled.extraction.usage
        self._played.fell_back += bool(distilled.extraction.fell_back)
        return distilled

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As the distiller within does."""
        vectors: Vectors = await self._busy.during(self._distiller.embed(texts))
        return vectors


def ours(
    data: DataSet,
    pace: Pace,
    answers: OurAnswers,
    *,
    delay_s: float | None = None,
    embedder: str | None = None,
) -> Played:
    """The conversations through a host, extracted by a chat model at the default micro-batch, or another ``delay_s``.

    ``embedder``: a kind with a calibration of its name, in place of the default.
    """
    name = "hermes" if delay_s is None else f"hermes, waiting {delay_s:g} s"
    played = Played(name, data.name, pace, data.turns, data.user_turns)
    bound = listening()
    asked: dict[str, Any] = {"kind": "openai", "base_url": url_of(bound), "model": MODEL}
    asked |= {} if delay_s is None else {"delay_s": delay_s}
    embedding = {} if embedder is None else {"embedder": {"kind": embedder, "calibration": embedder}}
    settings = load_settings(None, {**QUIET, **embedding, "extractor": asked})
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        parts = _Parts.of(settings, Path(folder))
        asyncio.run(_play(parts, bound, data, played, answers))
    return played


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a host is made of; files are read before the loop runs."""

    ledger: Ledger
    embedder: Embedder
    distiller: Distiller
    policy: Policy
    rules: HostRules

    @classmethod
    def of(cls, settings: Settings, folder: Path) -> _Parts:
        """As configured."""
        embedder = build_embedder(settings)
        return cls(
            build_ledger(settings, folder), embedder, build_distiller(settings, embedder), build_policy(settings),
            host_rules(settings),
        )  # fmt: skip


async def _play(parts: _Parts, bound: socket, data: DataSet, played: Played, answers: OurAnswers) -> None:
    busy, clock = Busy(), SimClock()
    distiller = CountedDistiller(parts.distiller, busy, answers, played)
    ledger: Any = CountedLedger(parts.ledger, busy)
    host = UserHost(
        "bench", ledger, distiller, parts.embedder.info, parts.policy, parts.rules, clock, PrometheusMetrics()
    )
    async with recording(answers, bound) as recorder:
        await host.start()
        try:
            for talk in data.talks:
                await _say(host, clock, busy, talk, played)
        finally:
            await host.stop()
            await let_go(parts.embedder, parts.distiller)
        played.calls = recorder.calls


async def _say(host: UserHost, clock: SimClock, busy: Busy, talk: Talk, played: Played) -> None:
    """One user's sessions; every job has to end as done."""
    key, waits = UserKey("bench", talk.user), pauses()
    jobs: list[str] = []
    for number, post, last in posts(talk, played.pace):
        messages = tuple(Incoming(role=Role(one.role), content=one.text) for one in post)
        command = Ingest(session_id=f"{talk.user}-{number}", messages=messages, timezone="UTC")
        accepted = await host.execute(key, command, f"post-{len(jobs)}")
        jobs.append(accepted["job_id"])
        await busy.pass_time(clock, BETWEEN_SESSIONS_S if last else next(waits))
    await busy.pass_time(clock, AFTER_S)
    played.adds += len(jobs)
    for job in jobs:
        record = await host.wait(key, job, 0.0)
        if record is None or record["status"] != "done":
            raise RuntimeError(f"a job has not ended as done: {record and record['status']}")
        played.stored += len(record["changes"])


def posts(talk: Talk, pace: Pace) -> Iterator[tuple[int, Post, bool]]:
    """What is sent at once: the session's number, the messages, whether they are its last."""
    for number, session in enumerate(talk.sessions):
        parts = [session] if pace is Pace.SESSIONS else list(exchanges(session))
        for part in parts:
            yield number, part, part is parts[-1]


async def peer(python: Path, data: DataSet, pace: Pace, answers: PeerAnswers) -> Played:
    """The same posts through mem0's ``add``.

    Raises:
        RuntimeError: it ended with an error.
    """
    played = Played("mem0", data.name, pace, data.turns, data.user_turns)
    lines = [
        json.dumps({"user": talk.user, "messages": [{"role": one.role, "content": one.text} for one in post]})
        for talk in data.talks
        for _, post, _ in posts(talk, pace)
    ]
    async with recording(answers) as recorder:
        recorder.announced = answers.announce
        process = await asyncio.create_subprocess_exec(
            python, "-m", "bench.peers.mem0_replay", recorder.url, str(DIMENSION),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd=ROOT, env=environment(),
        )  # fmt: skip
        out, err = await process.communicate("\n".join(lines).encode())
        if process.returncode:
            raise RuntimeError(f"mem0 ended with {process.returncode}: {err.decode()[-500:]}")
        said = json.loads(out.decode().splitlines()[-1])
        played.adds, played.stored, played.version = said["adds"], said["stored"], said["version"]
        played.calls = recorder.calls
    return played
