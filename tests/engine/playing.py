"""Turns of the data sets through the extractor, the gates and a ledger, with every answer of the model kept.

``play`` is what the test of 16 turns and `make eval-vllm` have in common; the model is any LanguageModel.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench.grounding import DATA_DIR, pairs_of, ungrounded
from hermes_memory.adapters.model_extractor.contract import FORM, Unusable, parse
from hermes_memory.app.commands import Incoming, Ingest, ListMemories
from hermes_memory.app.users import operation_id_of
from hermes_memory.config import load_settings
from hermes_memory.core.candidate import Candidate, ExtractionRequest, Span, Usage
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role, Turn
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.embedder import Vectors
from hermes_memory.ports.language_model import Completion, Finish, LanguageModel, Question
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.wiring import build_distiller, build_embedder, build_host

SETS = ("locomo", "locomo_zh", "msc_persona")  # English, Chinese, English
STRIDE = 37  # a few turns of many conversations say more than many of one
JOB_S = 300.0


def mixed(turns: int) -> list[str]:
    """So many user turns: as many of each set, in turn. Fewer where a set ends."""
    each = [_every(name, turns) for name in SETS]
    return [text for together in zip(*each, strict=True) for text in together][:turns]


def _every(name: str, least: int) -> list[str]:
    said: Iterator[str] = (turn.content for _, turn in pairs_of(DATA_DIR / name))
    return list(islice(said, 0, least * STRIDE, STRIDE))


@dataclass
class Recording:
    """A LanguageModel that keeps what came back, and knows how many questions were under way at most."""

    model: LanguageModel
    answers: list[tuple[str, Completion]] = field(default_factory=list)  # with the form that was asked for
    most: int = 0
    _under_way: int = 0

    @property
    def name(self) -> str:
        return self.model.name

    async def answer(self, question: Question) -> Completion:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            completion = await self.model.answer(question)
        finally:
            self._under_way -= 1
        self.answers.append((question.form, completion))
        return completion


@dataclass
class _Watched:
    """A Distiller that keeps what extractions said of themselves."""

    distiller: Distiller
    usage: Usage = field(default_factory=Usage)
    extractors: Counter[str] = field(default_factory=Counter)

    async def distil(self, request: ExtractionRequest) -> Distilled:
        distilled = await self.distiller.distil(request)
        self.usage += distilled.extraction.usage
        self.extractors[distilled.extraction.extractor] += 1
        return distilled

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.distiller.embed(texts)


@dataclass(frozen=True, slots=True)
class Played:
    """What became of the turns. ``unusable``: answers to the first question that the contract refuses, by why."""

    turns: int
    jobs: Counter[str]
    answers: int
    unusable: Counter[str]
    usage: Usage
    extractors: Counter[str]
    memories: int
    ungrounded: list[str]  # ids
    most: int  # questions under way at once


async def play(
    model: LanguageModel, texts: Sequence[str], data: Path, overrides: dict[str, Any], per_user: int = 2
) -> Played:
    """Every ``per_user`` turns are one user's, said at once; all users speak at the same time."""
    settings = load_settings(None, overrides)
    embedder, recording = build_embedder(settings), Recording(model)
    watched = _Watched(build_distiller(settings, embedder, recording))
    host = build_host("play", settings, data, watched, embedder.info)
    await host.start()
    try:
        users = LocalUsers(host)
        groups = [texts[start : start + per_user] for start in range(0, len(texts), per_user)]
        told = await asyncio.gather(*(_tell(users, number, said) for number, said in enumerate(groups)))
        records = await asyncio.gather(*(_memories(users, number) for number in range(len(groups))))
    finally:
        await host.stop()
    unfounded = [
        memory["id"]
        for said, found in zip(groups, records, strict=True)
        for memory in found
        if not grounded(memory, said)
    ]
    return Played(
        turns=len(texts), jobs=Counter(job["status"] for job in told), answers=len(recording.answers),
        unusable=_unusable(recording.answers), usage=watched.usage, extractors=watched.extractors,
        memories=sum(map(len, records)), ungrounded=unfounded, most=recording.most,
    )  # fmt: skip


async def _tell(users: LocalUsers, number: int, said: Sequence[str]) -> dict[str, Any]:
    command = Ingest(
        session_id=f"play-{number}",
        messages=tuple(Incoming(role=Role.USER, content=text, id=None, created_at=None) for text in said),
        timezone="UTC",
        scene=None,
    )
    accepted = await users.execute(_user(number), command, operation_id_of(command))
    job = await users.wait(_user(number), accepted["job_id"], JOB_S)
    return job or accepted


async def _memories(users: LocalUsers, number: int) -> list[dict[str, Any]]:
    page = await users.ask(_user(number), ListMemories(filters={}, cursor=None, limit=200))
    return list(page["memories"])


def _user(number: int) -> UserKey:
    return UserKey("play", f"u{number}")


def grounded(memory: dict[str, Any], said: Sequence[str]) -> bool:
    """Whether every quote stands verbatim in a turn of the user's, and one of them holds all that the memory says."""
    quotes = [piece["quote"] for piece in memory["evidence"]]
    return (
        bool(quotes)
        and all(any(quote in text for text in said) for quote in quotes)
        and any(not _unfounded(memory, quote) for quote in quotes)
    )


def _unfounded(memory: dict[str, Any], quote: str) -> bool:
    candidate = SimpleNamespace(
        span=Span("m", 0, len(quote)), content=memory["content"], object=memory["object"], valid_from=None
    )
    turn = SimpleNamespace(role=Role.USER, message_id="m", content=quote)
    return ungrounded(cast("Candidate", candidate), cast("Turn", turn))


def _unusable(answers: Sequence[tuple[str, Completion]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for form, completion in answers:
        if form != FORM:
            continue
        if completion.finish is not Finish.STOP:
            found["cut"] += 1
            continue
        try:
            parse(completion.text)
        except Unusable as error:
            found[error.code] += 1
    return found
