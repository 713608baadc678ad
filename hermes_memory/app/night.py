"""The night over all users (SPEC §9, ARCHITECTURE §6): shard by shard, page by page, each user in their own actor.

Nothing here writes a user's state. What was done is kept in notes of the ledger after each page, so that a run that
was ended anywhere goes on there and ends with the same report. A user's night has an operation id by the date: asked
again, it answers as the first time.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from hermes_memory.app.commands import Aggregate, Maintain
from hermes_memory.app.users import Users
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.night_sums import NightSums, Numbers
from hermes_memory.core.quality import window_start
from hermes_memory.errors import HermesError
from hermes_memory.ports.ledger import Ledger

EVERYWHERE = ""  # the namespace of notes about the product as a whole
NAMESPACES = "namespaces"  # the note of those that a night has seen users of
NOBODY: Numbers = {"users": 0, "memories": 0, "tally": {}}
MOST_FAILED = 1_000  # users of a shard that are named for another try; the others are counted alone


class Outrun(HermesError):
    """Another run has taken over this part of the night; this one must let go."""

    code = "outrun"

    def __str__(self) -> str:
        return "another run has taken over this part of the night"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How fast a night goes.

    Args:
        page: Users between two checkpoints.
        in_flight: Users of a shard at once.
        shards: Parts of the users: a power of two up to 16.
        share: Of the time, how much a place among those at once may take from the hosts; it rests for the others,
            but no longer than ``backoff_most_s``.
        deadline_s: How long a user who cannot be reached is tried before the next one's turn.
        backoff_s: The first pause between two tries; it doubles, up to ``backoff_most_s``.
    """

    page: int
    in_flight: int
    shards: int
    share: float
    deadline_s: float
    backoff_s: float
    backoff_most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRun:
    """One night: its name, the moment it is about, and the first day whose counts matter (ISO, UTC)."""

    date: str
    now: datetime
    since: str
    shards: int

    def note(self, part: str) -> str:
        """The name of one of its notes."""
        return f"night/{self.date}/{part}"


@dataclass(slots=True)
class Checkpoint:
    """How far a shard is. ``failed`` are those to be tried again, ``lost`` counts those that are given up."""

    by: str
    after: str = ""
    seen: int = 0
    finished: bool = False
    failed: list[str] = field(default_factory=list)
    lost: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    sums: NightSums = field(default_factory=NightSums)
    revision: int = 0

    def dump(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "by": self.by, "after": self.after, "seen": self.seen, "finished": self.finished,
            "failed": self.failed, "lost": self.lost, "reasons": dict(sorted(self.reasons.items())),
            "sums": self.sums.dump(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardProgress:
    """How far a shard is: users seen, and of these those who could not be reached so far."""

    shard: int
    seen: int
    failed: int
    finished: bool


class Closing(Protocol):
    """What is done for a namespace once the sums over its users are known."""

    async def __call__(self, namespace: str, sums: Numbers, run: NightRun) -> dict[str, Any]:
        """Its part of the report, JSON-ready. Done twice with the same sums, the end is the same."""
        ...


Told = Callable[[ShardProgress], None]
Sleep = Callable[[float], Awaitable[None]]


class Night:
    """One driver of a night; several may share the shards, and each may be ended at any time.

    Args:
        closing: See ``Closing``.
        told: Learns how far a shard is after each page.
        sleep: Waits seconds.
        chance: A number in [0, 1) that spreads the pauses.
    """

    def __init__(
        self,
        ledger: Ledger,
        users: Users,
        pacing: Pacing,
        closing: Closing,
        *,
        window_days: int,
        told: Told = lambda _: None,
        sleep: Sleep = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._ledger, self._users, self._pacing, self._closing = ledger, users, pacing, closing
        self._window_days, self._told, self._sleep = window_days, told, sleep
        self._monotonic, self._chance = monotonic, chance
        self._id = uuid.uuid4().hex

    async def run(self, date: str, now: datetime) -> dict[str, Any]:
        """The whole night in this process; the report."""
        run = await self.open(date, now)
        for number in range(run.shards):
            await self.shard(run, number)
        return await self.finish(run)

    async def open(self, date: str, now: datetime) -> NightRun:
        """The night of that date: as it was begun, or begun with this ``now``."""
        since = window_start(now, self._window_days)
        first: dict[str, Any] = {
            "now": now.astimezone(UTC).isoformat(),
            "since": since,
            "shards": self._pacing.shards,
        }
        name = f"night/{date}/run"
        await self._ledger.put_note(EVERYWHERE, name, first, expected=0)
        note = await self._ledger.note(EVERYWHERE, name)
        begun: dict[str, Any] = first if note is None else note.value
        return NightRun(
            date=date, now=datetime.fromisoformat(begun["now"]), since=begun["since"], shards=begun["shards"]
        )

    async def report(self, run: NightRun) -> dict[str, Any] | None:
        """The report of a night that is over."""
        note = await self._ledger.note(EVERYWHERE, run.note("report"))
        return None if note is None else dict(note.value)

    async def progress(self, run: NightRun, number: int) -> ShardProgress:
        """How far a shard was at its last checkpoint, whoever works on it."""
        return _progress(number, await self._checkpoint(run, number))

    # a shard

    async def shard(self, run: NightRun, number: int) -> Checkpoint:
        """See to every user of a shard, from where it was left; those who could not be reached once more at the end.

        Raises:
            Outrun: another driver took the shard.
            LedgerUnavailable: for longer than the deadline.
        """
        at: Checkpoint = await self._patiently(lambda: self._claimed(run, number))
        self._tell(number, at)
        while not at.finished:
            page = await self._patiently(
                lambda: self._ledger.users(None, at.after, self._pacing.page, (number, run.shards))
            )
            if page:
                await self._page(run, page, at)
                at.after, at.seen = str(page[-1]), at.seen + len(page)
            else:
                again, at.failed, at.reasons = [UserKey.parse(text) for text in at.failed], [], {}
                await self._page(run, again, at)
                at.lost, at.failed, at.finished = at.lost + len(at.failed), [], True
            await self._keep(run, number, at)
            self._tell(number, at)
        return at

    async def _claimed(self, run: NightRun, number: int) -> Checkpoint:
        """The shard as it was left, taken from whoever may still be at it."""
        at = await self._checkpoint(run, number)
        if not at.finished:
            at.by = self._id
            await self._keep(run, number, at)
        return at

    async def _checkpoint(self, run: NightRun, number: int) -> Checkpoint:
        note = await self._ledger.note(EVERYWHERE, run.note(f"shard-{number:02d}"))
        if note is None:
            return Checkpoint(self._id)
        return Checkpoint(
            **{**note.value, "sums": NightSums.load(note.value["sums"])}, revision=note.revision
        )

    async def _keep(self, run: NightRun, number: int, at: Checkpoint) -> None:
        name, value = run.note(f"shard-{number:02d}"), at.dump()

        async def put() -> None:
            if not await self._ledger.put_note(EVERYWHERE, name, value, expected=at.revision):
                kept = await self._ledger.note(EVERYWHERE, name)
                if kept is None or kept.value != value:  # else it was kept, and the answer lost
                    raise Outrun

        await self._patiently(put)
        at.revision += 1

    def _tell(self, number: int, at: Checkpoint) -> None:
        self._told(_progress(number, at))

    # users

    async def _page(self, run: NightRun, keys: Sequence[UserKey], at: Checkpoint) -> None:
        """See to these users, some at a time; what came of it goes into ``at`` once all are through."""
        waiting = iter(keys)

        async def place() -> None:
            for key in waiting:
                began = self._monotonic()
                outcomes[str(key)] = await self._user(run, key)
                busy_s = self._monotonic() - began
                rest_s = busy_s * (1 / self._pacing.share - 1)
                # A host that was away for a while was not at work all that time.
                await self._sleep(min(rest_s, self._pacing.backoff_most_s))

        outcomes: dict[str, _Outcome] = {}
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._pacing.in_flight, len(keys))):
                group.create_task(place())
        for key in keys:
            outcome = outcomes[str(key)]
            if outcome.failed is None:
                at.sums.add(key.namespace, outcome.answer, outcome.aggregate, outcome.seconds)
                continue
            at.reasons[outcome.failed] = at.reasons.get(outcome.failed, 0) + 1
            if len(at.failed) < MOST_FAILED:
                at.failed.append(str(key))
            else:
                at.lost += 1

    async def _user(self, run: NightRun, key: UserKey) -> _Outcome:
        """One user's night; a user who cannot be reached is no reason to end everybody's."""
        operation_id = f"night:{digest(run.date, str(key))}"
        began = self._monotonic()
        try:
            answer = await self._patiently(
                lambda: self._users.execute(key, Maintain(now=run.now), operation_id)
            )
            aggregate = await self._patiently(lambda: self._users.ask(key, Aggregate(since=run.since)))
        except HermesError as error:
            return _Outcome(failed=error.code)
        nothing: dict[str, Any] = {"changes": []}  # None: the user was erased since this was first answered
        return _Outcome(answer=answer or nothing, aggregate=aggregate, seconds=self._monotonic() - began)

    async def _patiently(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Again after what another try may get over, until the deadline; as late as the other side asks for."""
        until, pause_s = self._monotonic() + self._pacing.deadline_s, self._pacing.backoff_s
        while True:
            try:
                return await work()
            except HermesError as error:
                asked_s = max(getattr(error, "after_s", 0.0), getattr(error, "retry_after_s", 0.0))
                wait_s = max(asked_s, pause_s * (0.5 + self._chance()))
                if not error.retryable or self._monotonic() + wait_s > until:
                    raise
            await self._sleep(wait_s)
            pause_s = min(pause_s * 2, self._pacing.backoff_most_s)

    # the end

    async def finish(self, run: NightRun) -> dict[str, Any]:
        """After all shards: what concerns all users of a namespace, and the report; the same one if there is one."""
        done: dict[str, Any] | None = await self._patiently(lambda: self.report(run))
        if done is not None:
            await self._forget_parts(run)
            return done
        shards = [await self._patiently(lambda n=n: self._checkpoint(run, n)) for n in range(run.shards)]  # type: ignore[misc]  # bound now
        if not all(shard.finished for shard in shards):
            raise Outrun
        sums, reasons = NightSums(), NightSums().changes
        for shard in shards:
            sums.merge(shard.sums)
            reasons.update(shard.reasons)
        done = await self._patiently(lambda: self.report(run))
        if done is not None:  # another driver was first, and may have taken out what the sums need
            return done
        names = await self._patiently(lambda: self._namespaces(sums.spaces))
        spaces = {name: await self._closing(name, sums.spaces.get(name, NOBODY), run) for name in names}
        report = {
            "date": run.date, "now": run.now.isoformat(), "since": run.since, "shards": run.shards,
            "users": {
                "seen": sum(shard.seen for shard in shards), "done": sums.done, "empty": sums.empty,
                "paused": sums.paused, "failed": sum(shard.lost for shard in shards),
            },
            "failures": dict(sorted(reasons.items())),
            **{name: of for name, of in sums.dump().items() if name not in {"done", "empty", "paused", "spaces"}},
            "namespaces": spaces,
        }  # fmt: skip
        await self._patiently(
            lambda: self._ledger.put_note(EVERYWHERE, run.note("report"), report, expected=0)
        )
        await self._forget_parts(run)
        return dict(await self._patiently(lambda: self.report(run)) or report)

    async def _namespaces(self, seen: Iterable[str]) -> list[str]:
        """Those with users, and those that had some on an earlier night: what was kept of these must go with them."""
        note = await self._ledger.note(EVERYWHERE, NAMESPACES)
        before = [] if note is None else note.value
        names = sorted({*before, *seen})
        if names != before:
            await self._ledger.put_note(EVERYWHERE, NAMESPACES, names)
        return names

    async def _forget_parts(self, run: NightRun) -> None:
        """Take out of the checkpoints what members added to a cohort: few are too few to be told of (S2 §7.2)."""
        for number in range(run.shards):
            at = await self._patiently(lambda n=number: self._checkpoint(run, n))  # type: ignore[misc]  # bound now
            parts = [of.pop("cohort", None) for of in at.sums.spaces.values()]
            if any(parts):
                name, value = run.note(f"shard-{number:02d}"), at.dump()
                await self._patiently(lambda n=name, v=value: self._ledger.put_note(EVERYWHERE, n, v))  # type: ignore[misc]


def _progress(number: int, at: Checkpoint) -> ShardProgress:
    failed = len(at.failed) + at.lost
    return ShardProgress(shard=number, seen=at.seen, failed=failed, finished=at.finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of one user's night; ``failed`` is a code."""

    answer: dict[str, Any] = field(default_factory=dict)
    aggregate: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    failed: str | None = None
