"""Counters, timings and levels for Prometheus, or for nobody."""

from __future__ import annotations

import logging
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.samples import Sample

from hermes_memory.adapters.metric_catalogue import CATALOGUE, OTHER, Kind, Open, Spec, Values

UNDECLARED = "hermes_undeclared_metrics_total"
UP = "hermes_up"
_TYPES: dict[Kind, type[MetricWrapperBase]] = {
    Kind.COUNTER: Counter, Kind.GAUGE: Gauge, Kind.HISTOGRAM: Histogram,
}  # fmt: skip
log = logging.getLogger(__name__)

_Key = tuple[str, *tuple[tuple[str, str], ...]]


class NullMetrics:
    """Counts nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Forget it."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Forget it."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Forget it."""

    def render(self) -> bytes:
        """Nothing."""
        return b""


class PrometheusMetrics:
    """Every metric of a catalogue, in a registry of its own; the series that are known from the start are 0.

    What is not declared is not counted under its own name: an unknown metric or label name raises ValueError where
    ``strict`` (as in the tests), and is otherwise only counted as undeclared; an unknown value counts as ``other``.
    """

    strict: ClassVar[bool] = False

    def __init__(self, catalogue: Mapping[str, Spec] = CATALOGUE, *, process: bool = False) -> None:
        """``process``: with what the system says of this process. Only one of a process' metrics should."""
        self._registry = CollectorRegistry()
        self._catalogue = catalogue
        self._lock = threading.Lock()
        self._families: dict[str, Any] = {}
        self._series: dict[Kind, dict[_Key, Any]] = {kind: {} for kind in Kind}
        self._values: dict[tuple[str, str], set[str]] = defaultdict(set)  # those seen of open sets
        self._told: set[str] = set()
        for spec in catalogue.values():
            if spec.ours and spec.name != UP:
                self._families[spec.name] = self._family(spec)
        for spec in catalogue.values():
            for labels in spec.known:
                self._one(spec.kind, spec.name, dict(labels))
        if process:
            ProcessCollector(registry=self._registry)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add ``amount``, which is not negative, to a counter."""
        series = self._series[Kind.COUNTER].get((name, *labels.items()))
        (series or self._one(Kind.COUNTER, name, labels)).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record one observation, in the unit that the name ends with."""
        series = self._series[Kind.HISTOGRAM].get((name, *labels.items()))
        (series or self._one(Kind.HISTOGRAM, name, labels)).observe(value)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set how much there is now."""
        series = self._series[Kind.GAUGE].get((name, *labels.items()))
        (series or self._one(Kind.GAUGE, name, labels)).set(value)

    def render(self) -> bytes:
        """Everything in Prometheus' text format. Reads files about this process: not in an event loop."""
        lines: list[str] = []
        for family in self._registry.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            lines.append(f"# HELP {name} {family.documentation}\n# TYPE {name} {family.type}\n")
            lines += [_line(sample) for sample in family.samples if not sample.name.endswith("_created")]
        return "".join(lines).encode("utf-8")

    def _family(self, spec: Spec) -> Any:
        more = {"buckets": spec.buckets} if spec.buckets else {}
        make: Any = _TYPES[spec.kind]
        return make(spec.name, spec.help, sorted(spec.labels), registry=self._registry, **more)

    def _one(self, kind: Kind, name: str, labels: dict[str, str]) -> Any:
        """The series, found once and kept; values that are not declared are not kept, however many come."""
        spec = self._catalogue.get(name)
        if (
            spec is None
            or name not in self._families
            or spec.kind is not kind
            or labels.keys() != spec.labels.keys()
        ):
            return self._undeclared(
                name, f"is no {kind} with the labels {', '.join(sorted(labels)) or 'none'}"
            )
        with self._lock:
            declared = {label: self._declared(name, label, value) for label, value in labels.items()}
            family = self._families[name]
            series = family.labels(**declared) if declared else family
            if declared == labels:
                self._series[kind][name, *labels.items()] = series
        if declared != labels:
            odd = [label for label in labels if declared[label] != labels[label]]
            self._undeclared(name, f"does not declare this value of {', '.join(odd)}").inc()
        return series

    def _declared(self, name: str, label: str, value: str) -> str:
        """The value, or ``other`` when it is none of those declared."""
        values: Values = self._catalogue[name].labels[label]
        if not isinstance(values, Open):
            return value if value in values else OTHER
        seen = self._values[name, label]
        if value in seen:
            return value
        if len(seen) >= values.at_most or re.fullmatch(values.pattern, value) is None:
            return OTHER
        seen.add(value)
        return value

    def _undeclared(self, name: str, problem: str) -> Any:
        if self.strict:
            raise ValueError(f"the metric {name} {problem}")
        if name not in self._told:
            self._told.add(name)
            log.warning("the metric %s %s", name, problem)
        return _Undeclared(self._families[UNDECLARED])


class _Undeclared:
    """Takes whatever is counted under an undeclared name, and counts only that it was."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter

    def inc(self, amount: float = 1) -> None:
        self._counter.inc()

    observe = set = inc


def _line(sample: Sample) -> str:
    if not sample.labels:
        return f"{sample.name} {_number(sample.value)}\n"
    labels = ",".join([f'{label}="{_escaped(value)}"' for label, value in sample.labels.items()])
    return f"{sample.name}{{{labels}}} {_number(sample.value)}\n"


def _number(value: float) -> str:
    return repr(float(value)).replace("inf", "Inf").replace("nan", "NaN")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def merged(texts: Mapping[str, bytes | None]) -> bytes:
    """The metrics of several processes as one text, each sample labelled with its ``process``.

    None stands for a process that did not answer: of it only ``hermes_up`` is told, as 0. Of one that is not among
    the texts nothing is told, so that no level of a process outlives it.
    """
    families: dict[str, list[str]] = {}  # name → its header, then the samples of all processes
    for process, text in texts.items():
        mark = f'process="{_escaped(process)}"'
        lines: list[str] = []
        for line in (text or b"").decode("utf-8").splitlines():
            if line.startswith("# HELP "):
                lines = families.setdefault(line.split(" ", 3)[2], [])
                described = bool(lines)
                if not described:
                    lines.append(line)
            elif line.startswith("#"):
                if len(lines) == 1:
                    lines.append(line)
            else:
                lines.append(_marked(line, mark))
    up = [f"# HELP {UP} {CATALOGUE[UP].help}", f"# TYPE {UP} gauge"]
    up += [f'{UP}{{process="{_escaped(p)}"}} {int(text is not None)}' for p, text in texts.items()]
    return "".join([f"{line}\n" for line in _flat([up, *families.values()])]).encode("utf-8")


def _flat(groups: Iterable[list[str]]) -> Iterator[str]:
    for group in groups:
        yield from group


def _marked(line: str, mark: str) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f"{name}{{{mark},{rest}"
    name, _, value = line.partition(" ")
    return f"{name}{{{mark}}} {value}"
