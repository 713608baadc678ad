"""Readiness names every dependency, whatever goes wrong with it, and says what the product can do without."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.config import load_settings
from hermes_memory.errors import IndexUnavailable, LeaseLost, LedgerUnavailable
from serve_app.api import create_app
from serve_app.probes import SPARE, hosts_probe, store_probe
from serve_app.routes import health
from serve_app.services import Probe
from tests.unit.test_metrics import samples

API = load_settings().api


async def fine() -> dict[str, Any]:
    return {"embedder": "e5"}


async def away() -> dict[str, Any]:
    raise LedgerUnavailable("it is away")


async def no_index() -> dict[str, Any]:
    raise IndexUnavailable("it is away")


async def broken() -> dict[str, Any]:
    raise ZeroDivisionError("what ana said")


async def slow() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


@asynccontextmanager
async def asking(probes: Mapping[str, Probe], **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an app that depends on what the probes ask."""
    services = SimpleNamespace(metrics=PrometheusMetrics(), probes=dict(probes), spare=SPARE, **more)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield services

    app = create_app(opened, API)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hermes")
    async with app.router.lifespan_context(app), client:
        yield client


async def ready(probes: Mapping[str, Probe]) -> tuple[int, dict[str, Any]]:
    async with asking(probes) as client:
        answer = await client.get("/readyz")
        return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("probe", "found"),
    [
        (fine, {"ok": True, "embedder": "e5"}), (away, {"ok": False, "code": "ledger_unavailable"}),
        (broken, {"ok": False, "code": "internal"}), (slow, {"ok": False, "code": "timeout"}),
    ],
)  # fmt: skip
async def test_a_dependency_answers_or_is_named(
    probe: Probe, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "PROBE_TIMEOUT_S", 0.01)
    checked = await health._check(probe)
    assert checked.pop("latency_ms") >= 0
    assert checked == found
    assert "what ana said" not in caplog.text


async def test_all_are_there() -> None:
    status, body = await ready({"ledger": fine, "distiller": fine})
    assert (status, body["status"]) == (200, "ready")
    assert [check["needed"] for check in body["checks"].values()] == [True, False]


@pytest.mark.parametrize(("name", "probe"), [("index", no_index), ("distiller", slow), ("index", broken)])
async def test_without_a_spare_one_it_works_on_and_says_so(
    name: str, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PROBE_TIMEOUT_S", 0.05)
    status, body = await ready({"ledger": fine, name: probe})
    assert (status, body["status"]) == (200, "degraded")
    assert body["checks"][name]["ok"] is False
    assert body["checks"]["ledger"]["ok"] is True


@pytest.mark.parametrize("name", ["ledger", "hosts"])
async def test_without_what_it_needs_it_is_not_ready(name: str) -> None:
    status, body = await ready({"index": no_index, name: away})
    assert (status, body["status"]) == (503, "not_ready")
    assert body["checks"][name] == {
        "needed": True, "ok": False, "code": "ledger_unavailable", "latency_ms": body["checks"][name]["latency_ms"],
    }  # fmt: skip


async def test_probes_run_together_and_no_longer_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PROBE_TIMEOUT_S", 0.5)
    started = time.monotonic()
    status, body = await ready(dict.fromkeys(("ledger", "hosts", "index", "distiller"), slow))
    assert status == 503
    assert {check["code"] for check in body["checks"].values()} == {"timeout"}
    assert time.monotonic() - started < 1.9  # one after the other they would take 2


async def test_the_process_answers_whatever_is_away() -> None:
    async with asking({"ledger": away}) as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


# hosts


def hosts(**answers: Mapping[str, Any] | BaseException) -> Probe:
    async def stats() -> Mapping[str, Mapping[str, Any] | BaseException]:
        return answers

    return hosts_probe(stats)


async def test_each_host_is_named() -> None:
    status, body = await ready({"hosts": hosts(a={"awake": 3}, b={"awake": 5})})
    assert (status, body["status"]) == (200, "ready")
    assert body["checks"]["hosts"]["hosts"] == [
        {"host": "a", "ok": True, "awake": 3}, {"host": "b", "ok": True, "awake": 5},
    ]  # fmt: skip


async def test_a_host_that_is_away_degrades_its_users_only() -> None:
    status, body = await ready({"hosts": hosts(a={"awake": 3}, b=TimeoutError(), c=LeaseLost())})
    assert (status, body["status"]) == (200, "degraded")
    named = {host["host"]: host.get("code") for host in body["checks"]["hosts"]["hosts"]}
    assert named == {"a": None, "b": "timeout", "c": "lease_lost"}


async def test_with_no_host_at_all_it_is_not_ready() -> None:
    status, body = await ready({"hosts": hosts(a=TimeoutError(), b=ZeroDivisionError("what ana said"))})
    assert (status, body["status"]) == (503, "not_ready")
    assert [host["code"] for host in body["checks"]["hosts"]["hosts"]] == ["timeout", "internal"]
    assert "ana" not in str(body)


async def test_hosts_that_come_with_their_users_need_not_stand_there() -> None:
    status, body = await ready({"hosts": hosts()})
    assert (status, body["status"]) == (200, "ready")


class Store:
    def __init__(self) -> None:
        self.pinged = 0

    async def ping(self) -> None:
        self.pinged += 1


async def test_a_store_is_asked_by_its_own_ping() -> None:
    store: Any = Store()
    assert await store_probe(store, "redis")() == {"kind": "redis"}
    assert store.pinged == 1


# metrics


async def test_the_metrics_tell_which_process_is_away() -> None:
    host = PrometheusMetrics()
    host.gauge("hermes_users_awake", 3)

    async def scrape() -> dict[str, bytes | None]:
        return {"hermes-host-0": host.render(), "hermes-host-1": None}

    async with asking({}, process="ingress-7", scrape=scrape) as client:
        answer = await client.get("/metrics")
    assert samples(answer.content, "hermes_up") == {
        (("process", "ingress-7"),): 1.0, (("process", "hermes-host-0"),): 1.0, (("process", "hermes-host-1"),): 0.0,
    }  # fmt: skip
    awake = samples(answer.content, "hermes_users_awake")
    assert awake == {(("process", "hermes-host-0"),): 3.0, (("process", "ingress-7"),): 0.0}
