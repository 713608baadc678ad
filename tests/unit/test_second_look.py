"""A recall in two phases with a second look between them (SPEC §7.2: the score is the product of its parts)."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hermes_memory.app.commands import Delete, EndSession, Recall
from hermes_memory.app.recall import Recalled, assemble, find, looked_at_again
from hermes_memory.core.ranking import PARTS, RERANK, reranked
from hermes_memory.errors import InvalidConfig, InvalidInput, ModelFailed
from hermes_memory.runtime.second_look import SecondLook
from tests.small_world import HOUR, NOW, policy, rules, say, vector, words
from tests.tiny_ledger import Person

PETS = ("我养猫", "我养狗", "我养鸟", "我养鱼", "我养兔")


def with_pets() -> Person:
    person = Person(policy(rules(recall={"threshold": 0.0}, fusion={"cut": 0.0})))  # everything is a hit
    for number, text in enumerate(PETS):
        person.tell(say(text, dimension="pet", object=text[-1], at=NOW + number * HOUR))
    person.act(EndSession(session_id="s1"))
    person.pass_time(days=1)
    return person


def about(query: str = "我养猫", **more: Any) -> Recall:
    return Recall(query=query, vector=vector(query), words=words(query), **more)


def second(
    person: Person, wanted: Recall, judge: Callable[[str], float] | None, candidates: int = 20
) -> Recalled:
    """The recall of someone who looks again; None: the look fails."""
    found = find(person.state, wanted, person.policy, person.now, candidates=candidates)
    scores = {hit.memory.id: judge(hit.memory.content) for hit in found.hits} if judge else None
    again = looked_at_again(found, scores, 0.25)
    return assemble(person.state, wanted, again, person.policy, person.now)


def contents(answer: dict[str, Any]) -> list[str]:
    return [record["content"] for record in answer["memories"]]


# find and assemble


def test_without_a_second_look_both_phases_are_the_recall() -> None:
    person = with_pets()
    found = find(person.state, about(top_k=2), person.policy, person.now)
    answer = assemble(person.state, about(top_k=2), found, person.policy, person.now).answer
    whole = person.recall("我养猫", top_k=2)
    for each in (answer, whole):
        each.pop("timings_ms")
    assert answer == whole
    assert RERANK not in answer["memories"][0]["score_parts"]
    assert len(found.hits) == 2


def test_spec_7_2_the_relevance_of_the_second_look_takes_the_place_of_the_match() -> None:
    person = with_pets()
    plain = {record["id"]: record for record in person.recall("我养猫", top_k=50)["memories"]}
    worth = {"我养猫": 0.1, "我养狗": 0.9, "我养鸟": 0.8, "我养鱼": 0.0, "我养兔": 1.0}
    answer = second(person, about(top_k=50), worth.__getitem__).answer
    assert len(answer["memories"]) == len(plain) == len(PETS)
    for record in answer["memories"]:
        parts = record["score_parts"]
        assert list(parts) == [RERANK if part == "match" else part for part in PARTS]
        assert parts[RERANK] == worth[record["content"]]
        assert record["score"] == pytest.approx(math.prod(parts.values()))
        assert record["score"] == pytest.approx(
            plain[record["id"]]["score"] / plain[record["id"]]["score_parts"]["match"] * parts[RERANK]
        )
    scores = [record["score"] for record in answer["memories"]]
    assert scores == sorted(scores, reverse=True)
    assert answer["degraded"] == []
    assert answer["timings_ms"][RERANK] == 250.0


def test_it_sees_more_than_are_asked_for_and_the_best_of_those_are_answered() -> None:
    person = with_pets()
    best = person.recall("我养猫", top_k=1)
    wanted = contents(person.recall("我养猫", top_k=50))
    last = wanted[-1]
    recalled = second(person, about(top_k=1), lambda content: 1.0 if content == last else 0.1)
    assert contents(recalled.answer) == [last] != contents(best)
    assert recalled.shown == (recalled.answer["memories"][0]["id"],)
    assert last in recalled.answer["context"]
    assert not [content for content in wanted[:-1] if content in recalled.answer["context"]]


def test_it_looks_at_no_fewer_than_are_asked_for() -> None:
    person = with_pets()
    found = find(person.state, about(top_k=3), person.policy, person.now, candidates=1)
    assert len(found.hits) == 3


def test_when_it_fails_the_order_stays_and_the_answer_says_so() -> None:
    person = with_pets()
    plain = person.recall("我养猫", top_k=3)
    answer = second(person, about(top_k=3), None).answer
    assert answer["degraded"] == ["reranker"]
    assert answer["memories"] == plain["memories"]
    assert answer["context"] == plain["context"]


def test_equal_products_keep_their_order() -> None:
    person = with_pets()
    hits = find(person.state, about(top_k=5), person.policy, person.now).hits
    assert [hit.memory for hit in reranked(hits, {hit.memory.id: 0.0 for hit in hits})] == [
        hit.memory for hit in hits
    ]


def test_what_came_or_went_while_it_looked() -> None:
    """What was erased is not shown; what is new was not looked at and waits for the next question."""
    person = with_pets()
    before = find(person.state, about(), person.policy, person.now, candidates=20)
    relevances = {hit.memory.id: 0.5 for hit in before.hits}
    gone = before.hits[0].memory
    person.act(Delete(memory_id=gone.id), prepared=[])
    person.tell(say("我养猫咪", dimension="pet", object="猫咪", session="s2", at=person.now))
    after = looked_at_again(
        find(person.state, about(), person.policy, person.now, candidates=20), relevances, 0.1
    )
    ids = {hit.memory.id for hit in after.hits}
    assert gone.id not in ids
    assert ids == set(relevances) - {gone.id}


def test_spec_4_3_only_what_is_shown_comes_back_from_the_archive() -> None:
    person = with_pets()
    found = find(person.state, about(top_k=2), person.policy, person.now, candidates=20)
    found = replace(found, archived=frozenset(hit.memory.id for hit in found.hits))
    assert len(found.hits) == len(PETS)
    recalled = assemble(person.state, about(top_k=2), found, person.policy, person.now)
    assert recalled.returned == tuple(hit.memory.id for hit in found.hits[:2])


def test_too_small_a_budget_is_refused_before_anybody_looks() -> None:
    person = with_pets()
    with pytest.raises(InvalidInput, match="budget_chars"):
        find(person.state, about(budget_chars=10), person.policy, person.now, candidates=20)


# the look itself


@dataclass
class Judge:
    """A reranker that does as it is told."""

    gives: Callable[[Sequence[str]], Any] = lambda texts: [0.5] * len(texts)
    pause_s: float = 0.0
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, list(texts)))
        await asyncio.sleep(self.pause_s)
        scores: list[float] = self.gives(texts)
        return scores

    async def aclose(self) -> None: ...


class Noted:
    def __init__(self) -> None:
        self.names: list[tuple[str, dict[str, str]]] = []

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.names.append((name, labels))

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.names.append((name, labels))

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.names.append((name, labels))


def raising(error: Exception) -> Callable[[Sequence[str]], Any]:
    def give(texts: Sequence[str]) -> Any:
        raise error

    return give


HITS = find(with_pets().state, about(top_k=3), with_pets().policy, NOW + 24 * HOUR).hits


async def test_each_hit_gets_its_relevance() -> None:
    judge, noted = Judge(lambda texts: [number / 10 for number in range(len(texts))]), Noted()
    look = SecondLook(reranker=judge, candidates=5, timeout_s=1.0)
    found = await look.at("q", HITS, noted)
    assert found == {hit.memory.id: number / 10 for number, hit in enumerate(HITS)}
    assert judge.asked == [("q", [hit.memory.content for hit in HITS])]
    assert noted.names == [("hermes_rerank_seconds", {})]


async def test_nobody_is_asked_about_nothing() -> None:
    judge = Judge(raising(AssertionError()))
    assert await SecondLook(reranker=judge, candidates=5, timeout_s=1.0).at("q", [], Noted()) == {}


BAD: list[tuple[Judge, str]] = [
    (Judge(raising(ModelFailed("the reranker", "status 500"))), "ModelFailed"),
    (Judge(raising(InvalidConfig("reranker.model", "cannot be loaded"))), "InvalidConfig"),
    (Judge(raising(RuntimeError("我养猫"))), "RuntimeError"),
    (Judge(pause_s=30.0), "TimeoutError"),
    (Judge(lambda texts: [0.5]), "ModelFailed"),
    (Judge(lambda texts: [0.5] * (len(texts) + 1)), "ModelFailed"),
    (Judge(lambda texts: [float("nan")] * len(texts)), "ModelFailed"),
    (Judge(lambda texts: [1.01] * len(texts)), "ModelFailed"),
    (Judge(lambda texts: [None] * len(texts)), "TypeError"),
]


@pytest.mark.parametrize(("judge", "kind"), BAD, ids=range(len(BAD)))
async def test_whatever_goes_wrong_is_a_look_that_failed(
    judge: Judge, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hermes_memory")
    noted = Noted()
    assert len(HITS) == 3
    look = SecondLook(reranker=judge, candidates=5, timeout_s=0.05 if kind == "TimeoutError" else 30.0)
    assert await look.at("我养猫", HITS, noted) is None
    assert noted.names == [("hermes_rerank_failures_total", {"kind": kind})]
    assert "no second look" in caplog.text
    assert "猫" not in caplog.text


async def test_who_gives_up_is_let_go() -> None:
    look = SecondLook(reranker=Judge(pause_s=30.0), candidates=5, timeout_s=30.0)
    asking = asyncio.create_task(look.at("q", HITS, Noted()))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
