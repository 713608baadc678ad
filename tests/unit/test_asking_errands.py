"""Tasks that no personal memory bears on (SPEC §7.2, intent match): few are missed, hardly a question about the user is taken."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory.core.asking import Errand
from tests.unit.asking_reader import read

FOLDER = Path(__file__).parent
BY_KIND = tomllib.loads((FOLDER / "asking_errands.toml").read_text(encoding="utf-8"))
PERSONAL = tomllib.loads((FOLDER / "asking_personal.toml").read_text(encoding="utf-8"))
FRESH = tomllib.loads((FOLDER / "asking_fresh.toml").read_text(encoding="utf-8"))


def sentences(*names: str) -> Iterator[tuple[str, str]]:
    return ((kind, line) for kind, row in BY_KIND.items() for name in names for line in row[name])


def test_there_are_enough_of_each_kind_in_both_languages() -> None:
    assert set(BY_KIND) == set(Errand)
    assert all(len(row["en"]) >= 30 and len(row["zh"]) >= 30 for row in BY_KIND.values())


def test_spec_7_2_an_errand_is_known_for_what_it_is() -> None:
    assert [(kind, line) for kind, line in sentences("en", "zh") if read(line).errand != kind] == []


def test_spec_7_2_no_near_miss_is_an_errand() -> None:
    assert [line for _, line in sentences("not_en", "not_zh") if read(line).errand] == []


def test_spec_7_2_fresh_queries_about_the_user_are_no_errands() -> None:
    assert [line for line in FRESH["related"] if read(line).errand] == []


def test_spec_7_2_fresh_tasks_are_errands() -> None:
    assert sum(read(line).errand is not None for line in FRESH["unrelated"]) >= 0.95 * len(FRESH["unrelated"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_spec_7_2_what_is_wanted_for_the_user_is_personal_without_a_pronoun(language: str) -> None:
    lines = PERSONAL[f"related_{language}"]
    assert [line for line in lines if read(line).errand and not read(line).personal] == []
    assert sum(read(line).personal for line in lines) >= 0.98 * len(lines)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_spec_7_2_a_task_is_an_errand_and_not_personal(language: str) -> None:
    lines = PERSONAL[f"unrelated_{language}"]
    assert [line for line in lines if read(line).personal] == []
    assert sum(read(line).errand is not None for line in lines) >= 0.98 * len(lines)


def test_spec_7_2_what_only_looks_like_a_task_is_none() -> None:
    near = PERSONAL["near_misses"]
    assert [line for line in near if read(line).errand and not read(line).personal] == []


@pytest.mark.parametrize(
    "text",
    [
        "Translate my cat's name into Spanish", "把我的猫的名字翻译成西班牙语", "Fix this function for my sister: def f(x) return x",
    ],
)  # fmt: skip
def test_an_errand_may_name_what_is_the_user_s(text: str) -> None:
    asked = read(text)
    assert asked.errand is not None
    assert asked.personal


@pytest.mark.parametrize(
    "text",
    [
        "Write me a python function that sorts a list", "Can you compute 45 * 67 for me?", "帮我算一下25加36", "帮我写一段代码，把列表去重", "Tell me a joke", "我爱你",
        "Write a regex that matches a US phone number", "why does for i in range(3) stop at 2", "帮我看看为什么for i in range(1, 10)不会打印10", "我的for循环为什么少跑一次",
        "When did World War I end?", "I have 24 apples and give away 7, how many are left?", "How do I remove a file from git tracking", "Why is my React component rendering twice?",
        "Translate this into French: I would like a cup of coffee.", "把这句话翻译成英文：我想要一杯咖啡。", "give me a regex for my code", "请翻译 I have a dream",
    ],
)  # fmt: skip
def test_politeness_and_material_say_nothing_of_the_user(text: str) -> None:
    asked = read(text)
    assert asked.errand is not None
    assert not asked.personal


@pytest.mark.parametrize(
    "text",
    [
        "What code did I ask you to write last week?", "我上周让你翻译的那句话是什么", "What did I say when you asked about the capital of France?", "What happened in 2019?",
        "Tell me a joke about my job", "how much should I tip on my 80 dollar dinner", "which language should I use for my project", "recommend a Sichuan restaurant",
        "推荐一家川菜馆", "Is Paris a good idea for our honeymoon?", "explain my insurance", "what is my rent times 12", "你提醒我的是什么时候",
    ],
)  # fmt: skip
def test_what_memories_may_answer_is_no_errand(text: str) -> None:
    assert read(text).errand is None


@pytest.mark.parametrize(
    "text",
    [
        "my keys",
        "Where did we stay?",
        "我的车停哪了",
        "帮我订机票",
        "recommend a film",
        "book a table for two",
        "推荐一部电影",
        "咱家几口人",
        "I'd like tea",
        "送什么礼物好",
    ],
)
def test_who_asks_for_themselves_is_personal(text: str) -> None:
    assert read(text).personal


@pytest.mark.parametrize(
    "text",
    [
        "How tall is Tom?",
        "小明几岁了",
        "Miami weather",
        "忘我工作是什么意思",
        "the meeting on Friday",
        "Tell me more",
        "告诉我密度",
    ],
)
def test_who_does_not_is_not(text: str) -> None:
    assert not read(text).personal
