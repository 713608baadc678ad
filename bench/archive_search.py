"""An archive that an index searches beside one that the actor holds: is the same found, and what does it take?

One user, whose memories are all archived, so that every query needs the archive; made-up memories with the real
embedder's vectors, on a real SQLite ledger. The index is exact and in this process: what is missing from the answer is
what the number of nominations leaves out, and the time is the recall's own share, without a server's.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any, cast

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import queries, statements
from bench.traffic import Spread
from bench.users import EPOCH, synthetic
from hermes_memory.adapters.clock import SystemClock
from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.adapters.metrics import NullMetrics
from hermes_memory.app.commands import Recall
from hermes_memory.app.desk import Policy
from hermes_memory.app.recall import Found, find, probe, read
from hermes_memory.app.state import UserState, own_words
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Lock, Memory, Revision, Status, Tier
from hermes_memory.core.reasons import Reason
from hermes_memory.ports.embedder import Embedder, Vectors
from hermes_memory.ports.index import Document, VectorIndex
from hermes_memory.ports.ledger import Commit, Ledger, Snapshot
from hermes_memory.runtime.long_term import LongTerm, SearchRules
from hermes_memory.wiring import build_embedder, build_ledger, build_policy

LIMITS = (
    Limit("agreement", what="share of the hits that both find, with the most memories", at_least=0.99),
    Limit(
        "kept_bytes",
        what="bytes that an archived memory takes beside its record, without its vector",
        below=2_500,
    ),
)
SIZES, QUICK = (250, 1_000, 2_500), (250,)
ASKED, QUICK_ASKED = 300, 60
KEY = UserKey("bench", "archived")
SEARCH = SearchRules(nominations=64, timeout_s=60.0, failures=3, pause_s=5.0)


@dataclass(slots=True)
class Seen:
    """One size of archive: bytes for each memory beside its record, times in ms, and the share of hits in common."""

    memories: int
    held_bytes: float
    kept_bytes: float
    agreement: float = 0.0
    same: float = 0.0  # share of the queries with the same hits in the same order
    times: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Around:
    """As much of a host's surroundings as a search needs."""

    ledger: Ledger
    clock: SystemClock = field(default_factory=SystemClock)
    metrics: NullMetrics = field(default_factory=NullMetrics)


def run(*, quick: bool, say: Say) -> Report:
    """Every size with a ledger of its own."""
    return report(asyncio.run(_measure(QUICK if quick else SIZES, QUICK_ASKED if quick else ASKED, say)))


async def _measure(sizes: Sequence[int], count: int, say: Say) -> list[Seen]:
    settings = load_settings()
    policy, embedder = build_policy(settings), build_embedder(settings)
    said = statements(max(sizes))
    say(f"embedding {len(said):,} memories and {count} queries")
    vectors = await embedder.passages([text for _, text, _ in said])
    asked = await _recalls(policy, embedder, count)
    seen = []
    for size in sizes:
        say(f"asking {size:,} memories")
        with tempfile.TemporaryDirectory() as folder:
            seen.append(await _one(settings, policy, Path(folder), archived(size), vectors[:size], asked))
    return seen


async def _recalls(policy: Policy, embedder: Embedder, count: int) -> list[Recall]:
    texts, now = list(islice(queries(), count)), datetime.now(UTC)
    vectors = await embedder.queries(texts)
    return [
        Recall(query=text, vector=vector, words=policy.words(text), asked=read(text, now, None, policy))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def archived(count: int) -> list[Memory]:
    """Memories that went for want of room."""
    now = datetime.now(UTC)
    return [
        memory.with_(
            status=Status.ARCHIVED, lock=Lock.PENDING, tier=Tier.LONGTERM, safety=False, archived_at=now,
            history=(
                Revision(
                    at=now, version=memory.version, reason=Reason.CAPACITY, message_id=None, content=memory.content,
                    object=memory.object, polarity=memory.polarity, lock=Lock.PENDING, status=Status.ACTIVE,
                ),
            ),
        )
        for memory in synthetic(KEY, statements(count), now)
    ]  # fmt: skip


async def _one(
    settings: Settings,
    policy: Policy,
    folder: Path,
    memories: list[Memory],
    vectors: Vectors,
    asked: list[Recall],
) -> Seen:
    by_id = {memory.id: vector for memory, vector in zip(memories, vectors, strict=True)}
    snapshot = Snapshot(key=KEY, memories=tuple(memories), vectors=by_id)
    whole, held = _sized(snapshot, policy, vectors.shape[1], archive_vectors=True)
    bare, kept = _sized(snapshot, policy, vectors.shape[1], archive_vectors=False)
    seen = Seen(len(memories), held, kept)
    index = ExactIndex()
    await index.put(KEY, [_document(memory, by_id[memory.id], policy) for memory in memories])
    ledger = build_ledger(settings, folder)
    await ledger.open(build_embedder(settings).info)
    try:
        await ledger.commit(
            Commit(
                key=KEY, expected_version=0, epoch=EPOCH, operation_id="load", at=datetime.now(UTC),
                memories=snapshot.memories, vectors=by_id,
            )
        )  # fmt: skip
        await _ask(
            seen, whole, bare, policy, LongTerm(cast("VectorIndex", index), SEARCH), _Around(ledger), asked
        )
    finally:
        await ledger.close()
    return seen


def _sized(
    snapshot: Snapshot, policy: Policy, dimension: int, *, archive_vectors: bool
) -> tuple[UserState, float]:
    """The state, and what it takes for each memory beside the records themselves."""
    policy.words("warm")
    gc.collect()
    tracemalloc.start()
    state = UserState(snapshot, policy.words, dimension, 10, archive_vectors=archive_vectors)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return state, size / len(snapshot.memories)


def _document(memory: Memory, vector: Any, policy: Policy) -> Document:
    words = (*policy.words(memory.content), *own_words(memory, policy.words))
    return Document(memory.id, words, vector, archived=True)


async def _ask(
    seen: Seen, whole: UserState, bare: UserState, policy: Policy, long_term: LongTerm, around: _Around,
    asked: list[Recall],
) -> None:  # fmt: skip
    common, same = [], []
    for wanted in asked:
        now = datetime.now(UTC)
        started = time.perf_counter()
        inside = _ids(find(whole, wanted, policy, now))
        seen.times.setdefault("in the actor", []).append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        first = find(bare, wanted, policy, now)
        nominated = await long_term.nominate(
            KEY, probe(bare, first.query, policy), bare.elsewhere, cast("Any", around)
        )
        nominating = (time.perf_counter() - started) * 1000
        outside = _ids(find(bare, wanted, policy, now, nominated=nominated))
        seen.times.setdefault("through the index", []).append((time.perf_counter() - started) * 1000)
        seen.times.setdefault("of that, nominating", []).append(nominating)
        if inside:
            common.append(len(set(inside) & set(outside)) / len(inside))
            same.append(inside == outside)
    seen.agreement, seen.same = mean(common), mean(same)


def _ids(found: Found) -> list[str]:
    return [hit.memory.id for hit in found.hits]


def report(seen: Sequence[Seen]) -> Report:
    """Figures of the most memories."""
    made, last = Report("archive-search"), seen[-1]
    made.figures = {
        "agreement": last.agreement, "same": last.same, "held_bytes": last.held_bytes, "kept_bytes": last.kept_bytes,
        "inside_p50_ms": Spread.of(last.times["in the actor"]).p50,
        "outside_p50_ms": Spread.of(last.times["through the index"]).p50,
    }  # fmt: skip
    rows = [(f"{one.memories:,}", one.agreement, one.same, one.held_bytes, one.kept_bytes) for one in seen]
    columns = ("archived", "hits in common", "same answers", "bytes held", "bytes without vectors")
    made.tables = [
        table(f"An archive through {SEARCH.nominations} nominations of each kind", columns, rows),
        table(
            "A recall that needs the archive, ms", ("archived: where", "p50", "p95", "p99"), list(_rows(seen))
        ),
    ]
    made.data = {
        "sizes": [{"memories": one.memories, "agreement": one.agreement, "same": one.same} for one in seen]
    }
    return made


def _rows(seen: Sequence[Seen]) -> list[tuple[object, ...]]:
    return [
        (f"{one.memories:,}: {where}", spread.p50, spread.p95, spread.p99)
        for one in seen
        for where, times in one.times.items()
        for spread in [Spread.of(times)]
    ]
