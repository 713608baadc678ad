"""What the runtime counts of commits, recalls and commands, by the names of ``adapters.metric_catalogue``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hermes_memory.app.commands import Command
from hermes_memory.core.board import Op
from hermes_memory.core.candidate import Extraction, Usage
from hermes_memory.core.reasons import Reason
from hermes_memory.core.transitions import LOCKS, STATUSES, LockEvent
from hermes_memory.ports.ledger import AuditEntry, Commit
from hermes_memory.ports.metrics import Metrics, code_of, name_of

_BY_HAND = {Reason.BY_HAND, Reason.VERIFIED}  # what a person asked for, or answered


def count_commit(metrics: Metrics, commit: Commit) -> None:
    """Every change of a commit: what the gates decided, and how locks and statuses moved."""
    for entry in commit.audit:
        metrics.count("hermes_changes_total", op=entry.op, reason=entry.reason)
        outcome = "refused" if entry.op == Op.REFUSED else "accepted"
        metrics.count("hermes_gate_reasons_total", outcome=outcome, reason=entry.reason)
        if entry.before is not None and entry.after is not None:
            _count_move(metrics, entry, entry.before, entry.after)


def _count_move(metrics: Metrics, entry: AuditEntry, before: str, after: str) -> None:
    """The transition behind an entry; an entry may also tell of something that has no table, such as a tier."""
    if event := _lock_event(before, after, entry.reason):
        metrics.count("hermes_lock_transitions_total", 1, **{"from": before, "to": after, "event": event})
    elif event := _STATUS_EVENTS.get((before, after)):
        metrics.count("hermes_status_transitions_total", 1, **{"from": before, "to": after, "event": event})


def _lock_event(before: str, after: str, reason: str) -> str | None:
    """The event that moved the lock; where two lead the same way, the reason tells the hand from the gate."""
    events = _LOCK_EVENTS.get((before, after), ())
    by_hand = reason in _BY_HAND
    return next((e for e in events if len(events) == 1 or (e == LockEvent.FREEZE_BY_HAND) is by_hand), None)


_LOCK_EVENTS: dict[tuple[str, str], list[str]] = {}
for (_lock, _event), _next in LOCKS.items():
    _LOCK_EVENTS.setdefault((_lock.value, _next.value), []).append(_event.value)
_STATUS_EVENTS = {(before.value, after.value): event.value for (before, event), after in STATUSES.items()}


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a million tokens that a language model reads, finds read before, and writes; in the operator's currency."""

    read: float
    cached: float
    written: float

    def of(self, usage: Usage) -> float:
        """What a usage costs."""
        fresh = usage.tokens_in - usage.tokens_cached
        each = fresh * self.read + usage.tokens_cached * self.cached + usage.tokens_out * self.written
        return each / 1_000_000


NO_PRICES = Prices(0.0, 0.0, 0.0)


def count_usage(metrics: Metrics, extraction: Extraction, turns: int, prices: Prices) -> None:
    """What an extraction of so many turns has asked of a language model, and why it did without one."""
    if extraction.fell_back:
        metrics.count("hermes_extraction_fallbacks_total", reason=extraction.fell_back)
    usage = extraction.usage
    if not usage.calls:
        return
    metrics.count("hermes_extraction_calls_total", usage.calls)
    metrics.count("hermes_extraction_invalid_answers_total", usage.invalid)
    metrics.count("hermes_extraction_repairs_total", usage.repairs)
    metrics.count("hermes_extraction_second_opinions_total", usage.opinions)
    metrics.count("hermes_extraction_tokens_total", usage.tokens_in - usage.tokens_cached, kind="read")
    metrics.count("hermes_extraction_tokens_total", usage.tokens_cached, kind="cached")
    metrics.count("hermes_extraction_tokens_total", usage.tokens_out, kind="written")
    metrics.count("hermes_extraction_cost_total", prices.of(usage))
    metrics.observe("hermes_extraction_turns_per_call", turns / usage.calls)
    metrics.observe("hermes_extraction_tokens_per_turn", usage.tokens / turns)


def count_failed_extraction(metrics: Metrics, tokens: int, *, parked: bool) -> None:
    """A try that gave nothing, and what it has used nevertheless."""
    metrics.count("hermes_extraction_failures_total", parked=str(parked).lower())
    if tokens:
        metrics.count("hermes_extraction_tokens_total", tokens, kind="failed")


def count_recall(metrics: Metrics, answer: Mapping[str, Any]) -> None:
    """The stages of a recall, what it brought, and what it had to do without."""
    for stage, ms in answer["timings_ms"].items():
        metrics.observe("hermes_recall_stage_seconds", ms / 1000, stage=stage)
    metrics.observe("hermes_recalled_memories", len(answer["memories"]))
    for part in answer["degraded"]:
        metrics.count("hermes_recall_degraded_total", part=part)


def count_tally(metrics: Metrics, counts: Mapping[str, int]) -> None:
    """What is kept for the figures of quality, for a dashboard that cannot wait for the night."""
    for name, number in counts.items():
        if number and not name.startswith("refused_"):  # those are hermes_gate_reasons_total
            metrics.count("hermes_tally_total", number, of=name)


@contextmanager
def counted(metrics: Metrics, command: Command) -> Iterator[None]:
    """One command, with its duration and how it ended."""
    name, started, outcome = name_of(type(command)), time.perf_counter(), "ok"
    try:
        yield
    except asyncio.CancelledError:
        outcome = "cancelled"
        raise
    except Exception as error:
        outcome = code_of(error)
        raise
    finally:
        metrics.count("hermes_commands_total", command=name, outcome=outcome)
        metrics.observe("hermes_command_seconds", time.perf_counter() - started, command=name)
