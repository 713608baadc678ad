"""Six months of the seeds' stories with nights between: what a careful reader would know at the end (SPEC §8, §9).

Moving house, another diet, a new job, a wish that was taken back, a joke, a mood. On the real extractor, embedder and
rules, in two languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hermes_memory.app.commands import GetProfile, Maintain
from hermes_memory.app.views import get_profile
from hermes_memory.core.model import Status
from tests.runtime.test_a_year import Diarist

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(240)]

SHANGHAI = ZoneInfo("Asia/Shanghai")  # read here: inside a test that would block
STORIES: dict[str, tuple[tuple[int, tuple[str, ...]], ...]] = {
    "zh": (
        (
            1,
            (
                "我叫陈薇",
                "我住在苏州",
                "我是护士",
            ),
        ),
        (
            1,
            (
                "我喜欢吃火锅",
                "我想买一辆车",
            ),
        ),
        (
            2,
            (
                "我对花生过敏",
                "我养了一只猫",
            ),
        ),
        (
            2,
            (
                "开玩笑的，我是火星人",
                "昨天去看了画展",
            ),
        ),
        (3, ("气死我了，我再也不喝咖啡了！",)),
        (3, ("我搬到杭州了",)),
        (4, ("其实我现在不吃火锅了，我开始吃素了",)),
        (4, ("我换工作了，现在是老师",)),
        (5, ("我不想买车了",)),
        (
            6,
            (
                "我住在杭州",
                "我是老师",
            ),
        ),
    ),
    "en": (
        (
            1,
            (
                "My name is Anna",
                "I live in Oslo",
                "I work as a nurse",
            ),
        ),
        (
            1,
            (
                "I love steak",
                "I want to buy a car",
            ),
        ),
        (
            2,
            (
                "I'm allergic to peanuts",
                "I have a cat",
            ),
        ),
        (
            2,
            (
                "Just kidding, I'm from Mars",
                "I went to the museum yesterday",
            ),
        ),
        (3, ("Ugh, I'm so angry, I will never drink coffee again!",)),
        (3, ("I moved to Bergen",)),
        (
            4,
            (
                "Actually, I don't like steak anymore",
                "I'm vegetarian now",
            ),
        ),
        (4, ("Actually, I work as a teacher now",)),
        (5, ("I don't want to buy a car anymore",)),
        (
            6,
            (
                "I live in Bergen",
                "I work as a teacher",
            ),
        ),
    ),
}
KNOWN: dict[str, dict[str, Any]] = {
    "zh": {
        "identity": {"name": "陈薇", "city": "杭州", "occupation": "老师", "pet": ["一只猫"]},
        "restriction": {"allergy": ["花生"], "diet": "素"},
        "preference": {"cuisine": ["-火锅"]},
    },
    "en": {
        "identity": {"name": "Anna", "city": "Bergen", "occupation": "teacher", "pet": ["cat"]},
        "restriction": {"allergy": ["peanuts"], "diet": "vegetarian"},
        "preference": {"food": ["-steak"]},
    },
}
QUERIES = {"zh": "我住在哪里，做什么工作？", "en": "Where do I live and what is my job?"}
TOLD = {"zh": ("杭州", "老师", "花生"), "en": ("Bergen", "teacher", "peanuts")}
OVER = {
    "zh": ("苏州", "护士", "火星", "咖啡", "买一辆车", "喜欢吃火锅"),
    "en": ("Oslo", "nurse", "Mars", "coffee", "I want to buy", "love steak"),
}


def night(person: Diarist) -> dict[str, Any]:
    answer: dict[str, Any] = person.act(Maintain(now=person.now), prepared=SHANGHAI)
    assert person.act(Maintain(now=person.now), prepared=SHANGHAI)["changes"] == []
    assert person.last is None  # the same night again changes nothing
    return answer


@pytest.fixture(scope="module", params=sorted(STORIES))
def half_a_year(request: pytest.FixtureRequest) -> Iterator[tuple[str, Diarist]]:
    person, month = Diarist(), 1
    for number, (said_in, texts) in enumerate(STORIES[request.param]):
        while month < said_in:
            for _ in range(3):
                person.pass_time(days=9)
                night(person)
            month += 1
        person.converse(f"{said_in}-{number}", *texts)
        person.pass_time(days=2)
        night(person)
    yield request.param, person
    person.embedder.close()
    person.runner.close()


def test_spec_8_the_profile_is_what_a_careful_reader_would_write(half_a_year: tuple[str, Diarist]) -> None:
    language, person = half_a_year
    profile = get_profile(person.state, GetProfile(), person.policy)
    known = {layer: {key: slot["value"] for key, slot in slots.items()} for layer, slots in profile.items()}
    habits = known.pop("behavior")
    assert known == KNOWN[language] | {"style": {}, "context": {}}
    assert habits["language"] == language
    assert profile["identity"]["city"]["lock"] == "confirmed"  # said again in the sixth month
    assert profile["restriction"]["allergy"]["lock"] == "frozen"
    for slot in (slot for layer in KNOWN[language] for slot in profile[layer].values()):
        assert all(person.memory(memory_id).evidence for memory_id in slot["memory_ids"])


def test_spec_7_the_block_tells_what_holds_and_nothing_that_is_over(half_a_year: tuple[str, Diarist]) -> None:
    language, person = half_a_year
    context = person.ask(QUERIES[language])["context"]
    assert all(word in context for word in TOLD[language])
    assert not any(word in context for word in OVER[language])


def test_spec_4_1_a_joke_and_a_mood_do_not_stick(half_a_year: tuple[str, Diarist]) -> None:
    language, person = half_a_year
    live = [memory.content for memory in person.state.live.values()]
    assert not any(word in content for content in live for word in OVER[language])
    wish = [memory for memory in person.state.memories.values() if OVER[language][4] in memory.content]
    assert {memory.status for memory in wish} == {Status.ARCHIVED}
