"""Many clients, few users, dying hosts: nothing acknowledged is lost, applied twice, or shown to another."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from typing import Any

import httpx

from tests.cluster.harness import ServerProcess, records

CLIENTS, USERS, KILLS = 64, 8, 3
WRITES_EACH = 4
BUDGET_S = 60.0


class Load:
    """What the clients did and saw."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.run = uuid.uuid4().hex[:6]
        self.acknowledged: list[
            tuple[str, str, str]
        ] = []  # user, message id, the word that only this message holds
        self.foreign: list[str] = []
        self.odd: list[str] = []

    def user(self, number: int) -> str:
        return f"crowd-{self.run}-{number % USERS}"

    def word(self, client: int, write: int) -> str:
        return f"{self.run}x{client % USERS}x{client}x{write}"

    async def client(self, number: int, http: httpx.AsyncClient) -> None:
        user = self.user(number)
        for write in range(WRITES_EACH):
            word = self.word(number, write)
            message = {"id": f"m-{word}", "role": "user", "content": f"My favourite book is called {word}."}
            body = {"session_id": f"{user}-{number}", "messages": [message]}
            if await self._acknowledged(http, f"/v1/users/{user}/messages", body):
                self.acknowledged.append((user, message["id"], word))
                await self._acknowledged(
                    http, f"/v1/users/{user}/messages", body
                )  # a retry must change nothing
            await self._recall(http, user, number)

    async def _acknowledged(self, http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> bool:
        for _ in range(20):
            try:
                answer = await http.post(path, json=body)
            except httpx.HTTPError:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code == 202:
                return True
            if answer.status_code not in {429, 503}:
                self.odd.append(f"{answer.status_code} {answer.text[:200]}")
                return False
            await asyncio.sleep(0.2)
        return False

    async def _recall(self, http: httpx.AsyncClient, user: str, number: int) -> None:
        try:
            answer = await http.post(
                f"/v1/users/{user}/recall", json={"query": "favourite book", "top_k": 20}
            )
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            mine = f"{self.run}x{number % USERS}x"
            self.foreign += [m["content"] for m in answer.json()["memories"] if mine not in m["content"]]
        elif answer.status_code not in {429, 503}:
            self.odd.append(f"recall {answer.status_code} {answer.text[:200]}")


async def killer(server: ServerProcess, load: asyncio.Task[None]) -> int:
    killed = 0
    while killed < KILLS:
        await asyncio.sleep(1.5)
        pids = await asyncio.to_thread(server.host_pids)
        os.kill(pids[killed % len(pids)], signal.SIGKILL)
        killed += 1
    return killed


async def test_64_clients_8_users_and_a_host_killed_three_times(server: ServerProcess) -> None:
    load = Load(server.url)
    limits = httpx.Limits(max_connections=CLIENTS)
    started = time.monotonic()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=limits, trust_env=False) as http:

        async def crowd() -> None:
            await asyncio.gather(*(load.client(number, http) for number in range(CLIENTS)))

        running = asyncio.create_task(crowd())
        killed = await killer(server, running)
        await running
    assert killed == KILLS
    assert time.monotonic() - started < BUDGET_S
    assert load.odd == []
    assert load.foreign == [], "one user's request showed another's text"
    assert len(load.acknowledged) >= CLIENTS * WRITES_EACH * 0.95
    await asyncio.to_thread(_check_outcome, server, load)


def _check_outcome(server: ServerProcess, load: Load) -> None:
    """Every acknowledged message is there, once: as a turn, and as the evidence of what was made of it."""
    with server.client() as http:
        for number in range(USERS):
            user = load.user(number)
            wanted = {message_id for owner, message_id, _ in load.acknowledged if owner == user}
            exported = _exported_when_quiet(http, user)
            turns = [turn["message_id"] for turn in exported["turns"]]
            assert sorted(set(turns)) == sorted(turns), "a message was applied twice"
            assert wanted <= set(turns), "an acknowledged message is missing"
            cited = [piece["message_id"] for memory in records(http, user) for piece in memory["evidence"]]
            assert len(cited) == len(set(cited)), "a message was settled twice"
            assert wanted <= set(cited), "an acknowledged message was never settled"


def _exported_when_quiet(http: httpx.Client, user: str) -> dict[str, list[dict[str, Any]]]:
    deadline = time.monotonic() + 40
    while True:
        exported: dict[str, list[dict[str, Any]]] = http.get(f"/v1/users/{user}/export").json()
        if not any(turn["pending"] for turn in exported["turns"]) or time.monotonic() > deadline:
            return exported
        time.sleep(0.5)
