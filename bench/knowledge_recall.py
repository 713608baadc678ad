"""Knowledge packs with the real model: is what answers a query shown, and nothing where nothing does (SPEC §7.1.4)?

The sample pack, for a user of whom nothing is known. The numbers of ``[knowledge]`` were set on the queries marked
``tuned``; the limits are held by those marked ``kept``, which were written before and measured after.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.pack_file import read_pack
from hermes_memory.app.desk import Policy
from hermes_memory.app.knowledge import beside_memories, moment_of
from hermes_memory.config import load_settings
from hermes_memory.core.knowledge import KnowledgeShelf
from hermes_memory.core.ranking import Query
from hermes_memory.ports.embedder import Vectors
from hermes_memory.wiring import build_embedder, build_policy

QUERIES = Path(__file__).parent / "knowledge_queries.jsonl"
PACK = Path(str(files("configs").joinpath("knowledge", "everyday.jsonl")))
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)

LIMITS = (
    Limit("kept_found", at_least=0.8, what="kept queries with an entry that answers: it is shown"),
    Limit("kept_quiet", at_least=0.9, what="kept queries without one: nothing is shown"),
    Limit("kept_right", at_least=0.6, what="of the entries shown for kept queries, those that answer"),
    Limit("ms", below=5.0, what="ms a query, median"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, the entries that answer it, and those that are shown."""

    query: str
    wants: frozenset[str]
    shown: tuple[str, ...]
    ms: float


def run(*, quick: bool, say: Say) -> Report:
    """Ask every query."""
    settings = load_settings()
    policy, embedder = build_policy(settings), build_embedder(settings)
    pack = read_pack(PACK, policy.dimensions, policy.daytimes, settings.knowledge)
    rows = [json.loads(line) for line in QUERIES.read_text(encoding="utf-8").splitlines()]
    say(f"{len(pack.entries)} entries, {len(rows)} queries")

    async def embedded() -> tuple[Vectors, Vectors]:
        texts = [row["query"] for row in rows]
        return await embedder.passages(pack.passages), await embedder.queries(texts)

    passages, queries = asyncio.run(embedded())
    shelf = KnowledgeShelf([(pack, passages)], policy.words, passages.shape[1])
    report = Report("knowledge-recall")
    drawn, times = [], []
    for split in ("tuned", "kept"):
        asked = [
            _ask(shelf, policy, row["query"], frozenset(row["wants"]), vector)
            for row, vector in zip(rows, queries, strict=True)
            if row["split"] == split
        ]
        found, quiet, right = _shares(asked)
        report.figures |= {f"{split}_found": found, f"{split}_quiet": quiet, f"{split}_right": right}
        drawn.append((split, len(asked), found, quiet, right))
        times += [one.ms for one in asked]
        report.data[split] = [
            {"query": one.query, "wants": sorted(one.wants), "shown": one.shown} for one in asked
        ]
    report.figures["ms"] = statistics.median(times)
    columns = ("queries", "number", "found", "quiet", "right of shown")
    report.tables.append(table("General knowledge beside no memory", columns, drawn))
    return report


def _ask(shelf: KnowledgeShelf, policy: Policy, text: str, wants: frozenset[str], vector: Vectors) -> Asked:
    query = Query(
        text=text, vector=vector, words=policy.words(text), session_id=None, scene=None, as_of=AT, top_k=6
    )
    called = frozenset(policy.dimensions.called_by(text))
    query = replace(query, moment=moment_of(query, UTC, policy), called=called)
    started = time.perf_counter()
    known = beside_memories(shelf, query, policy, 0)
    spent_s = time.perf_counter() - started
    return Asked(text, wants, tuple(one.entry.id for one in known), spent_s * 1000)


def _shares(asked: Sequence[Asked]) -> tuple[float, float, float]:
    """How many that have an answer show it, how many that have none show nothing, how much of what is shown is right."""
    on, off = [one for one in asked if one.wants], [one for one in asked if not one.wants]
    found = sum(not one.wants.isdisjoint(one.shown) for one in on) / len(on)
    quiet = sum(not one.shown for one in off) / len(off)
    shown = [(entry, one.wants) for one in asked for entry in one.shown]
    return found, quiet, sum(entry in wants for entry, wants in shown) / max(1, len(shown))
