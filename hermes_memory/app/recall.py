"""Recall: what matters now, as a prompt-ready block with its reasons (SPEC §7). Reads, never commits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from math import exp
from typing import Any

from hermes_memory.app.commands import Recall
from hermes_memory.app.desk import Policy
from hermes_memory.app.ingest import idle_before
from hermes_memory.app.knowledge import beside_memories, known_record, moment_of
from hermes_memory.app.profiling import slots_about
from hermes_memory.app.records import evidence_record, profile_record, request_of
from hermes_memory.app.state import UserState
from hermes_memory.core.asking import Asked
from hermes_memory.core.briefing import Material, compose
from hermes_memory.core.candidate import SAID
from hermes_memory.core.conflicts import opposes
from hermes_memory.core.consistency import both_sides
from hermes_memory.core.knowledge import KnowledgeShelf, Known
from hermes_memory.core.model import Category, Layer, Memory, Status
from hermes_memory.core.nominations import narrowed, singled_out
from hermes_memory.core.profile import waits
from hermes_memory.core.ranking import RERANK, Query, Ranked, Shelf, current_side, in_reach, rank, reranked
from hermes_memory.core.vectors import VectorTable
from hermes_memory.core.window import Piece, lines, since
from hermes_memory.errors import InvalidInput
from hermes_memory.ports.embedder import Vector

NO_ZONE = "UTC"  # where times are read when nobody says where the user is
INDEX = "index"  # the part of a recall that a long-term index takes, and what is degraded without it


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer, JSON-ready; what was shown, for the access counts; and the question handed out, if any.

    ``returned`` are the ids found in the archive: they are to be active again. ``disputed``: the block
    holds both sides of a contradiction.
    """

    answer: dict[str, Any]
    shown: tuple[str, ...]
    asked: str | None
    returned: tuple[str, ...] = ()
    disputed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the ranking found, before anything is assembled; ``archived`` are the ids that come from the archive.

    ``hits`` may be more than are asked for: so many of the best that a second look can be taken at them. ``lacking``:
    the archive should have answered too, and its vectors are not here.
    """

    query: Query
    hits: list[Ranked]
    top_k: int
    budget_chars: int
    archived: frozenset[str]
    timings_s: dict[str, float]
    degraded: tuple[str, ...] = ()
    lacking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a long-term index is asked for, by meaning and by words apart.

    ``vector`` has shape (dimension,). ``apart`` are the ids of archived memories that count whatever it says.
    """

    vector: Vector
    words: tuple[str, ...]
    apart: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominated:
    """What a long-term index found: vectors of archived memories by id and, where it was asked, active ids.

    ``active`` None leaves the search among what is active to the actor.
    """

    vectors: Mapping[str, Vector]
    active: frozenset[str] | None = None


def recall(
    state: UserState,
    wanted: Recall,
    policy: Policy,
    now: datetime,
    shelf: KnowledgeShelf | None = None,
    zone: tzinfo | None = None,
) -> Recalled:
    """Find and assemble, where nobody takes a second look. Raises InvalidInput for too small a budget.

    ``shelf`` holds the knowledge packs of the user's namespace, ``zone`` is where the user is.
    """
    return assemble(state, wanted, find(state, wanted, policy, now, zone), policy, now, shelf)


def read(text: str, as_of: datetime, timezone: str | None, policy: Policy) -> Asked:
    """What a query asks, seen from ``as_of`` where the user is."""
    return policy.read(text, as_of, timezone or NO_ZONE)


def find(
    state: UserState,
    wanted: Recall,
    policy: Policy,
    now: datetime,
    zone: tzinfo | None = None,
    candidates: int = 0,
    nominated: Nominated | None = None,
) -> Found:
    """The hits, best first: as many as are asked for, or ``candidates`` if that is more.

    ``nominated`` stands in for the vectors of the archive where the state does not hold them. Raises InvalidInput for
    too small a budget.
    """
    started = time.perf_counter()
    budget_chars = _budget(wanted, policy)
    top_k = wanted.top_k or policy.rules.recall.top_k
    asked = wanted.asked or read(wanted.query, wanted.as_of or now, wanted.timezone, policy)
    query = Query(
        text=wanted.query,
        vector=wanted.vector,
        words=wanted.words,
        session_id=wanted.session_id,
        scene=policy.mask(wanted.scene) if wanted.scene is not None else None,  # as it was stored
        as_of=wanted.as_of or now,
        top_k=max(top_k, candidates),
        whole=candidates > 0,
        asked=asked,
        called=frozenset(policy.dimensions.called_by(wanted.query)),
        named=tuple(words for name in asked.entities if (words := policy.words(name))),
    )
    query = replace(query, moment=moment_of(query, zone, policy))
    hits = rank(_active(state, query, policy, nominated), query, policy.yardstick)
    archive = _archive(state, nominated)
    parts = _parts_of_later_records(state, query) if wanted.as_of is not None else {}
    if parts and archive is not None:
        hits = _with_parts(hits, replace(archive, memories=parts), query, policy)
    returned, answered = [], _answered(hits, query, policy)
    if not answered and archive is not None:
        returned = _from_archive(state, archive, query, policy, now)
    if hits and not _answered(returned, query, policy):
        returned = []  # nor does the archive: what is active is as good
    hits = returned or hits
    return Found(
        query=query, hits=hits, top_k=top_k, budget_chars=budget_chars,
        archived=frozenset(hit.memory.id for hit in returned),
        timings_s={"rank": time.perf_counter() - started},
        lacking=archive is None and bool(parts or (state.resting and not answered)),
    )  # fmt: skip


def probe(state: UserState, query: Query, policy: Policy) -> Probe:
    """What to ask a long-term index for so that ``find`` can answer ``query`` with it."""
    apart = singled_out({**state.resting, **state.parts}, state.archive.words, query)
    return Probe(
        vector=policy.calibration.aim(query.vector),
        words=tuple(dict.fromkeys(query.words)),
        apart=tuple(apart),
    )


def looked_further(found: Found, took_s: float, before: Found | None) -> Found:
    """``found`` after an index was asked; ``before`` was found without it. None: it failed, the answer says so."""
    timings_s = {INDEX: took_s, **found.timings_s}
    if before is None:
        return replace(found, timings_s=timings_s, degraded=(*found.degraded, INDEX))
    rank_s = before.timings_s["rank"] + found.timings_s["rank"]
    return replace(found, timings_s={**timings_s, "rank": rank_s})


def looked_at_again(found: Found, relevances: Mapping[str, float] | None, took_s: float) -> Found:
    """``found`` in the order of a second look; None: it failed, the order stays and the answer says so.

    Hits without a relevance were not there to be looked at when the question was asked: they stay out.
    """
    timings_s = {**found.timings_s, RERANK: took_s}
    if relevances is None:
        return replace(found, timings_s=timings_s, degraded=(*found.degraded, "reranker"))
    return replace(found, timings_s=timings_s, hits=reranked(found.hits, relevances))


def assemble(
    state: UserState,
    wanted: Recall,
    found: Found,
    policy: Policy,
    now: datetime,
    shelf: KnowledgeShelf | None = None,
) -> Recalled:
    """The answer from what was found, in the order of SPEC §7.1 and within the budget of §7.4."""
    started = time.perf_counter()
    query, hits = found.query, found.hits[: found.top_k]
    always = [memory for memory in state.always.values() if in_reach(memory, query)]
    known = beside_memories(shelf, query, policy, len(hits))
    material = _material(state, query, hits, always, _told_here(state, wanted, policy, now), known)
    block = compose(material, found.budget_chars, policy.rules.briefing, policy.dimensions)
    ask = _question(state, wanted, now) if "ask" in wanted.include else None
    memories = _listed(hits, always) if "memories" in wanted.include else []
    timings_s = {**found.timings_s, "assemble": time.perf_counter() - started}
    answer = {
        "context": block.text,
        "memories": memories,
        "profile": _slots(state, policy, hits, query) if "profile" in wanted.include else {},
        "ask": ask,
        "version": state.version,
        "as_of": query.as_of.isoformat(),
        "degraded": list(found.degraded),
        "over_budget": block.over_budget,
        "timings_ms": {name: _ms(seconds) for name, seconds in timings_s.items()},
    }
    if known:
        answer["knowledge"] = [known_record(one, block.language) for one in known]
    shown = tuple(dict.fromkeys([*block.memory_ids, *(hit.memory.id for hit in hits)]))
    returned = tuple(hit.memory.id for hit in hits if hit.memory.id in found.archived)
    told = [memory for memory_id in block.memory_ids if (memory := state.memories.get(memory_id)) is not None]
    disputed = both_sides(told, policy.dimensions)
    return Recalled(answer, shown, ask["id"] if ask else None, returned, disputed)


def _active(state: UserState, query: Query, policy: Policy, nominated: Nominated | None) -> Shelf:
    """What lives; only what an index nominated where it was asked."""
    if nominated is None or nominated.active is None:
        return state.shelf
    return narrowed(state.shelf, query, nominated.active, policy.rules.fusion)


def _archive(state: UserState, nominated: Nominated | None) -> Shelf | None:
    """What rests, with all its vectors, or with those of what was nominated; None: with none."""
    if state.archive_vectors:
        return state.archive
    if nominated is None:
        return None
    table = VectorTable(state.archive.vectors.dimension)
    for memory_id, vector in nominated.vectors.items():
        table.put(memory_id, vector)
    return replace(state.archive, vectors=table)


def _parts_of_later_records(state: UserState, query: Query) -> dict[str, Memory]:
    """What records that are silent about then, for they hold later words too, are made of."""
    return {
        part.id: part.with_(status=Status.ACTIVE)
        for part in state.parts.values()
        if (record := state.live.get(part.merged_into or "")) is not None and not in_reach(record, query)
    }


def _with_parts(hits: list[Ranked], parts: Shelf, query: Query, policy: Policy) -> list[Ranked]:
    """``hits`` with what had been said by then of records that are silent about then."""
    found = rank(parts, query, policy.yardstick)
    return sorted([*hits, *found], key=lambda hit: -hit.score)[: query.top_k]


def _answered(hits: list[Ranked], query: Query, policy: Policy) -> bool:
    """Whether a memory answers by itself, not only because the query is likely to concern something."""
    fusion = policy.rules.fusion
    least = 1 / (1 + exp(fusion.even - fusion.meaning))  # what reaches the threshold by meaning alone
    return any(hit.parts["match"] >= least or hit.memory.dimension in query.called for hit in hits)


def _from_archive(
    state: UserState, archive: Shelf, query: Query, policy: Policy, now: datetime
) -> list[Ranked]:
    """What the archive knows when the active memories do not answer."""
    found = rank(archive, query, policy.yardstick)
    return [hit for hit in found if may_come_back(state, hit.memory, policy, now)]


def may_come_back(state: UserState, memory: Memory, policy: Policy, now: datetime) -> bool:
    """Whether the archive may give it back: archived within the last year, and uncontested (SPEC §4.3)."""
    since = now - timedelta(days=policy.rules.life.reactivate_days)
    if memory.archived_at is None or memory.archived_at < since:
        return False
    return not any(opposes(memory, one, policy.dimensions) for one in _same_topic(state, memory, policy))


def _same_topic(state: UserState, memory: Memory, policy: Policy) -> Iterator[Memory]:
    """The live memories, and the parts of live records, that could contradict it."""
    lookup = state.lookup(policy.dimensions)
    for memory_id in lookup.near(memory.content_hash, memory):
        one = state.live.get(memory_id) or state.parts.get(memory_id)
        if one is not None and (one.merged_into is None or one.merged_into in state.live):
            yield one


def _budget(wanted: Recall, policy: Policy) -> int:
    rules = policy.rules.briefing
    budget_chars = rules.budget_chars if wanted.budget_chars is None else wanted.budget_chars
    if budget_chars < rules.min_budget_chars:
        raise InvalidInput("budget_chars", f"must be at least {rules.min_budget_chars}")
    return budget_chars


def _material(
    state: UserState,
    query: Query,
    hits: list[Ranked],
    always: list[Memory],
    told: list[tuple[int, Piece]],
    known: list[Known],
) -> Material:
    """Sort what was found into the sections of the block; other frozen memories follow the always-on ones."""
    taken = {memory.id for memory in always}
    found = [hit.memory for hit in hits if hit.memory.id not in taken]
    here = [m for m in _said_here(state, query) if m.id not in taken]
    style = [m for m in state.style.values() if in_reach(m, query)]
    taken |= {m.id for m in style}
    frozen = [m for m in state.frozen.values() if m.id not in taken and in_reach(m, query)]
    passing = {m.id for m in here if m.category is Category.STATE or m.layer is Layer.CONTEXT}
    return Material(
        always=[*always, *frozen],
        style=style,
        longterm=found,
        recent=[m for m in here if m.id not in passing],
        transient=[m for m in here if m.id in passing],
        conversation=told,
        knowledge=known,
        disputed=frozenset(_disputed(state.rivals.values())),
    )


def _disputed(rivals: Iterable[Memory]) -> Iterator[str]:
    """What may be changing; of two sides in a matter of safety both are."""
    for rival in rivals:
        if rival.status is not Status.ACTIVE:
            continue
        yield rival.rival_of or rival.id
        if rival.safety:
            yield rival.id


def _said_here(state: UserState, query: Query) -> list[Memory]:
    """What this very conversation brought, newest first: it guides the reply (SPEC §6).

    Episodes are its turns over again: of those the summary speaks.
    """
    session = state.sessions.get(query.session_id or "")
    if session is None or session.ended:
        return []
    here = [
        m for m in state.live.values()
        if m.status is Status.ACTIVE and m.dimension != SAID and in_reach(m, query)
        and any(piece.session_id == session.id for piece in m.evidence)
    ]  # fmt: skip
    current = current_side(here, state.rivals.values(), state.live, query)
    return sorted((m for m in here if m.id in current), key=lambda m: m.stated_at, reverse=True)


def _told_here(state: UserState, wanted: Recall, policy: Policy, now: datetime) -> list[tuple[int, Piece]]:
    """The open conversation's summary, with line numbers: what shares words with the query first, then the newest.

    None of a conversation that has been silent for too long, though nobody has closed it yet (SPEC §4.3), nor for a
    question about another time.
    """
    session = state.sessions.get(wanted.session_id or "")
    if session is None or wanted.as_of is not None or session.last_at <= idle_before(now, policy.rules.life):
        return []
    summary = since(session.summary, now - timedelta(hours=policy.rules.life.turns_hours))
    told = [(n, piece) for n, line in enumerate(lines(summary, policy.rules.window)) for piece in line]
    asked = frozenset(wanted.words)

    def worth(entry: tuple[int, Piece]) -> tuple[int, int, int]:
        piece, text = entry[1], entry[1].text.casefold()
        return sum(word in text for word in asked), piece.turn, piece.start

    return sorted(told, key=worth, reverse=True)


def _listed(hits: list[Ranked], always: list[Memory]) -> list[dict[str, Any]]:
    """The ranked hits by score, then the other always-on ones, flagged (API)."""
    on = {memory.id for memory in always}
    ranked = {hit.memory.id for hit in hits}
    return [
        *(_shown(hit.memory, hit.memory.id in on, hit) for hit in hits),
        *(_shown(memory, True, None) for memory in always if memory.id not in ranked),
    ]


def _shown(memory: Memory, always: bool, hit: Ranked | None) -> dict[str, Any]:
    return {
        "id": memory.id,
        "content": memory.content,
        "category": memory.category.value,
        "layer": memory.layer.value if memory.layer else None,
        "scope": memory.scope.value,
        "scene": memory.scene,
        "lock": memory.lock.value,
        "polarity": memory.polarity.value,
        "confidence": memory.confidence,
        "always": always,
        "score": hit.score if hit else None,
        "score_parts": dict(hit.parts) if hit else {},
        "evidence": [evidence_record(piece) for piece in memory.evidence[-3:]],
    }


def _slots(state: UserState, policy: Policy, hits: list[Ranked], query: Query) -> dict[str, Any]:
    """The slots that the query calls for, or that the hits and the always-on memories support (SPEC §7.1.2).

    Each is answered from all the memories behind it; of merged records the parts count.
    """
    found: dict[str, Memory] = {}
    for memory in (*(hit.memory for hit in hits), *state.always.values()):
        listed = (state.parts.get(part["id"]) for part in memory.attributes.get("parts", ()))
        found |= {one.id: one for one in (*listed, memory) if one is not None}
    called = (one for key in query.called for one in state.slots.get(key, {}).values())
    found |= {one.id: one for one in called if in_reach(one, query) and not waits(one)}
    return profile_record(slots_about(state, found.values(), policy.dimensions, policy.rules, query.as_of))


def _question(state: UserState, wanted: Recall, now: datetime) -> dict[str, Any] | None:
    """At most one open question for each conversation (SPEC §6)."""
    if wanted.session_id is None or wanted.session_id in state.asked:
        return None
    for record in state.settings.confirmations.values():
        if record["status"] == "open" and record["asked_in"] is None and request_of(record).open_at(now):
            return dict(record)
    return None


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
