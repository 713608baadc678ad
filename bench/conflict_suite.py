"""The conflict suite: how often contradictions are found and rightly settled, and how often none is one (SPEC §10).

    python -m bench conflicts            # the default embedder
    python -m bench conflicts --quick    # the hash embedder; only the figures of duplicates are rough

Every share stands with its Wilson interval of 95 %. Every miss is printed with its texts and kept in the file.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.conflict_case import LANGUAGES, ROWS, Case, cases
from bench.conflict_play import Kit, Played, kit, play
from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import load_settings
from hermes_memory.core.model import Memory
from hermes_memory.wiring import build_embedder

LIMITS = (
    Limit("conflicts", what="labelled true conflicts", at_least=100),
    Limit("detected", what="true conflicts detected", at_least=0.99),
    Limit("resolved", what="true conflicts resolved as specified", at_least=0.97),
    Limit("false_alarms", what="false alarms among statements that contradict nothing", at_most=0.01),
)
Z = 1.959964  # of a two-sided interval of 95 %


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``of``, with the Wilson score interval."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself; 0 of nothing is 0."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound."""
        if not self.of:
            return 0.0, 1.0
        z2, p = Z * Z / self.of, self.value
        centre = (p + z2 / 2) / (1 + z2)
        half = Z * math.sqrt(p * (1 - p) / self.of + z2 / (4 * self.of)) / (1 + z2)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} [{low:.1%}–{high:.1%}] {self.hits}/{self.of}" if self.of else "–"


def share(played: Sequence[Played], holds: Callable[[Played], bool]) -> Share:
    """How many of ``played`` hold."""
    return Share(sum(1 for one in played if holds(one)), len(played))


@dataclass(frozen=True, slots=True)
class Score:
    """The shares of one group of cases. ``exact`` is over those that contradict nothing and has no limit."""

    detected: Share
    resolved: Share
    false_alarms: Share
    exact: Share


def score(played: Sequence[Played]) -> Score:
    """The shares of ``played``."""
    true = [one for one in played if one.case.conflict]
    other = [one for one in played if not one.case.conflict]
    return Score(
        detected=share(true, lambda one: one.detected),
        resolved=share(true, lambda one: one.right),
        false_alarms=share(other, lambda one: one.false_alarm),
        exact=share(other, lambda one: one.right),
    )


def missed(one: Played) -> str:
    """What kind of miss it is; empty for none that a limit counts."""
    if one.false_alarm:
        return "false alarm"
    if one.case.conflict and not one.detected:
        return "undetected"
    return "wrong resolution" if one.case.conflict and not one.right else ""


async def play_all(chosen: Sequence[Case], with_kit: Kit) -> list[Played]:
    """Every case, one fresh user each."""
    return [await play(case, with_kit) for case in chosen]


def quick_kit() -> Kit:
    """The kit with the embedder that needs no model."""
    settings = load_settings(overrides={"embedder": {"kind": "hash", "calibration": "hash"}})
    return kit(settings, HashEmbedder())


def run(*, quick: bool, say: Say) -> Report:
    """Play every case and score."""
    chosen = cases()
    settings = load_settings()
    with_kit = quick_kit() if quick else kit(settings, build_embedder(settings))
    say(f"{len(chosen)} cases, embedder {with_kit.embedder.name}")
    return report(asyncio.run(play_all(chosen, with_kit)))


def report(played: Sequence[Played]) -> Report:
    """Tables, figures and every miss."""
    whole = score(played)
    misses = [(kind, one) for one in played if (kind := missed(one))]
    figures = {
        "conflicts": float(whole.detected.of),
        "others": float(whole.false_alarms.of),
        "look_alikes": float(
            sum(1 for one in played if one.case.looks_like_conflict and not one.case.conflict)
        ),
        "detected": whole.detected.value,
        "resolved": whole.resolved.value,
        "false_alarms": whole.false_alarms.value,
        "exact_others": whole.exact.value,
    }
    return Report(
        name="conflicts",
        figures=figures,
        tables=[_scores(played, whole), _causes(misses), _misses(misses)],
        data={
            "misses": [_record(kind, one) for kind, one in misses],
            "inexact": [_record("inexact", one) for one in played if not one.right and not missed(one)],
        },
    )


def _scores(played: Sequence[Played], whole: Score) -> Table:
    groups = [
        *((language, [one for one in played if one.case.language == language]) for language in LANGUAGES),
        *((row, [one for one in played if one.case.row == row]) for row in ROWS),
        ("look-alikes", [one for one in played if one.case.looks_like_conflict and not one.case.conflict]),
    ]
    scores = [("all", whole), *((name, score(group)) for name, group in groups if group)]
    rows = [(name, s.detected, s.resolved, s.false_alarms, s.exact) for name, s in scores]
    columns = ("", "detected", "resolved", "false alarms", "others exactly as expected")
    return table("Conflict suite, shares with Wilson intervals of 95 %", columns, rows)


def _causes(misses: Sequence[tuple[str, Played]]) -> Table:
    counted = Counter((kind, one.cause) for kind, one in misses)
    return table(
        "Misses by cause", ("kind, cause", "cases"), [(", ".join(k), n) for k, n in sorted(counted.items())]
    )


def _misses(misses: Sequence[tuple[str, Played]]) -> Table:
    drawn = Table(title="Misses", title_justify="left", show_lines=True)
    for column in ("case", "texts", "expected → came", "what was read and known"):
        drawn.add_column(column, overflow="fold")
    for kind, one in misses:
        case = one.case
        texts = "\n".join(f"{turn.day:g}{turn.session}: {turn.text}" for turn in case.turns)
        outcome = f"{kind}\n{case.expect} → {one.fate}\n({one.cause})"
        drawn.add_row(f"{case.id}\n{case.row}", texts, outcome, "\n".join((*_read(one), *_known(one))))
    return drawn


def _record(kind: str, one: Played) -> dict[str, Any]:
    case = one.case
    return {
        "id": case.id,
        "kind": kind,
        "cause": one.cause,
        "row": case.row,
        "texts": [turn.text for turn in case.turns],
        "expected": case.expect.value,
        "came": one.fate.value,
        "why": case.why,
        "read": _read(one),
        "known": _known(one),
    }


def _read(one: Played) -> list[str]:
    return [
        f"read {c.dimension}{c.polarity}“{c.object}” {c.category}/{c.scope} {'+'.join(sorted(c.markers))}"
        f"{'' if c.subject == 'user' else ' of ' + c.subject}"
        for c in one.candidates
    ]


def _known(one: Played) -> list[str]:
    return [_line("had", memory) for memory in one.before.values()] + [
        _line("now", memory) for i, memory in one.after.items() if one.before.get(i) != memory
    ]


def _line(when: str, memory: Memory) -> str:
    rival = " rival" if memory.rival_of else ""
    subject = "" if memory.subject == "user" else f" of {memory.subject}"
    return (
        f"{when} {memory.dimension}{memory.polarity}“{memory.object}” {memory.category}/{memory.scope} "
        f"{memory.lock}/{memory.status}{rival}{subject}"
    )
