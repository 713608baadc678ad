"""A Ray cluster of three nodes on this machine, and the app on it as `serve run` deploys it: no launcher."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from hermes_memory.config import load_settings
from tests.cluster.harness import READY_S, free_port

ROOT = Path(__file__).parents[2]
STORE_BYTES = 100 * 1024 * 1024
# A node counts as lost after that many looks in vain; Ray's defaults, 5 and 3000, make it 15 s and more.
LOST_NODES = {"RAY_health_check_failure_threshold": "3", "RAY_health_check_period_ms": "1000"}
CONFIG: dict[str, Any] = {
    "embedder": {"kind": "hash", "calibration": "hash"},
    "actors": {
        "hosts": 2, "ping_s": 1.0, "stuck_s": 4.0, "call_timeout_s": 4.0, "lease_s": 6.0, "housekeeping_s": 2.0,
    },
    "serve": {"ingress_replicas": 2, "drain_s": 2.0},
}  # fmt: skip


class Nodes:
    """A head without hosts and two nodes that declare `user_host`; the app has two ingress replicas."""

    def __init__(self, cluster: Any, port: int, data: Path) -> None:
        self.cluster, self.data = cluster, data
        self.url = f"http://127.0.0.1:{port}"

    def client(self, timeout_s: float = 60) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=timeout_s, trust_env=False)

    def hosts(self, but: Collection[int] = ()) -> dict[str, dict[str, Any]]:
        """What each host says of itself, by name; waits while one is away, or is still one of the processes ``but``."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            with self.client() as http:
                try:
                    found = http.get("/readyz").json()["checks"]["hosts"]["hosts"]
                except (httpx.HTTPError, ValueError, KeyError):
                    found = []
            if found and all(host["ok"] and host["pid"] not in but for host in found):
                return {host["host"]: host for host in found}
            time.sleep(0.2)
        raise AssertionError("the hosts do not come back")

    def scale(self, hosts: int) -> dict[str, Any]:
        with self.client() as http:
            answer = http.post("/v1/admin/hosts", json={"hosts": hosts})
        assert answer.status_code == 200, answer.text
        pool: dict[str, Any] = answer.json()
        return pool

    def deploy(self, config: dict[str, Any]) -> None:
        """Deploy the app, again or for the first time; returns when the replicas of before are gone."""
        from ray import serve

        from actors.distiller import APP
        from serve_app.deployments import bind

        serve.run(bind(load_settings(None, config), str(self.data)), name=APP, route_prefix="/")

    def pool(self) -> dict[str, Any]:
        with self.client() as http:
            found: dict[str, Any] = http.get("/v1/admin/hosts").json()
        return found

    def node_of(self, pid: int) -> Any:
        """The worker node whose raylet started the process."""
        parents = {parent.pid for parent in psutil.Process(pid).parents()}
        for node in self.cluster.worker_nodes:
            if {info.process.pid for info in node.all_processes["raylet"]} & parents:
                return node
        return None


@contextmanager
def three_nodes(data: Path) -> Iterator[Nodes]:
    """Start it, yield it, and leave nothing behind."""
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    data.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0",
            "PYTHONPATH": str(ROOT), "HERMES_DATA_DIR": str(data), **LOST_NODES,
        }.items():  # fmt: skip
            patch.setenv(name, value)
        quiet = {"include_dashboard": False, "object_store_memory": STORE_BYTES}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **quiet})
        try:
            for _ in range(2):
                cluster.add_node(
                    wait=False, num_cpus=2, resources={"user_host": 4}, object_store_memory=STORE_BYTES
                )
            ray.init(address=cluster.address, namespace="hermes", log_to_driver=False)
            cluster.wait_for_nodes()
            port = free_port()
            serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
            nodes = Nodes(cluster, port, data)
            nodes.deploy(CONFIG)
            yield nodes
        finally:
            if ray.is_initialized():
                serve.shutdown()  # type: ignore[no-untyped-call]
                ray.shutdown()
            cluster.shutdown()  # type: ignore[no-untyped-call]
