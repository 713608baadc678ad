"""A measured port is the port, with every call counted and timed."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.measured import measured_distiller, measured_index, measured_ledger
from hermes_memory.adapters.metric_catalogue import methods_of
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.core.candidate import Extraction, ExtractionRequest
from hermes_memory.errors import ExtractionFailed, IndexUnavailable, LeaseLost, LedgerUnavailable
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.builders import KEY, NOW, a_turn
from tests.unit.test_metrics import samples


class Behind:
    """Answers every call with its name and arguments, or raises what is set."""

    raises: BaseException | None = None
    marked = "an attribute of the adapter"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.raises is not None:
                raise self.raises
            return name, args, kwargs

        return call


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics()


@pytest.fixture
def behind() -> Any:
    return Behind()


def seen(metrics: PrometheusMetrics, name: str) -> dict[Any, float]:
    return {labels: value for labels, value in samples(metrics.render(), name).items() if value}


async def test_every_call_of_a_port_goes_through_and_is_timed(
    metrics: PrometheusMetrics, behind: Any
) -> None:
    for port, measured, what in (
        (Ledger, measured_ledger(behind, metrics), "ledger"),
        (VectorIndex, measured_index(behind, metrics), "index"),
    ):
        for name in sorted(methods_of(port) - {"claim_epoch", "renew_lease"}):
            assert await getattr(measured, name)(1, b=2) == (name, (1,), {"b": 2})
            assert seen(metrics, f"hermes_{what}_seconds_count")[("method", name),] == 1
        assert seen(metrics, f"hermes_{what}_failures_total") == {}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LedgerUnavailable("x"), "ledger_unavailable"), (TimeoutError(), "timeout"), (ValueError("what ana said"), "internal"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)  # fmt: skip
async def test_a_call_that_raises_is_counted_by_code_and_timed(
    metrics: PrometheusMetrics, behind: Any, error: BaseException, code: str
) -> None:
    behind.raises = error
    with pytest.raises(type(error)) as raised:
        await measured_ledger(behind, metrics).ping()
    assert raised.value is error
    assert seen(metrics, "hermes_ledger_failures_total") == {(("code", code), ("method", "ping")): 1.0}
    assert seen(metrics, "hermes_ledger_seconds_count") == {(("method", "ping"),): 1.0}


async def test_the_rest_of_the_adapter_is_reached(metrics: PrometheusMetrics, behind: Any) -> None:
    measured: Any = measured_ledger(behind, metrics)
    assert measured.marked == "an attribute of the adapter"
    assert await measured.vacuum() == ("vacuum", (), {})
    with pytest.raises(AttributeError):
        getattr(measured, "_".join(["", "private"]))


async def test_an_older_adapter_lacks_a_call_only_when_it_is_called(metrics: PrometheusMetrics) -> None:
    class Old:
        async def ping(self) -> str:
            return "here"

    measured: Any = measured_ledger(Old(), metrics)  # type: ignore[arg-type]
    assert await measured.ping() == "here"
    with pytest.raises(AttributeError):
        await measured.host_pool()


@pytest.mark.parametrize(
    ("error", "outcome"), [(None, "renewed"), (LeaseLost(), "lost"), (LedgerUnavailable("x"), "failed")]
)
async def test_what_becomes_of_a_lease(
    metrics: PrometheusMetrics, behind: Any, error: Exception | None, outcome: str
) -> None:
    behind.raises = error
    with pytest.raises(type(error)) if error else nullcontext():
        await measured_ledger(behind, metrics).renew_lease(3, 10.0, NOW)
    assert seen(metrics, "hermes_lease_renewals_total") == {(("outcome", outcome),): 1.0}


async def test_the_epoch_is_shown(metrics: PrometheusMetrics) -> None:
    class Leases:
        async def claim_epoch(self, *args: Any) -> int:
            return 17

    assert await measured_ledger(Leases(), metrics).claim_epoch("a", 10.0, NOW) == 17  # type: ignore[arg-type]
    assert seen(metrics, "hermes_host_epoch") == {(): 17.0}


class Reader:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def distil(self, request: ExtractionRequest) -> Distilled:
        if self.error:
            raise self.error
        return Distilled(Extraction(extractor="x", candidates=()), np.zeros((0, 4), np.float32))

    async def embed(self, texts: Any) -> Any:
        return np.zeros((len(texts), 4), np.float32)


async def test_batches_and_turns_are_counted_also_when_they_fail(metrics: PrometheusMetrics) -> None:
    request = ExtractionRequest(turns=(a_turn(), a_turn(index=1)))
    fine: Distiller = measured_distiller(Reader(), metrics)
    assert (await fine.distil(request)).extraction.candidates == ()
    assert (await fine.embed(["a"])).shape == (1, 4)
    with pytest.raises(ExtractionFailed):
        await measured_distiller(Reader(ExtractionFailed("x")), metrics).distil(request)
    assert seen(metrics, "hermes_extraction_batches_total") == {(): 2.0}
    assert seen(metrics, "hermes_extraction_turns_total") == {(): 4.0}
    assert seen(metrics, "hermes_distiller_failures_total") == {
        (("code", "extraction_failed"), ("method", "distil")): 1.0
    }
    timed = seen(metrics, "hermes_distiller_seconds_count")
    assert timed == {(("method", "distil"),): 2.0, (("method", "embed"),): 1.0}


async def test_an_index_outage_is_counted(metrics: PrometheusMetrics, behind: Any) -> None:
    behind.raises = IndexUnavailable("x")
    with pytest.raises(IndexUnavailable):
        await measured_index(behind, metrics).drop(KEY)
    assert seen(metrics, "hermes_index_failures_total") == {
        (("code", "index_unavailable"), ("method", "drop")): 1.0
    }
