"""The parts of a night that need no Ray: its pace as configured, and how it tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_memory.app.night import Night, Pacing, ShardProgress
from hermes_memory.app.night_closing import NamespaceClosing
from hermes_memory.app.users import Users
from hermes_memory.config import Settings
from hermes_memory.ports.ledger import Ledger

Told = Callable[[ShardProgress], None]


def build_night(settings: Settings, ledger: Ledger, users: Users, told: Told = lambda _: None) -> Night:
    """A driver of the night with the configured pace."""
    chosen, rules = settings.nightly, settings.rules.quality
    pacing = Pacing(
        page=chosen.page, in_flight=chosen.in_flight, shards=chosen.shards, share=chosen.share,
        deadline_s=chosen.deadline_s, backoff_s=chosen.backoff_s, backoff_most_s=chosen.backoff_most_s,
    )  # fmt: skip
    closing = NamespaceClosing(ledger, rules, settings.rules.cohorts)
    return Night(ledger, users, pacing, closing, window_days=rules.window_days, told=told)


class Lines:
    """Says on a stream how far all shards together are, when that has changed."""

    def __init__(self, shards: int, write: Callable[[str], None]) -> None:
        self._shards, self._write, self._said = shards, write, ""
        self._seen: dict[int, ShardProgress] = {}

    def tell(self, progress: ShardProgress) -> None:
        """One shard's progress."""
        self._seen[progress.shard] = progress
        line = line_of(list(self._seen.values()), self._shards)
        if line != self._said:
            self._said = line
            self._write(line)


def line_of(seen: Sequence[ShardProgress], shards: int) -> str:
    """How far it is, in words."""
    users, finished = sum(shard.seen for shard in seen), sum(shard.finished for shard in seen)
    failed = sum(shard.failed for shard in seen)
    return f"{users:,} users, {finished} of {shards} shards" + (f", {failed:,} not reached" if failed else "")
