"""The product on the same turns: everything goes through its library, from the message to the answer of a recall."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from bench.recall_quality.data import Person, Session
from bench.recall_quality.scores import DEPTH, Answer
from hermes_memory.app.commands import Command, Incoming, Ingest
from hermes_memory.core.model import Role
from hermes_memory.memory import Memory
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
                self._settle(person.name, _request(session, start))
            self.end_session(person.name, session.id)

    def evidence(self, user: str) -> dict[str, frozenset[str]]:
        """Memory id → the ids of all messages it rests on, whatever its status."""
        return {
            record["id"]: frozenset(piece["message_id"] for piece in record["evidence"])
            for record in self.memories(user)
        }

    def _settle(self, user: str, command: Command) -> None:
        assert isinstance(command, Ingest)
        job = self._loop.run(self._remember(self._key(user), command))
        assert job["status"] == "done", f"{user}: {job}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the product found. ``kept`` is the share of gold turns that some live memory rests on."""

    answers: list[Answer]
    kept: float
    memories: int
    turns: int
    ingest_s: float

    def of(self, answers: list[Answer]) -> Outcome:
        """The same intake with other answers."""
        return Outcome(answers, self.kept, self.memories, self.turns, self.ingest_s)


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
        self._evidence: dict[str, dict[str, frozenset[str]]] = {}
        start = time.perf_counter()
        with self._open(self._data, {}) as library:
            for person in people:
                library.take_in(person)
            self.ingest_s = time.perf_counter() - start
            self._evidence = {person.name: library.evidence(person.name) for person in people}
            self.live = {p.name: _live(library, p.name) for p in people}

    def close(self) -> None:
        """Throw the data away."""
        self._folder.cleanup()

    def ask(self, more: Overrides | None = None) -> Outcome:
        """Every question, under the trial's configuration and ``more`` (keys that only recall reads)."""
        copy = Path(self._folder.name) / "copy"
        shutil.copytree(self._data, copy)
        try:
            with self._open(copy, more or {}) as library:
                answers = [answer for person in self._people for answer in self._each(library, person)]
        finally:
            shutil.rmtree(copy)
        gold = [(p.name, turn) for p in self._people for q in p.questions for turn in q.gold]
        kept = {
            p.name: frozenset[str]().union(*(self._evidence[p.name][one] for one in self.live[p.name]))
            for p in self._people
        }
        return Outcome(
            answers,
            sum(turn in kept[name] for name, turn in gold) / len(gold),
            sum(map(len, self.live.values())),
            sum(len(p.turns) for p in self._people),
            self.ingest_s,
        )

    def _each(self, library: Library, person: Person) -> Iterator[Answer]:
        last = max(turn.at for turn in person.turns)
        known = self._evidence[person.name]
        for question in person.questions:
            asyncio.run(self._embedder.queries([question.text]))  # remembered: what is timed is the search
            start = time.perf_counter()
            answer = library.recall(person.name, question.text, top_k=DEPTH, as_of=last)
            spent_ms = (time.perf_counter() - start) * 1000
            ranked = [hit["id"] for hit in answer["memories"] if hit["score"] is not None]
            yield Answer(question, [known[one] for one in ranked], spent_ms)

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


def _live(library: Library, user: str) -> list[str]:
    return [one["id"] for status in ("active", "review") for one in library.memories(user, status=status)]
