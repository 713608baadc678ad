"""Random lives of some users against one promise: once the feeder has run dry, the index has what the ledger has.

Memories are added, changed, archived, superseded, deleted; users are erased and come back; ledger and index fail before
and after a call and deliver twice; the feeder dies at any moment, and an older one lives on beside it.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app.indexing import Indexing, indexed
from hermes_memory.app.reindexing import Reindexing
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Status
from hermes_memory.errors import IndexUnavailable, LedgerUnavailable
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import OutboxEntry
from hermes_memory.runtime.feeding import Feeder, FeedRules
from hermes_memory.testing.builders import EMBEDDER, NOW, a_commit, a_memory, a_vector
from hermes_memory.testing.faulty_index import FaultyIndex
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan, FaultyLedger
from hermes_memory.testing.sim_clock import SimClock
from tests.dict_index import DictIndex
from tests.runtime.world import Counts

USERS = [UserKey("app", name) for name in ("ann", "bob", "c/d")]
IDS = [f"m{number}" for number in range(5)]
REFUSED = IDS[-1]  # the index will never take it
RULES = FeedRules(
    batch=3, together=2, linger_s=0.01, pause_s=1.0, attempts=2, backoff_s=0.1, backoff_max_s=1.0
)
MOST_ROUNDS = 400
FAULTS = {Fault.FAIL_BEFORE: 0.05, Fault.FAIL_AFTER: 0.05, Fault.DUPLICATE: 0.05}

users = st.sampled_from(USERS)
some_ids = st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True)
statuses = st.sampled_from(list(Status))
seeds = st.integers(0, 2**16)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class StandsStill:
    """An index whose ``call``-th call waits until it may go on."""

    def __init__(self, inner: FaultyIndex, call: int) -> None:
        self._inner, self._left = inner, call
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._inner, name)

        async def called(*args: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.reached.set()
                await self.go.wait()
            return await work(*args, **more)

        return called


class Feeding(RuleBasedStateMachine):
    """The real ledger, an index in a dictionary, and the feeder; ``_truth`` is what was committed."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        self._numbers = itertools.count()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run(work)

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        self.clock, self.inner = SimClock(), DictIndex()
        self.store = SqliteLedger(Path(self._folder.name) / "ledger.db", synchronous="NORMAL")
        self._run(self.store.open(EMBEDDER))
        self.plan, self.index_plan = FaultPlan(seed, FAULTS), FaultPlan(seed + 1, FAULTS)
        self.ledger = FaultyLedger(self.store, self.plan, self.clock)
        self.index = FaultyIndex(self.inner, self.index_plan)
        self.index.refuses = {REFUSED: "too_large"}
        self.versions = dict.fromkeys(USERS, 0)
        self.truth: dict[UserKey, dict[str, Memory]] = {key: {} for key in USERS}
        self.feeder = self._a_feeder()

    def _a_feeder(self) -> Feeder:
        return Feeder(self.ledger, self.index, words, RULES, self.clock, Counts())

    def _commit(self, key: UserKey, memories: tuple[Memory, ...], deleted: tuple[str, ...] = ()) -> None:
        entries = [OutboxEntry(op="put", memory_id=memory.id) for memory in memories]
        entries += [OutboxEntry(op="remove", memory_id=memory_id) for memory_id in deleted]
        version = self.versions[key]
        commit = a_commit(
            version, key=key, operation_id=f"op-{next(self._numbers)}", memories=memories, deleted=deleted,
            vectors={memory.id: a_vector(next(self._numbers)) for memory in memories}, outbox=tuple(entries),
        )  # fmt: skip
        self._run(self.store.commit(commit))
        self.versions[key] = version + 1
        self.truth[key] |= {memory.id: memory for memory in memories}
        for memory_id in deleted:
            self.truth[key].pop(memory_id, None)

    @rule(key=users, ids=some_ids, status=statuses)
    def write(self, key: UserKey, ids: list[str], status: Status) -> None:
        text = f"text {next(self._numbers)}"
        archived = NOW if status is Status.ARCHIVED else None
        self._commit(
            key,
            tuple(
                a_memory(id=id_, user_id=key.user_id, status=status, archived_at=archived, content=text)
                for id_ in ids
            ),
        )

    @rule(key=users, ids=some_ids)
    def delete(self, key: UserKey, ids: list[str]) -> None:
        self._commit(key, (), tuple(ids))

    @rule(key=users)
    def erase(self, key: UserKey) -> None:
        operation = f"erase-{next(self._numbers)}"
        receipt = self._run(self.store.erase(key, self.versions[key], 1, operation, NOW))
        self.versions[key] = receipt.version
        self.truth[key] = {}

    @rule()
    def feed(self) -> None:
        with suppress(IndexUnavailable, LedgerUnavailable):
            self._run(self.feeder.feed_all())

    @rule(key=users, call=st.integers(1, 5), ids=some_ids, erased=st.booleans(), dies=st.booleans())
    def a_feeder_stands_still(
        self, key: UserKey, call: int, ids: list[str], erased: bool, dies: bool
    ) -> None:
        """Just before a call to the index; others act and feed meanwhile, and then it goes on, or dies."""
        self.write(key, ids, Status.ACTIVE)
        self._weather({})
        self._run(self._overtaken(key, call, ids, erased, dies))
        self._weather(FAULTS)
        self.feeder = self._a_feeder()

    async def _overtaken(self, key: UserKey, call: int, ids: list[str], erased: bool, dies: bool) -> None:
        standing = StandsStill(self.index, call)
        stands = Feeder(self.ledger, cast("VectorIndex", standing), words, RULES, self.clock, Counts())
        older = asyncio.create_task(_quiet(stands.feed_all()))
        await asyncio.wait(
            {older, asyncio.ensure_future(standing.reached.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        if erased:
            operation = f"erase-{next(self._numbers)}"
            receipt = await self.store.erase(key, self.versions[key], 1, operation, NOW)
            self.versions[key], self.truth[key] = receipt.version, {}
        memories = tuple(a_memory(id=id_, user_id=key.user_id) for id_ in ids)
        commit = a_commit(
            self.versions[key], key=key, operation_id=f"op-{next(self._numbers)}", memories=memories,
            vectors={id_: a_vector(next(self._numbers)) for id_ in ids},
            outbox=tuple(OutboxEntry(op="put", memory_id=id_) for id_ in ids),
        )  # fmt: skip
        await self.store.commit(commit)
        self.versions[key] += 1
        self.truth[key] |= {memory.id: memory for memory in memories}
        await _quiet(self._a_feeder().feed_all())
        if dies:
            older.cancel()
        standing.go.set()
        await asyncio.gather(older, return_exceptions=True)

    @rule()
    def rebuild(self) -> None:
        """`hermes reindex` may run at any time."""
        work = Reindexing(
            self.ledger, self.index, Indexing(self.ledger, self.index, words, 2), sleep=_no_time
        )
        with suppress(IndexUnavailable, LedgerUnavailable):
            self._run(work.rebuild())

    @rule()
    def run_dry(self) -> None:
        self._weather({})
        self._run(self._until_dry())
        self._check()
        self._weather(FAULTS)

    def _weather(self, rates: dict[Fault, float]) -> None:
        for plan in (self.plan, self.index_plan):
            plan._rates = rates

    async def _until_dry(self) -> None:
        for _ in range(MOST_ROUNDS):
            await self.clock.advance(RULES.backoff_max_s)
            await self.feeder.feed_all()
            if not await self.store.outbox_users("", 9):
                return
        raise AssertionError("it never ran dry")

    def _check(self) -> None:
        for key in USERS:
            wanted = {id_: memory for id_, memory in self.truth[key].items() if indexed(memory)}
            dead = {entry.memory_id for entry in self._run(self.store.read_outbox(key, 99, buried=True))}
            held = self.inner.of.get(key, {})
            assert held.keys() == wanted.keys() - {REFUSED}
            assert wanted.keys() & {REFUSED} <= dead
            documents = self._run(self.store.documents(key, list(wanted)))
            stored = {memory.id: vector for memory, vector in documents}
            for id_, document in held.items():
                assert document.archived is (wanted[id_].status is Status.ARCHIVED)
                assert document.words[: len(words(wanted[id_].content))] == words(wanted[id_].content)
                assert np.array_equal(document.vector, stored[id_])

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run_dry()
            self._run(self.store.close())
        self._loop.close()
        self._folder.cleanup()


async def _quiet(work: Coroutine[Any, Any, None]) -> None:
    with suppress(IndexUnavailable, LedgerUnavailable):
        await work


async def _no_time(seconds: float) -> None:
    await asyncio.sleep(0)


TestFeeding = Feeding.TestCase
TestFeeding.settings = settings(max_examples=25, stateful_step_count=20)
