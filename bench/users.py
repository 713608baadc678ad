"""Synthetic users, written through the Ledger port before the server starts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench.texts import Kind, statements
from hermes_memory.config import Settings
from hermes_memory.core.calibration import Floats
from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.model import Layer, Lock, Memory, Tier
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.ports.ledger import Commit, Ledger
from hermes_memory.testing.builders import a_memory, an_evidence
from hermes_memory.wiring import build_ledger, build_profile
from serve_app.services import DEFAULT_NAMESPACE

# Texts of one model lie in a narrow cone (FIELD_NOTES): a random direction around the common one, so that as
# many memories pass the threshold as with real texts. Entirely random directions would be a tenth of them.
CONE = 0.85
EPOCH = 1


@dataclass(frozen=True, slots=True)
class Crowd:
    """So many users with so many memories each."""

    users: int
    memories: int

    def name(self, number: int) -> str:
        """The id of one of them."""
        return f"m{self.memories}-u{number}"

    def __str__(self) -> str:
        return f"{self.users:,} × {self.memories:,}"


def load(settings: Settings, data: Path, crowds: Sequence[Crowd], together: int = 1) -> None:
    """Fill the configured ledger; one commit for each user, ``together`` at once."""
    data.mkdir(parents=True, exist_ok=True)
    asyncio.run(_load(settings, data, crowds, together))


async def _load(settings: Settings, data: Path, crowds: Sequence[Crowd], together: int) -> None:
    profile = build_profile(settings)
    centring = profile.calibration.centring
    centre = np.zeros(profile.dimension, np.float32) if centring is None else centring.passage_mean
    ledger = build_ledger(settings, data)
    await ledger.open(EmbedderInfo(profile.model, profile.dimension))
    try:
        for crowd in crowds:
            said = statements(crowd.memories)
            left = iter(range(crowd.users))

            async def filler(
                crowd: Crowd, said: Sequence[tuple[Kind, str, str]], left: Iterator[int]
            ) -> None:
                for number in left:
                    await _put(ledger, crowd.name(number), said, _vectors(number, len(said), centre))

            await asyncio.gather(*(filler(crowd, said, left) for _ in range(together)))
    finally:
        await ledger.close()


def _vectors(seed: int, count: int, centre: Floats) -> Floats:
    """Unit vectors, shape (count, dimension)."""
    size = len(centre)
    random = np.random.default_rng(seed).standard_normal((count, size), np.float32) / np.sqrt(size)
    raw = CONE * centre + np.sqrt(1 - CONE**2) * random
    return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), np.float32)


async def _put(ledger: Ledger, name: str, said: Sequence[tuple[Kind, str, str]], vectors: Floats) -> None:
    key = UserKey(DEFAULT_NAMESPACE, name)
    now = datetime.now(UTC)
    memories = tuple(synthetic(key, said, now))
    await ledger.commit(
        Commit(
            key=key,
            expected_version=0,
            epoch=EPOCH,
            operation_id="load",
            at=now,
            memories=memories,
            vectors={memory.id: vector for memory, vector in zip(memories, vectors, strict=True)},
        )
    )


def synthetic(key: UserKey, said: Sequence[tuple[Kind, str, str]], now: datetime) -> Iterator[Memory]:
    """The memories of one user, the newest first."""
    for number, (kind, text, value) in enumerate(said):
        yield _memory(key, number, said=(kind, text, value), now=now)


def _memory(key: UserKey, number: int, *, said: tuple[Kind, str, str], now: datetime) -> Memory:
    kind, text, value = said
    when = now - timedelta(hours=1 + number * 5)
    session = f"{key.user_id}-s{number // 8}"
    pieces = 2 if number % 4 == 0 else 1
    evidence = tuple(
        an_evidence(
            session_id=session, turn_index=2 * number + at, message_id=f"msg-{number}-{at}",
            quote=text, end=len(text), created_at=when, extractor="bench/1",
        )
        for at in range(pieces)
    )  # fmt: skip
    guarded = kind.layer is Layer.RESTRICTION or kind.most == 1
    return a_memory(
        id=f"mem_{digest(key.user_id, str(number), size=10)}", namespace=key.namespace, user_id=key.user_id,
        category=kind.category, layer=kind.layer, predicate=kind.dimension, object=value,
        dimension=kind.dimension, content=text, content_hash=digest(text), safety=kind.dimension == "allergy",
        lock=Lock.FROZEN if guarded else (Lock.PENDING, Lock.CONFIRMED)[number % 2],
        tier=Tier.CORE if guarded else Tier.LONGTERM, created_at=when, updated_at=when, evidence=evidence,
    )  # fmt: skip
