"""Health: the process, its dependencies by name, and metrics (API, Operators)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from fastapi import APIRouter, Response

from hermes_memory.adapters.metrics import merged
from hermes_memory.errors import HermesError
from serve_app.services import Probe, Services_

router = APIRouter(tags=["health"])
log = logging.getLogger(__name__)

PROBE_TIMEOUT_S = 5.0


@router.get("/healthz", summary="The process answers")
async def healthz() -> dict[str, str]:
    """Nothing else is asked."""
    return {"status": "ok"}


@router.get("/readyz", summary="Every dependency answers", responses={503: {"description": "one does not"}})
async def readyz(at: Services_, response: Response) -> dict[str, Any]:
    """200 when all do; 503 names the ones that do not."""
    results = await asyncio.gather(*(_probe(probe) for probe in at.probes.values()))
    checks = dict(zip(at.probes, results, strict=True))
    ready = all(check["ok"] for check in checks.values())
    response.status_code = 200 if ready else 503
    return {"status": "ready" if ready else "not_ready", "checks": checks}


async def _probe(probe: Probe) -> dict[str, Any]:
    try:
        return {"ok": True, **await asyncio.wait_for(probe(), PROBE_TIMEOUT_S)}
    except HermesError as error:
        return {"ok": False, "code": error.code}
    except TimeoutError:
        return {"ok": False, "code": "timeout"}
    except Exception:
        log.exception("a dependency could not be probed")
        return {"ok": False, "code": "internal"}


@router.get("/metrics", summary="Prometheus metrics", response_class=Response)
async def metrics(at: Services_) -> Response:
    """In the text format of Prometheus; the label ``process`` tells the ingress from the hosts."""
    texts = {"ingress": at.metrics.render(), **await at.scrape()}
    return Response(merged(texts), media_type="text/plain; version=0.0.4")
