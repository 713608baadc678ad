"""The two stories as data: what is said when, and what has to come of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation: its id, how many days ago it was, and what the user says in it."""

    id: str
    days_ago: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One user's conversations, and the question that the last one leads to.

    Args:
        expected: What the recall block must hold.
        rises: Whether the memory that holds ``expected`` must have a higher lock at the end than after the
            first session.
        secret: What must be found nowhere in what is stored.
    """

    title: str
    user: str
    timezone: str
    sessions: tuple[Session, ...]
    query: str
    expected: str
    secret: str
    rises: bool = False


PEANUT = Story(
    title="A child's allergy, and a recipe a day later",
    user="demo-mei",
    timezone="Asia/Shanghai",
    sessions=(
        Session(
            id="mei-1",
            days_ago=1,
            lines=(
                "我家小孩对花生过敏，吃了会起疹子",
                "我住在苏州",
                "我不吃香菜",
                "嗯嗯",
                "我的银行卡号是 6222021234567890128，别告诉别人",
            ),
        ),
        Session(id="mei-2", days_ago=0, lines=("推荐一款曲奇的配方",)),
    ),
    query="推荐一款曲奇的配方",
    expected="花生",
    secret="6222021234567890128",  # noqa: S106  # made up; it has to be masked
)

COFFEE = Story(
    title="How somebody takes their coffee, said once and confirmed later",
    user="demo-sam",
    timezone="America/Los_Angeles",
    sessions=(
        Session(
            id="sam-1",
            days_ago=3,
            lines=(
                "I only drink americano, no sugar no milk.",
                "I live in Seattle and I work as a nurse.",
                "lol ok",
                "If I won the lottery I would move to Japan.",
                "My API key is sk-proj-4f9aB7xQ2LmN8tRvKc3PzW1Yd6HsJ0Eu, keep it safe.",
            ),
        ),
        Session(id="sam-2", days_ago=1, lines=("Yes, still only americano for me, no sugar, no milk.",)),
    ),
    query="what should I order for the user at the café?",
    expected="americano",
    secret="sk-proj-4f9aB7xQ2LmN8tRvKc3PzW1Yd6HsJ0Eu",  # noqa: S106  # made up; it has to be masked
    rises=True,
)

STORIES = (PEANUT, COFFEE)
