"""Recorded answers through the real interface: a server on a port, the chat model, the whole library, a store."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory import Memory
from hermes_memory.app.commands import Incoming, Ingest
from hermes_memory.core.model import Role
from tests.hostile_answers import Case, cases, written
from tests.openai_server import OpenAIServer, serving
from tests.runtime.local_app import WITHOUT_MODEL

WRONG, RIGHT = cases("wrong"), cases("right")
SHOWN = ("dimension", "object", "subject", "polarity", "category", "content", "scope", "negative")
KINDS = {
    "invented fact", "the assistant's words", "swapped subject", "lost negation", "added negation", "translated name",
    "invented number", "invented date", "injected order", "other users' memories", "wrong span", "absent span",
    "pasted block", "cut JSON", "not JSON", "JSON in prose", "wrong types", "extra keys", "huge strings",
    "control characters", "lone surrogates", "10,000 candidates", "examples of the prompt", "small talk",
    "mislabelled dimension", "claimed correction", "bare ok", "emotion as fact", "hypothetical", "joke",
}  # fmt: skip


class Recorded:
    """A server in a thread of its own that answers what it is told to, and a memory that asks it."""

    def __init__(self, server: OpenAIServer, memory: Memory) -> None:
        self.server, self.memory = server, memory

    def told(self, case: Case, user: str) -> dict[str, Any]:
        """The job of the case's last turn."""
        for earlier in case.known:
            self._answering(written(earlier["answer"]), "stop", "yes")
            self.memory.remember(user, earlier["text"], session=f"{user}-before")
        if case.before:
            messages = tuple(Incoming(role=Role.ASSISTANT, content=text) for text in case.before)
            self.memory.execute(
                user, Ingest(session_id=f"{user}-now", messages=messages, timezone="Asia/Shanghai")
            )
        self._answering(case.said, case.finish, case.opinion)
        return self.memory.remember(user, case.text, session=f"{user}-now", timezone="Asia/Shanghai")

    def _answering(self, text: str, finish: str, opinion: str) -> None:
        def chat(body: dict[str, Any]) -> tuple[str, str]:
            form = body["response_format"]["json_schema"]["name"]
            if form == "opinion":
                count = body["messages"][-1]["content"].count('"quote":')
                return '{"verdicts": [' + ", ".join([f'"{opinion}"'] * count) + "]}", "stop"
            return text, finish

        self.server.chat = chat


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    context = serving()
    try:
        server = asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(10)
        extractor = {"kind": "openai", "model": "reader-7b", "base_url": server.url, "timeout_s": 10.0}
        batch = {"delay_s": 5.0, "backoff_s": 0.01}  # the assistant's turn is read together with the user's
        data: Path = tmp_path_factory.mktemp("hostile")
        with Memory.open(data, **{**WITHOUT_MODEL, "extractor": extractor, "batch": batch}) as memory:
            yield Recorded(server, memory)
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def facts(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the records say, oldest first."""
    return [{name: record[name] for name in SHOWN} for record in reversed(records)]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_nothing_of_a_wrong_answer_gets_in(recorded: Recorded, case: Case) -> None:
    user = f"wrong-{case.id}"
    job = recorded.told(case, user)
    assert job["status"] == "done", job
    records = recorded.memory.memories(user)
    assert len(records) == len(case.known), facts(records)
    for record in records:  # what was known is as it was
        assert (record["status"], record["lock"], record["confirmations"]) == ("active", "pending", [])
        assert len(record["evidence"]) == 1
    assert case.reason in [change["reason"] for change in job["changes"]], job["changes"]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.id)
def test_a_right_answer_gets_in_as_it_is(recorded: Recorded, case: Case) -> None:
    user = f"right-{case.id}"
    job = recorded.told(case, user)
    assert job["status"] == "done", job
    records = [r for r in recorded.memory.memories(user) if r["status"] == "active"]
    assert len(records) == len(case.expect), (facts(records), job["changes"])
    by_object = {record["object"]: record for record in records}
    for wanted in case.expect:
        record = by_object[wanted["object"]]
        said = {name: value for name, value in record.items() if name in wanted}
        if "confirmations" in wanted:
            said["confirmations"] = len(record["confirmations"])
        assert said == wanted, job["changes"]
        for piece in record["evidence"]:
            assert any(piece["quote"] in text for text in (case.text, *(one["text"] for one in case.known)))
            assert piece["extractor"] == "llm/extract-1/reader-7b"


def test_every_kind_of_wrong_answer_is_there() -> None:
    assert {case.kind for case in WRONG} >= KINDS
    assert len(WRONG) >= 60 and len({case.id for case in [*WRONG, *RIGHT]}) == len(WRONG) + len(RIGHT)
    for some in (WRONG, RIGHT):
        languages = Counter(any("一" <= char <= "鿿" for char in case.text) for case in some)
        assert min(languages.values()) >= len(some) / 4
    assert len(RIGHT) >= 25
