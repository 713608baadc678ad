"""A Weaviate of this machine: one node, its ports and its environment, and whether it answers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from hermes_cli.services.ports import free_run
from hermes_cli.services.processes import Launch
from hermes_cli.services.settings import PortRange, WeaviateSettings

NAME = "weaviate"
USUAL_GRPC_PORT = 50051
KEY_ENV = "WEAVIATE_API_KEY"
ANSWER_S = 2.0
MOST_PROCESSORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WeaviatePorts:
    """Its six ports. A restart on the same data may have other ones (tried)."""

    http: int
    grpc: int
    gossip: int
    data: int  # must be gossip + 1
    raft: int
    raft_rpc: int  # must be raft + 1 on a node in localhost

    @classmethod
    def free(cls, within: PortRange, *, http: int | None = None, grpc: int | None = None) -> WeaviatePorts:
        """Free ones; the two that clients use may be given."""
        given = frozenset(port for port in (http, grpc) if port is not None)
        run = free_run(6, within, given)
        return cls(
            gossip=run[0], data=run[1], raft=run[2], raft_rpc=run[3], http=http or run[4], grpc=grpc or run[5]
        )

    @property
    def all(self) -> list[int]:
        """All six."""
        return list(asdict(self).values())


def weaviate_url_of(ports: WeaviatePorts) -> str:
    """The address for clients; gRPC has a port of its own."""
    return f"http://127.0.0.1:{ports.http}"


def weaviate_launch(
    binary: Path,
    folder: Path,
    ports: WeaviatePorts,
    settings: WeaviateSettings,
    environment: Mapping[str, str] | None = None,
    key: str = "",
) -> Launch:
    """``environment`` goes on top of the settings' one; with a ``key`` it answers nobody who does not send it."""
    own = {
        **settings.environment,
        "PERSISTENCE_DATA_PATH": str(folder.absolute()),
        "GRPC_PORT": str(ports.grpc),
        "CLUSTER_GOSSIP_BIND_PORT": str(ports.gossip),
        "CLUSTER_DATA_BIND_PORT": str(ports.data),
        "RAFT_PORT": str(ports.raft),
        "RAFT_INTERNAL_RPC_PORT": str(ports.raft_rpc),
        # One node talks to itself over this port, which listens everywhere: nobody else may.
        "CLUSTER_BASIC_AUTH_USERNAME": "node",
        "CLUSTER_BASIC_AUTH_PASSWORD": secrets.token_urlsafe(24),
        "GOMAXPROCS": str(min(os.cpu_count() or 1, MOST_PROCESSORS)),
        **(_keyed(key) if key else {}),
        **(environment or {}),
    }
    argv = (str(binary), "--host", "127.0.0.1", "--port", str(ports.http), "--scheme", "http")
    return Launch(
        name=NAME, argv=argv, environment=own, folder=folder, ready_s=settings.ready_s,
        answers=lambda pid: is_ready(weaviate_url_of(ports)),
    )  # fmt: skip


def _keyed(key: str) -> dict[str, str]:
    return {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": key,
        "AUTHENTICATION_APIKEY_USERS": "hermes",
    }


def is_ready(url: str) -> bool:
    """Whether a Weaviate at ``url`` takes requests."""
    try:
        answer = httpx.get(f"{url}/v1/.well-known/ready", timeout=ANSWER_S, trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK
