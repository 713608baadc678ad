"""Plays one case through the product's own pure core: a fresh user, no Ray, no store (SPEC §6).

Turns are ingested and settled by the same handlers as in a user's actor; between them time passes, sessions
end when they have been idle, and the nightly job runs once for the days gone by.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.conflict_case import Case, Fate, Saying
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.app.commands import Command, EndIdleSessions, Incoming, Ingest, Maintain, Settle
from hermes_memory.app.desk import Desk, Policy
from hermes_memory.app.distil import LocalDistiller
from hermes_memory.app.handlers import decide
from hermes_memory.app.state import UserState
from hermes_memory.config import Settings
from hermes_memory.core.candidate import Candidate, ExtractionRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import LIVE, Category, Memory, Role, Status, Turn
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Embedder, EmbedderInfo, Vector, Vectors
from hermes_memory.ports.ledger import Snapshot
from hermes_memory.wiring import build_policy

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # day 0; a Monday morning
WITHIN_SESSION, BETWEEN_SESSIONS = timedelta(minutes=2), timedelta(hours=1)
STEP = 0.005  # a fall of confidence that is more than rounding


@dataclass(frozen=True, slots=True)
class Kit:
    """What every user of the suite lives with."""

    policy: Policy
    distiller: Distiller
    embedder: EmbedderInfo
    context_turns: int
    known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a case came to. ``before`` and ``after`` hold the memories around the last turn, by id."""

    case: Case
    fate: Fate
    before: Mapping[str, Memory]
    after: Mapping[str, Memory]
    candidates: tuple[Candidate, ...]  # what the extractor made of the last turn
    harmed: tuple[str, ...]  # ids of standing memories that the last turn made weaker, ended or changed

    @property
    def detected(self) -> bool:
        """Whether a true conflict was noticed, however it was settled."""
        return self.fate in {Fate.REPLACE, Fate.RIVAL, Fate.ASK, Fate.PAST}

    @property
    def right(self) -> bool:
        """Whether it came out exactly as expected."""
        return self.fate is self.case.expect

    @property
    def false_alarm(self) -> bool:
        """Whether a statement that contradicts nothing was taken for a contradiction, or for the old one itself."""
        if self.case.conflict:
            return False
        mistaken = self.fate is Fate.SAME and self.case.expect is not Fate.SAME
        return self.detected or mistaken or bool(self.harmed)

    @property
    def cause(self) -> str:
        """Which half is to blame for a miss: the extractor if it read nothing on either side, else the gates."""
        staged = any(memory.category is not Category.EVENT for memory in self.before.values())
        stated = any(candidate.category is not Category.EVENT for candidate in self.candidates)
        return "gates" if staged and stated else "extractor"


class Cached:
    """An embedder that embeds every passage once; the suite says many things again. Port: ``Embedder``."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vector] = {}

    @property
    def info(self) -> EmbedderInfo:
        return self._embedder.info

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.queries(texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known |= zip(missing, await self._embedder.passages(missing), strict=True)
        found = [self._known[text] for text in texts]
        return np.stack(found) if found else np.zeros((0, self.info.dimension), np.float32)


def kit(settings: Settings, embedder: Embedder) -> Kit:
    """The product's own rules, dimensions, calibration and extractor, with this embedder."""
    policy = build_policy(settings)
    most = policy.rules.entry.most_candidates
    distiller = LocalDistiller(load_rule_extractor(policy.dimensions), Cached(embedder), most)
    return Kit(policy, distiller, embedder.info, settings.batch.context_turns, settings.batch.known)


class Life:
    """One user of the suite: the decide and apply loop, and the passing of time."""

    def __init__(self, name: str, kit: Kit) -> None:
        self._kit, self._rules = kit, kit.policy.rules
        self._operations = (f"{name}-{number}" for number in itertools.count(1))
        snapshot = Snapshot(key=UserKey("suite", name))
        self.state = UserState(snapshot, kit.policy.words, kit.embedder.dimension, self._rules.window.turns)
        self.now = START
        self._last: Saying | None = None

    async def hear(self, saying: Saying) -> tuple[Candidate, ...]:
        """Receive, read and settle one message; what the extractor made of it."""
        said_at = None if saying.said_on is None else START + timedelta(days=saying.said_on)
        message = Incoming(role=Role.USER, content=saying.text, created_at=said_at)
        self._act(Ingest(session_id=saying.session, messages=(message,), timezone="UTC"))
        turns = self.state.pending
        distilled = await self._kit.distiller.distil(self._request(turns))
        places = tuple((turn.session_id, turn.index) for turn in turns)
        self._act(Settle(turns=places, distilled=distilled, generation=self.state.generation))
        return distilled.extraction.candidates

    def wait_for(self, saying: Saying) -> None:
        """Let time pass until ``saying``: the sessions before it end, and the nights between do their work."""
        last, self._last = self._last, saying
        if last is None:
            self.now = START + timedelta(days=saying.day)
            return
        near = (
            WITHIN_SESSION if last.session == saying.session and last.day == saying.day else BETWEEN_SESSIONS
        )
        heard_at, self.now = self.now, max(self.now + near, START + timedelta(days=saying.day))
        self._act(EndIdleSessions())
        if self.now.date() > heard_at.date():
            self._act(Maintain(now=self.now))

    def _act(self, command: Command) -> None:
        desk = Desk(policy=self._kit.policy, now=self.now, epoch=1, operation_id=next(self._operations))
        decision = decide(self.state, command, desk)
        if decision.commit is not None:
            self.state.apply(decision.commit)
        if decision.error is not None:
            raise decision.error

    def _request(self, turns: Sequence[Turn]) -> ExtractionRequest:
        """As ``runtime.extraction`` asks: the turns before, and the memories that share words."""
        first, known = turns[0], dict[str, Memory]()
        before = [turn for turn in self.state.window(first.session_id) if turn.index < first.index]
        for turn in turns:
            scores = self.state.shelf.words.scores(self._kit.policy.words(turn.content))
            known |= {i: self.state.live[i] for i, _ in scores.top(self._kit.known)}
        context = tuple(before[-self._kit.context_turns :])
        return ExtractionRequest(turns=tuple(turns), context=context, known=tuple(known.values()))


async def play(case: Case, kit: Kit) -> Played:
    """The whole story of one user; the last turn is judged."""
    life = Life(case.id, kit)
    *stage, judged = case.turns
    for saying in stage:
        life.wait_for(saying)
        await life.hear(saying)
    life.wait_for(judged)
    before = dict(life.state.memories)
    asked = _open(life.state)
    candidates = await life.hear(judged)
    after = dict(life.state.memories)
    fate = fate_of(before, after, _open(life.state), _open(life.state) - asked)
    return Played(
        case=case, fate=fate, before=before, after=after, candidates=candidates, harmed=harmed(before, after)
    )


def _open(state: UserState) -> set[tuple[str, str]]:
    """The open requests, each as (its id, the new memory's id)."""
    known = state.settings.confirmations.values()
    return {(record["id"], record["memory_ids"][1]) for record in known if record["status"] == "open"}


def fate_of(
    before: Mapping[str, Memory],
    after: Mapping[str, Memory],
    asking: set[tuple[str, str]],
    newly_asked: set[tuple[str, str]],
) -> Fate:
    """What the last turn came to, most drastic first."""
    made = [memory for i, memory in after.items() if i not in before]
    said_again = [memory for i, memory in after.items() if i in before and _again(before[i], memory)]
    ended = [
        i for i, memory in before.items() if memory.status in LIVE and after[i].status is Status.SUPERSEDED
    ]
    if newly_asked or any(memory.id in {new for _, new in asking} for memory in said_again):
        return Fate.ASK
    if ended:
        return Fate.REPLACE
    if any(memory.rival_of for memory in (*made, *said_again) if memory.status in LIVE):
        return Fate.RIVAL
    if any(memory.status is Status.SUPERSEDED for memory in made):
        return Fate.PAST
    if made:
        return Fate.COEXIST
    return Fate.SAME if said_again else Fate.NONE


def _again(before: Memory, after: Memory) -> bool:
    grown = (len(after.evidence), len(after.confirmations)) != (
        len(before.evidence),
        len(before.confirmations),
    )
    return grown or (before.status not in LIVE and after.status in LIVE)


def harmed(before: Mapping[str, Memory], after: Mapping[str, Memory]) -> tuple[str, ...]:
    """Standing memories (no rivals) that the last turn weakened, ended or changed in meaning."""
    return tuple(
        i
        for i, old in before.items()
        if old.status in LIVE and old.rival_of is None and _harm(old, after.get(i))
    )


def _harm(old: Memory, new: Memory | None) -> bool:
    if new is None or new.status not in LIVE or new.rival_of:
        return True
    meant = (old.object, old.polarity, old.content, old.dimension) == (
        new.object, new.polarity, new.content, new.dimension,
    )  # fmt: skip
    return not meant or new.contradictions > old.contradictions or new.confidence < old.confidence - STEP
