"""What the gates cost a turn: one settlement on a user whose tiers are full, the embedding and the disk apart.

A turn is read by the rule extractor (timed by itself), then settled: entry checks, duplicates, conflicts, locks,
merging and eviction, the commit made and applied. The user holds every tier at its cap and a thousand archived
memories besides, so that each new memory pushes another out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import numpy as np

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import statements
from bench.users import synthetic
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.app.commands import Incoming, Ingest, Settle
from hermes_memory.app.desk import Desk, Policy
from hermes_memory.app.handlers import decide
from hermes_memory.app.state import UserState
from hermes_memory.config import load_settings
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Lock, Memory, Revision, Role, Status, Tier
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.ledger import Commit, Settings, Snapshot
from hermes_memory.wiring import build_policy, build_profile

LIMITS = (Limit("settle_p50_ms", 1.0, "p50 of a settlement at full tiers, one turn"),)
ARCHIVED = 1000
KEY = UserKey("default", "full")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of turn; ``text`` names a thing in Chinese or in English, another one each time."""

    name: str
    text: str
    fresh: bool = True  # a thing that was never named


KINDS = (
    Kind("nothing to remember", "今天天气怎么样，{zh}呢？"),
    Kind("a new statement", "我喜欢喝{zh}"),
    Kind("said again", "我喜欢喝{zh}", fresh=False),
    Kind("a contradiction", "我不喜欢喝{zh}", fresh=False),
    Kind("a new city", "我搬到{zh}市了"),
    Kind("three statements", "I like {en}, I hate playing {en}, and I have a dog called {name}."),
)
_CHARS = "松竹梅兰菊荷桃李杏柳榆槐桐枫椒姜葱蒜韭芹茄瓜豆麦稻粟雪霜露雾云霞虹星月川湖海江溪泉岭峰岩石沙玉金银铜铁丝棉麻绢"
_SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "vu", "ze")


def run(*, quick: bool, say: Say) -> Report:
    """Play every kind of turn on a full user."""
    policy = build_policy(load_settings())
    say("filling the tiers")
    user = FullUser(policy)
    report, rows = Report("gates"), []
    whole: list[float] = []
    for kind in KINDS:
        say(kind.name)
        timed = [user.turn(kind, number) for number in range(60 if quick else 300)]
        read, settled = (np.array(column) * 1000 for column in zip(*timed, strict=True))
        whole += list(settled)
        rows.append(
            (kind.name, *(float(np.percentile(part, p)) for part in (read, settled) for p in (50, 95)))
        )
    report.figures["settle_p50_ms"] = float(np.percentile(whole, 50))
    report.figures["settle_p95_ms"] = float(np.percentile(whole, 95))
    columns = ("a turn of", "read p50", "p95", "settle p50", "p95")
    title = f"Gates at full tiers ({user.sizes()}), ms a turn; all settlements p50 {report.figures['settle_p50_ms']:.2f}"
    report.tables.append(table(title, columns, rows))
    return report


class FullUser:
    """A user at every cap, in memory; each turn is ingested, read, settled and applied."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._extractor = policy, load_rule_extractor(policy.dimensions)
        self._random = np.random.default_rng(7)
        self._now = datetime.now(UTC)
        memories = tuple(self._full())
        self._size = size = build_profile(load_settings()).dimension
        snapshot = Snapshot(
            key=KEY, version=1, generation=0, owner_epoch=1, memories=memories,
            vectors={memory.id: self._vector() for memory in memories}, sessions=(), turns=(), jobs=(),
            settings=Settings(),
        )  # fmt: skip
        self.state = UserState(snapshot, policy.words, size, policy.rules.window.turns)
        self.state.lookup(policy.dimensions)  # made now, as it is once in a waking user's life
        self._numbers = count(1)

    def sizes(self) -> str:
        """How many memories each tier holds."""
        held = {tier: sum(memory.tier is tier for memory in self.state.live.values()) for tier in Tier}
        return ", ".join(f"{tier} {number:,}" for tier, number in held.items()) + f", archived {ARCHIVED:,}"

    def turn(self, kind: Kind, number: int) -> tuple[float, float]:
        """Seconds to read the turn, and to settle it."""
        self._now += timedelta(seconds=20)
        named = next(self._numbers) + 1000 if kind.fresh else number
        text = kind.text.format(zh=_zh(named), en=_en(named), name=_en(named).title())
        message = Incoming(role=Role.USER, content=text, created_at=self._now)
        self._apply(self._decide(Ingest(session_id="s", messages=(message,), timezone="UTC")))
        started = time.perf_counter()
        extraction = self._extractor.read(ExtractionRequest(turns=tuple(self.state.pending)))
        read = time.perf_counter()
        vectors = np.stack([self._vector() for _ in range(max(1, len(extraction.candidates)))])
        places = tuple((turn.session_id, turn.index) for turn in self.state.pending)
        distilled = Distilled(extraction, vectors[: len(extraction.candidates)])
        began = time.perf_counter()
        self._apply(self._decide(Settle(turns=places, distilled=distilled, generation=0)))
        return read - started, time.perf_counter() - began

    def _decide(self, command: Ingest | Settle) -> Commit | None:
        desk = Desk(
            policy=self._policy, now=self._now, epoch=1, operation_id=f"op-{self.state.version}", prepared={}
        )
        return decide(self.state, command, desk).commit

    def _apply(self, commit: Commit | None) -> None:
        if commit is not None:
            self.state.apply(commit)

    def _vector(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        raw = self._random.standard_normal(self._size).astype(np.float32)
        return np.asarray(raw / np.linalg.norm(raw), np.float32)

    def _full(self) -> Iterator[Memory]:
        caps = self._policy.rules.capacity
        total = caps.working + caps.longterm + caps.core + ARCHIVED
        places = [Tier.WORKING] * caps.working + [Tier.LONGTERM] * caps.longterm + [Tier.CORE] * caps.core
        for number, memory in enumerate(islice(synthetic(KEY, statements(total), self._now), total)):
            if number < len(places):
                tier = places[number]
                lock = Lock.FROZEN if tier is Tier.CORE else Lock.PENDING
                yield replace(memory, tier=tier, lock=lock)
            else:
                yield _archived(memory, self._now)


def _zh(number: int) -> str:
    spread = number * 7919 % len(_CHARS) ** 3
    return "".join(_CHARS[spread // len(_CHARS) ** place % len(_CHARS)] for place in range(3))


def _en(number: int) -> str:
    return "".join(_SYLLABLES[int(digit)] for digit in f"{number * 7919 % 10_000:04}")


def _archived(memory: Memory, now: datetime) -> Memory:
    revision = Revision(
        at=now, version=1, reason="capacity", message_id=None, content=memory.content, object=memory.object,
        polarity=memory.polarity, lock=Lock.PENDING, status=Status.ACTIVE,
    )  # fmt: skip
    return replace(
        memory,
        status=Status.ARCHIVED,
        lock=Lock.PENDING,
        tier=Tier.LONGTERM,
        archived_at=now,
        history=(revision,),
    )
