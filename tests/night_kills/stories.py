"""What the users of a night have said in the weeks before it, and what is known of them after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import httpx

from hermes_memory.testing.canonical import canonical

NOW = datetime(2026, 3, 2, 3, tzinfo=UTC)  # of every night here: equal histories have equal ends
AT_ONCE = 8
# Weeks before the night, and the words. Enough for each step of a night to find something to do.
STORIES: tuple[tuple[tuple[int, str], ...], ...] = (
    ((26, "I'm allergic to peanuts."), (20, "I live in Lisbon."), (2, "I moved to Porto last week.")),
    ((30, "I love hiking."), (10, "I work as a nurse."), (4, "I quit my job at the clinic."), (1, "I hate coffee.")),
    ((52, "My dog is called Bruno."), (12, "I'm a vegetarian."), (6, "I love playing chess."), (3, "I love chess.")),
    ((40, "我住在杭州。"), (22, "我对海鲜过敏。"), (9, "我喜欢喝美式咖啡。"), (2, "我搬到上海了。")),
    ((16, "Please keep your answers short."), (8, "Yesterday I went to a concert."), (8, "I hate horror movies.")),
    ((60, "Last week I went to Rome."), (50, "Yesterday I visited my grandmother."), (5, "I speak French.")),
    ((14, "我最近在学吉他。"), (7, "我喜欢吃火锅。"), (3, "我不喜欢吃火锅了。"), (1, "我是护士。")),
    ((33, "I want to buy a car."), (11, "I love jazz."), (6, "I hate jazz."), (2, "I drink tea every morning.")),
)  # fmt: skip


def names(prefix: str, users: int) -> list[str]:
    """The users of a group; those of the same number in two groups have the same story."""
    return [f"{prefix}-{number:03d}" for number in range(users)]


async def load(url: str, users: Iterable[str]) -> None:
    """Each user tells their story, through the product."""
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as http:

        async def tell(number: int, user: str) -> None:
            messages = [
                {
                    "id": f"m-{place}", "role": "user", "content": words,
                    "created_at": (NOW - timedelta(weeks=weeks, minutes=number)).isoformat(),
                }
                for place, (weeks, words) in enumerate(STORIES[number % len(STORIES)])
            ]  # fmt: skip
            body = {"session_id": f"{user}-then", "messages": messages}
            answer = await http.post(f"/v1/users/{user}/messages", params={"wait": "true"}, json=body)
            assert answer.status_code == 200, answer.text

        await _together(tell(number, user) for number, user in enumerate(users))


async def ends(url: str, users: Iterable[str]) -> list[str]:
    """What each user has come to, without what differs between two runs of one history."""
    wanted = list(users)
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
        found: dict[str, str] = {}

        async def look(user: str) -> None:
            answer = await http.get(f"/v1/users/{user}/export")
            assert answer.status_code == 200, answer.text
            found[user] = _told(answer.json(), user)

        await _together(look(user) for user in wanted)
    return [found[user] for user in wanted]


async def forget(url: str, users: Iterable[str]) -> None:
    """Erase them, so that later nights have less to do."""
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:

        async def erase(user: str) -> None:
            answer = await http.delete(f"/v1/users/{user}")
            assert answer.status_code == 200, answer.text

        await _together(erase(user) for user in users)


def _told(export: dict[str, Any], user: str) -> str:
    named_alike = json.loads(json.dumps(export, ensure_ascii=False).replace(user, "the user"))
    plain = canonical(named_alike)
    plain["audit"] = _by_memory(plain["audit"])
    return json.dumps(plain, ensure_ascii=False, indent=1, sort_keys=True)


def _by_memory(audit: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a night did, memory by memory: it takes them in the order of their ids, which differ between users."""
    told: list[dict[str, Any]] = []
    for actor, entries in groupby(audit, key=lambda entry: entry["actor"]):
        same = list(entries)
        told += sorted(same, key=lambda entry: str(entry["memory_id"])) if actor == "nightly" else same
    return told


async def _together(work: Iterable[Any]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(task: Any) -> None:
        async with places:
            await task

    async with asyncio.TaskGroup() as group:
        for task in work:
            group.create_task(one(task))
