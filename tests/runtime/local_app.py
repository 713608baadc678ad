"""The HTTP app over user actors in this process: all routes and gates, no Ray. Also a script for quick trials:

python -m tests.runtime.local_app DATA PORT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from hermes_memory.adapters.measured import measured_ledger
from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.distil import LocalDistiller
from hermes_memory.config import Settings, load_settings
from hermes_memory.ports.embedder import Embedder
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_ledger, build_policy
from serve_app.api import create_app
from serve_app.probes import SPARE, hosts_probe, store_probe
from serve_app.services import Services

WITHOUT_MODEL: dict[str, Any] = {
    "embedder": {"kind": "hash", "calibration": "hash"},
    "ledger": {"synchronous": "NORMAL"},
}


def local_app(data: Path, settings: Settings | None = None, embedder: Embedder | None = None) -> FastAPI:
    """The app with everything behind it in this process; ``data`` must exist. Reads files: not in an event loop."""
    chosen = settings or load_settings(None, WITHOUT_MODEL)
    embedder, policy = embedder or build_embedder(chosen), build_policy(chosen)
    metrics, hosts_metrics = PrometheusMetrics(), PrometheusMetrics()
    distiller = build_distiller(chosen, embedder)
    host = build_host("local", chosen, data, distiller, embedder.info, metrics=hosts_metrics)
    ledger = measured_ledger(build_ledger(chosen, data), metrics)

    async def stats() -> dict[str, dict[str, Any]]:
        return {host.name: host.stats()}

    async def scrape() -> dict[str, bytes | None]:
        host.measure()
        return {host.name: await asyncio.to_thread(hosts_metrics.render)}

    @asynccontextmanager
    async def open_services() -> AsyncIterator[Services]:
        await host.start()
        await ledger.open(embedder.info)

        try:
            yield Services(
                users=LocalUsers(host),
                ledger=ledger,
                embedder=embedder,
                policy=policy,
                settings=chosen,
                metrics=metrics,
                probes={"ledger": store_probe(ledger, chosen.ledger.kind), "hosts": hosts_probe(stats)},
                spare=SPARE,
                scrape=scrape,
            )
        finally:
            await ledger.close()
            await host.stop()
            if isinstance(distiller, LocalDistiller):
                await distiller.aclose()

    return create_app(open_services, chosen.api)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(local_app(Path(sys.argv[1]), load_settings()), port=int(sys.argv[2]), log_level="warning")
