"""Turns of the data sets through the extractor, the gates and a ledger, every answer looked at: `make eval-vllm` in small."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.eval_vllm.checking import Verdict, checked, words
from bench.eval_vllm.turns import conversations
from bench.eval_vllm.watching import VALID, Seen, WatchedDistiller, WatchedModel
from bench.extraction_calls.talks import Talk
from hermes_memory.app.commands import Export, Incoming, Ingest
from hermes_memory.app.users import operation_id_of
from hermes_memory.config import Settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.ports.language_model import LanguageModel
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_policy

JOB_S = 300.0
EACH = 4  # turns of a user, either side's: several users speak at once


@dataclass(frozen=True, slots=True)
class Played:
    """What became of the turns."""

    turns: int
    jobs: Counter[str]
    seen: Seen
    verdict: Verdict

    @property
    def answers(self) -> int:
        """How often the model answered."""
        return self.seen.outputs.total()

    @property
    def unusable(self) -> int:
        """Answers that the contract refuses, or that were cut."""
        return sum(times for (_, kind), times in self.seen.outputs.items() if kind != VALID)


async def play(model: LanguageModel, turns: int, data: Path, settings: Settings) -> Played:
    """Everybody says everything at once; then all jobs are waited for."""
    talks, seen, embedder = conversations(turns, EACH), Seen(), build_embedder(settings)
    distiller = WatchedDistiller(build_distiller(settings, embedder, WatchedModel(model, seen)), seen)
    host = build_host("play", settings, data, distiller, embedder.info)
    await host.start()
    try:
        users = LocalUsers(host)
        jobs = await asyncio.gather(*(_tell(users, talk) for talk in talks))
        exports = [await users.ask(_key(talk), Export()) for talk in talks]
    finally:
        await host.stop()
    return Played(
        turns=sum(len(talk.messages) for talk in talks), jobs=Counter(job["status"] for job in jobs), seen=seen,
        verdict=checked(exports, _spoken(settings, talks), seen.read),
    )  # fmt: skip


async def _tell(users: LocalUsers, talk: Talk) -> dict[str, Any]:
    command = Ingest(
        session_id=talk.user,
        messages=tuple(
            Incoming(role=Role(one.role), content=one.text, id=f"m{number}")
            for number, one in enumerate(talk.messages)
        ),
        timezone="UTC",
    )
    accepted = await users.execute(_key(talk), command, operation_id_of(command))
    job: dict[str, Any] = await users.wait(_key(talk), accepted["job_id"], JOB_S) or accepted
    return job


def _key(talk: Talk) -> UserKey:
    return UserKey("play", talk.user)


def _spoken(settings: Settings, talks: Sequence[Talk]) -> dict[tuple[str, str], tuple[str, str]]:
    """What was said, as the privacy gate lets it in."""
    mask = build_policy(settings).mask
    return {
        (talk.user, f"m{number}"): (one.role, mask(one.text))
        for talk in talks
        for number, one in enumerate(talk.messages)
    }


def grounded(memory: Mapping[str, Any], said: str) -> bool:
    """Whether a memory of one turn quotes it verbatim and says nothing else."""
    quotes = [piece["quote"] for piece in memory["evidence"]]
    claimed = words(memory["content"]) | words(memory["object"])
    return bool(quotes) and all(quote in said for quote in quotes) and claimed <= words(said)
