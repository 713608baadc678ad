"""Every metric that the product has, as data: its kind, its labels with their closed sets of values, its buckets.

Closed sets bound the number of series, and keep content out: what is not a declared value cannot become a label. Sets
that the code knows (reasons, transitions, error codes, methods of a port) are taken from there, so that they never
differ. ``docs/reference/metrics.md`` shows the same, and a test holds the two together.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Any

from hermes_memory import errors
from hermes_memory.app.commands import Command
from hermes_memory.core.board import Op
from hermes_memory.core.model import Lock, Status
from hermes_memory.core.reasons import Reason
from hermes_memory.core.tally import TALLIED
from hermes_memory.core.transitions import LOCKS, STATUSES, LockEvent, StatusEvent
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import name_of

OTHER = "other"  # what a value counts as that is not declared


class Kind(StrEnum):
    """What a metric is to Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Open:
    """A set of values that others decide: of a form, and no more than ``at_most`` of them in a process."""

    pattern: str
    at_most: int


Values = frozenset[str] | Open
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One metric. ``known``: the series that are there, as 0, before anything happens: what ``rate()`` needs."""

    name: str
    kind: Kind
    help: str
    labels: Mapping[str, Values] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()
    known: tuple[Labels, ...] = ()
    ours: bool = True  # else made by the client library

    @property
    def unit(self) -> str:
        """The unit, by the end of the name; empty for plain numbers."""
        name = self.name.removesuffix("_total")
        return next((unit for unit in ("seconds", "bytes") if name.endswith(f"_{unit}")), "")


FAST = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
CALLS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TURNS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
TOKENS = (50.0, 100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0, 6_400.0, 12_800.0)
FEW = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 50.0)

_REASONS = frozenset(reason.value for reason in Reason)
_TALLIED = frozenset(
    name for name in TALLIED if not name.startswith("refused_")
)  # those are reasons of the gates
STAGES = frozenset({"embed", "actor", "rank", "index", "rerank", "assemble"})
PARTS = frozenset({"reranker", "index"})
OUTCOMES = frozenset({"accepted", "refused"})
RENEWALS = frozenset({"renewed", "lost", "failed"})
STATUSES_OF_HTTP = Open(r"[1-5][0-9]{2}", 40)
ROUTES = Open(r"/[a-z0-9_{}/.-]{0,80}|unmatched", 80)
METHODS_OF_HTTP = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER})
KINDS_OF_ERROR = Open(r"[A-Za-z_]{1,40}", 24)
BURIED = Open(r"[a-z0-9_]{1,40}", 24)
FALLBACKS = Open(r"[a-z0-9_]{1,40}", 24)
TOKEN_KINDS = frozenset({"read", "cached", "written", "failed"})


def _codes(kind: type[errors.HermesError] = errors.HermesError) -> Iterator[str]:
    yield kind.code
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _codes(below)


CODES = frozenset(
    {*_codes(), "timeout", "internal", "cancelled", "moved"}
)  # moved: to another host of the pool


def methods_of(port: type) -> frozenset[str]:
    """The names of a port's calls."""
    return frozenset(name for name, call in vars(port).items() if inspect.iscoroutinefunction(call))


COMMANDS = frozenset(name_of(kind) for kind in Command.__subclasses__())


def _every(**labels: Iterable[str]) -> tuple[Labels, ...]:
    return tuple(dict(zip(labels, values, strict=True)) for values in product(*map(sorted, labels.values())))


def _moves(table: Mapping[Any, StrEnum]) -> tuple[Labels, ...]:
    return tuple(
        {"from": before.value, "to": after.value, "event": event.value}
        for (before, event), after in table.items()
    )


def _move_labels(states: type[StrEnum], events: type[StrEnum]) -> Mapping[str, Values]:
    values = frozenset(state.value for state in states)
    return {"from": values, "to": values, "event": frozenset(event.value for event in events)}


def _counter(name: str, text: str, known: Iterable[Labels] = (), **labels: Values) -> Spec:
    return Spec(name=name, kind=Kind.COUNTER, help=text, labels=labels, known=tuple(known))


def _gauge(name: str, text: str, **labels: Values) -> Spec:
    return Spec(name=name, kind=Kind.GAUGE, help=text, labels=labels)


def _histogram(name: str, text: str, buckets: tuple[float, ...], **labels: Values) -> Spec:
    return Spec(name=name, kind=Kind.HISTOGRAM, help=text, labels=labels, buckets=buckets)


_HTTP = (
    _counter("hermes_http_requests_total", "requests answered, by the route's template", route=ROUTES, method=METHODS_OF_HTTP, status=STATUSES_OF_HTTP),
    _histogram("hermes_http_request_seconds", "from the first byte of a request to the last of its answer", CALLS, route=ROUTES, method=METHODS_OF_HTTP),
    _gauge("hermes_http_in_flight", "requests that are being answered"),
    _counter("hermes_messages_total", "messages taken in, without duplicates", known=[{}]),
)  # fmt: skip

_RECALL = (
    _histogram("hermes_recall_seconds", "a recall in the ingress, embedding included", CALLS),
    _histogram("hermes_recall_stage_seconds", "one stage of a recall; actor is the whole call to the user's host", FAST, stage=STAGES),
    _histogram("hermes_recalled_memories", "memories in the answer of a recall", FEW),
    _counter("hermes_recall_degraded_total", "recalls that were answered without a part", known=_every(part=PARTS), part=PARTS),
    _counter("hermes_recall_index_skipped_total", "recalls that did not ask the index, because it did not answer lately", known=[{}]),
    _counter("hermes_recall_index_failures_total", "recalls that asked the index and got no answer in time", kind=KINDS_OF_ERROR),
    _histogram("hermes_rerank_seconds", "a reranker's look", CALLS),
    _counter("hermes_rerank_failures_total", "looks that gave no good answer in time", kind=KINDS_OF_ERROR),
)  # fmt: skip

_GATES = (
    _counter("hermes_changes_total", "changes and refusals, as in the audit", op=frozenset(op.value for op in Op), reason=_REASONS),
    _counter("hermes_gate_reasons_total", "decisions of the gates", known=_every(outcome=OUTCOMES, reason=_REASONS), outcome=OUTCOMES, reason=_REASONS),
    _counter("hermes_tally_total", "what the figures of quality are made of", known=_every(of=_TALLIED), of=_TALLIED),
    _counter("hermes_lock_transitions_total", "moves of locks, as in the table of transitions", known=_moves(LOCKS), **_move_labels(Lock, LockEvent)),
    _counter("hermes_status_transitions_total", "moves of statuses, as in the table of transitions", known=_moves(STATUSES), **_move_labels(Status, StatusEvent)),
)  # fmt: skip

_COMMANDS = (
    _counter("hermes_commands_total", "commands, by ok or the error's code; overloaded are those turned away", known=_every(command=COMMANDS, outcome=("ok", "overloaded")), command=COMMANDS, outcome=CODES | {"ok"}),
    _histogram("hermes_command_seconds", "a command from its arrival at the host to its commit", CALLS, command=COMMANDS),
    _gauge("hermes_commands_waiting", "commands in the mailboxes that have not begun"),
    _gauge("hermes_commands_in_flight", "commands that are being carried out"),
)  # fmt: skip

_EXTRACTION = (
    _counter("hermes_extraction_batches_total", "batches of turns given to the distiller, every try", known=[{}]),
    _counter("hermes_extraction_turns_total", "turns in those batches", known=[{}]),
    _counter("hermes_extraction_failures_total", "batches that failed; parked ones are not tried again for long", known=_every(parked=("false", "true")), parked=frozenset({"false", "true"})),
    _gauge("hermes_extraction_parked_turns", "turns of awake users that are parked and tried again later"),
    _counter("hermes_extraction_calls_total", "calls to a language model, repairs and second opinions among them", known=[{}]),
    _counter("hermes_extraction_tokens_total", "tokens of a language model: read anew, found read before, written, and those of tries that failed", known=_every(kind=TOKEN_KINDS), kind=TOKEN_KINDS),
    _counter("hermes_extraction_cost_total", "what those tokens cost at the configured prices, in your currency; without tries that failed", known=[{}]),
    _counter("hermes_extraction_invalid_answers_total", "answers of a language model that could not be used", known=[{}]),
    _counter("hermes_extraction_repairs_total", "calls that asked again because of one", known=[{}]),
    _counter("hermes_extraction_second_opinions_total", "statements that were asked about a second time", known=[{}]),
    _counter("hermes_extraction_fallbacks_total", "batches that the rules read in the place of a language model", reason=FALLBACKS),
    _histogram("hermes_extraction_turns_per_call", "turns of a batch for each call that it took", TURNS),
    _histogram("hermes_extraction_tokens_per_turn", "tokens of a batch, read and written, for each of its turns", TOKENS),
    _histogram("hermes_distiller_seconds", "a call to the distiller", SLOW, method=methods_of(Distiller)),
    _counter("hermes_distiller_failures_total", "calls to the distiller that raised", method=methods_of(Distiller), code=CODES),
)  # fmt: skip

_OUTBOX = (
    _gauge("hermes_outbox_waiting_users", "users of this host with entries that wait for the index"),
    _gauge("hermes_outbox_oldest_seconds", "for how long the longest waiting of them has been seen waiting"),
    _gauge("hermes_outbox_dead_letter_users", "users of this host with entries that the index refused and nobody has seen to"),
    _counter("hermes_outbox_delivered_total", "entries the index has taken", known=_every(op=("put", "remove", "drop")), op=frozenset({"put", "remove", "drop"})),
    _counter("hermes_outbox_buried_total", "entries the index refused", reason=BURIED),
)  # fmt: skip

_ACTORS = (
    _gauge("hermes_users_awake", "users whose actor is awake"),
    _gauge("hermes_users_waking", "users whose actor is being activated"),
    _gauge("hermes_users_bytes", "rough memory of the awake users"),
    _counter("hermes_activations_total", "actors woken", known=[{}]),
    _histogram("hermes_activation_seconds", "waking an actor from the ledger", CALLS),
    _counter("hermes_passivations_total", "actors put to sleep", known=[{}]),
    _counter("hermes_lease_renewals_total", "tries to renew the host's lease", known=_every(outcome=RENEWALS), outcome=RENEWALS),
    _gauge("hermes_host_epoch", "the epoch that the host has claimed"),
)  # fmt: skip

_STORES = (
    _histogram("hermes_ledger_seconds", "a call to the ledger", CALLS, method=methods_of(Ledger)),
    _counter("hermes_ledger_failures_total", "calls to the ledger that raised", known=({"method": "commit", "code": errors.LedgerUnavailable.code},), method=methods_of(Ledger), code=CODES),
    _histogram("hermes_index_seconds", "a call to the index", CALLS, method=methods_of(VectorIndex)),
    _counter("hermes_index_failures_total", "calls to the index that raised", known=({"method": "put", "code": errors.IndexUnavailable.code},), method=methods_of(VectorIndex), code=CODES),
)  # fmt: skip

_PROCESSES = (
    _gauge("hermes_up", "whether the process answered the scrape"),
    _counter("hermes_undeclared_metrics_total", "what the code counted under a name, label or value that is not declared", known=[{}]),
)  # fmt: skip


def _of_process(name: str, kind: Kind, text: str) -> Spec:
    return Spec(name=name, kind=kind, help=text, ours=False)


_STANDARD = (
    _of_process("process_cpu_seconds_total", Kind.COUNTER, "processor time"),
    _of_process("process_resident_memory_bytes", Kind.GAUGE, "resident memory"),
    _of_process("process_virtual_memory_bytes", Kind.GAUGE, "virtual memory"),
    _of_process("process_start_time_seconds", Kind.GAUGE, "when the process started, since 1970"),
    _of_process("process_open_fds", Kind.GAUGE, "open file descriptors"),
    _of_process("process_max_fds", Kind.GAUGE, "most of them that may be open"),
)

CATALOGUE: Mapping[str, Spec] = {
    spec.name: spec
    for spec in (
        *_HTTP, *_RECALL, *_GATES, *_COMMANDS, *_EXTRACTION, *_OUTBOX, *_ACTORS, *_STORES, *_PROCESSES, *_STANDARD,
    )
}  # fmt: skip
