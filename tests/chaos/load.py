"""The load: each user does one thing after the other, and repeats it until it is acknowledged."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from dataclasses import dataclass
from typing import Any

import httpx

from tests.chaos.journal import Journal

DEADLINE_S = 90.0  # for one operation with all its tries
PAUSE_S = 0.3  # between two tries
TRY_AGAIN = {429, 500, 502, 503, 504}  # a proxy without a replica behind it answers 500 of its own
THINGS = [
    "heron",
    "otter",
    "badger",
    "walnut",
    "compass",
    "lantern",
    "violin",
    "pepper",
    "harbour",
    "glacier",
    "meadow",
    "thimble",
    "anchor",
    "ribbon",
    "cobalt",
    "saffron",
    "juniper",
    "marble",
    "teapot",
    "sparrow",
    "copper",
    "orchard",
    "canyon",
    "velvet",
    "pebble",
    "willow",
    "barley",
    "cinder",
    "maple",
    "tundra",
]


def _is_our_fault(answer: httpx.Response) -> bool:
    """Whether the app says that it has a fault: a proxy with nobody behind it says 500 too, but not as a problem."""
    return answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "problem+json" in answer.headers.get(
        "content-type", ""
    )


class GaveUp(Exception):
    """No answer within the deadline: the outcome is unknown."""


@dataclass(slots=True)
class Crowd:
    """Users who talk, recall, delete and now and then erase everything, until ``stop`` is set.

    Args:
        users: How many; each works alone and in order.
        pause_s: Between two operations of one user.
    """

    url: str
    journal: Journal
    run: str
    seed: int
    users: int
    pause_s: float

    def names(self) -> list[str]:
        """All user ids."""
        return [f"chaos-{self.run}-{number}" for number in range(self.users)]

    def play(self, stop: threading.Event) -> None:
        """Work until told to stop; what has begun is finished. On a thread of its own: faults may block theirs."""
        asyncio.run(self._play(stop))

    async def _play(self, stop: threading.Event) -> None:
        limits = httpx.Limits(max_connections=self.users + 4)
        async with httpx.AsyncClient(base_url=self.url, timeout=20, limits=limits, trust_env=False) as http:
            users = [
                _User(self, http, name, random.Random(f"{self.seed}-{number}"))
                for number, name in enumerate(self.names())
            ]
            await asyncio.gather(*(user.live(stop) for user in users))


class _User:
    def __init__(self, crowd: Crowd, http: httpx.AsyncClient, name: str, chance: random.Random) -> None:
        self._journal, self._http, self._name, self._chance = crowd.journal, http, name, chance
        self._pause_s = crowd.pause_s
        self._count = 0

    async def live(self, stop: threading.Event) -> None:
        await self._careful(self._freeze)
        while not stop.is_set():
            work = self._chance.choices(
                [self._say, self._recall, self._say_and_wait, self._delete, self._erase], [50, 36, 8, 4, 0.4]
            )[0]
            await self._careful(work)
            await asyncio.sleep(self._pause_s * self._chance.uniform(0.5, 1.5))

    async def _careful(self, work: Any) -> None:
        try:
            await work()
        except GaveUp:
            self._journal.unanswered += 1

    async def _freeze(self) -> None:
        """An allergy, frozen: it must read the same at the end."""
        await self._send("I am allergic to peanuts.", wait=True)
        page = await self._do("GET", "/memories", params={"limit": "200"})
        found = [m for m in page["memories"] if m["dimension"] != "said" and "peanut" in m["content"]]
        if not found:
            self._journal.violations.append(f"an allergy was not kept: {self._name}")
            return
        memory = found[0]
        if memory["lock"] != "frozen":
            await self._do("POST", f"/memories/{memory['id']}/confirm", json={})
            await self._do("POST", f"/memories/{memory['id']}/freeze", json={})
        self._journal.frozen[self._name] = (memory["id"], memory["content"])

    async def _say(self) -> None:
        await self._send(self._text(), wait=False)

    async def _say_and_wait(self) -> None:
        await self._send(self._text(), wait=True)

    def _text(self) -> str:
        self._count += 1
        return "I saw the {}, the {} and the {} beside {{word}}.".format(*self._chance.sample(THINGS, 3))

    async def _send(self, text: str, *, wait: bool) -> None:
        self._count += 1
        word = f"{self._name}x{self._count}"
        message = {"id": f"m-{word}", "role": "user", "content": text.format(word=word)}
        body = {"session_id": f"s-{self._name}-{self._count // 40}", "messages": [message]}
        params = {"wait": "true", "timeout_s": "15"} if wait else {}
        answer = await self._do("POST", "/messages", json=body, params=params)
        self._journal.acknowledge(self._name, message["id"], word)
        if answer.get("version"):
            self._journal.see_version(self._name, answer["version"])

    async def _recall(self) -> None:
        query = f"Where did I see the {self._chance.choice(THINGS)}?"
        answer = await self._do("POST", "/recall", json={"query": query, "top_k": 10})
        self._journal.see_version(self._name, answer["version"])
        self._journal.see_texts(self._name, [answer["context"], *(m["content"] for m in answer["memories"])])
        if self._name in self._journal.frozen and "peanut" not in answer["context"]:
            self._journal.violations.append(f"a frozen restriction was not recalled: {self._name}")

    async def _delete(self) -> None:
        """One of the last things said; its message must not be cited any more."""
        page = await self._do("GET", "/memories", params={"limit": "20", "lock": "pending"})
        if not page["memories"]:
            return
        memory = self._chance.choice(page["memories"])
        self._journal.released |= {(self._name, piece["message_id"]) for piece in memory["evidence"]}
        await self._do("DELETE", f"/memories/{memory['id']}", gone=True)
        self._journal.deleted.add((self._name, memory["id"]))

    async def _erase(self) -> None:
        """Everything of this user; what was said before may never be seen again."""
        self._journal.frozen.pop(self._name, None)
        self._journal.erasing.add(self._name)
        try:
            await self._do("DELETE", "")
        except GaveUp:
            self._journal.unsure.add(self._name)
            raise
        finally:
            self._journal.erasing.discard(self._name)
        self._journal.rounds[self._name] += 1
        await self._freeze()

    async def _do(self, method: str, path: str, *, gone: bool = False, **options: Any) -> dict[str, Any]:
        """One operation, repeated with the same ids until it is answered. ``gone``: 404 means it was done before."""
        since, first = time.monotonic(), True
        while time.monotonic() - since < DEADLINE_S:
            try:
                answer = await self._http.request(method, f"/v1/users/{self._name}{path}", **options)
            except httpx.HTTPError as error:
                self._journal.answers[type(error).__name__] += 1
            else:
                self._journal.answers[str(answer.status_code)] += 1
                if answer.is_success or (gone and not first and answer.status_code == httpx.codes.NOT_FOUND):
                    self._journal.took(since)
                    return dict(answer.json()) if answer.is_success else {}
                if answer.status_code not in TRY_AGAIN or _is_our_fault(answer):
                    self._journal.violations.append(
                        f"odd answer: {method} {answer.status_code} {answer.text[:200]}"
                    )
                    raise GaveUp
            first = False
            await asyncio.sleep(PAUSE_S)
        raise GaveUp
