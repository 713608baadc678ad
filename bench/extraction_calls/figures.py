"""From what was asked to figures: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from bench.extraction_calls.replay import Pace, Played
from bench.peers.tokens import Count
from hermes_memory.adapters.model_extractor.contract import OPINION_FORM

ALL = "all"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Sums over calls. ``later_*``: without the first call of each form, which finds nothing in a prefix cache.

    ``static_missed``: later calls of which not every static block was cached.
    """

    read: int = 0
    cached: int = 0
    written: int = 0
    later_read: int = 0
    later_static: int = 0
    static_missed: int = 0

    @property
    def fresh(self) -> int:
        """Tokens that had to be computed."""
        return self.read - self.cached

    @property
    def static_share(self) -> float:
        """Of what later calls read, the part in whole static blocks; 0 without any."""
        return self.later_static / self.later_read if self.later_read else 0.0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(*(mine + theirs for mine, theirs in zip(_values(self), _values(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one data set at one pace."""

    system: str
    data: str
    pace: Pace
    turns: int
    user_turns: int
    calls: int
    opinions: int
    adds: int
    stored: int
    tokens: Tokens | None

    @property
    def calls_per_turn(self) -> float:
        """A turn is a message of either side."""
        return self.calls / self.turns

    @property
    def calls_per_user_turn(self) -> float:
        """Of the user's messages alone."""
        return self.calls / self.user_turns

    def as_data(self) -> dict[str, Any]:
        """For the file."""
        per = {"calls_per_turn": self.calls_per_turn, "calls_per_user_turn": self.calls_per_user_turn}
        return asdict(self) | per


def tokens(played: Played, counts: Sequence[Count]) -> Tokens:
    """The tokens of one replay, whose calls were counted one by one."""
    seen: set[str] = set()
    total = Tokens()
    for call, one in zip(played.calls, counts, strict=True):
        later = call.form in seen
        seen.add(call.form)
        total += Tokens(
            read=one.read, cached=one.cached, written=one.written, later_read=one.read * later,
            later_static=one.static_blocks * later, static_missed=int(later and one.cached < one.static_blocks),
        )  # fmt: skip
    return total


def of_calls(played: Played, used: Tokens | None) -> Row:
    """One replay as a row."""
    return Row(
        system=played.system, data=played.data, pace=played.pace, turns=played.turns, user_turns=played.user_turns,
        calls=len(played.calls), opinions=sum(call.form == OPINION_FORM for call in played.calls),
        adds=played.adds, stored=played.stored, tokens=used,
    )  # fmt: skip


def summed(rows: Iterable[Row]) -> list[Row]:
    """The rows of each pace by system, behind them their sum over all data."""
    ordered = sorted(rows, key=_kind)
    together: list[Row] = []
    for _, group in groupby(ordered, key=_kind):
        of_kind = list(group)
        together += [*of_kind, _sum(of_kind)]
    return together


def _sum(rows: Sequence[Row]) -> Row:
    total = replace(rows[0], data=ALL)
    for row in rows[1:]:
        both = None if total.tokens is None or row.tokens is None else total.tokens + row.tokens
        total = replace(
            total, turns=total.turns + row.turns, user_turns=total.user_turns + row.user_turns,
            calls=total.calls + row.calls, opinions=total.opinions + row.opinions, adds=total.adds + row.adds,
            stored=total.stored + row.stored, tokens=both,
        )  # fmt: skip
    return total


def _kind(row: Row) -> tuple[str, str]:
    return row.pace.name, row.system


def _values(used: Tokens) -> tuple[int, ...]:
    return used.read, used.cached, used.written, used.later_read, used.later_static, used.static_missed
