"""Ports that count and time every call to what is behind them.

A measured port is the port: whatever else its adapter has is still reached through it. Calls that raise are counted
by the error's code, also where the error is an answer (``version_conflict``, ``session_owned``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import wraps
from typing import Any, cast

from hermes_memory.adapters.metric_catalogue import methods_of
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.errors import LeaseLost
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import Metrics, code_of

_Call = Callable[..., Awaitable[Any]]


def measured_ledger(ledger: Ledger, metrics: Metrics) -> Ledger:
    """``hermes_ledger_*``, and what becomes of the host's lease."""
    return cast("Ledger", _MeasuredLedger(ledger, Ledger, metrics, "ledger"))


def measured_index(index: VectorIndex, metrics: Metrics) -> VectorIndex:
    """``hermes_index_*``."""
    return cast("VectorIndex", _Measured(index, VectorIndex, metrics, "index"))


def measured_distiller(distiller: Distiller, metrics: Metrics) -> Distiller:
    """``hermes_distiller_*``, and the batches and turns of the extraction."""
    return cast("Distiller", _MeasuredDistiller(distiller, Distiller, metrics, "distiller"))


class _Measured:
    """Stands in for ``inner``; the calls of ``port`` go through a stopwatch."""

    def __init__(self, inner: Any, port: type, metrics: Metrics, what: str) -> None:
        self._inner, self._metrics = inner, metrics
        for name in methods_of(port):
            call = getattr(self, f"_{name}", None) or getattr(inner, name, None)
            if call is not None:  # an adapter of before lacks it, and says so when it is called
                setattr(self, name, _timed(call, name, metrics, what))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)


def _timed(call: _Call, method: str, metrics: Metrics, what: str) -> _Call:
    seconds, failures = f"hermes_{what}_seconds", f"hermes_{what}_failures_total"

    @wraps(call)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return await call(*args, **kwargs)
        except asyncio.CancelledError:
            metrics.count(failures, method=method, code="cancelled")
            raise
        except Exception as error:
            metrics.count(failures, method=method, code=code_of(error))
            raise
        finally:
            metrics.observe(seconds, time.perf_counter() - started, method=method)

    return timed


class _MeasuredLedger(_Measured):
    async def _claim_epoch(self, host: str, lease_s: float, now: datetime) -> int:
        epoch: int = await self._inner.claim_epoch(host, lease_s, now)
        self._metrics.gauge("hermes_host_epoch", epoch)
        return epoch

    async def _renew_lease(self, epoch: int, lease_s: float, now: datetime) -> None:
        outcome = "failed"
        try:
            await self._inner.renew_lease(epoch, lease_s, now)
            outcome = "renewed"
        except LeaseLost:
            outcome = "lost"
            raise
        finally:
            self._metrics.count("hermes_lease_renewals_total", outcome=outcome)


class _MeasuredDistiller(_Measured):
    async def _distil(self, request: ExtractionRequest) -> Distilled:
        self._metrics.count("hermes_extraction_batches_total")
        self._metrics.count("hermes_extraction_turns_total", len(request.turns))
        distilled: Distilled = await self._inner.distil(request)
        return distilled
