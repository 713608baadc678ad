"""The product on the same turns: everything goes through its library, from the message to the answer of a recall."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from bench.recall_quality.data import Person, Session
from bench.recall_quality.scores import DEPTH, Answer, timed
from hermes_memory.app.commands import Incoming, Ingest
from hermes_memory.core.model import LIVE, Role
from hermes_memory.memory import CALL_TIMEOUT_S, Memory
from hermes_memory.ports.embedder import Embedder

HERE = Path(__file__).parent
LIFTED, GATED = HERE / "lifted.toml", HERE / "gated.toml"
BATCH = 200  # messages of a request at most (API)

Overrides = Mapping[str, Any]


class Library(Memory):
    """The library, with whole conversations at a time."""

    def take_in(self, person: Person) -> None:
        """Send all that a person says, session by session, and end each."""
        for session in person.sessions:
            for start in range(0, len(session.turns), BATCH):
                self.settle(person.name, _request(session, start))
            self.end_session(person.name, session.id)

    def records(self, user: str) -> dict[str, Record]:
        """Every memory by id, whatever its status."""
        return {
            one["id"]: Record(
                frozenset(piece["message_id"] for piece in one["evidence"]), one["status"] in LIVE
            )
            for one in self.memories(user)
        }

    def settle(self, user: str, command: Ingest) -> None:
        """Take a request in and wait until it is settled."""
        accepted = self.execute(user, command)
        job: dict[str, Any] | None = None
        while job is None:  # embedding for the first time may take longer than one wait
            job = self._loop.run(self._users.wait(self._key(user), accepted["job_id"], CALL_TIMEOUT_S))
        assert job["status"] == "done", f"{command.session_id}: {job}"


@dataclass(frozen=True, slots=True)
class Record:
    """The messages that a memory rests on, all of them, and whether recall can see it."""

    messages: frozenset[str]
    live: bool


@dataclass(frozen=True, slots=True)
class Intake:
    """What became of the turns. ``kept`` is the share of gold turns that some live memory rests on."""

    turns: int
    memories: int
    kept: float
    seconds: float


class Trial:
    """People taken in once under a configuration; asked as often as wanted, each time from a fresh copy.

    A copy, because recalls leave traces (access counts, what comes back from the archive).
    """

    def __init__(
        self, people: Sequence[Person], config: Path, embedder: Embedder, overrides: Overrides
    ) -> None:
        self._people, self._config, self._embedder, self._overrides = people, config, embedder, overrides
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-bench-")
        self._data = Path(self._folder.name) / "data"
        start = time.perf_counter()
        with self._open(self._data, {}) as library:
            for person in people:
                library.take_in(person)
            seconds = time.perf_counter() - start
            self._records = {person.name: library.records(person.name) for person in people}
        self.intake = Intake(
            turns=sum(len(person.turns) for person in people),
            memories=sum(record.live for records in self._records.values() for record in records.values()),
            kept=self._kept(),
            seconds=seconds,
        )

    def close(self) -> None:
        """Throw the data away."""
        self._folder.cleanup()

    def ask(self, more: Overrides | None = None) -> list[Answer]:
        """Every question, under the trial's configuration and ``more`` (keys that only recall reads)."""
        copy = Path(self._folder.name) / "copy"
        shutil.copytree(self._data, copy)
        try:
            with self._open(copy, more or {}) as library:
                return [answer for person in self._people for answer in self._answers(library, person)]
        finally:
            shutil.rmtree(copy)

    def _answers(self, library: Library, person: Person) -> Iterator[Answer]:
        last = max(turn.at for turn in person.turns)
        records = self._records[person.name]
        for question in person.questions:
            asyncio.run(self._embedder.queries([question.text]))  # remembered: what is timed is the search
            search = partial(library.recall, person.name, question.text, top_k=DEPTH, as_of=last)
            answer, taken = timed(search)
            ranked = [hit["id"] for hit in answer["memories"] if hit["score"] is not None]
            yield Answer(question, [records[one].messages for one in ranked], taken)

    def _kept(self) -> float:
        live = {
            name: frozenset[str]().union(*(record.messages for record in records.values() if record.live))
            for name, records in self._records.items()
        }
        gold = [
            (asked.of, turn) for person in self._people for asked in person.questions for turn in asked.gold
        ]
        return sum(turn in live[name] for name, turn in gold) / len(gold)

    @contextmanager
    def _open(self, data: Path, more: Overrides) -> Iterator[Library]:
        overrides = merged(self._overrides, more)
        with (
            mock.patch("hermes_memory.memory.build_embedder", lambda _: self._embedder),
            Library.open(data, config=self._config, **overrides) as library,
        ):
            assert isinstance(library, Library)
            yield library


def merged(base: Overrides, over: Overrides) -> dict[str, Any]:
    """``base`` with the keys of ``over``, section by section."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _request(session: Session, start: int) -> Ingest:
    messages = tuple(
        Incoming(role=Role.USER, content=turn.spoken, id=turn.id, created_at=turn.at)
        for turn in session.turns[start : start + BATCH]
    )
    return Ingest(session_id=session.id, messages=messages, timezone="UTC")
