"""Feeds the long-term index from the outbox of the users of one host (ARCHITECTURE §3).

At least once, in order for each user, users apart. While the index does not answer everything waits in the ledger;
what it will never take is set aside as a dead letter, where operators see it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hermes_memory.app.indexing import Brought, Indexing
from hermes_memory.app.state import Words
from hermes_memory.core.failures import told
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import EmbedderMismatch, HermesError, IndexUnavailable, LedgerUnavailable
from hermes_memory.ports.clock import Clock
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger, OutboxEntry
from hermes_memory.ports.metrics import Metrics
from hermes_memory.runtime.recent_writes import RecentWrites
from hermes_memory.runtime.resting import Resting

log = logging.getLogger(__name__)

PAGE = 200  # users that are listed at once
# A Weaviate that is killed may lose vectors that it took in the tenth of a second before (docs/reference/weaviate.md).
KEPT_AFTER_S = 10.0
DROP = "drop"
FAILED = "failed"  # the reason of a dead letter whose error has no code
_OUTAGES = (IndexUnavailable, LedgerUnavailable, EmbedderMismatch)  # no entry is to blame


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRules:
    """How the index is fed. Times in seconds of the host's clock.

    ``batch`` entries of a user are read and written together, ``together`` users are fed at once. After a nudge
    others have ``linger_s`` to join in; without one the host looks every ``pause_s``. An entry that fails
    ``attempts`` times while the index answers is set aside. Pauses after failures double from ``backoff_s`` up to
    ``backoff_max_s``.
    """

    batch: int
    together: int
    linger_s: float
    pause_s: float
    attempts: int
    backoff_s: float
    backoff_max_s: float

    def backoff(self, failures: int) -> float:
        """The pause after so many failures in a row, the first being 1."""
        return float(min(self.backoff_max_s, self.backoff_s * 2 ** min(failures - 1, 32)))


@dataclass(slots=True)
class _Trouble:
    """A user whose entries fail: how often in a row, and when it is tried again."""

    failures: int
    until: datetime


class Feeder:
    """Brings the index to say what the ledger says of the users that ``owns`` names.

    Args:
        awake: Whether a user is in use here; the index lets go of those that were fed and are not.
    """

    def __init__(
        self,
        ledger: Ledger,
        index: VectorIndex,
        words: Words,
        rules: FeedRules,
        clock: Clock,
        metrics: Metrics,
        owns: Callable[[UserKey], bool] = lambda _: True,
        awake: Callable[[UserKey], bool] = lambda _: True,
    ) -> None:
        self._ledger, self._index, self._rules, self._clock = ledger, index, rules, clock
        self._metrics, self._owns, self._awake = metrics, owns, awake
        self._indexing = Indexing(ledger, index, words, rules.batch)
        self._resting = Resting(index, lambda key: awake(key) or key in self._nudged)
        self._something = asyncio.Event()
        self._nudged: dict[UserKey, None] = {}
        self._trouble: dict[UserKey, _Trouble] = {}
        self._attempts: Counter[tuple[UserKey, str]] = Counter()
        self._outages = 0  # in a row
        self._recent, self._may_have_lost = RecentWrites(), False
        self.down = True  # until the index has answered once

    def nudge(self, key: UserKey) -> None:
        """A commit of the user has something for the index."""
        self._nudged[key] = None
        self._something.set()

    def rest(self, key: UserKey) -> None:
        """The user was put to sleep: the index may let go of what it keeps in memory for it."""
        self._resting.add(key)

    async def run(self) -> None:
        """Feed for ever; ends by being cancelled. The ledger is open, the index is opened here."""
        resting = asyncio.create_task(self._resting.run())
        try:
            await self._answers(self._index.open)
            await self._feed_for_ever()
        finally:
            resting.cancel()
            await asyncio.gather(resting, return_exceptions=True)

    async def _feed_for_ever(self) -> None:
        due = self._clock.now()
        while True:
            try:
                if self._clock.now() >= due:
                    await self.see_that_it_kept()
                    await self.feed_all()
                    due = self._clock.now() + timedelta(seconds=self._rules.pause_s)
                else:
                    await self.feed_nudged()
                self._outages = 0
            except _OUTAGES as error:
                await self._outlast(error)
                due = self._clock.now()
            except Exception as error:  # noqa: BLE001
                log.error("feeding the index failed: %s", told(error))
                await self._clock.sleep(self._rules.backoff_s)
            await self._wait((due - self._clock.now()).total_seconds())

    async def feed_all(self) -> None:
        """Feed every user of this host that has something waiting, page by page.

        Raises IndexUnavailable, LedgerUnavailable or EmbedderMismatch when going on is of no use now.
        """
        self._nudged.clear()
        after = ""
        while page := await self._ledger.outbox_users(after, PAGE):
            await self._feed(key for key in page if self._owns(key))
            after = str(page[-1])

    async def feed_nudged(self) -> None:
        """Feed the users that were nudged; raises as ``feed_all``."""
        nudged, self._nudged = self._nudged, {}
        await self._feed(nudged)

    async def see_that_it_kept(self) -> None:
        """Give the index again what it took just before it was away; ask whether it is there while that is fresh.

        Raises as ``feed_all``.
        """
        if self._may_have_lost:
            for key, memory_ids in self._recent.by_user():
                if self._owns(key):
                    await self._again(key, memory_ids)
            self._may_have_lost = False
        elif self._recent:
            await self._index.ping()
        self._recent.forget(self._clock.now() - timedelta(seconds=KEPT_AFTER_S))

    async def _again(self, key: UserKey, memory_ids: Sequence[str]) -> None:
        self._indexing.doubt(key, memory_ids)
        try:
            for start in range(0, len(memory_ids), self._rules.batch):
                await self._indexing.bring(key, memory_ids[start : start + self._rules.batch])
        except _OUTAGES:
            raise
        except Exception as error:  # noqa: BLE001 - one user's trouble is noted and keeps nobody waiting
            self._in_trouble(key, error)
        else:
            self._recent.note(key, memory_ids, self._clock.now())

    # one user

    async def _feed(self, keys: Iterable[UserKey]) -> None:
        """Some users at a time; who is in trouble waits, and keeps nobody else waiting."""
        slots, outages = asyncio.Semaphore(self._rules.together), list[Exception]()

        async def one(key: UserKey) -> None:
            async with slots:
                if not outages:  # the others need not find out one by one
                    try:
                        await self._feed_one(key)
                    except _OUTAGES as error:
                        outages.append(error)

        now = self._clock.now()
        ready = [key for key in keys if key not in self._trouble or self._trouble[key].until <= now]
        await asyncio.gather(*(one(key) for key in ready))
        if outages:
            raise outages[0]

    async def _feed_one(self, key: UserKey) -> None:
        try:
            await self._until_dry(key)
        except IndexUnavailable as error:
            await self._index.ping()  # or else it is not only this user's trouble
            self._in_trouble(key, error)
        except (LedgerUnavailable, EmbedderMismatch):
            raise
        except Exception as error:  # noqa: BLE001 - one user's trouble is noted and keeps nobody waiting
            self._in_trouble(key, error)
        else:
            self._trouble.pop(key, None)
            if not self._awake(key):
                self._resting.add(key)

    def _in_trouble(self, key: UserKey, error: Exception) -> None:
        failures = self._trouble[key].failures + 1 if key in self._trouble else 1
        pause_s = self._rules.backoff(failures)
        self._trouble[key] = _Trouble(failures, self._clock.now() + timedelta(seconds=pause_s))
        log.warning("what %s has for the index failed: %s", key.hashed, told(error))

    async def _until_dry(self, key: UserKey) -> None:
        while entries := await self._ledger.read_outbox(key, self._rules.batch):
            last_drop = max((n for n, entry in enumerate(entries, 1) if entry.op == DROP), default=0)
            if last_drop:  # what stands before it is gone with it
                await self._indexing.empty(key)
                await self._done(key, entries[:last_drop])
            if last_drop < len(entries):
                await self._deliver(key, entries[last_drop:])
            if len(entries) < self._rules.batch:
                return

    async def _deliver(self, key: UserKey, entries: Sequence[OutboxEntry]) -> None:
        """Bring what the entries name; each memory by itself when they cannot be brought together."""
        by_memory: dict[str, list[OutboxEntry]] = {}
        for entry in entries:
            by_memory.setdefault(entry.memory_id, []).append(entry)
        try:
            await self._settle(key, entries, await self._indexing.bring(key, list(by_memory)))
        except _OUTAGES:
            raise
        except Exception as error:  # noqa: BLE001 - raised again, or it becomes a dead letter
            if len(by_memory) == 1:
                await self._failed(key, entries, error)
            else:
                await self._deliver_apart(key, list(by_memory.values()))

    async def _deliver_apart(self, key: UserKey, groups: Sequence[Sequence[OutboxEntry]]) -> None:
        """One memory after the other, all of them; raises the first failure in the end."""
        failures = []
        for group in groups:
            try:
                await self._deliver(key, group)
            except _OUTAGES:
                raise
            except Exception as error:  # noqa: BLE001 - the first is raised below
                failures.append(error)
        if failures:
            raise failures[0]

    async def _failed(self, key: UserKey, entries: Sequence[OutboxEntry], error: Exception) -> None:
        """Raise it again to have it tried again, or give up on this memory."""
        attempt = key, entries[0].memory_id
        self._attempts[attempt] += 1
        if self._attempts[attempt] < self._rules.attempts:
            raise error
        await self._bury(key, entries, code_of(error))

    # what becomes of entries

    async def _settle(self, key: UserKey, entries: Sequence[OutboxEntry], brought: Brought) -> None:
        """Forget what was delivered, and older dead letters of the same memories; set aside what was refused."""
        for reason in sorted(set(brought.refused.values())):
            of = [entry for entry in entries if brought.refused.get(entry.memory_id) == reason]
            await self._bury(key, of, reason)
        delivered = [entry for entry in entries if entry.memory_id not in brought.refused]
        ids = {entry.memory_id for entry in delivered}
        self._recent.note(key, ids, self._clock.now())
        dead = await self._ledger.read_outbox(key, self._rules.batch, buried=True)
        if settled := [entry.seq for entry in dead if entry.memory_id in ids]:
            await self._ledger.ack_outbox(key, settled)
        await self._done(key, delivered)

    async def _done(self, key: UserKey, entries: Sequence[OutboxEntry]) -> None:
        if not entries:
            return
        await self._ledger.ack_outbox(key, [entry.seq for entry in entries])
        for op, count in Counter(entry.op for entry in entries).items():
            self._metrics.count("hermes_outbox_delivered_total", count, op=op)
        for entry in entries:
            self._attempts.pop((key, entry.memory_id), None)

    async def _bury(self, key: UserKey, entries: Sequence[OutboxEntry], reason: str) -> None:
        if not entries:
            return
        await self._ledger.bury_outbox(key, [entry.seq for entry in entries], reason)
        self._metrics.count("hermes_outbox_buried_total", len(entries), reason=reason)
        log.warning("the index will not take a memory of %s: %s", key.hashed, reason)
        for entry in entries:
            self._attempts.pop((key, entry.memory_id), None)

    # outages

    async def _outlast(self, error: HermesError) -> None:
        """Wait until index and ledger answer again, ever longer."""
        if not self.down:
            log.warning("the index is not fed for now: %s", error.code)
        self.down = True
        self._may_have_lost |= isinstance(error, IndexUnavailable)
        await self._pause()
        await self._answers(self._index.ping)

    async def _answers(self, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await ask()
            except _OUTAGES:
                await self._pause()
            except Exception as error:  # noqa: BLE001
                log.error("the index cannot be used: %s", told(error))
                await self._pause()
            else:
                break
        log.info("the index answers")
        self.down = False

    async def _pause(self) -> None:
        self._outages += 1
        await self._clock.sleep(self._rules.backoff(self._outages))

    async def _wait(self, seconds: float) -> None:
        """Until somebody nudges, or the time is over."""
        if seconds > 0 and not self._something.is_set():
            waiting = [
                asyncio.ensure_future(self._clock.sleep(seconds)),
                asyncio.ensure_future(self._something.wait()),
            ]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waiting:
                    task.cancel()
        if self._something.is_set():
            self._something.clear()
            await self._clock.sleep(self._rules.linger_s)


def code_of(error: Exception) -> str:
    """A code for people who operate it; never the text of an error, which may quote content."""
    return error.code if isinstance(error, HermesError) else FAILED
