"""Counters and timings for Prometheus, or for nobody."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

PREFIX = "hermes_"
_UNKNOWN = re.compile(r"[^a-zA-Z0-9_]")
_BUCKETS: dict[str, tuple[float, ...]] = {
    "_seconds": (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    "_ms": (0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000),
    "_bytes": (256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304),
}
_BUCKETS["_s"] = _BUCKETS["_seconds"]
_PLAIN_BUCKETS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


class NullMetrics:
    """Counts nothing."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Forget it."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Forget it."""

    def render(self) -> bytes:
        """Nothing."""
        return b""


class PrometheusMetrics:
    """Makes each counter and histogram on first use, in a registry of its own.

    A name keeps the label names it was first used with; others raise ValueError. Names are prefixed with
    ``hermes_``; a histogram's buckets follow the unit that its name ends with (``_ms``, ``_s``, ``_bytes``).
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._lock = threading.Lock()

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add ``amount``, which is not negative, to a counter."""
        counter = self._counters.get(name) or self._new_counter(name, labels)
        (counter.labels(**labels) if labels else counter).inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Record one observation, in the unit that the name ends with."""
        histogram = self._histograms.get(name) or self._new_histogram(name, labels)
        (histogram.labels(**labels) if labels else histogram).observe(value)

    def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def _new_counter(self, name: str, labels: dict[str, str]) -> Counter:
        with self._lock:
            if name not in self._counters:
                self._counters[name] = Counter(
                    _full(name), _help(name), sorted(labels), registry=self._registry
                )
            return self._counters[name]

    def _new_histogram(self, name: str, labels: dict[str, str]) -> Histogram:
        with self._lock:
            if name not in self._histograms:
                buckets = next((b for unit, b in _BUCKETS.items() if name.endswith(unit)), _PLAIN_BUCKETS)
                self._histograms[name] = Histogram(
                    _full(name), _help(name), sorted(labels), registry=self._registry, buckets=buckets
                )
            return self._histograms[name]


def merged(texts: Mapping[str, bytes]) -> bytes:
    """The metrics of several processes as one text, each sample labelled with its ``process``."""
    families: dict[str, Metric] = {}
    for process, text in texts.items():
        for family in text_string_to_metric_families(text.decode("utf-8")):
            whole = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                whole.add_sample(sample.name, {**sample.labels, "process": process}, sample.value)
    registry = CollectorRegistry()
    registry.register(_Given(list(families.values())))
    return generate_latest(registry)


class _Given(Collector):
    """Families that are already there."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        """All of them."""
        return self._families


def _full(name: str) -> str:
    name = _UNKNOWN.sub("_", name)
    return name if name.startswith(PREFIX) else PREFIX + name


def _help(name: str) -> str:
    return name.removeprefix(PREFIX).replace("_", " ")
