"""A host with a reranker: nothing is held while it looks, and what happens meanwhile counts (SPEC §7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_memory import Memory
from hermes_memory.app.commands import Delete, EraseUser, Recall
from hermes_memory.core.model import Status
from hermes_memory.errors import InvalidConfig, LeaseLost, ModelFailed
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.second_look import SecondLook
from hermes_memory.testing.builders import KEY
from tests.openai_server import Fault, serving
from tests.runtime.local_app import WITHOUT_MODEL
from tests.runtime.world import World, a_world, about
from tests.small_world import policy, rules

ALL = policy(rules(recall={"threshold": 0.0}))  # everything is a hit


@dataclass
class Judge:
    """A reranker that waits until it is let, and likes what ``likes`` says."""

    likes: Callable[[str], float] = lambda text: 0.5
    let: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Queue[list[str]] = field(default_factory=asyncio.Queue)
    closed: int = 0

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.put_nowait(list(texts))
        await self.let.wait()
        return [self.likes(text) for text in texts]

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


@pytest.fixture
async def host(world: World, judge: Judge) -> UserHost:
    made = world.host(policy=ALL, idle_s=1e6, housekeeping_s=1e6, lease_s=1e6)
    made._second_look = SecondLook(reranker=judge, candidates=20, timeout_s=30.0)
    await made.start()
    await world.remember(made, "a cat")
    await world.remember(made, "a dog")
    await world.remember(made, "a bird")
    return made


def asking(host: UserHost, query: str = "a cat", **more: Any) -> asyncio.Task[dict[str, Any]]:
    wanted = about(query, "s9")
    return asyncio.create_task(
        host.ask(KEY, Recall(query=query, vector=wanted.vector, words=wanted.words, **more))
    )


def contents(answer: dict[str, Any]) -> list[str]:
    return [record["content"] for record in answer["memories"]]


async def test_the_order_is_the_rerankers(host: UserHost, judge: Judge) -> None:
    judge.likes = {"a cat": 0.0, "a dog": 0.5, "a bird": 1.0}.__getitem__
    judge.let.set()
    answer = await asking(host, top_k=2)
    assert sorted(await judge.asked.get()) == ["a bird", "a cat", "a dog"]
    assert contents(answer) == ["a bird", "a dog"]
    assert (answer["degraded"], "rerank" in answer["timings_ms"]) == ([], True)


async def test_writes_and_other_reads_go_on_while_it_looks(
    host: UserHost, judge: Judge, world: World
) -> None:
    waiting = asking(host)
    await judge.asked.get()
    await world.remember(host, "a fish")
    assert "a fish" in await world.contents(host)
    second = asking(host, "a fish")
    assert "a fish" in await judge.asked.get()
    judge.let.set()
    assert contents(await second)[0] == "a fish"
    assert "a fish" not in contents(await waiting)  # it came after the question
    assert set(contents(await waiting)) == {"a cat", "a dog", "a bird"}


@pytest.mark.parametrize("everything", [False, True])
async def test_what_is_erased_while_it_looks_is_not_answered(
    everything: bool, host: UserHost, judge: Judge, world: World
) -> None:
    (cat,) = [record for record in await world.memories(host) if record["content"] == "a cat"]
    waiting = asking(host)
    await judge.asked.get()
    await host.execute(KEY, EraseUser() if everything else Delete(memory_id=cat["id"]), "gone")
    judge.let.set()
    answer = await waiting
    left = set() if everything else {"a dog", "a bird"}
    assert set(contents(answer)) == left
    assert "cat" not in answer["context"]


async def test_a_user_who_was_lost_meanwhile_is_not_answered(
    host: UserHost, judge: Judge, world: World
) -> None:
    waiting = asking(host)
    await judge.asked.get()
    world.awake(host).close()
    judge.let.set()
    with pytest.raises(LeaseLost):
        await waiting


async def test_a_reranker_that_fails_is_done_without(host: UserHost, judge: Judge, world: World) -> None:
    def fail(text: str) -> float:
        raise ModelFailed("the reranker", "status 500")

    judge.let.set()
    before = contents(await asking(host, top_k=3))
    judge.likes = fail
    answer = await asking(host, top_k=3)
    assert (contents(answer), answer["degraded"]) == (before, ["reranker"])
    assert not [record for record in answer["memories"] if "rerank" in record["score_parts"]]
    assert world.counts.of["hermes_rerank_failures_total"] == 1


async def test_who_gives_up_leaves_nothing_behind(host: UserHost, judge: Judge, world: World) -> None:
    waiting = asking(host)
    await judge.asked.get()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert world.awake(host).quiet
    assert all(memory.status is Status.ACTIVE for memory in world.awake(host).state.live.values())


async def test_a_host_that_stops_lets_its_reranker_go(host: UserHost, judge: Judge, world: World) -> None:
    await world.stop(host)
    assert judge.closed == 1


# configured, over real HTTP


def opened(data: Path, url: str, **reranker: Any) -> Memory:
    chosen = {"kind": "openai", "model": "judge", "base_url": url, **reranker}
    return Memory.open(data, **WITHOUT_MODEL, reranker=chosen)


async def test_a_configured_reranker_is_asked_and_a_hanging_one_is_not_waited_for(tmp_path: Path) -> None:
    async with serving() as server:
        memory = await asyncio.to_thread(opened, tmp_path, server.url, timeout_s=5.0)
        await asyncio.to_thread(memory.remember, "ana", "I'm allergic to peanuts.")
        answer = await asyncio.to_thread(memory.recall, "ana", "I'm allergic to peanuts.")
        assert [record["score_parts"]["rerank"] for record in answer["memories"]] == [1.0]
        assert answer["degraded"] == []
        await asyncio.to_thread(memory.close)
        impatient = await asyncio.to_thread(opened, tmp_path, server.url, timeout_s=0.3)
        server.faults = [Fault(hang=True), Fault(status=500), Fault(body=b"{}")]
        for _ in range(3):
            answer = await asyncio.to_thread(impatient.recall, "ana", "I'm allergic to peanuts.")
            assert answer["degraded"] == ["reranker"]
            assert "peanuts" in answer["context"]
        await asyncio.to_thread(impatient.close)
        assert 2 <= len(server.asked) <= 4


@pytest.mark.parametrize(
    ("reranker", "says"),
    [
        ({"kind": "llm"}, r"reranker\.kind: must be one of none, cross-encoder, openai"),
        ({"model": ""}, r"reranker\.model: must be named"),
        ({"base_url": ""}, r"reranker\.base_url"),
        (
            {"key_env": "HERMES_NO_SUCH_KEY"},
            r"reranker\.key_env: the environment variable HERMES_NO_SUCH_KEY is not",
        ),
        ({"timeout_s": 0}, r"reranker\.timeout_s"),
        ({"candidates": 0}, r"reranker\.candidates"),
        ({"candidates": 51}, r"reranker\.candidates"),
    ],
)
def test_a_reranker_that_cannot_be_is_refused_at_the_start(
    reranker: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfig, match=says):
        opened(tmp_path, "http://127.0.0.1:9/v1", **reranker)
