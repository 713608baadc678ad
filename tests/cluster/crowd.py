"""Clients who write and recall over HTTP until they are told to stop, and what must be true afterwards."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.cluster.harness import records

PATIENT = {429, 503}  # what the contract lets a client see: try again
QUIET_S = 60.0


class Crowd:
    """Two clients for each user; every acknowledged message is sent a second time, which must change nothing."""

    def __init__(self, url: str, users: int = 8, pause_s: float = 0.05) -> None:
        self.url, self.users, self.pause_s = url, users, pause_s
        self.run = uuid.uuid4().hex[:6]
        self.acknowledged: dict[str, set[str]] = {self.user(number): set() for number in range(users)}
        self.foreign: list[str] = []
        self.odd: list[str] = []
        self.retried: Counter[str] = Counter()
        self.backwards: list[str] = []
        self.latencies_s: list[float] = []

    def user(self, number: int) -> str:
        return f"mover-{self.run}-{number}"

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """They are at it meanwhile."""
        over = asyncio.Event()
        limits = httpx.Limits(max_connections=4 * self.users)
        async with httpx.AsyncClient(base_url=self.url, timeout=60, limits=limits, trust_env=False) as http:
            clients = [
                asyncio.create_task(self._client(number, side, http, over))
                for number in range(self.users)
                for side in range(2)
            ]
            try:
                yield
            finally:
                over.set()
                await asyncio.gather(*clients)

    async def _client(self, number: int, side: int, http: httpx.AsyncClient, over: asyncio.Event) -> None:
        user, version, turn = self.user(number), 0, 0
        while not over.is_set():
            word = f"{self.run}x{number}x{side}x{turn}"
            message = {"id": f"m-{word}", "role": "user", "content": f"My favourite book is called {word}."}
            body = {"session_id": f"{user}-{side}", "messages": [message]}
            for _ in range(2):
                if await self._sent(http, f"/v1/users/{user}/messages", body):
                    self.acknowledged[user].add(message["id"])
            answer = await self._sent(
                http, f"/v1/users/{user}/recall", {"query": "favourite book", "top_k": 20}
            )
            if answer:
                mine = f"{self.run}x{number}x"
                self.foreign += [m["content"] for m in answer["memories"] if mine not in m["content"]]
                if answer["version"] < version:
                    self.backwards.append(f"{user} {version} {answer['version']}")
                version = answer["version"]
            turn += 1
            await asyncio.sleep(self.pause_s)

    async def _sent(self, http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, after as many tries as it takes; empty when it never came or was an error."""
        for _ in range(100):
            began = time.monotonic()
            try:
                answer = await http.post(path, json=body)
            except httpx.HTTPError as error:
                self.retried[type(error).__name__] += 1
                await asyncio.sleep(0.2)
                continue
            if answer.is_success:
                self.latencies_s.append(time.monotonic() - began)
                found: dict[str, Any] = answer.json()
                return found
            if "json" not in answer.headers.get("content-type", ""):
                # Serve's proxy speaks for a replica that died in the middle: the outcome is unknown.
                self.retried[f"proxy {answer.status_code}"] += 1
                await asyncio.sleep(0.2)
                continue
            if answer.status_code not in PATIENT:
                self.odd.append(f"{answer.status_code} {answer.text[:200]}")
                return {}
            self.retried[str(answer.status_code)] += 1
            await asyncio.sleep(0.2)
        self.odd.append(f"no answer to {path}")
        return {}

    def told(self) -> str:
        """What a person wants to know of it."""
        ordered = sorted(self.latencies_s)
        p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
        count = sum(len(ids) for ids in self.acknowledged.values())
        return (
            f"{count} messages acknowledged, {len(ordered)} answers: p50 {p50 * 1000:.0f} ms, "
            f"p99 {p99 * 1000:.0f} ms, longest {ordered[-1]:.2f} s; tried again: {dict(self.retried)}"
        )

    def check(self, http: httpx.Client) -> None:
        """Nothing acknowledged is missing, nothing is there twice, nobody saw another's, no version went back."""
        assert self.odd == [], self.odd
        assert self.foreign == [], "one user's request showed another's text"
        assert self.backwards == [], f"a version went back: {self.backwards}"
        for user, wanted in self.acknowledged.items():
            assert wanted, "nobody wrote anything"
            turns = [turn["message_id"] for turn in _exported_when_quiet(http, user)["turns"]]
            assert len(turns) == len(set(turns)), "a message was applied twice"
            assert wanted <= set(turns), "an acknowledged message is missing"
            cited = Counter(
                piece["message_id"] for memory in records(http, user) for piece in memory["evidence"]
            )
            assert set(cited.values()) <= {1}, "a message was settled twice"
            assert wanted <= set(cited), "an acknowledged message was never settled"


def _exported_when_quiet(http: httpx.Client, user: str) -> dict[str, list[dict[str, Any]]]:
    deadline = time.monotonic() + QUIET_S
    while True:
        exported: dict[str, list[dict[str, Any]]] = http.get(f"/v1/users/{user}/export").json()
        if not any(turn["pending"] for turn in exported["turns"]) or time.monotonic() > deadline:
            return exported
        time.sleep(0.5)
