"""What watching costs: one count, one observation, all that a recall counts, one log line, and one scrape.

The scrape is of a host with a thousand awake users (two memories each) that has counted everything that can happen, and
of an ingress that joins four such hosts. Processor time, so that other programs on the machine do not show; the best of
several rounds.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.users import Crowd, load
from hermes_memory.adapters.logs import JsonLines
from hermes_memory.adapters.metric_catalogue import CATALOGUE, OTHER, Kind, Open
from hermes_memory.adapters.metrics import UP, PrometheusMetrics, merged
from hermes_memory.config import load_settings
from hermes_memory.core.ids import UserKey
from hermes_memory.runtime.counting import count_recall
from hermes_memory.wiring import build_distiller, build_embedder, build_host
from serve_app.services import DEFAULT_NAMESPACE

LIMITS = (
    Limit("count_ns", at_most=3_000, what="one count with two labels, ns"),
    Limit("observe_ns", at_most=4_000, what="one observation with one label, ns"),
    Limit("recall_us", at_most=40, what="everything a recall counts, µs"),
    Limit("scrape_ms", at_most=50, what="a host with 1,000 awake users renders its metrics, ms"),
    Limit("merge_ms", at_most=50, what="an ingress joins the metrics of four hosts and its own, ms"),
)
USERS, QUICK_USERS = 1_000, 200
ROUNDS, TIMES = 7, 20_000
ANSWER = {"timings_ms": {"rank": 0.8, "assemble": 0.3}, "memories": [{}] * 6, "degraded": []}
OVERRIDES = {
    "embedder": {"kind": "hash", "calibration": "hash"},
    "ledger": {"synchronous": "NORMAL"},
    "actors": {"memory_budget_mb": 4096, "idle_s": 3600.0},
}


def run(*, quick: bool, say: Say) -> Report:
    """Count, then scrape."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    report = Report("counting")
    say("counting")
    metrics = PrometheusMetrics()
    ns = {
        "count_ns": _each(
            lambda: metrics.count("hermes_gate_reasons_total", outcome="accepted", reason="new")
        ),
        "observe_ns": _each(lambda: metrics.observe("hermes_recall_stage_seconds", 0.0007, stage="rank")),
        "gauge_ns": _each(lambda: metrics.gauge("hermes_users_awake", 3)),
        "log_line_ns": _each(_line),
    }
    recall_us = _each(lambda: count_recall(metrics, ANSWER)) / 1000
    say(f"waking {QUICK_USERS if quick else USERS:,} users")
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        scrape = asyncio.run(_scrape(Path(folder), QUICK_USERS if quick else USERS))
    report.figures = {**ns, "recall_us": recall_us, **scrape}
    report.tables = [
        table(
            "What watching costs",
            ("what", "value"),
            [(name, float(value)) for name, value in report.figures.items()],
        )
    ]
    return report


def _each(work: Callable[[], object], times: int = TIMES) -> float:
    """Nanoseconds of processor time for each call, less those of the loop."""
    return max(0.0, _best(work, times) - _best(lambda: None, times))


def _best(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.thread_time_ns()
        for _ in range(times):
            work()
        best = min(best, (time.thread_time_ns() - started) / times)
    return best


_FORM = JsonLines("ingress-bench")


def _line() -> str:
    record = logging.LogRecord("serve_app.measuring", logging.INFO, __file__, 1, "request", (), None)
    record.__dict__ |= {
        "user": "0" * 40,
        "request_id": "req_0",
        "route": "/v1/users/{user}/recall",
        "status": 200,
    }
    return _FORM.format(record)


async def _scrape(data: Path, users: int) -> dict[str, float]:
    settings = load_settings(None, OVERRIDES)
    crowd = Crowd(users, 2)
    await asyncio.to_thread(load, settings, data, [crowd])
    embedder, metrics = build_embedder(settings), PrometheusMetrics(process=True)
    host = build_host(
        "bench", settings, data, build_distiller(settings, embedder), embedder.info, metrics=metrics
    )
    await host.start()
    try:
        for number in range(users):
            await host.wake(UserKey(DEFAULT_NAMESPACE, crowd.name(number)))
        everything(metrics)
        levels_ms = _best(host.measure, 1) / 1e6
        render_ms = _best(metrics.render, 1) / 1e6
        text = metrics.render()
        merge_ms = _best(lambda: merged({f"p{n}": text for n in range(5)}), 1) / 1e6
    finally:
        await host.stop()
    return {
        "awake": users, "lines": text.count(b"\n"), "bytes": len(text), "levels_ms": levels_ms,
        "scrape_ms": levels_ms + render_ms, "merge_ms": merge_ms,
    }  # fmt: skip


def everything(metrics: PrometheusMetrics) -> None:
    """Let every metric have the series of a busy server: each value of its labels once."""
    for spec in CATALOGUE.values():
        if not spec.ours or spec.name == UP:
            continue
        closed = {label: each for label, each in spec.labels.items() if not isinstance(each, Open)}
        if len(closed) < len(spec.labels):
            continue  # a host has none of these, or few
        values = {label: sorted(each - {OTHER}) for label, each in closed.items()}
        for number in range(max([len(each) for each in values.values()], default=1)):
            labels = {label: each[number % len(each)] for label, each in values.items()}
            if spec.kind is Kind.COUNTER:
                metrics.count(spec.name, 1, **labels)
            elif spec.kind is Kind.GAUGE:
                metrics.gauge(spec.name, 1.0, **labels)
            else:
                metrics.observe(spec.name, 0.01, **labels)
