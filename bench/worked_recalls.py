"""Two worked recalls for the documentation: a short conversation, a later question, and every part of every score.

python -m bench.worked_recalls             prints them as Markdown
python -m bench.worked_recalls --write     writes them into the page that shows them
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.report import ROOT
from bench.telling import ranked
from hermes_memory.memory import Memory

PAGE = ROOT / "docs" / "explanation" / "recall.md"
MARK = re.compile(r"(<!-- worked -->\n).*?(\n<!-- end worked -->)", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")
TOLERANCE = (
    0.0151  # processors differ in the last digits of a model's numbers, and a rounded one may tip over
)


@dataclass(frozen=True, slots=True)
class Story:
    """What is said, each so many days before the question, and what is asked."""

    user: str
    title: str
    said: tuple[tuple[int, str], ...]
    question: str


STORIES = (
    Story(
        "lan",
        "中文",
        (
            (70, "我特别喜欢爬山。"),
            (60, "我喜欢吃川菜。"),
            (20, "我对花生过敏。"),
            (20, "我养了一只橘猫，叫年糕。"),
            (2, "我不喜欢太吵的餐厅。"),
            (1, "我在一家医院当护士。"),
        ),
        "周五晚上和朋友去哪家餐厅吃饭好？",
    ),
    Story(
        "ana",
        "English",
        (
            (70, "I love hiking in the mountains."),
            (60, "I like spicy food."),
            (20, "I'm allergic to peanuts."),
            (20, "I have an orange cat called Biscuit."),
            (2, "I don't like noisy restaurants."),
            (1, "I work as a nurse in a hospital."),
        ),
        "Which restaurant should I take my friends to on Friday night?",
    ),
)


def worked(memory: Memory) -> str:
    """Both stories, played through the library."""
    return "\n\n".join("\n".join(_story(memory, story)) for story in STORIES)


def with_recalls(page: str, made: str) -> str:
    """The page with what stands between its marks replaced."""
    return MARK.sub(lambda found: found[1] + made + found[2], page)


def same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but decimals that are as good as equal."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), abs_tol=TOLERANCE) for a, b in pairs)


def _story(memory: Memory, story: Story) -> Iterator[str]:
    now = datetime.now(UTC)
    yield f"### {story.title}\n\n| days ago | the user says |\n|---|---|"
    for number, (days, text) in enumerate(story.said):
        session = f"{story.user}-{number}"
        memory.remember(story.user, text, session=session, said_at=now - timedelta(days=days), timezone="UTC")
        memory.end_session(story.user, session)
        yield f"| {days} | {text} |"
    answer = memory.recall(story.user, story.question)
    yield f"\nA new conversation asks: “{story.question}”\n"
    yield from _scores(answer)
    yield f"\nThe block for the prompt:\n\n```text\n{answer['context']}\n```"
    if unranked := [hit for hit in answer["memories"] if hit["score"] is None]:
        named = ", ".join(f"“{hit['content']}”" for hit in unranked)
        yield f"\nAlways in the block, though nothing in the question calls for it: {named}."
    if silent := _silent(memory, story.user, answer):
        yield f"\nRemembered, and left out: {', '.join(f'“{content}”' for content in silent)}."


def _scores(answer: Mapping[str, Any]) -> Iterator[str]:
    """A row for each ranked hit: its score and the parts of which it is the product."""
    hits = ranked(answer)
    if not hits:
        yield "Nothing is ranked into the answer."
        return
    parts = list(dict.fromkeys(name for hit in hits for name in hit["score_parts"]))
    yield f"| memory | score | = {' | × '.join(parts)} |"
    yield "|---" * (2 + len(parts)) + "|"
    for hit in hits:
        own = hit["score_parts"]
        assert math.isclose(hit["score"], math.prod(own.values()), rel_tol=1e-6), (
            "a score is the product of its parts"
        )
        cells = [_number(own[name]) if name in own else "" for name in parts]
        yield f"| {hit['content']} | {_number(hit['score'])} | {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def _silent(memory: Memory, user: str, answer: Mapping[str, Any]) -> Sequence[str]:
    brought = {hit["id"] for hit in answer["memories"]}
    left = [record for record in memory.memories(user, status="active") if record["id"] not in brought]
    return [record["content"] for record in left if record["content"] not in answer["context"]]


def main() -> None:
    """Print, or write into the page."""
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        made = worked(memory)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_recalls(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print(made)


if __name__ == "__main__":
    main()
