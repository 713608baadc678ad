"""Everything a campaign runs on: real Redis behind a faulty relay, real Weaviate, Ray nodes, the app, a rogue host."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import psutil

from hermes_memory.config import Settings, load_settings
from tests.chaos.proxy import FaultyProxy

if TYPE_CHECKING:
    from tests.servers import RedisServer, WeaviateServer

READY_S = 120.0
HOSTS, REPLICAS = 3, 2
NODE_CPUS = 4
LOST_NODES = {"RAY_health_check_failure_threshold": "3", "RAY_health_check_period_ms": "1000"}
DATA_DIR = "HERMES_DATA_DIR"  # every process of the app carries it in its environment
HOST, INGRESS, DISTILLER = (
    "ray::UserActorHost",
    "ray::ServeReplica:hermes:Ingress",
    "ray::ServeReplica:hermes:Distiller",
)


@dataclass
class World:
    """Started once for a campaign; ``folder`` is empty and its own."""

    folder: Path
    redis: RedisServer
    weaviate: WeaviateServer
    proxy: FaultyProxy | None = None
    cluster: Any = None
    nodes: list[Any] = field(default_factory=list)
    port: int = 0
    settings: Settings | None = None

    @classmethod
    def made(cls, folder: Path) -> Self:
        """A world with servers of its own under ``folder``, not yet started."""
        from tests.servers import RedisServer, WeaviateServer

        return cls(folder, RedisServer(folder / "redis"), WeaviateServer(folder / "weaviate"))

    @property
    def url(self) -> str:
        """Where the app answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def relay(self) -> FaultyProxy:
        """The relay to Redis."""
        if self.proxy is None:
            raise AssertionError("the world is not started")
        return self.proxy

    def start(self) -> None:
        """Servers, nodes, hosts, app."""
        self.redis.start()
        self.weaviate.start()
        self.proxy = FaultyProxy("127.0.0.1", self.redis.port)
        self.proxy.start()
        self.port = _free_port()
        self.settings = self.settings_for(self.proxy.port)
        self._start_ray()
        self._start_app()
        self.wait_ready()

    def settings_for(self, redis_port: int) -> Settings:
        """The cluster configuration, quick to notice trouble, and with room for everything that is said."""
        return load_settings(
            None,
            {
                "preset": "episodic",
                "ledger": {"kind": "redis", "url": f"redis://127.0.0.1:{redis_port}/0", "timeout_s": 2.0},
                "index": {
                    "kind": "weaviate", "url": self.weaviate.url, "grpc_port": self.weaviate.grpc_port,
                    "read_timeout_s": 2.0,
                },
                "embedder": {"kind": "hash", "calibration": "hash"},
                "capacity": {"working": 100_000, "longterm": 100_000, "core": 1_000},
                "batch": {"delay_s": 0.05},
                "actors": {
                    "hosts": HOSTS, "lease_s": 3.0, "housekeeping_s": 1.0, "call_timeout_s": 2.5,
                    "deadline_s": 15.0,
                },
                "serve": {"port": self.port, "ingress_replicas": REPLICAS},
            },
        )  # fmt: skip

    def _start_ray(self) -> None:
        os.environ[DATA_DIR] = str(self.folder.resolve())
        os.environ.setdefault("RAY_AUTH_MODE", "disabled")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        os.environ.update(LOST_NODES)
        import ray
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 100 * 1024 * 1024, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": NODE_CPUS, **small})
        self.nodes = [self.add_node() for _ in range(2)]
        ray.init(address=self.cluster.address, namespace="hermes", log_to_driver=False)

    def add_node(self) -> Any:
        """One more node that may carry hosts."""
        node = self.cluster.add_node(
            num_cpus=NODE_CPUS, resources={"user_host": 8}, object_store_memory=100 * 1024 * 1024
        )
        self.cluster.wait_for_nodes()
        return node

    def _start_app(self) -> None:
        from ray import serve

        from actors.distiller import APP
        from serve_app.deployments import bind

        if self.settings is None:
            raise AssertionError("the world is not started")
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})
        serve.run(bind(self.settings, str(self.folder)), name=APP, route_prefix="/")

    def wait_ready(self, within_s: float = READY_S) -> None:
        """Wait until every dependency answers."""
        deadline, answer = time.monotonic() + within_s, "no answer"
        while time.monotonic() < deadline:
            try:
                response = httpx.get(f"{self.url}/readyz", timeout=10, trust_env=False)
            except httpx.HTTPError as error:
                answer = type(error).__name__
            else:
                answer = response.text
                if response.status_code == httpx.codes.OK:
                    return
            time.sleep(0.2)
        raise AssertionError(f"not ready after {within_s} s: {answer[:1000]}")

    def pids(self, title: str) -> list[int]:
        """The processes of the app that go by this title, oldest first."""
        found = []
        for process in psutil.process_iter(["cmdline", "create_time"]):
            command = process.info["cmdline"] or []
            if command and command[0].startswith(title) and _of(process, self.folder):
                found.append((process.info["create_time"], process.pid))
        return [pid for _, pid in sorted(found)]

    def stop(self) -> None:
        """End everything, whatever state it is in."""
        import ray

        for pid in [*self.pids("ray::")]:
            _signal(pid, signal.SIGCONT)
        ray.shutdown()
        if self.cluster is not None:
            self.cluster.shutdown()
        for process in psutil.process_iter():
            if process.pid != os.getpid() and _of(process, self.folder):
                _signal(process.pid, signal.SIGKILL)
        if self.proxy is not None:
            self.proxy.stop()
        self.weaviate.stop()
        self.redis.stop()


def new_run() -> str:
    """A short name that no other campaign has."""
    return uuid.uuid4().hex[:6]


def _of(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.environ().get(DATA_DIR) == str(folder.resolve())
    except (psutil.Error, OSError):
        return False


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it is gone already
        os.kill(pid, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
