"""People talk while the language model that reads them is broken: what both the app in process and a cluster must show."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, cycle, repeat
from statistics import median, quantiles
from typing import Any

import httpx

from hermes_memory.app.desk import PARKED
from tests.faulty_endpoint import GOOD, FaultyEndpoint, Spoil
from tests.model_reader import sentence

USERS, TURNS = 4, 6
PATIENCE_S = 60.0
EXTRACTOR: dict[str, Any] = {
    "kind": "openai", "model": "reader", "timeout_s": 1.0, "attempts": 2, "backoff_s": 0.05, "delay_s": 0.2,
    "fallback": "park",
}  # fmt: skip
BATCH: dict[str, Any] = {"attempts": 2, "backoff_s": 0.1, "parked_retry_s": 2.0}


def _saying(content: str) -> Spoil:
    """An answer of the API that holds ``content``."""
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    return Spoil(body=json.dumps({"choices": [choice]}).encode())


RUBBISH = (
    Spoil(body=b"<html>busy</html>"), _saying("Sure! Here it is."), _saying('{"statements": "many"}'),
    Spoil(body=b"[]"), _saying(""), _saying('{"statements": [{"quote": 7}]}'),
)  # fmt: skip
FAULTS: dict[str, tuple[Spoil, ...]] = {
    "healthy": (),
    "killed": (),
    "slow": (Spoil(first_byte_s=3.0),) * 8,
    "rate limited": (Spoil(status=429, retry_after="1"),) * 8,
    "rubbish": RUBBISH * 2,
    "cut": (Spoil(cut=True), Spoil(finish="length"), Spoil(endless=True)) * 3,
    "refused": (Spoil(status=500), Spoil(status=503), Spoil(status=500)) * 4,
}
EVERY_SECOND = "every second call"  # fails, to the end


def spoils(fault: str) -> Iterator[Spoil]:
    """What becomes of the answers to come."""
    if fault == EVERY_SECOND:
        return cycle([Spoil(status=500), GOOD])
    return chain(FAULTS.get(fault, ()), repeat(GOOD))


@dataclass
class Talk:
    """What a few people have said, and how soon each was answered."""

    http: httpx.AsyncClient
    name: str
    took_s: list[float] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)  # by message id

    @property
    def users(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(USERS)]

    async def say(self) -> None:
        """Everybody says everything, side by side; nobody waits for a model."""
        await asyncio.gather(*(self._say(user) for user in self.users))

    async def _say(self, user: str) -> None:
        for number in range(TURNS):
            message = {"id": f"{user}-{number}", "role": "user", "content": sentence(number)}
            began = time.perf_counter()
            answer = await self.http.post(
                f"/v1/users/{user}/messages", json={"session_id": f"{user}-s", "messages": [message]}
            )
            self.took_s.append(time.perf_counter() - began)
            assert answer.status_code == 202, answer.text
            self.jobs[message["id"]] = answer.json()["job_id"]

    async def states(self) -> Counter[tuple[str, str | None]]:
        """Status and reason of every job."""
        answers = await asyncio.gather(*(self.http.get(f"/v1/jobs/{job}") for job in self.jobs.values()))
        return Counter((answer.json()["status"], answer.json().get("reason")) for answer in answers)

    async def until(self, *statuses: str) -> Counter[tuple[str, str | None]]:
        """Wait until every job is in one of these states."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            states = await self.states()
            if {status for status, _ in states} <= set(statuses):
                return states
            assert time.monotonic() < give_up, f"{self.name}: {dict(states)}"
            await asyncio.sleep(0.2)

    async def nothing_is_lost_or_doubled(self) -> None:
        """Each message is evidence of one memory, and of nothing else."""
        for user in self.users:
            answer = await self.http.get(f"/v1/users/{user}/memories", params={"limit": 200})
            found = Counter(
                piece["message_id"] for memory in answer.json()["memories"] for piece in memory["evidence"]
            )
            assert found == Counter({f"{user}-{number}": 1 for number in range(TURNS)}), user

    @property
    def usual_s(self) -> float:
        """How soon half of the messages were taken in: a busy machine is late now and then, never most of the time."""
        return median(self.took_s)

    def told(self) -> str:
        """How soon messages were taken in, in ms."""
        p50, p95 = (quantiles(self.took_s, n=20)[place] * 1000 for place in (9, 18))
        return f"{self.name}: 202 after p50 {p50:.1f} ms, p95 {p95:.1f} ms, at most {max(self.took_s) * 1000:.1f} ms"


async def talk_through(http: httpx.AsyncClient, endpoint: FaultyEndpoint, fault: str) -> Talk:
    """One fault from its beginning to the recovery."""
    talk = Talk(http, fault.replace(" ", "-"))
    endpoint.spoils = spoils(fault)
    if fault == "killed":
        await endpoint.stop()
    await talk.say()
    if fault == "killed":
        states = await talk.until("failed")
        assert all(reason and "gave no usable answer" in reason for _, reason in states), states
        assert await open_alerts(http)
        await endpoint.start()
    await talk.until("done")
    await talk.nothing_is_lost_or_doubled()
    return talk


async def open_alerts(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """What waits for an operator because nobody could read it; other tests leave alerts of other kinds."""
    found: list[dict[str, Any]] = (await http.get("/v1/admin/alerts")).json()["alerts"]
    return [alert for alert in found if alert["kind"] == PARKED]
