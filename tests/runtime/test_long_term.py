"""A host with a long-term index: what is archived is searched there, and nothing depends on it (ARCHITECTURE §3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.app.commands import BringBack, Delete, EraseUser, Recall
from hermes_memory.app.state import own_words
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import LIVE, Status
from hermes_memory.errors import IndexUnavailable, InvalidInput, LeaseLost, LedgerUnavailable
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.long_term import LongTerm, SearchRules
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.testing.builders import KEY
from hermes_memory.testing.faulty_ledger import Fault, FaultPlan
from tests.runtime.world import World, a_world, about, until
from tests.small_world import policy, rules, words

BOB = UserKey("app", "bob")
LITTLE = policy(rules(capacity={"working": 2, "merge_above": 50}, fusion={"words": 0.0}))
SEARCH = SearchRules(nominations=50, timeout_s=30.0, failures=2, pause_s=5.0)
OUT = IndexUnavailable("no route")


class Index(ExactIndex):
    """An index that waits until it is let, and fails as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()
        self.let.set()
        self.failure: Exception | None = None
        self.asked: list[tuple[UserKey, bool | None]] = []
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1

    async def near(
        self, key: UserKey, vector: Vector, limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        self.asked.append((key, archived))
        await self.let.wait()
        if self.failure is not None:
            raise self.failure
        return await super().near(key, vector, limit, archived=archived)

    async def match(
        self, key: UserKey, words: Sequence[str], limit: int, *, archived: bool | None = None
    ) -> list[Hit]:
        await self.let.wait()
        return await super().match(key, words, limit, archived=archived)


class Judge:
    """A reranker that likes everything, once it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.asked = asyncio.Event()

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.set()
        await self.let.wait()
        return [1.0 for _ in texts]

    async def aclose(self) -> None:
        self.let.set()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
async def host(world: World, index: Index) -> UserHost:
    return await a_host(world, index)


async def a_host(world: World, index: Index, name: str = "a", **changes: Any) -> UserHost:
    """A host whose user has forgotten a cat for a dog and a bird, with an index that knows."""
    made = world.host(name, policy=LITTLE, idle_s=1e6, housekeeping_s=1e6, lease_s=1e6)
    made._long_term = LongTerm(cast("Any", index), replace(SEARCH, **changes))
    await made.start()
    if not await world.memories(made):
        for pet in ("a cat", "a dog", "a bird"):
            await world.remember(made, pet)
        await feed(world, made, index)
    return made


async def feed(world: World, host: UserHost, index: Index, key: UserKey = KEY) -> None:
    """Tell the index what the ledger has."""
    store = world.ledgers[host.name].store
    found = await store.documents(key, await store.memory_ids(key))
    await index.put(
        key,
        [
            Document(
                memory.id, (*words(memory.content), *own_words(memory, words)), stored,
                archived=memory.status is Status.ARCHIVED,
            )
            for memory, stored in found
            if memory.status in LIVE or memory.status is Status.ARCHIVED
        ],
    )  # fmt: skip


def asking(host: UserHost, query: str = "a cat", **more: Any) -> asyncio.Task[dict[str, Any]]:
    wanted = Recall(query=query, vector=about(query).vector, words=words(query), **more)
    return asyncio.create_task(host.ask(KEY, wanted))


def contents(answer: dict[str, Any]) -> list[str]:
    return [record["content"] for record in answer["memories"]]


async def cat_of(world: World, host: UserHost) -> str:
    (cat,) = [record["id"] for record in await world.memories(host) if record["content"] == "a cat"]
    return str(cat)


async def test_spec_4_3_what_the_index_finds_in_the_archive_is_shown_and_comes_back(
    world: World, host: UserHost, index: Index
) -> None:
    user, cat = world.awake(host), await cat_of(world, host)
    assert user.state.elsewhere(cat)
    answer = await asking(host)
    assert (contents(answer), answer["degraded"]) == (["a cat"], [])
    assert list(answer["timings_ms"]) == ["index", "rank", "assemble"]
    assert index.asked == [(KEY, True)]
    await until(lambda: cat in user.state.live)
    assert cat in user.state.shelf.vectors
    assert set(user.state.live) == set(user.state.shelf.vectors.ids)
    answer = await asking(host)
    assert (contents(answer), list(answer["timings_ms"])) == (["a cat"], ["rank", "assemble"])
    assert len(index.asked) == 1  # what is active answers


async def test_the_index_is_asked_about_the_user_who_asks_and_nobody_else(
    world: World, host: UserHost, index: Index
) -> None:
    for pet in ("a fox", "a hen", "an owl"):
        await world.remember(host, pet, key=BOB, session="bobs")
    await feed(world, host, index, BOB)
    wanted = about("a cat")
    assert contents(await host.ask(BOB, wanted)) == []
    assert index.asked == [(BOB, True)]


async def test_without_the_index_the_actor_answers_and_says_so(
    world: World, host: UserHost, index: Index
) -> None:
    index.failure = OUT
    answer = await asking(host, include=frozenset({"memories"}))
    assert (contents(answer), answer["degraded"]) == ([], ["index"])
    assert answer["timings_ms"]["index"] >= 0
    assert contents(await asking(host, "a bird")) == ["a bird"]
    assert world.counts.of["hermes_recall_index_failures_total"] == 1


async def test_an_index_that_is_down_is_left_alone_for_a_while_and_then_tried(
    world: World, host: UserHost, index: Index
) -> None:
    index.failure = OUT
    for _ in range(5):
        assert (await asking(host))["degraded"] == ["index"]
    assert len(index.asked) == SEARCH.failures
    assert world.counts.of["hermes_recall_index_skipped_total"] == 3
    index.failure = None
    await world.pass_time(SEARCH.pause_s)
    index.let.clear()
    trying = asking(host)
    await until(lambda: len(index.asked) == SEARCH.failures + 1)
    assert (await asking(host))["degraded"] == ["index"]  # one at a time
    index.let.set()
    assert (contents(await trying), (await trying)["degraded"]) == (["a cat"], [])
    assert world.counts.of["hermes_recall_index_failures_total"] == 2


async def test_who_gives_up_lets_another_try(world: World, host: UserHost, index: Index) -> None:
    index.failure = OUT
    for _ in range(SEARCH.failures):
        await asking(host)
    index.failure = None
    await world.pass_time(SEARCH.pause_s)
    index.let.clear()
    trying = asking(host)
    await until(lambda: len(index.asked) == SEARCH.failures + 1)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    index.let.set()
    assert contents(await asking(host)) == ["a cat"]


async def test_a_slow_index_is_not_waited_for(world: World, index: Index) -> None:
    host = await a_host(world, index, timeout_s=0.05)
    index.let.clear()
    answer = await asking(host)
    assert (contents(answer), answer["degraded"]) == ([], ["index"])
    assert 40 <= answer["timings_ms"]["index"] < 5_000
    assert world.counts.of["hermes_recall_index_failures_total"] == 1


@pytest.mark.parametrize("error", [InvalidInput("vector", "must have 8 dimensions"), ValueError("?")])
async def test_an_index_that_is_broken_fails_no_recall(
    error: Exception, host: UserHost, index: Index
) -> None:
    index.failure = error
    assert (await asking(host))["degraded"] == ["index"]


async def test_a_ledger_that_does_not_give_the_vectors_fails_no_recall(world: World, host: UserHost) -> None:
    world.weather(1.0)
    answer = await asking(host)
    assert (contents(answer), answer["degraded"]) == ([], ["index"])
    world.weather(0.0)
    assert contents(await asking(host)) == ["a cat"]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("everything", [False, True])
async def test_what_is_erased_while_the_index_is_asked_is_not_answered(
    everything: bool, fails: bool, world: World, host: UserHost, index: Index
) -> None:
    bird = next(record["id"] for record in await world.memories(host) if record["content"] == "a bird")
    doomed = [await cat_of(world, host), bird]
    index.let.clear()
    waiting = asking(host)
    await until(lambda: index.asked)
    if everything:
        await host.execute(KEY, EraseUser(), "gone")
    else:
        for memory_id in doomed:
            await host.execute(KEY, Delete(memory_id=memory_id), f"gone-{memory_id}")
    index.failure = OUT if fails else None
    index.let.set()
    answer = await waiting
    assert (contents(answer), answer["context"]) == ([], "")
    assert answer["version"] == world.awake(host).state.version
    again = await asking(host)  # the index has not heard of it yet
    assert (contents(again), "cat" in again["context"]) == ([], False)


async def test_a_recall_of_somebody_who_was_lost_meanwhile_is_not_answered(
    world: World, host: UserHost, index: Index
) -> None:
    index.let.clear()
    waiting = asking(host)
    await until(lambda: index.asked)
    world.awake(host).close()
    index.let.set()
    with pytest.raises(LeaseLost):
        await waiting


async def test_a_second_look_is_taken_at_what_the_index_found(
    world: World, host: UserHost, index: Index
) -> None:
    judge = Judge()
    await world.stop(host)
    host = await a_host(world, index, "b")
    user = await awake(world, host)
    user.around = replace(user.around, second_look=SecondLook(reranker=judge, candidates=5, timeout_s=30.0))
    waiting = asking(host)
    await judge.asked.wait()
    await world.remember(host, "a fish")  # so that it is found anew, and the index asked anew
    judge.let.set()
    answer = await waiting
    assert (contents(answer)[0], answer["degraded"]) == ("a cat", [])
    assert list(answer["timings_ms"]) == ["index", "rank", "rerank", "assemble"]
    assert len(index.asked) == 2


async def test_both_helpers_may_fail(world: World, index: Index) -> None:
    host = await a_host(world, index, always=True)
    user = await awake(world, host)
    user.around = replace(user.around, second_look=SecondLook(reranker=Judge(), candidates=5, timeout_s=0.01))
    index.failure = OUT
    answer = await asking(host, "a bird")
    assert (contents(answer), answer["degraded"]) == (["a bird"], ["index", "reranker"])


async def awake(world: World, host: UserHost) -> Any:
    await host.wake(KEY)
    return world.awake(host)


# asked always


async def test_a_host_may_ask_the_index_for_what_is_active_too(world: World, index: Index) -> None:
    host = await a_host(world, index, always=True)
    answer = await asking(host, "a bird")
    assert (contents(answer), set(index.asked)) == (["a bird"], {(KEY, True), (KEY, False)})
    await index.drop(KEY)  # an index that has lost everything: then nothing is nominated
    answer = await asking(host, "a bird")
    assert (contents(answer), answer["degraded"]) == ([], [])
    index.failure = OUT
    answer = await asking(host, "a bird")  # and without one the actor searches itself
    assert (contents(answer), answer["degraded"]) == (["a bird"], ["index"])


# what commands need of the archive


async def test_a_command_that_cannot_get_a_vector_changes_nothing_and_may_be_sent_again(
    world: World, host: UserHost
) -> None:
    cat, user = await cat_of(world, host), world.awake(host)
    version, ledger = user.state.version, world.ledgers[host.name]
    ledger.faulty._plan = FaultPlan(script=[Fault.FAIL_BEFORE])
    with pytest.raises(LedgerUnavailable):
        await user.execute(BringBack(memory_ids=(cat,)), "back", actor="recall")
    assert (user.state.version, cat in user.state.live) == (version, False)
    await user.execute(BringBack(memory_ids=(cat,)), "back", actor="recall", again=True)
    assert (user.state.version, cat in user.state.shelf.vectors) == (version + 1, True)
    assert ledger.calls["documents"] == 2


async def test_what_came_back_as_the_reply_was_lost_is_live_with_its_vector(
    world: World, host: UserHost
) -> None:
    cat, user = await cat_of(world, host), world.awake(host)
    ledger = world.ledgers[host.name]
    ledger.faulty._plan = FaultPlan(script=[Fault.NONE, Fault.FAIL_AFTER])
    with pytest.raises(LedgerUnavailable):
        await user.execute(BringBack(memory_ids=(cat,)), "back", actor="recall")
    assert contents(await asking(host)) == ["a cat"]
    assert cat in user.state.shelf.vectors
    assert not user.state.elsewhere(cat)


async def test_what_came_back_as_the_host_died_is_live_with_its_vector(
    world: World, host: UserHost, index: Index
) -> None:
    cat, user = await cat_of(world, host), world.awake(host)
    ledger = world.ledgers[host.name]
    ledger.faulty._plan = FaultPlan(script=[Fault.NONE, Fault.FAIL_AFTER])
    with pytest.raises(LedgerUnavailable):
        await user.execute(BringBack(memory_ids=(cat,)), "back", actor="recall")
    await world.crash(host)
    other = await a_host(world, index, "b")
    assert contents(await asking(other)) == ["a cat"]
    state = world.awake(other).state
    assert set(state.live) == set(state.shelf.vectors.ids)
    assert cat in state.live
