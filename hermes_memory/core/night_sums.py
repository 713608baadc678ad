"""What a night adds up over users: numbers alone, whatever the number of users (SPEC §9, §10)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BOUNDS_S = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    60.0,
)  # upper ends; a last one is open

Numbers = dict[str, Any]  # numbers, or mappings of such


@dataclass(slots=True)
class NightSums:
    """Sums over users; mergeable and JSON-ready.

    ``changes`` are counted as "step/reason", ``seconds`` by ``BOUNDS_S``. ``spaces`` hold for each namespace the sums of
    its users' answers to ``Aggregate``, ``users`` among them. ``empty`` ones had nothing left to keep.
    """

    done: int = 0
    empty: int = 0
    paused: int = 0
    expired_requests: int = 0
    profile_slots: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    seconds: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    spaces: dict[str, Numbers] = field(default_factory=dict)

    def add(
        self, namespace: str, answer: Mapping[str, Any], aggregate: Mapping[str, Any], seconds: float
    ) -> None:
        """One user's answers to ``Maintain`` and ``Aggregate``, and how long they took."""
        self.done += 1
        self.seconds[bisect_left(BOUNDS_S, seconds)] += 1
        self.expired_requests += answer.get("expired_requests", 0)
        self.profile_slots += answer.get("profile_slots", 0)
        for change in answer["changes"]:
            self.changes[f"{change.get('step', 'maintain')}/{change['reason']}"] += 1
        if not aggregate["memories"] and not aggregate["tally"]:
            self.empty += 1
            return
        self.paused += bool(aggregate["paused"])
        told = {name: value for name, value in aggregate.items() if name not in {"version", "paused"}}
        plus(self.spaces.setdefault(namespace, {}), {"users": 1, **told})

    def merge(self, other: NightSums) -> None:
        """The sums of other users."""
        self.done += other.done
        self.empty += other.empty
        self.paused += other.paused
        self.expired_requests += other.expired_requests
        self.profile_slots += other.profile_slots
        self.changes.update(other.changes)
        self.seconds = [mine + theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)]
        plus(self.spaces, other.spaces)

    def dump(self) -> dict[str, Any]:
        """JSON-ready, for a checkpoint; in one order whatever the order of adding."""
        return {
            "done": self.done, "empty": self.empty, "paused": self.paused,
            "expired_requests": self.expired_requests, "profile_slots": self.profile_slots,
            "changes": dict(sorted(self.changes.items())), "seconds": self.seconds, "spaces": _sorted(self.spaces),
        }  # fmt: skip

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> NightSums:
        """The inverse of ``dump``."""
        fields = dict(dumped)
        fields["changes"] = Counter(fields["changes"])
        fields["seconds"] = list(fields["seconds"])
        fields["spaces"] = _sorted(fields["spaces"])
        return cls(**fields)


def plus(total: Numbers, more: Mapping[str, Any]) -> None:
    """Add numbers, level by level; what is no number nor mapping of such is left out."""
    for name, value in more.items():
        if isinstance(value, Mapping):
            plus(total.setdefault(name, {}), value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            total[name] = total.get(name, 0) + value


def _sorted(numbers: Mapping[str, Any]) -> Numbers:
    return {
        name: _sorted(value) if isinstance(value, Mapping) else value
        for name, value in sorted(numbers.items())
    }
