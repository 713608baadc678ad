"""The talks through the product: taken in, the session ended, one night, and the profile that came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.extraction_zh import ZONE
from bench.profile_quality.gold import Line, Talker
from bench.recall_quality.product import Library
from hermes_memory.app.commands import EndSession, GetProfile, Incoming, Ingest, Maintain
from hermes_memory.core.model import Role

BATCH = 100  # lines of a request: each may bring the other speaker's utterance along


@dataclass(frozen=True, slots=True)
class Kept:
    """One memory: the lines it rests on, what it says, and its quotes."""

    id: str
    lines: frozenset[str]
    content: str
    object: str
    layer: str | None
    status: str
    scope: str
    lock: str
    subject: str
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One memory behind a slot; ``memory`` is None when the slot names one that is not there."""

    layer: str
    dimension: str
    memory: Kept | None


@dataclass(frozen=True, slots=True)
class Modelled:
    """A talker, every memory of theirs, and every statement that stands behind a slot."""

    talker: Talker
    memories: Mapping[str, Kept]
    answers: Sequence[Answer]


def play(talkers: Sequence[Talker]) -> Iterator[Modelled]:
    """Everybody in turn, in one store that is thrown away."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder,
        Library.open(Path(folder) / "data", ledger={"synchronous": "NORMAL"}) as library,
    ):
        assert isinstance(library, Library)
        for talker in talkers:
            yield _model(library, talker)


def _model(library: Library, talker: Talker) -> Modelled:
    session = f"{talker.name}-s"
    for start in range(0, len(talker.lines), BATCH):
        messages = tuple(
            message for line in talker.lines[start : start + BATCH] for message in _messages(line)
        )
        zone = ZONE if talker.chinese else "UTC"
        library.settle(talker.name, Ingest(session_id=session, messages=messages, timezone=zone))
    library.execute(talker.name, EndSession(session_id=session))
    night = talker.lines[-1].at + timedelta(days=1)
    library.execute(talker.name, Maintain(now=night))
    memories = {row["id"]: _kept(row) for row in library.memories(talker.name)}
    profile = library.ask(talker.name, GetProfile())
    return Modelled(talker, memories, list(_answers(profile, memories)))


def _messages(line: Line) -> Iterator[Incoming]:
    if line.before:
        yield Incoming(role=Role.ASSISTANT, content=line.before, id=f"a-{line.id}", created_at=line.at)
    yield Incoming(role=Role.USER, content=line.text, id=line.id, created_at=line.at)


def _kept(row: Mapping[str, Any]) -> Kept:
    return Kept(
        id=row["id"],
        lines=frozenset(piece["message_id"] for piece in row["evidence"]),
        content=row["content"],
        object=row["object"],
        layer=row["layer"],
        status=row["status"],
        scope=row["scope"],
        lock=row["lock"],
        subject=row["subject"],
        quotes=tuple(piece["quote"] for piece in row["evidence"]),
    )


def _answers(profile: Mapping[str, Any], memories: Mapping[str, Kept]) -> Iterator[Answer]:
    for layer, slots in profile.items():
        if isinstance(slots, Mapping) and layer not in ("behavior", "defaults"):  # those are no statements
            for dimension, slot in slots.items():
                for one in slot["memory_ids"]:
                    yield Answer(layer, dimension, memories.get(one))
