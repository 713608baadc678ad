"""Health: the process, its dependencies by name, and metrics (API, Operators)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from hermes_memory.adapters.metrics import merged
from hermes_memory.core.failures import told
from hermes_memory.errors import HermesError
from hermes_memory.ports.metrics import code_of
from serve_app.services import Probe, Services_

router = APIRouter(tags=["health"])
log = logging.getLogger(__name__)

PROBE_TIMEOUT_S = 5.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz", summary="The process answers")
async def healthz() -> dict[str, str]:
    """Nothing else is asked."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Whether it can work, and what with",
    responses={503: {"description": "something it cannot work without does not answer"}},
)
async def readyz(at: Services_, response: Response) -> dict[str, Any]:
    """Asks every dependency at once. 200 ``ready`` or ``degraded``; 503 when it cannot work without one that is away."""
    results = await asyncio.gather(*(_check(probe) for probe in at.probes.values()))
    checks = {
        name: {"needed": name not in at.spare, **result}
        for name, result in zip(at.probes, results, strict=True)
    }
    status = _status(checks)
    response.status_code = 503 if status == "not_ready" else 200
    return {"status": status, "checks": checks}


def _status(checks: Mapping[str, Mapping[str, Any]]) -> str:
    if any(check["needed"] and not check["ok"] for check in checks.values()):
        return "not_ready"
    whole = all(check["ok"] and not check.get("degraded") for check in checks.values())
    return "ready" if whole else "degraded"


async def _check(probe: Probe) -> dict[str, Any]:
    """Whether a dependency answers, in how many milliseconds, and else a code that says why not."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            found = {"ok": True, **await probe()}
    except (HermesError, TimeoutError) as error:
        found = {"ok": False, "code": code_of(error)}
    except Exception as error:  # noqa: BLE001  # whatever is wrong with it, it is named
        log.error("a dependency could not be probed: %s", told(error))
        found = {"ok": False, "code": code_of(error)}
    return {**found, "latency_ms": round((time.perf_counter() - started) * 1000, 1)}


@router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics(at: Services_) -> Response:
    """In the text format of Prometheus; the label ``process`` tells the ingress from the hosts."""
    own, others = await asyncio.gather(asyncio.to_thread(at.metrics.render), at.scrape())
    text = await asyncio.to_thread(merged, {at.process: own, **others})
    return Response(text, media_type=METRICS_TYPE)
