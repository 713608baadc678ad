"""A Ray cluster without a GPU that gets a node with one; the app and its language model as `hermes serve` deploys them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes_memory.config import Settings, load_settings
from tests.cluster.harness import free_port
from tests.cluster.nodes import ROOT, STORE_BYTES
from tests.engine.settings import ENVIRONMENT, overrides

LOAD_S = 240.0  # an engine takes 40 s on an idle machine
# A batch that the model cannot read now is asked about again until it can: nothing goes by the rules here.
PATIENT = {"batch": {"attempts": 200, "backoff_s": 1e-6}}


class EngineCluster:
    """The head and what it carries. ``said`` is what the launcher tells a person."""

    def __init__(self, cluster: Any, port: int, settings: Settings) -> None:
        self.cluster, self.settings, self.said = cluster, settings, ""
        self.url = f"http://127.0.0.1:{port}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    def deploy(self, data: Path) -> None:
        """The app, and the model beside it, which nobody waits for."""
        from ray import serve

        from actors.distiller import APP
        from actors.model import standing
        from serve_app.deployments import bind
        from serve_app.model_deployment import deploy, told_of_model

        serve.run(bind(self.settings, str(data)), name=APP, route_prefix="/")
        deploy(self.settings)
        self.said = told_of_model(self.settings, standing(self.settings.extractor.num_gpus))

    def add_gpu(self) -> Any:
        """A node that says it has a GPU."""
        return self.cluster.add_node(wait=True, num_cpus=1, num_gpus=1, object_store_memory=STORE_BYTES)

    def wait_for_model(self, but_pid: int = 0) -> dict[str, Any]:
        """Until readiness says that it is ready; returns what the replica says of itself, once it is another one."""
        deadline, seen = time.monotonic() + LOAD_S, ""
        while time.monotonic() < deadline:
            with self.client() as http:
                seen = http.get("/readyz").json()["checks"]["extractor"].get("state", "")
            found = self.replica() if seen == "ready" else None
            if found and found["pid"] != but_pid:
                return found
            time.sleep(0.5)
        raise AssertionError(f"the extractor is {seen}")

    def replica(self) -> dict[str, Any] | None:
        """What the model's replica says of itself; None of one that has just died."""
        from ray import serve
        from ray.exceptions import RayError

        from actors.model import APP, DEPLOYMENT

        try:
            found: dict[str, Any] = (
                serve.get_deployment_handle(DEPLOYMENT, APP).ready.remote().result(timeout_s=60)
            )
        except RayError:
            return None
        return found


@contextmanager
def engine_cluster(data: Path) -> Iterator[EngineCluster]:
    """Start it with the app on it, and leave nothing behind."""
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    data.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0",
            "PYTHONPATH": str(ROOT), "HERMES_DATA_DIR": str(data), **ENVIRONMENT,
        }.items():  # fmt: skip
            patch.setenv(name, value)
        quiet = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 0, **quiet})
        try:
            ray.init(address=cluster.address, namespace="hermes", log_to_driver=False)
            port = free_port()
            serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
            running = EngineCluster(cluster, port, load_settings(None, overrides() | PATIENT))
            running.deploy(data)
            yield running
        finally:
            if ray.is_initialized():
                serve.shutdown()  # type: ignore[no-untyped-call]
                ray.shutdown()
            cluster.shutdown()  # type: ignore[no-untyped-call]
